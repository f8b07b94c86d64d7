"""Tool calls that wait for a desktop's owner: as they are listed, and through a kill."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.graphs.messages import Approval, Approvals, Decide, Decided
from actors.messages import GetGraphRun
from scenarios.problems import ScenarioError
from scenarios.service import approvals
from scenarios.service.desk import Desk
from tests.scenarios.service.test_desk import Asked
from tests.scenarios.test_service import PROJECT, Deployment, Process

CALL = Approval(
    run="c-1",
    graph="notes",
    agent=2,
    label="writer",
    call=7,
    tool="shell__note",
    arguments={"text": "buy milk\nallow it?"},
    waited_us=5_000_000,
    left_us=600_000_000,
)
LISTED = """\
shell__note: agent 2 of notes wants to call it
  | label: writer
  | text: "buy milk\\nallow it?"
  it has waited 5 s; denied in 10 min
  pullcord desktop approvals allow|deny c-1 7
"""


def test_what_waits_is_listed_with_the_command_that_decides_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    approvals.show_approvals(Asked(ListApprovals=Approvals(waiting=(CALL,))), json=False)
    assert capsys.readouterr().out == LISTED
    approvals.show_approvals(Asked(ListApprovals=Approvals(waiting=(CALL,))), json=True)
    assert json.loads(capsys.readouterr().out)[0]["arguments"] == CALL.arguments
    approvals.show_approvals(Asked(ListApprovals=Approvals(waiting=())), json=False)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "pullcord: no tool call waits for you\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_watching_tells_each_call_once_and_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    pauses = iter([None, None])

    def sleep(_seconds: float) -> None:
        if next(pauses, "over") == "over":
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    pages = [Approvals(waiting=(CALL,)), Approvals(waiting=(CALL,)), Approvals(waiting=())]
    with pytest.raises(KeyboardInterrupt):
        approvals.watch_approvals(Asked(ListApprovals=pages), json=as_json)
    told = capsys.readouterr()
    if as_json:
        assert [json.loads(line)["call"] for line in told.out.splitlines()] == [7]
    else:
        assert (told.out, told.err) == (LISTED, "pullcord: c-1 7 waits no more\n")


def test_a_decision_goes_to_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    it = Asked(Decide=Decided(run="c-1", call=7, known=True))
    assert approvals.decide(it, "c-1", 7, allow=False, json=False) == 0
    assert it.asked == [Decide(run="c-1", call=7, allow=False)]
    assert capsys.readouterr().err == "pullcord: c-1 7 is denied\n"
    approvals.decide(it, "c-1", 7, allow=True, json=True)
    assert json.loads(capsys.readouterr().out) == {"run": "c-1", "call": 7, "known": True}


def test_a_call_that_does_not_wait_can_not_be_decided() -> None:
    it = Asked(Decide=Decided(run="c-1", call=8, known=False))
    with pytest.raises(ScenarioError, match=r"(?s)c-1 8: this call does not wait.*see: pullcord"):
        approvals.decide(it, "c-1", 8, allow=True, json=False)


# With processes

GRAPH = """
export const meta = { name: "notes", description: "Writes a note." };
return await agent("Note it.", { tools: ["shell__note"] });
"""
ANSWERS = """\
{"prompt": "Note it.", "calls": [{"id": "a", "tool": "shell__note",\
 "arguments": {"text": "milk"}}], "latency": "0s"}
{"prompt": "Note it.", "round": 1, "value": "noted", "latency": "0s"}
"""
NOTE = '#!/bin/sh\necho "$1" >> notes\n'
TOOLS = """\
[shell.note]
command = ["./note", "{{text}}"]
description = "Writes a note."
[approvals]
timeout = "{timeout}"
[graphs.notes]
shell__note = "ask"
"""


class WithTools(Deployment):
    """A deployment whose agents are recorded, and want a tool that is to be asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "note").write_text(NOTE)
        (folder / "note").chmod(0o700)
        (folder / "answers.jsonl").write_text(ANSWERS)
        self.allow_for("1h")
        (folder / "desktop" / "config.toml").write_text(
            f'backend = "recorded"\nanswers = "{folder}/answers.jsonl"\n'
            f'tools = "{folder}/tools.toml"\n[relay]\npoll = "300ms"\ncontrol = "100ms"\n'
            'timeout = "1s"\n[engine]\nreport = "300ms"\n'
        )

    def allow_for(self, timeout: str) -> None:
        (self.folder / "tools.toml").write_text(TOOLS.format(timeout=timeout))

    def share(self) -> None:
        (self.folder / "notes.js").write_text(GRAPH)
        done = self.command("desktop", "share", "notes.js", "--project", PROJECT)
        assert done.code == 0, done.err
        self.session = done.out.strip()

    def until_it_asks(self) -> Approval:
        """The call that waits, once one does."""
        desk = Desk(self.folder / "desktop" / "desktop.sock")
        while not (found := approvals.waiting_calls(desk)):
            threading.Event().wait(0.02)
        return found[0]

    def notes(self) -> list[str]:
        """What the tool has written."""
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[WithTools]:
    with WithTools(tmp_path) as made:
        yield made


def test_a_call_waits_for_its_owner_through_a_kill_and_is_made_once(deployed: WithTools) -> None:
    server = deployed.serve()
    deployed.introduce()
    desktop = deployed.run_desktop()
    deployed.share()
    deployed.until_listed()
    ticket = deployed.queue("Ada")
    asked = deployed.until_it_asks()
    assert (asked.run, asked.arguments) == (ticket, {"text": "milk"})
    assert "asks you   1 tool call waits" in deployed.command("desktop", "status").out
    while deployed.ask(GetGraphRun(command_id=ticket)).awaiting_approval != 1:
        threading.Event().wait(0.02)
    told = deployed.command("agent", "get", ticket).out
    assert told == f"{ticket}  running, 1 tool call waits for the desktop's owner\n"

    desktop.kill()
    desktop = deployed.run_desktop()
    again = deployed.until_it_asks()
    assert (again.run, again.call) == (ticket, asked.call)
    assert deployed.notes() == []
    allowed = deployed.command("desktop", "approvals", "allow", ticket, str(asked.call))
    assert allowed.code == 0, allowed.err
    assert deployed.until(ticket, "completed").result == "noted"
    assert deployed.notes() == ["milk"]
    late = deployed.command("desktop", "approvals", "deny", ticket, str(asked.call))
    assert late.code == 2
    assert "this call does not wait" in late.err

    nobody_answers_and_it_is_denied_in_time(deployed, desktop)
    assert server.stop() == 0


def nobody_answers_and_it_is_denied_in_time(it: WithTools, desktop: Process) -> None:
    assert desktop.stop() == 0
    it.allow_for("1s")
    it.run_desktop()
    assert it.until(it.queue("Bob"), "completed").result == "noted"
    assert it.notes() == ["milk"]
