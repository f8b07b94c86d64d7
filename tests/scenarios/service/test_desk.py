"""The commands of a desktop's owner: what is asked, and what is printed of the answers."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.desktop.messages import (
    AddSession,
    CurrentRun,
    DesktopStatus,
    EngineStatus,
    History,
    ListSessions,
    Outbox,
    PastRun,
    RemoveSession,
    SaveSession,
    SessionList,
    SessionSaved,
    SessionState,
    Unsent,
)
from actors.graphs.messages import Approvals
from actors.messages import Disable, Enable, Noted, Rename, SessionMeta, Share, Unshare
from scenarios.problems import ScenarioError
from scenarios.service import desk as desks
from scenarios.service.desk import Desk

GRAPH = """
export const meta = { name: "Greet", description: "Greets." };
return await graph("polite", args);
"""
POLITE = 'export const meta = { name: "polite", description: "Polite." };\nreturn 1;\n'


def state(number: int, **how: Any) -> SessionState:
    meta = SessionMeta(id=f"gs_{number}", project="shop", name=f"S {number}", slug=f"s-{number}")
    usual = SessionState(meta=meta, shared=True, enabled=True, uploaded=True)
    return msgspec.structs.replace(usual, **how)


STATUS = DesktopStatus(
    up_us=9_000_000,
    slots=1,
    running=(
        CurrentRun(
            command_id="c-1",
            execution_id="e-1",
            session="gs_1",
            slug="s-1",
            phase="running",
            for_us=3_500_000,
        ),
    ),
    waiting=2,
    outbox=1,
    outbox_age_us=60_000_000,
    synced_us=1_200_000,
    silent=0,
    writable=True,
    refuses=None,
    sessions=3,
    uploaded=2,
    left_out=0,
    adopted=0,
)
ENGINE = EngineStatus(up_us=1, running=1, waiting=0, saved=3, unreported=0, writable=True)
NONE = Approvals(waiting=())


class Asked(Desk):
    """A desk whose desktop answers by the type of what is asked."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(Path("desktop.sock"))
        self.answers = answers
        self.asked: list[Any] = []

    def ask(self, body: Any, target: str = "relay") -> Any:
        self.asked.append(body)
        answer = self.answers[type(body).__name__]
        return answer.pop(0) if isinstance(answer, list) else answer


def listing(*states: SessionState) -> SessionList:
    return SessionList(sessions=states, left_out=0)


def test_sessions_of_every_page_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        SessionList(
            sessions=(state(1), state(2, shared=False, uploaded=False)), left_out=0, next="s-2"
        ),
        listing(state(3, uploaded=False), state(4, enabled=False, uploaded=False)),
    ]
    desks.show_sessions(Asked(ListSessions=pages), json=False)
    assert capsys.readouterr().out.splitlines() == [
        "gs_1  s-1  shop  shared, version 1",
        "gs_2  s-2  shop  not shared, version 1",
        "gs_3  s-3  shop  shared, no room, version 1",
        "gs_4  s-4  shop  project disabled, version 1",
    ]
    desks.show_sessions(Asked(ListSessions=listing()), json=False)
    assert "pullcord desktop share GRAPH" in capsys.readouterr().err


def test_a_graph_is_added_with_what_it_may_call_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PULLCORD_GRAPHS", str(tmp_path / "saved"))
    for name, text in (("greet", GRAPH), ("polite", POLITE), ("other", POLITE)):
        (tmp_path / f"{name}.js").write_text(text)
    it = Asked(
        ListSessions=listing(state(1)), AddSession=SessionSaved(session=state(1)), Share=Noted()
    )
    assert desks.share(it, str(tmp_path / "greet.js"), "shop", None, json=False) == 0
    assert capsys.readouterr().out == "gs_1\n"
    _, added, shared = it.asked
    assert added == AddSession(
        name="Greet", project="shop", entry="greet", texts={"greet": GRAPH, "polite": POLITE}
    )
    assert shared == Share(session="gs_1")


def test_a_graph_that_is_shared_again_is_saved_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "polite.js").write_text(POLITE)
    there = state(1)
    meta = msgspec.structs.replace(there.meta, name="Polite", slug="polite", version=2)
    there = msgspec.structs.replace(there, meta=meta)
    it = Asked(
        ListSessions=listing(state(2), there),
        SaveSession=SessionSaved(session=there),
        Share=Noted(),
    )
    desks.share(it, str(tmp_path / "polite.js"), "shop", None, json=False)
    assert SaveSession(session="gs_1", entry="polite", texts={"polite": POLITE}) in it.asked
    assert "as polite, version 2" in capsys.readouterr().err


def test_a_graph_with_a_mistake_is_not_added(tmp_path: Path) -> None:
    (tmp_path / "bad.js").write_text('export const meta = { name: "bad" };\nreturn (;')
    it = Asked()
    with pytest.raises(ScenarioError, match=r"bad\.js"):
        desks.share(it, str(tmp_path / "bad.js"), "shop", None, json=False)
    assert it.asked == []


@pytest.mark.parametrize("named", ["gs_2", "s-2", "S 2"])
def test_a_session_goes_by_id_slug_or_name(named: str) -> None:
    it = Asked(ListSessions=listing(state(1), state(2)), Share=Noted(), Unshare=Noted())
    desks.share(it, named, None, None, json=True)
    assert Share(session="gs_2") in it.asked
    desks.unshare(it, named, json=False)
    assert Unshare(session="gs_2") in it.asked


def test_sessions_are_renamed_and_removed_and_projects_switched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    it = Asked(
        ListSessions=listing(state(1)), Rename=Noted(), RemoveSession=Noted(), Enable=Noted(),
        Disable=Noted(),
    )  # fmt: skip
    desks.rename(it, "s-1", "New", json=False)
    desks.remove(it, "S 1", json=False)
    desks.enable(it, "shop", enabled=False, json=False)
    desks.enable(it, "shop", enabled=True, json=True)
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "pullcord: S 1 is called New now",
        "pullcord: S 1 is removed",
        "pullcord: shop is disabled on this desktop",
    ]
    assert [one["meta"]["id"] for one in json.loads(told.out)] == ["gs_1"]
    assert [body for body in it.asked if not isinstance(body, ListSessions)] == [
        Rename(session="gs_1", name="New"),
        RemoveSession(session="gs_1"),
        Disable(project="shop"),
        Enable(project="shop"),
    ]
    with pytest.raises(ScenarioError, match="no session here is of this project"):
        desks.enable(it, "shpo", enabled=False, json=False)


def test_a_session_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    it = Asked(ListSessions=listing(state(1)))
    with pytest.raises(ScenarioError, match=r'(?s)no such session.*did you mean "s-1"'):
        desks.unshare(it, "s1", json=False)
    assert capsys.readouterr().out == ""


def test_the_history_is_listed_up_to_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    run = PastRun(
        number=1,
        command_id="c-1",
        execution_id="e-1",
        session="gs_1",
        slug="s-1",
        version=1,
        started_us=1,
        finished_us=2_000_000,
        status="failed",
        total_tokens=1234,
        error="it broke\nin two lines",
    )
    pages = [History(runs=(run, run), next=5), History(runs=(run,), next=4)]
    desks.show_history(Asked(ListHistory=list(pages)), None, 3, json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith("c-1  s-1  failed, 1,234 tokens  it broke")
    executes = msgspec.structs.replace(run, finished_us=None, status="running", error=None)
    desks.show_history(Asked(ListHistory=History(runs=(executes,))), None, 3, json=False)
    line = "still running  c-1  s-1  running, 1,234 tokens\n"
    assert capsys.readouterr().out == line
    desks.show_history(Asked(ListHistory=History(runs=())), None, 3, json=True)
    assert json.loads(capsys.readouterr().out) == []


def test_the_outbox_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    one = Unsent(order=1, command_id="c-1", execution_id="e", status="completed", age_us=61_000_000)
    pages = [Outbox(unsent=(one,), depth=2, next=1), Outbox(unsent=(one,), depth=2)]
    desks.show_outbox(Asked(ListOutbox=pages), json=False)
    assert capsys.readouterr().out == "c-1  completed, for 1m1s\n" * 2
    desks.show_outbox(Asked(ListOutbox=Outbox(unsent=(), depth=0)), json=False)
    assert "every result is with the server" in capsys.readouterr().err


def test_how_a_desktop_stands(capsys: pytest.CaptureFixture[str]) -> None:
    desks.show_status(
        Asked(GetDesktopStatus=STATUS, GetEngineStatus=ENGINE, ListApprovals=NONE), json=False
    )
    assert capsys.readouterr().out.splitlines() == [
        "synced     1s ago",
        "takes work yes",
        "running    c-1  s-1, for 3s",
        "waiting    2 of the server's runs, 0 at the engine",
        "outbox     1 results, the oldest for 1m",
        "sessions   2 of 3 shared",
        "disk       fine",
    ]
    desks.show_status(
        Asked(GetDesktopStatus=STATUS, GetEngineStatus=ENGINE, ListApprovals=NONE), json=True
    )
    assert json.loads(capsys.readouterr().out)["relay"]["waiting"] == 2


def test_without_a_desktop_it_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"(?s)no desktop runs here.*pullcord desktop run"):
        desks.show_status(Desk(tmp_path / "desktop.sock"), json=False)
    killed = socket.socket(socket.AF_UNIX)
    killed.bind(str(tmp_path / "desktop.sock"))
    killed.close()
    with pytest.raises(ScenarioError, match=r"(?s)no desktop runs here.*pullcord desktop run"):
        desks.show_status(Desk(tmp_path / "desktop.sock"), json=False)
