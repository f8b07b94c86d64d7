"""A scenario's traces: over sockets, in processes that are killed, from programs, into exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.messages import Commands, FleetRun, GraphRun, RunGraphSession, Start, Sync
from logs.keep import MemoryRecorder
from logs.record import FaultRecord, MessageRecord
from scenarios.build import CellRun
from scenarios.drivers import trio_world
from tests.scenarios.loading import load
from tests.scenarios.own_programs import greeter
from transports.traceparent import accepted

HEAD = 'schema = 1\nname = "traced"\nprofile = "recommended"\n[run]\nlimit = "20m"\n'
QUICK = '[engine]\nduration = "10s"\n[agent]\ntrace = true\nruns = 2\npoll = "every 5s"\n'
ONE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SPEED = 200.0

ASK = """link = dial()
welcome = int.from_bytes(link.recv(4, socket.MSG_WAITALL), "big")
link.recv(welcome + 4, socket.MSG_WAITALL)
body = {"type": "RunGraphSession", "graph_session_id": "SESSION", "idempotency_key": "key-KEY"}
number, status = KEY, ""
while status != "completed":
    number += 1
    say(link, [number, "server", 0, 0, body, TRACE])
    size = 0
    while not size:  # of a heartbeat
        size = int.from_bytes(link.recv(12, socket.MSG_WAITALL)[:4], "big")
    answer = msgspec.msgpack.decode(link.recv(size, socket.MSG_WAITALL))[4]
    body, status = {"type": "GetGraphRun", "command_id": answer["command_id"]}, answer["status"]
    time.sleep(0.01)
"""


def build(folder: Path, text: str, processes: Any = "one") -> CellRun:
    scenario = load(folder, text, head=HEAD).scenarios[0]
    world = trio_world(scenario, "tcp", SPEED, folder, processes)
    return CellRun(scenario, 1, "", folder, world=world)


def messages(cell: CellRun) -> tuple[list[Any], list[Any]]:
    """The envelopes that were delivered, and all records."""
    recorder = MemoryRecorder()
    cell.simulator.run(0, recorder)
    found = [one.envelope for one in recorder.records if isinstance(one, MessageRecord)]
    return found, recorder.records


def check(found: list[Any]) -> set[str]:
    """Compare the trace of each message about one run with the run's; return the traces."""
    traces: dict[str, str] = {}
    for envelope in found:
        run = getattr(envelope.body, "command_id", None)
        run = run or getattr(envelope.body, "channel", "").rpartition(":")[2]
        if run:
            assert envelope.traceparent == traces.setdefault(run, envelope.traceparent) != ""
        elif isinstance(envelope.body, Sync | Commands):
            assert envelope.traceparent == ""
        for command in getattr(envelope.body, "commands", ()):
            assert command.traceparent == traces.setdefault(command.command_id, command.traceparent)
    kinds = {type(envelope.body) for envelope in found}
    assert kinds >= {RunGraphSession, GraphRun, Start, FleetRun}
    return set(traces.values())


@pytest.mark.parametrize("processes", ["one", "separate"])
def test_over_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found, _ = messages(build(tmp_path, QUICK, processes))
    traces = check(found)
    assert len(traces) == 2
    scenario = load(tmp_path, QUICK, head=HEAD).scenarios[0]
    simulated, _ = messages(CellRun(scenario, 1, "", tmp_path))
    assert check(simulated) == traces  # chance is the same


@pytest.mark.parametrize("victim", ["server", "relay", "engine", "agent"])
def test_in_processes_that_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fault = f'[[fault]]\nkind = "kill"\nactor = "{victim}"\nat = "18s"\ndown = "4s"\n'
    found, records = messages(
        build(tmp_path, '[relay]\nphase = "12s"\n' + QUICK + fault, "separate")
    )
    assert [one.act for one in records if isinstance(one, FaultRecord)] == ["kill", "start"]
    assert len(check(found)) == 2


@pytest.mark.parametrize("sixth", [ONE, ONE.upper(), 7, None, [ONE]])
def test_a_program_s_call_is_traced_if_its_sixth_element_is_a_traceparent(
    tmp_path: Path, sixth: Any
) -> None:
    plan = load(tmp_path, QUICK, head=HEAD)
    server: Any = CellRun(plan.scenarios[0], 1, "", tmp_path).simulator.contexts["server"].actor
    session = server.given[0][1][0].id
    then = ASK.replace("SESSION", session).replace("KEY", "10000001").replace("TRACE", repr(sixth))
    program = f"command = {json.dumps(list(greeter(then)))}\n"
    text = '[engine]\nduration = "10s"\n[agent]\n' + program
    found, _ = messages(build(tmp_path, text))
    assert check_program(found) == {accepted(sixth)}


def check_program(found: list[Any]) -> set[str]:
    """Return the traces of all that concerns a run, once its Graph was told to begin."""
    kinds = [type(envelope.body) for envelope in found]
    assert FleetRun in kinds
    return {
        envelope.traceparent
        for envelope in found
        if hasattr(envelope.body, "command_id") or hasattr(envelope.body, "channel")
    }
