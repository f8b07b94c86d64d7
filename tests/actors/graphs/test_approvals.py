"""What waits for its owner: the list, decisions that count once, and who may decide."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors import graph_engine
from actors.actor import Place
from actors.graph_engine import GraphEngine
from actors.graphs import approvals
from actors.graphs.messages import (
    AgentAnswer,
    AgentAsk,
    Approvals,
    Decide,
    Decided,
    ListApprovals,
    ToolAsk,
    ToolCall,
)
from actors.messages import CHANNEL, FleetQuery, FleetRun, FleetStarted
from tests.actors.graphs.fake_vm import Api, FakeVmPort
from tests.actors.graphs.graph_world import config_of
from tests.actors.graphs.tool_world import ASK
from tests.actors.harness import Bench, BodyT, S, Sent, body_of, only


async def main(api: Api, _: Any) -> Any:
    return await api.agent("do it", tools=("shell",), label="worker")


def sent_of(sent: list[Sent], kind: type[BodyT]) -> BodyT:
    """The one message of a type, among others."""
    (found,) = [one.body for one in sent if isinstance(one.body, kind)]
    return found


class Waits(Bench):
    """An engine with a run that waits for its owner, as often as the agent wants at once."""

    def __init__(self, *arguments: Any) -> None:
        port = FakeVmPort(main=main)
        place = Place(name="engine", approver="terminal", files=port.files)
        super().__init__(GraphEngine(config_of(permissions=ASK), place), "engine")
        self.context.vm = port
        run = FleetRun(channel=CHANNEL + "r1", session="s", slug="demo", arguments={})
        started = body_of(self.deliver("relay", run), FleetStarted)
        self.turn = "turn:" + started.execution_id
        question = only(self.fire(self.turn), AgentAsk, "model")
        calls = tuple(ToolCall(id="c", tool="shell", arguments=one) for one in arguments)
        answer = AgentAnswer(run="r1", agent=1, outcome="tools", calls=calls)
        self.answer(question, answer)
        sent = self.fire(self.turn)
        self.told = sent_of(sent, Approvals)
        self.standing = sent_of(sent, FleetStarted)

    def listed(self, source: str = "owner") -> Approvals:
        return body_of(self.deliver(source, ListApprovals()), Approvals)

    def decide(self, call: int, allow: bool, source: str = "owner", run: str = "r1") -> Decided:
        return body_of(self.deliver(source, Decide(run=run, call=call, allow=allow)), Decided)


def test_who_wants_to_know_is_told_at_once_what_waits() -> None:
    bench = Waits({"command": "ls"})
    (waiting,) = bench.told.waiting
    assert waiting.arguments == {"command": "ls"}
    assert (waiting.label, waiting.tool, waiting.graph) == ("worker", "shell", "main")
    assert (waiting.waited_us, waiting.left_us) == (0, 900 * S)


def test_the_longest_waiting_come_first_with_their_times() -> None:
    bench = Waits(1, 2, 3)
    bench.context.now_us += 60 * S
    found = bench.listed().waiting
    assert [one.call for one in found] == [1, 2, 3]
    assert {(one.waited_us, one.left_us) for one in found} == {(60 * S, 840 * S)}


def test_a_decision_is_on_disk_and_counts_once() -> None:
    bench = Waits("a", "b")
    assert bench.decide(1, True).known
    assert bench.decide(1, True).known, "said again it changes nothing"
    assert not bench.decide(1, False).known, "the first one counts"
    assert [one.call for one in bench.listed().waiting] == [2]
    assert sent_of(bench.fire(bench.turn), ToolAsk).call == 1
    assert bench.decide(1, True).known
    assert "turn:" not in str(bench.context.timers)


def test_a_call_is_made_once_though_its_time_is_up_in_the_same_instant() -> None:
    bench = Waits("a")
    (timer,) = [name for name in bench.context.timers if name.startswith("approval:")]
    assert bench.decide(1, True).known
    bench.fire(timer)
    assert sent_of(bench.fire(bench.turn), ToolAsk).call == 1
    bench = Waits("a")
    bench.decide(1, False)
    bench.fire(bench.turn)
    assert not [name for name in bench.context.timers if name.startswith("approval:")]


def test_an_answer_that_nobody_waits_for_wakes_nobody() -> None:
    bench = Waits("a")
    bench.deliver("model", AgentAnswer(run="r1", agent=1, outcome="ok", value="forged"))
    assert bench.turn not in bench.context.timers


@pytest.mark.parametrize(("run", "call"), [("r1", 2), ("r1", 0), ("r1", -1), ("r2", 1), ("", 1)])
def test_what_waits_for_nobody_is_not_known(run: str, call: int) -> None:
    bench = Waits("a")
    assert not bench.decide(call, True, run=run).known
    assert len(bench.listed().waiting) == 1


def test_what_is_left_of_a_run_that_is_gone_waits_for_nobody() -> None:
    bench = Waits("a")
    table = bench.context.store.table(approvals.APPROVALS)
    (row,) = table.values()
    table.put(("r9", "1"), msgspec.structs.replace(row, run="r9"))
    assert not bench.decide(1, True, run="r9").known


def test_after_its_time_nobody_can_allow_a_call() -> None:
    bench = Waits("a")
    bench.context.now_us += 900 * S
    assert not bench.decide(1, True).known, "even before the timer came"
    (timer,) = [name for name in bench.context.timers if name.startswith("approval:")]
    bench.fire(timer)
    assert not bench.decide(1, True).known
    assert sent_of(bench.fire(bench.turn), AgentAsk).rounds[0].results[0].ok is False


def test_a_timer_that_comes_early_by_the_wall_clock_counts_too() -> None:
    bench = Waits("a")
    (timer,) = [name for name in bench.context.timers if name.startswith("approval:")]
    bench.context.wall_us -= 100 * S
    bench.fire(timer)
    assert not bench.decide(1, True).known
    assert sent_of(bench.fire(bench.turn), AgentAsk).rounds[0].results[0].ok is False


@pytest.mark.parametrize("source", ["model", "tools"])
def test_nothing_that_speaks_for_agents_decides_or_looks(source: str) -> None:
    bench = Waits("a")
    assert not bench.decide(1, True, source).known
    assert bench.listed(source).waiting == ()
    assert len(bench.listed().waiting) == 1
    assert bench.turn not in bench.context.timers


def test_a_list_fits_into_a_message() -> None:
    bench = Waits(*["あ" * 19_000] * 30)
    found = bench.listed().waiting
    assert 10 < len(found) < 30
    assert [one.call for one in found] == list(range(1, len(found) + 1))


def test_what_was_written_of_a_run_can_be_forgotten() -> None:
    bench = Waits("a", "b")
    table = bench.context.store.table(approvals.APPROVALS)
    assert len(table) == 2
    approvals.forget(bench.context, "r2")
    assert len(table) == 2
    approvals.forget(bench.context, "r1")
    assert len(table) == 0


def test_the_relay_is_told_how_many_wait_whenever_that_changes() -> None:
    bench = Waits("a", "b")
    assert bench.standing.waiting == 2
    query = FleetQuery(channel=CHANNEL + "r1")
    assert body_of(bench.deliver("relay", query), FleetStarted).waiting == 2
    bench.decide(1, True)
    assert sent_of(bench.fire(bench.turn), FleetStarted).waiting == 1
    bench.decide(2, False)
    assert sent_of(bench.fire(bench.turn), FleetStarted).waiting == 0


WANTED = (ToolCall(id="c", tool="shell", arguments=None),)


def begun_by(bench: Bench, run: str) -> str:
    """Hand another run over, and return its turn's timer."""
    body = FleetRun(channel=CHANNEL + run, session="s", slug="demo", arguments={})
    return "turn:" + body_of(bench.deliver("relay", body), FleetStarted).execution_id


def asks(sent: list[Sent]) -> list[Sent]:
    """The questions to the model."""
    return [one for one in sent if isinstance(one.body, AgentAsk)]


def test_a_run_that_waits_for_its_owner_holds_up_no_other() -> None:
    bench = Waits("a")
    second, third = begun_by(bench, "r2"), begun_by(bench, "r3")
    assert second in bench.context.timers
    assert third not in bench.context.timers, "max_runs is 1"
    bench.decide(1, False)
    (question,) = asks(bench.fire(bench.turn))
    bench.answer(question, AgentAnswer(run="r1", agent=1, outcome="ok", value="done"))
    bench.fire(bench.turn)
    assert third not in bench.context.timers, "the second runs"
    (question,) = asks(bench.fire(second))
    bench.answer(question, AgentAnswer(run="r2", agent=1, outcome="tools", calls=WANTED))
    bench.fire(second)
    assert third in bench.context.timers, "the second waits for its owner"


def test_a_run_whose_other_agents_work_keeps_its_place() -> None:
    async def two(api: Api, _: Any) -> Any:
        api.agent("b")
        return await api.agent("a", tools=("shell",))

    port = FakeVmPort(main=two)
    place = Place(name="engine", files=port.files)
    bench = Bench(GraphEngine(config_of(permissions=ASK), place), "engine")
    bench.context.vm = port
    first = begun_by(bench, "r1")
    other, one = asks(bench.fire(first))
    bench.answer(one, AgentAnswer(run="r1", agent=2, outcome="tools", calls=WANTED))
    bench.fire(first)
    second = begun_by(bench, "r2")
    assert second not in bench.context.timers
    bench.answer(other, AgentAnswer(run="r1", agent=1, outcome="ok", value="b"))
    bench.fire(first)
    assert second in bench.context.timers


def test_so_many_runs_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_engine, "PARKED_LIMIT", 0)
    bench = Waits("a")
    assert begun_by(bench, "r2") not in bench.context.timers
