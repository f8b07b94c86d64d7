"""Replaying a server's log: over several files and starts, and why where it can't be."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.accounts.messages import AuthenticateLocal
from actors.accounts.server import AccountedServer
from actors.actor import Place
from actors.stores.sqlite import SqliteStore
from logs.read import LogError
from logs.seek import raw_section
from scenarios.log_commands import lines
from scenarios.log_sections import chosen, is_deployed
from scenarios.promote import promote
from scenarios.replay import EVERYTHING, Replayed, Window
from scenarios.replay_report import report
from scenarios.service.config import ServerSettings
from scenarios.service.process import open_log, serve
from scenarios.service.recorded import RecordedActor
from scenarios.service.replaying import replay_starts, starts_of, the_start
from scenarios.service.world import ServiceWorld
from scenarios.step_files import stepper_of_process
from transports.envelope import Envelope
from transports.units import Size


class Door:
    """Lets the local owner in so many times, and then ends the process."""

    idle = True

    def __init__(self, world: ServiceWorld, times: int) -> None:
        self.world, self.left = world, times

    async def open(self) -> None:
        """Nothing is needed."""

    async def live(self) -> None:
        for at in range(self.left):
            body = AuthenticateLocal(address=f"address {at}")
            await self.world.enter(Envelope(self.world.number(), "gateway", "server", 0, 0, body))

    def take(self, envelope: Envelope[Any]) -> bool:
        self.left -= envelope.target == "gateway"
        if not self.left:
            os.kill(os.getpid(), signal.SIGTERM)
        return True

    def stop_reading(self) -> None:
        """Everything has been brought in."""


def serve_once(folder: Path, times: int = 5, kept: str = "SQLite", **log: Any) -> Path:
    """Let a server live for a few questions; the folder of its logs."""
    defaults = {"record": True, "log_files": 50, "log_size": Size(1 << 20)}
    settings = ServerSettings(**(defaults | log))
    world = ServiceWorld("server", lambda _: None)
    with closing(SqliteStore(folder / "server.db", synchronous=False)) as store:
        config = AccountedServer.Config()
        world.house("server", AccountedServer(config, Place(name="server")), store)
        world.edges.append(Door(world, times))
        actors = {"server": RecordedActor(kind="AccountedServer", store=kept)}
        serve(world, open_log("server", folder, settings, world, actors))
    return folder / "logs"


def files(logs: Path) -> list[Path]:
    return sorted(logs.iterdir())


def replayed(logs: Path, window: Window = EVERYTHING) -> Replayed:
    entries = chosen(logs)
    assert is_deployed(entries)
    return replay_starts(entries, window)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The logs of two starts, the second over several files."""
    serve_once(tmp_path)
    return serve_once(tmp_path, 60, log_size=Size(8_000))


def test_starts_are_replayed_one_after_another(logs: Path) -> None:
    assert len(files(logs)) > 4
    done = replayed(logs)
    assert (done.sections, done.truncated, done.divergence, done.left_out) == (2, 0, None, [])
    assert done.records > 130


def test_a_divergence_is_where_its_record_stands(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = AccountedServer.on_local_owner

    def other(self: Any, context: Any, envelope: Envelope[AuthenticateLocal]) -> Any:
        answer = method(self, context, envelope)
        wrong = envelope.body.address == "address 50"
        return msgspec.structs.replace(answer, name="another") if wrong else answer

    monkeypatch.setattr(AccountedServer, "on_local_owner", other)
    found = replayed(logs).divergence
    assert found is not None
    assert found.section == f"server, started in {files(logs)[1].name}"
    line = Path(found.path).read_text().splitlines()[found.line - 1]
    assert "address 50" in line
    assert f'"n":{found.n},' in line
    assert [name for name, *_ in found.fields] == ["fields.name"]


def test_only_what_is_asked_for_is_compared(logs: Path) -> None:
    assert replayed(logs, Window(actor="server", first=10, last=19)).records <= 20
    with pytest.raises(LogError, match="no actor is called"):
        replayed(logs, Window(actor="nobody"))


def test_a_start_whose_beginning_is_gone_is_left_out(logs: Path) -> None:
    files(logs)[1].unlink()
    done = replayed(logs)
    assert done.sections == 1
    [why] = done.left_out
    assert "the file in which its process began is not here any more" in why
    files(logs)[0].unlink()
    with pytest.raises(LogError, match="its process began is not here any more"):
        replayed(logs)


def test_what_stands_behind_a_missing_file_is_left_out(logs: Path) -> None:
    files(logs)[3].unlink()
    done = replayed(logs)
    assert (done.sections, done.divergence) == (2, None)
    [why] = done.left_out
    assert f"records are lost before {files(logs)[3]}" in why


def test_lost_records_are_seen_even_if_only_one_is(logs: Path) -> None:
    path = files(logs)[3]
    path.write_text(path.read_text().replace('"payloads":true', '"payloads":true,"lost":1'))
    [why] = replayed(logs).left_out
    assert f"records are lost before {path}" in why


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"record": False}, "written without --record"),
        ({"kept": "PostgreSQL"}, "other servers may have written to its database"),
        ({"log_size": Size(8)}, "held more than a log may begin with"),
    ],
)
def test_why_a_log_can_not_be_replayed(tmp_path: Path, how: dict[str, Any], why: str) -> None:
    serve_once(tmp_path, record=False)
    logs = tmp_path / "logs"
    files(logs)[0].unlink()
    serve_once(tmp_path, 1, **how)
    first = files(logs)[0]
    with pytest.raises(LogError, match=why) as raised:
        replayed(logs)
    assert raised.value.place == str(first)
    with pytest.raises(LogError, match=why):
        the_start(chosen(logs), None)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"kind":"AccountedServer"', '"kind":"Other"', "there is no Other in this version"),
        ('"actors":{"server":{', '"actors":{"server":7,"x":{', "its header is not one of this"),
        ('"config":{}', '"config":{"retention":"x"}', "settings of server in its header"),
    ],
)
def test_a_log_of_another_version(logs: Path, old: str, new: str, why: str) -> None:
    path = files(logs)[0]
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LogError, match=why):
        replay_starts(chosen(path), EVERYTHING)


def test_one_start_is_stepped_through(logs: Path) -> None:
    with pytest.raises(LogError, match="it has the logs of 2 processes") as raised:
        the_start(chosen(logs), None)
    assert raised.value.cure == "say in which file it began: --replication 1 or 2"
    with pytest.raises(LogError, match="no process began in file 3"):
        the_start(chosen(logs), 3)
    start = the_start(chosen(logs), 2)
    stepper = stepper_of_process(start)
    owners = stepper.rows("server", "principals")
    assert not owners, "its table is opened at its start"
    assert stepper.to(start.section.records[-1].n)
    assert stepper.rows("server", "principals"), "the first owner, of the start before"
    assert not any(map(stepper.difference_at, range(len(stepper.records))))


def test_a_process_that_was_killed_at_once_left_nothing_to_replay(logs: Path) -> None:
    path = files(logs)[0]
    path.write_text(path.read_text().split("\n")[0] + "\n")
    [start] = starts_of(chosen(path))
    assert "not here any more" in start.why


# As it is said


def test_what_is_left_out_is_said_behind_what_is_the_same(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(logs)[1].unlink()
    second = files(logs)[1]
    assert report(chosen(logs), EVERYTHING, None, lines("never"), "text") == 0
    first, left_out = capsys.readouterr().out.splitlines()
    assert first.startswith("the same: 1 start, ")
    assert left_out.startswith(f"left out: {second}: the file in which its process began")
    assert report(chosen(logs), EVERYTHING, None, lines("never"), "json") == 0
    [told] = json.loads(capsys.readouterr().out)["left_out"]
    assert told.startswith(f"{second}: ")


def test_what_answers_from_outside_is_not_run_again(logs: Path) -> None:
    path = files(logs)[0]
    more = '"actors":{"model":{"kind":"LiveModel","config":{},"store":"memory"},'
    path.write_text(path.read_text().replace('"actors":{', more))
    with pytest.raises(LogError, match="had its answers from outside"):
        replay_starts(chosen(path), Window(actor="model"))


def test_no_scenario_is_made_of_it(logs: Path) -> None:
    [entry] = chosen(files(logs)[0])
    with pytest.raises(LogError, match="the log of a deployed process, and no scenario"):
        promote(raw_section(entry))


def test_a_scenarios_log_is_none(tmp_path: Path, logs: Path) -> None:
    text = files(logs)[0].read_text().replace('"resolved":{}', '"resolved":{"schema":1}')
    path = tmp_path / "scenario.jsonl"
    path.write_text(text)
    assert not is_deployed(chosen(path))
