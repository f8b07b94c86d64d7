"""Replays: every scenario's log does again what it says, and what is wrong is pointed at."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.replayer import Replayer
from actors.world import TrioWorld
from logs.read import LogError, RawSection, Section, raw_sections, read_sections, sections_of
from logs.record import EventRecord, MessageRecord
from logs.write import SectionWriter
from scenarios.build import CellRun
from scenarios.explore import actors_of, with_plan
from scenarios.load import Plan, load_plan
from scenarios.promote import promote
from scenarios.replay import (
    EVERYTHING,
    Window,
    job_of_header,
    replay,
    replayer_of,
    step_through,
)
from scenarios.run import run
from scenarios.runner import Options, job_of
from scenarios.spec import Scenario
from scenarios.swarm import plan_of
from scenarios.work import header, log_one
from tests.scenarios.commandline import ROOT

FOLDERS = ("published", "recommended", "examples", "chaos", "ablation")
PLANS = {
    f"{folder}/{path.stem}": load_plan(path)
    for folder in FOLDERS
    for path in sorted((ROOT / "scenarios" / folder).glob("*.toml"))
}
needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="there is no perl on PATH")
SLOW = {"chaos/weekend"}  # sleeps for 60 hours, which no wall clock waits for
FROM_HERE = Window(first=1)  # the whole log, but actor by actor


def written(plan: Plan, replication: int = 0, **options: Any) -> list[RawSection]:
    """The log of one replication of a plan's first cell."""
    out = io.BytesIO()
    log_one(job_of(plan, 0, Options(**options)), replication, out, 60.0)
    return raw(out.getvalue())


def raw(data: bytes) -> list[RawSection]:
    lines = data.splitlines(keepends=True)
    return [RawSection("a.jsonl", 1, lines)]


@pytest.mark.parametrize("name", PLANS)
def test_every_scenario_s_log_is_the_same_from_its_seed_and_actor_by_actor(name: str) -> None:
    log = written(PLANS[name])
    for window in (EVERYTHING, FROM_HERE):
        done = replay(iter(log), window=window)
        assert done.divergence is None
        assert (done.sections, done.truncated) == (1, 0)
        assert done.records == len(log[0].lines) - 2 > 0


@pytest.mark.parametrize("name", PLANS)
def test_every_scenario_replays_what_real_tasks_did(name: str) -> None:
    log = written(PLANS[name], driver="trio")
    assert replay(iter(log)).divergence is None
    assert b'"kind":"send"' in b"".join(log[0].lines)


@pytest.mark.parametrize("name", ["published/cancel", "chaos/killed_after_go", "chaos/engine_dies"])
def test_some_replay_what_went_over_sockets(name: str) -> None:
    log = written(PLANS[name], driver="trio", transport="tcp", speed=400.0)
    assert replay(iter(log)).divergence is None


@pytest.mark.soak
@pytest.mark.parametrize("name", PLANS.keys() - SLOW)
def test_every_scenario_replays_what_went_over_sockets(name: str) -> None:
    log = written(PLANS[name], driver="trio", transport="tcp", speed=400.0)
    assert replay(iter(log)).divergence is None


@needs_perl
def test_a_program_of_one_s_own_is_an_edge_and_its_words_are_inputs() -> None:
    plan = load_plan(ROOT / "scenarios" / "foreign" / "perl_relay.toml")
    log = written(plan, driver="trio", transport="tcp", speed=100.0)
    done = replay(iter(log))
    assert done.divergence is None
    changed = b"".join(log[0].lines).replace(b'"status":"completed"', b'"status":"failed"')
    found = replay(iter(raw(changed))).divergence
    assert found is not None
    assert found.record is not None
    assert found.record.actor == "server"


def with_a_program(log: list[RawSection]) -> list[RawSection]:
    """The log as if its relay had been a program, which no log tells from an actor of ours."""
    [section] = log
    head, *records = section.lines
    told = msgspec.json.decode(head)
    told["resolved"]["relay"] = {"command": ["perl", "relay.pl"]}
    return [RawSection("a.jsonl", 1, [msgspec.json.encode(told) + b"\n", *records])]


def test_what_a_program_sent_is_an_input_and_it_is_not_run() -> None:
    log = with_a_program(written(PLANS["examples/first"], driver="trio"))
    # An agent beside a program makes other ids, since there is no engine.
    done = replay(iter(log), window=Window(actor="server"))
    assert done.divergence is None
    assert done.records > 100
    assert replayer_of(job_of_header(log[0].header())).edges == {"relay"}
    with pytest.raises(LogError, match=r"relay.* is a program of its own, which is not run again"):
        replay(iter(log), window=Window(actor="relay"))
    with pytest.raises(LogError, match="joins over sockets alone") as refused:
        promote(log[0])
    assert "the simulator runs no programs" in refused.value.cure


# Random fault plans

BASE = PLANS["chaos/swapping"]


def logged(scenario: Scenario, world: Any, replication: int) -> Section:
    """What one replication of a scenario on a host leaves in a log."""
    cell = CellRun(scenario, 1, "", Path(), world=world)
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(header(job_of(BASE, 0), replication))
    cell.simulator.run(replication, writer)
    writer.close("ended", cell.simulator.now_us)
    [section] = sections_of(io.BytesIO(out.getvalue()), "plan.jsonl")
    return section


def replayed(scenario: Scenario, section: Section) -> Any:
    host = CellRun(scenario, 1, "", Path(), world=Replayer).simulator
    assert isinstance(host, Replayer)
    return step_through(section, host, EVERYTHING)


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_random_fault_plans_replay(first: int) -> None:
    scenario = BASE.scenarios[0]
    for number in range(first, first + 10):
        faulty = with_plan(scenario, plan_of(1, number, actors_of(scenario)))
        section = logged(faulty, None, number)
        assert replayed(faulty, section) is None, number
        if number % 10 < 2:
            section = logged(faulty, TrioWorld, number)
            assert replayed(faulty, section) is None, number


# What is wrong

OWN = """from pullcord import Relay

class Mine(Relay):
    def on_start_answer(self, context, envelope):
        {line}
        return super().on_start_answer(context, envelope)
"""
FILE = 'schema = 1\nname = "own"\n[relay]\nuse = "mine.py:Mine"\n'


@pytest.mark.parametrize("driver", ["sim", "trio"])
def test_a_changed_actor_is_pointed_at_by_the_turn_that_changed(
    tmp_path: Path, driver: Any
) -> None:
    (tmp_path / "mine.py").write_text(OWN.format(line='context.log("a")'))
    path = tmp_path / "own.toml"
    path.write_text(FILE)
    run(path, out=tmp_path / "out", logs="all", driver=driver, jobs=1)
    [file] = (tmp_path / "out" / "logs").iterdir()
    assert replay(raw_sections(file)).divergence is None
    (tmp_path / "mine.py").write_text(OWN.format(line='context.log("b")'))
    for window in (EVERYTHING, FROM_HERE):
        found = replay(raw_sections(file), window=window).divergence
        assert found is not None
        assert found.record is not None
        assert "relay" in (found.record.actor, getattr(found.record, "event", ""))
        [section] = read_sections(file)
        by_number = {one.n: one for one in section.records}
        turn = by_number[found.n]
        if isinstance(turn, EventRecord):  # from its seed the record that differs is found itself
            turn = by_number[turn.cause]
        assert isinstance(turn, MessageRecord)
        assert turn.envelope.body["type"] == "StartAnswer"
        assert found.line == found.n + 1
        assert ('"a"' in found.logged[0]) or found.logged[0].startswith("says a")
        assert ('"b"' in found.made[0]) or found.made[0].startswith("says b")
        assert [one.n for one in found.before] == list(range(found.n - 3, found.n))
        assert found.chain[-1].n == found.record.cause
