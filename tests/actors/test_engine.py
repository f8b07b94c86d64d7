"""The engine: a channel starts once for ever, its end is told until it is kept, a stop stops."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Place
from actors.chance import Counts, Durations, Numbers
from actors.engine import DROPPED_TEXT, EXECUTIONS, LETTERS, Engine
from actors.messages import (
    Completion,
    FleetAcknowledged,
    FleetCancel,
    FleetDrop,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
)
from tests.actors.harness import Bench, S, Sent, body_of, only
from transports.units import Duration


class Machine(Bench):
    """An engine whose Graphs run for a minute, with the words in which a relay speaks to it."""

    actor: Engine

    def __init__(self, **config: Any) -> None:
        fields: dict[str, Any] = {"duration_us": Durations.parse("60s")}
        super().__init__(Engine(Engine.Config(**fields | config), Place(name="engine")), "engine")

    def run(self, run: str = "r1", relay: str = "relay") -> str:
        """Start a channel's Graph, and return the execution's id."""
        body = FleetRun(channel=f"graph:external:{run}", session="s", slug="demo", arguments={})
        started = body_of(self.deliver(relay, body), FleetStarted)
        assert started.channel == body.channel
        return started.execution_id

    def cancel(self, execution_id: str) -> list[Sent]:
        return self.deliver("relay", FleetCancel(execution_id=execution_id))

    def end(self, execution_id: str, how: str = "end") -> Sent:
        """Let time come to the end, and return the report."""
        return only(self.fire(f"{how}:{execution_id}"), FleetFinished, "relay")

    def acknowledge(self, run: str = "r1") -> None:
        body = FleetAcknowledged(channel=f"graph:external:{run}")
        assert self.deliver("relay", body) == []


def test_a_graph_runs_for_its_time_and_gives_its_result() -> None:
    machine = Machine()
    execution = machine.run()
    assert machine.context.timers == {f"end:{execution}": 60 * S}
    report = machine.end(execution)
    assert report.body == FleetFinished(
        channel="graph:external:r1",
        completion=Completion(
            execution_id=execution,
            status="completed",
            result="xx",
            total_tokens=1200,
            reported_cost=0.01,
        ),
    )
    assert machine.context.timers == {}
    assert machine.events("engine.started") == [{"run": "r1", "execution": execution}]
    (end,) = machine.events("engine.finished")
    assert (end["run"], end["status"], end["tokens"], end["cost"]) == (
        "r1",
        "completed",
        1200,
        0.01,
    )


def test_a_channel_starts_once_for_ever() -> None:
    machine = Machine()
    execution = machine.run()
    assert machine.run() == execution
    machine.end(execution)
    assert machine.run() == execution
    machine.acknowledge()
    machine.start()
    body = FleetRun(channel="graph:external:r1", session="s", slug="demo", arguments={})
    assert machine.deliver("relay", body)[-1].body.execution_id == execution
    assert len(machine.events("engine.started")) == 1
    assert machine.run("r2") != execution


@pytest.mark.parametrize("kind", [FleetRun, FleetQuery])
def test_who_asks_again_for_what_was_acknowledged_is_told_its_end_again(kind: Any) -> None:
    """As a relay whose older store was restored: it would wait for that end for ever."""
    machine = Machine()
    report = machine.end(machine.run())
    machine.acknowledge()
    fields = {"session": "s", "slug": "demo", "arguments": {}} if kind is FleetRun else {}
    again, answer = machine.deliver("relay", kind(channel="graph:external:r1", **fields))
    assert (again.body, type(answer.body)) == (report.body, FleetStarted)
    assert only(machine.unanswered(again), FleetFinished).body == report.body
    machine.acknowledge()
    assert machine.start() == []


def test_what_was_unknown_when_it_was_asked_for_never_starts() -> None:
    machine = Machine()
    query = FleetQuery(channel="graph:external:r1")
    assert body_of(machine.deliver("relay", query), FleetUnknown).channel == query.channel
    late = FleetRun(channel=query.channel, session="s", slug="s", arguments={})
    for _ in range(2):  # in this boot and in the next
        assert body_of(machine.deliver("relay", late), FleetUnknown).channel == query.channel
        assert body_of(machine.deliver("relay", query), FleetUnknown).channel == query.channel
        assert machine.start() == []
    assert machine.events("engine.started") == []
    assert machine.context.timers == {}


def test_a_query_starts_nothing() -> None:
    machine = Machine()
    query = FleetQuery(channel="graph:external:r1")
    execution = machine.run()
    assert body_of(machine.deliver("relay", query), FleetStarted).execution_id == execution
    machine.end(execution)
    assert body_of(machine.deliver("relay", query), FleetStarted).execution_id == execution
    machine.start()
    assert body_of(machine.deliver("relay", query), FleetStarted).execution_id == execution


# The end is told until it is kept


def test_an_end_is_reported_until_it_is_acknowledged() -> None:
    machine = Machine()
    report = machine.end(machine.run())
    assert report.timeout_us == 10 * S
    for _ in range(3):
        again = only(machine.unanswered(report), FleetFinished, "relay")
        assert again.body == report.body
        report = again
    machine.acknowledge()
    assert machine.unanswered(report) == []
    assert machine.start() == []


def test_an_engine_that_can_t_write_does_not_report_at_once() -> None:
    machine = Machine()
    report = machine.end(machine.run())
    machine.context.store.writable = False
    assert machine.start() == [], "or report, acknowledgement and failed write would go round"
    (timer,) = machine.context.timers
    again = only(machine.fire(timer), FleetFinished, "relay")
    assert again.body == report.body
    machine.context.store.writable = True
    machine.acknowledge()
    machine.start()
    assert machine.context.timers == {}


def test_an_end_that_nobody_keeps_outlives_a_restart() -> None:
    machine = Machine()
    report = machine.end(machine.run())
    assert only(machine.start(), FleetFinished, "relay").body == report.body
    machine.acknowledge()
    machine.acknowledge()
    assert machine.start() == []


def test_what_was_under_way_is_interrupted_by_a_restart() -> None:
    machine = Machine()
    execution = machine.run()
    report = only(machine.start(), FleetFinished, "relay")
    done = report.body.completion
    assert (done.status, done.execution_id) == ("interrupted", execution)
    assert machine.context.timers == {}, "it is not started again"
    assert only(machine.start(), FleetFinished).body == report.body, "and interrupted once"
    assert len(machine.events("engine.finished")) == 1


def test_the_end_is_told_to_the_relay_that_started_it() -> None:
    machine = Machine()
    execution = machine.run(relay="relay-2")
    assert only(machine.fire(f"end:{execution}"), FleetFinished).target == "relay-2"


def test_an_acknowledgement_of_what_never_ran_is_no_harm() -> None:
    machine = Machine()
    machine.acknowledge("nobody")


# Stop


def test_a_stopped_graph_ends_as_cancelled_after_a_while() -> None:
    machine = Machine()
    execution = machine.run()
    machine.context.now_us = 20 * S
    assert machine.cancel(execution) == []
    assert machine.context.timers[f"stop:{execution}"] == 20 * S + S // 2
    done = machine.end(execution, "stop").body.completion
    assert done == Completion(execution_id=execution, status="cancelled")
    assert machine.context.timers == {}, "it ends once"
    assert machine.events("engine.stopping") == [{"run": "r1"}]


def test_a_graph_may_end_by_itself_before_it_is_stopped() -> None:
    machine = Machine(stop_us=Duration(5 * S))
    execution = machine.run()
    machine.context.now_us = 58 * S
    machine.cancel(execution)
    assert machine.end(execution).body.completion.status == "completed"
    assert machine.context.timers == {}


def test_stopping_what_does_not_run_is_no_harm() -> None:
    machine = Machine()
    execution = machine.run()
    machine.end(execution)
    assert machine.cancel(execution) == []
    assert machine.cancel("nobody") == []
    assert machine.context.timers == {}


def test_graphs_of_several_relays_run_side_by_side() -> None:
    machine = Machine()
    first, second = machine.run("r1"), machine.run("r2", "relay-2")
    machine.cancel(second)
    machine.end(first)
    assert set(machine.context.timers) == {f"end:{second}", f"stop:{second}"}


# What a Graph gives


@pytest.mark.parametrize("alphabet", LETTERS)
def test_a_result_has_the_characters_that_were_configured(alphabet: Any) -> None:
    machine = Machine(result_chars=Counts.parse(7), alphabet=alphabet)
    done = machine.end(machine.run()).body.completion
    assert done.result == LETTERS[alphabet] * 7


def test_the_five_alphabets_cover_what_text_costs() -> None:
    one = {name: len(f"{letter}".encode()) for name, letter in LETTERS.items()}
    assert one == {"ascii": 1, "japanese": 3, "emoji": 4, "quotes": 1, "control": 1}


def test_some_graphs_fail_as_often_as_configured() -> None:
    machine = Machine(failure=Numbers.parse(0.3))
    statuses = []
    for number in range(400):
        done = machine.end(machine.run(f"r{number}")).body.completion
        statuses.append(done.status)
        if done.status == "failed":
            assert (done.result, done.error, done.total_tokens) == (None, "the Graph failed", 1200)
    # 400 draws of 0.3: mean 120, standard deviation 9.2
    assert 120 - 4 * 9.2 < statuses.count("failed") < 120 + 4 * 9.2
    assert set(statuses) == {"completed", "failed"}


def test_each_kind_of_chance_has_a_stream_of_its_own() -> None:
    """A wider result draws nothing that would shift how long the next Graph runs."""
    lengths: list[list[int]] = []
    for fields in ({}, {"tokens": Counts.parse("uniform(1, 9)"), "failure": Numbers.parse(0.5)}):
        machine = Machine(duration_us=Durations.parse("uniform(1s, 99s)"), **fields)
        lengths.append([])
        for number in range(5):
            execution = machine.run(f"r{number}")
            lengths[-1].append(machine.context.timers[f"end:{execution}"] - machine.context.now_us)
            machine.end(execution)
    assert lengths[0] == lengths[1]
    assert len(set(lengths[0])) == 5


def test_every_execution_is_kept_with_its_relay() -> None:
    machine = Machine()
    execution = machine.run()
    row = machine.context.store.table(EXECUTIONS).get("graph:external:r1")
    assert row is not None
    assert (row.execution_id, row.relay, row.open) == (execution, "relay", True)
    machine.end(execution)
    machine.acknowledge()
    row = machine.context.store.table(EXECUTIONS).get("graph:external:r1")
    assert row is not None
    assert row.open is None
    assert row.completion is not None


def test_a_drop_ends_a_graph_at_once_and_of_one_that_has_ended_changes_nothing() -> None:
    machine = Machine()
    execution = machine.run()
    machine.cancel(execution)
    report = only(machine.deliver("relay", FleetDrop(execution_id=execution)), FleetFinished)
    done = report.body.completion
    assert (done.execution_id, done.status, done.error) == (execution, "cancelled", DROPPED_TEXT)
    assert machine.context.timers == {}
    assert machine.deliver("relay", FleetDrop(execution_id=execution)) == []
