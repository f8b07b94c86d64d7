"""The deployed engine: Graphs as they were saved, whatever is saved, dropped or restarted then."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.actor import Place
from actors.config import decode_hook
from actors.desktop import engine
from actors.desktop.engine import DesktopEngine
from actors.desktop.messages import (
    DropGraph,
    EngineStatus,
    GetEngineStatus,
    GetGraph,
    GraphSaved,
    SavedGraph,
    SaveGraph,
)
from actors.messages import (
    CHANNEL,
    Completion,
    Failure,
    FleetAcknowledged,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
)
from tests.actors.graphs.fake_vm import Api, FakeVmPort
from tests.actors.graphs.graph_world import FAST
from tests.actors.harness import Bench, body_of


async def one(_api: Api, _args: Any) -> Any:
    return "first"


async def two(_api: Api, _args: Any) -> Any:
    return "second"


ONE, TWO = "one", "two"  # a Graph's source is its coroutine's name here


class Machine(Bench):
    """An engine without a folder of Graphs."""

    actor: DesktopEngine

    def __init__(self, **keys: Any) -> None:
        config = msgspec.convert({**FAST, **keys}, DesktopEngine.Config, dec_hook=decode_hook)
        super().__init__(DesktopEngine(config, Place(name="engine")), "engine")
        self.context.vm = FakeVmPort(one=one, two=two)

    def save(self, text: str = ONE, session: str = "gs_1", entry: str = "main") -> GraphSaved:
        body = SaveGraph(session=session, entry=entry, texts={entry: text})
        return body_of(self.deliver("relay", body), GraphSaved)

    def run(self, run: str = "r1", session: str = "gs_1") -> str:
        body = FleetRun(channel=CHANNEL + run, session=session, slug="demo", arguments={})
        return body_of(self.deliver("relay", body), FleetStarted).execution_id

    def end(self, execution_id: str) -> Completion:
        """Take a run's turn, which ends these Graphs."""
        return body_of(self.fire("turn:" + execution_id), FleetFinished).completion


def test_a_run_runs_what_is_saved_for_its_session() -> None:
    machine = Machine()
    machine.save()
    machine.save(TWO, "gs_2", "other")
    assert machine.end(machine.run("r1", "gs_2")).result == "second"
    assert machine.end(machine.run("r2", "gs_1")).result == "first"


def test_a_version_grows_when_a_text_differs_and_only_then() -> None:
    machine = Machine()
    first = machine.save()
    assert (first.version, machine.save()) == (1, first)
    assert machine.save(TWO).version == 2
    machine.start()
    assert machine.save(TWO).version == 2
    again = machine.save(ONE)
    assert (again.version, again.sha256) == (3, first.sha256)


def test_what_runs_and_what_waits_goes_with_the_texts_of_its_beginning() -> None:
    machine = Machine(max_runs=1)
    machine.save()
    executing, waiting = machine.run("r1"), machine.run("r2")
    machine.save(TWO)
    machine.deliver("relay", DropGraph(session="gs_1"))
    assert machine.end(executing).result == "first"
    assert machine.end(waiting).result == "first"
    failed = machine.end(machine.run("r3"))
    assert (failed.status, failed.error) == ("failed", "there is no Graph 'demo': there is none")


def test_texts_of_runs_that_have_ended_are_not_kept() -> None:
    machine = Machine()
    machine.save()
    execution = machine.run()
    assert machine.actor.pinned.get(CHANNEL + "r1") is not None
    machine.end(execution)
    assert machine.actor.pinned.get(CHANNEL + "r1") is None
    machine.run("r2")
    machine.start()
    assert machine.actor.pinned.get(CHANNEL + "r2") is None, "interrupted"


def test_what_is_saved_can_be_read_and_dropped() -> None:
    machine = Machine()
    saved = machine.save()
    told = body_of(machine.deliver("owner", GetGraph(session="gs_1")), SavedGraph)
    assert (told.entry, told.texts, told.version) == ("main", {"main": ONE}, 1)
    assert (told.sha256, told.saved_us) == (saved.sha256, machine.context.stamp_us)
    machine.deliver("relay", DropGraph(session="gs_1"))
    refusal = body_of(machine.deliver("owner", GetGraph(session="gs_1")), Failure)
    assert refusal.code == "not_found"


def test_a_full_disk_saves_nothing_but_tells_what_is_saved() -> None:
    machine = Machine()
    saved = machine.save()
    machine.context.store.writable = False
    assert machine.save() == saved
    body = SaveGraph(session="gs_1", entry="main", texts={"main": TWO})
    assert body_of(machine.deliver("relay", body), Failure).code == "not_writable"


def test_it_tells_how_it_stands() -> None:
    machine = Machine(max_runs=1)
    machine.save()
    first = machine.run("r1")
    machine.run("r2")
    machine.run("r3")
    machine.end(first)
    status = body_of(machine.deliver("owner", GetEngineStatus()), EngineStatus)
    assert (status.running, status.waiting, status.saved) == (1, 1, 1)
    assert (status.unreported, status.writable, status.up_us) == (1, True, 0)


def asked_again(machine: Machine, run: str) -> Completion:
    """What a relay is told that has lost a run's end."""
    sent = machine.deliver("relay", FleetQuery(channel=CHANNEL + run))
    (told,) = [one.body for one in sent if isinstance(one.body, FleetFinished)]
    return told.completion


def test_of_results_that_its_relay_has_an_engine_keeps_the_latest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "RESULTS_KEPT", 2)
    machine = Machine()
    machine.save()
    machine.end(machine.run("r0"))  # never acknowledged
    for run in ("r1", "r2", "r3", "r4"):
        machine.end(machine.run(run))
        machine.deliver("relay", FleetAcknowledged(channel=CHANNEL + run))
        machine.deliver("relay", FleetAcknowledged(channel=CHANNEL + run))
        if run == "r2":
            machine.start()
    for run, result in (("r1", None), ("r2", None), ("r3", "first"), ("r4", "first")):
        told = asked_again(machine, run)
        assert (told.status, told.result) == ("completed", result)
        assert told.result_truncated is (result is None)
    machine.deliver("relay", FleetAcknowledged(channel=CHANNEL + "r0"))
    assert asked_again(machine, "r0").result == "first"
    waited_for = machine.actor.executions.get(CHANNEL + "r3")
    assert waited_for is not None
    assert waited_for.completion is not None
    assert waited_for.completion.result == "first", "a relay waits for it again"
    machine.deliver("relay", FleetAcknowledged(channel=CHANNEL + "r1"))
    again = FleetRun(channel=CHANNEL + "r1", session="gs_1", slug="demo", arguments={})
    machine.deliver("relay", again)
    assert machine.actor.fleets == {}, "it is never started again"
