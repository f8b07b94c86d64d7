"""Whole cells under weather: losses, jitter and crashes at random, servers that take nothing.

What is proved of each actor alone must hold of all of them together, in every order of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from actors.actor import Commit, Place, Step
from actors.agent import Agent
from actors.chance import Durations
from actors.engine import Engine
from actors.messages import TERMINAL, CancelGraphRun, FleetCancel, FleetRun, GraphRun, Sync
from actors.polls import parse_polls
from actors.relay import Relay
from actors.server import Server
from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo
from tests.actors.drawing import MESSAGES
from tests.actors.harness import SESSION, Bench, S, Trace, make_cell, put_to_work, rows
from transports.codec import Codec
from transports.envelope import Envelope
from transports.faults.disk_full import DiskFull
from transports.faults.drop import Drop
from transports.memory import Link
from transports.units import Duration
from transports.verdict import LOST, Verdict

FIVE = Durations.parse("5s")


class Weather:
    """A commit hook and links by which everything goes wrong now and then, for some minutes."""

    def __init__(self, seed: int, until_us: int) -> None:
        self.chance = Random(seed)
        self.until_us = until_us
        self.world: Simulator | None = None
        self.name = "weather"

    @property
    def bad(self) -> bool:
        assert self.world is not None
        return self.world.now_us < self.until_us

    def __call__(self, _context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        if not self.bad or self.chance.random() > 0.03:
            return Commit.DONE
        return self.chance.choice([Commit.CRASHED, Commit.FAILED])

    def judge(self, _envelope: Envelope[Any]) -> Verdict | None:
        return LOST if self.bad and self.chance.random() < 0.15 else None

    def latency_us(self) -> int:
        return int(self.chance.random() ** 4 * 15 * S)

    def link(self, sim: Simulator, _source: str, _target: str) -> Link:
        self.world = sim
        return sim.new_link(judges=[self], latency_us=self.latency_us)


@pytest.mark.parametrize("recommended", [False, True], ids=["published", "recommended"])
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_whatever_the_weather_no_graph_starts_twice_and_every_run_ends(
    first: int, recommended: bool
) -> None:
    for seed in range(first, first + 20):
        weather = Weather(seed, 400 * S)
        cell = make_cell(
            server=Server.Config(reconcile=True, hints=recommended),
            relay=Relay.Config(presence=recommended, strict_consent=recommended),
            agent=Agent.Config(
                runs=4,
                every_us=Durations.parse("20s"),
                cancel_us=Durations.parse("uniform(0s, 400s)") if seed % 2 else None,
                poll=parse_polls("hinted"),
            ),
            steps=(
                Step(at_us=50 * S, act="unshare", session=SESSION.id),
                Step(at_us=90 * S, act="share", session=SESSION.id),
            ),
            commit_hook=weather,
            link=weather.link,
        )
        cell.on_begin.append(lambda cell=cell: cell.at(3_600 * S, cell.finish))  # type: ignore[misc]  # it is bound
        trace = Trace()
        cell.run(seed, trace)
        starts = Counter(event["run"] for event in trace.events("engine.started"))
        ends = Counter(event["run"] for event in trace.events("run.terminal"))
        runs = rows(cell, "server", "runs")
        assert max(starts.values(), default=0) <= 1, seed
        assert ends == {run.command_id: 1 for run in runs}, seed
        assert {run.status for run in runs} <= TERMINAL, seed
        assert len({run.key for run in runs}) == len(runs) <= 4, seed
        assert all(job.ended for job in rows(cell, "agent", "jobs")), seed
        assert rows(cell, "relay", "outbox") == [], seed
        # What ended as completed ran; what was refused for consent did not.
        for run in runs:
            refused = run.status == "cancelled" and run.error is None and run.completion is not None
            if run.status == "completed":
                assert run.command_id in starts, seed
            elif refused and run.completion.execution_id is None:
                assert run.command_id not in starts, seed


def test_a_cell_tells_the_same_story_when_every_message_goes_through_the_codec() -> None:
    codec = Codec(MESSAGES)

    class Wire(Link):
        def post(self, envelope: Envelope[Any]) -> None:
            super().post(codec.decode(codec.encode(envelope)))

    def story(wire: bool) -> list[tuple[Any, ...]]:
        cell = make_cell(
            server=Server.Config(reconcile=True, hints=True),
            relay=Relay.Config(presence=True, strict_consent=True, jitter="window"),
            agent=Agent.Config(runs=3, cancel_us=Durations.parse("uniform(0s, 300s)")),
            steps=(Step(at_us=30 * S, act="rename", session=SESSION.id),),
            link=lambda sim, _source, _target: (Wire if wire else Link)(sim, sim._outbox),
        )
        cell.on_begin.append(lambda: cell.at(600 * S, cell.finish))
        trace = Trace()
        cell.run(0, trace)
        return trace.records

    assert story(wire=True) == story(wire=False)


def test_a_server_that_takes_no_results_doesn_t_starve_new_work() -> None:
    judge = Drop(message="Complete").at_work()
    cell = make_cell(
        server=Server.Config(reconcile=True),
        relay=Relay.Config(phase_us=FIVE, presence=True),
        engine=Engine.Config(duration_us=Durations.parse("30s")),
        agent=Agent.Config(runs=5, every_us=Durations.parse("60s")),
        link=lambda sim, source, _target: (
            sim.new_link(judges=[judge]) if source == "relay" else None
        ),
    )
    put_to_work(judge, cell)
    cell.on_begin.append(lambda: cell.at(1_800 * S, cell.finish))
    trace = Trace()
    cell.run(0, trace)
    assert len(trace.events("engine.started")) == 5
    assert len(rows(cell, "relay", "outbox")) == 5
    assert trace.events("run.terminal") == [], "the relay still reports them: nothing is given up"
    times = [record[2] for record in trace.kinds("message") if isinstance(record[4].body, Sync)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) <= 40 * S, "a sync at every other poll at least: presence stays fresh"


def test_a_cancel_of_a_running_run_reaches_the_engine_by_the_next_control_poll() -> None:
    cell = make_cell(
        relay=Relay.Config(phase_us=FIVE),
        engine=Engine.Config(duration_us=Durations.parse("10m")),
        agent=Agent.Config(cancel_us=Durations.parse("uniform(6s, 60s)")),
    )
    cell.on_done = lambda _: cell.finish()
    waits = []
    for replication in range(100):
        trace = Trace()
        cell.run(replication, trace)
        when = {
            type(record[4].body): record[2]
            for record in trace.kinds("message")
            if isinstance(record[4].body, CancelGraphRun | FleetCancel)
        }
        waits.append(when[FleetCancel] - when[CancelGraphRun])
        (run,) = rows(cell, "server", "runs")
        assert run.status == "cancelled"
    assert 0 <= min(waits) < S < 2 * S < max(waits) <= 3 * S


def test_both_sides_restart_and_the_run_does_not_stand_for_ever() -> None:
    def hook(context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        killed = {"server": 30, "relay": 33}
        now_us = cell.now_us
        if context.boot == 0 and now_us >= killed.get(context.name, 9_999) * S:
            return Commit.CRASHED
        return Commit.DONE

    cell = make_cell(
        server=Server.Config(reconcile=True),
        relay=Relay.Config(phase_us=FIVE),
        engine=Engine.Config(duration_us=Durations.parse("60s")),
        agent=Agent.Config(poll=parse_polls("every 10s")),
        commit_hook=hook,
    )
    cell.on_begin.append(lambda: cell.at(200 * S, cell.finish))
    trace = Trace()
    cell.run(0, trace)
    assert [record[3] for record in trace.kinds("undone")] == ["server", "relay"]
    assert [event["status"] for event in trace.events("run.terminal")] == ["completed"]
    assert trace.bodies(GraphRun)[-1].status == "completed"
    assert len(trace.bodies(FleetRun)) == 1


def busiest_second(jitter: Any, relays: int = 300) -> int:
    """How many relays that a recovered server released at once poll in one second, later on."""
    per_second: Counter[int] = Counter()
    for number in range(relays):
        place = Place(name=f"relay-{number}", sessions=(SESSION,))
        relay = Relay(Relay.Config(jitter=jitter, phase_us=Durations.parse("0s")), place)
        bench = Bench(relay, place.name)
        for window in range(5):
            bench.fire("poll")
            relay.passing = False
            if window >= 1:
                per_second[bench.context.now_us // S] += 1
    return max(per_second.values())


def test_windowed_jitter_spreads_relays_that_were_in_phase() -> None:
    assert busiest_second("none") == 300, "fixed polls stay in phase for ever"
    # 300 relays over 20 seconds are 15 a second; a Poisson count above 40 has a chance of 1e-8
    assert busiest_second("window") <= 40


@pytest.mark.parametrize("victim", ["server", "relay", "engine", "agent"])
def test_an_actor_whose_disk_is_full_keeps_nobody_busy_and_recovers(victim: str) -> None:
    turns: Counter[int] = Counter()  # by the second

    def hook(_context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        turns[sim.now_us // S] += 1
        assert turns[sim.now_us // S] < 100, "time stands still while turns fail"
        return Commit.DONE

    sim = make_cell(
        server=Server.Config(start_deadline_us=Duration(60 * S), run_deadline_us=Duration(60 * S)),
        relay=Relay.Config(phase_us=FIVE),
        engine=Engine.Config(duration_us=Durations.parse("20s")),
        agent=Agent.Config(poll=parse_polls("every 10s"), runs=3, every_us=Durations.parse("10s")),
        commit_hook=hook,
    )
    full = DiskFull(name="full", actor=victim, at=Duration(8 * S), lasts=Duration(300 * S))
    put_to_work(full.at_work(), sim)
    sim.on_begin.append(lambda: sim.at(900 * S, sim.finish))
    sim.run(0)
    assert all(run.status in TERMINAL for run in rows(sim, "server", "runs"))
    assert all(job.ended for job in rows(sim, "agent", "jobs"))
