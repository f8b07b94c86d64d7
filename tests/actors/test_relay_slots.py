"""A relay with several slots: who gets one, which answer belongs to whom, what ends with what."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Commit
from actors.agent import Agent
from actors.chance import Durations
from actors.engine import Engine
from actors.messages import (
    CHANNEL,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    FleetCancel,
    FleetDrop,
    FleetQuery,
    FleetRun,
    FleetStarted,
    Start,
    StartAnswer,
    Sync,
    Unshare,
)
from actors.relay import START_TRIES, Relay
from actors.server import Server
from tests.actors.harness import SESSION, S, Sent, Trace, make_cell, only, rows
from tests.actors.relaying import Desktop, command
from transports.units import Duration


def starts(sent: list[Sent]) -> dict[str, Sent]:
    """The questions for leave among what was sent, by run."""
    return {each.body.command_id: each for each in sent if isinstance(each.body, Start)}


def working(*runs: str, slots: int = 2, **config: Any) -> Desktop:
    """A desktop on which these runs execute, as many as have slots, under ids like x-r1."""
    desktop = Desktop(slots=slots, **config)
    for run, start in starts(desktop.offer(*map(command, runs))).items():
        fleet = only(desktop.answer(start, StartAnswer(go=True)), FleetRun)
        desktop.answer(fleet, FleetStarted(channel=CHANNEL + run, execution_id=f"x-{run}"))
    return desktop


def asked(desktop: Desktop, run: str) -> Sent:
    """The control poll of a run."""
    question = only(desktop.fire(f"control:{run}"), Control, "server")
    assert question.body.command_id == run
    return question


def test_as_many_begin_as_there_are_slots_and_the_others_wait() -> None:
    desktop = Desktop(slots=2)
    sent = starts(desktop.offer(command("r1"), command("r2"), command("r3"), command("r4")))
    assert list(sent) == ["r1", "r2"]
    assert list(starts(desktop.answer(sent["r1"], StartAnswer(go=False)))) == ["r3"]
    only(desktop.answer(sent["r2"], StartAnswer(go=True)), FleetRun)
    assert desktop.poll() == [], "every slot is taken"
    assert list(starts(desktop.accept(desktop.finished("r2")))) == ["r4"]


def test_a_free_slot_is_asked_for_while_others_run() -> None:
    desktop = working("r1")
    sync = desktop.sync()
    assert sync.body.open == ("r1",)
    assert list(starts(desktop.answer(sync, Commands(commands=(command("r2"),))))) == ["r2"]


def test_an_end_in_the_middle_of_a_pass_does_not_end_it() -> None:
    desktop = working("r1")
    sync = desktop.sync()
    assert desktop.accept(desktop.finished("r1")) == []
    assert desktop.poll() == [], "the pass is under way"
    assert list(starts(desktop.answer(sync, Commands(commands=(command("r2"),))))) == ["r2"]


def test_a_pass_does_not_post_what_is_being_posted() -> None:
    desktop = working("r1")
    post = desktop.finished("r1")
    sync = only(desktop.poll(), Sync)
    assert set(sync.body.open) == {"r1"}
    assert desktop.unanswered(post) == []
    desktop.answer(sync, Commands(commands=()))
    assert only(desktop.poll(), Complete).body == post.body, "now it is the outbox's"


def test_a_control_poll_stops_the_run_that_it_asks_about() -> None:
    desktop = working("r1", "r2")
    first, second = asked(desktop, "r1"), asked(desktop, "r2")
    assert desktop.answer(first, ControlAnswer(stop=False)) == []
    sent = desktop.answer(second, ControlAnswer(stop=True, reason="cancel"))
    assert [each.body for each in sent] == [FleetCancel(execution_id="x-r2")]
    assert desktop.finished("r1").body.completion.status == "completed"
    assert desktop.finished("r2").body.completion.status == "cancelled"


def test_every_run_is_asked_about_as_often_until_its_end() -> None:
    desktop = working("r1", "r2")
    for number in range(1, 4):
        assert desktop.unanswered(asked(desktop, "r1")) == []
        assert desktop.context.timers["control:r1"] == 5 * S + (number + 1) * 3 * S
    desktop.accept(desktop.finished("r1"))
    assert {name for name in desktop.context.timers if name != "poll"} == {"control:r2"}
    assert desktop.actor.asked == {}, "no question is kept in mind beyond its answer"


@pytest.mark.parametrize("slots", [1, 2])
def test_an_answer_about_the_run_before_stops_no_other(slots: int) -> None:
    desktop = working("r1", slots=slots)
    (late,) = desktop.fire("control" if slots == 1 else "control:r1")
    desktop.accept(desktop.finished("r1"))
    (start,) = starts(desktop.offer(command("r2"))).values()
    fleet = only(desktop.answer(start, StartAnswer(go=True)), FleetRun)
    desktop.answer(fleet, FleetStarted(channel=CHANNEL + "r2", execution_id="x-r2"))
    assert desktop.answer(late, ControlAnswer(stop=True, reason="closed")) == []
    assert desktop.finished("r2").body.completion.status == "completed"


def test_all_that_run_are_looked_after_by_the_next_boot() -> None:
    desktop = working("r1", "r2")
    desktop.answer(asked(desktop, "r2"), ControlAnswer(stop=True))
    queries = desktop.start()
    assert [each.body for each in queries] == [
        FleetQuery(channel=CHANNEL + "r1"), FleetQuery(channel=CHANNEL + "r2"),
    ]  # fmt: skip
    for query in queries:
        started = FleetStarted(channel=query.body.channel, execution_id="x")
        sent = desktop.answer(query, started)
        stopped = query.body.channel.endswith("r2")
        assert [each.body for each in sent] == [FleetCancel(execution_id="x")] * stopped
    assert desktop.finished("r2").body.completion.status == "cancelled"
    assert desktop.finished("r1").body.completion.status == "completed"


def test_fewer_slots_after_a_restart_take_nothing_until_there_is_room() -> None:
    desktop = working("r1", "r2", "r3", slots=3)
    desktop.actor.slots = 2
    desktop.start()
    assert desktop.poll() == []
    desktop.accept(desktop.finished("r1"))
    assert desktop.poll() == []
    desktop.accept(desktop.finished("r2"))
    assert only(desktop.poll(), Sync).body.open == ("r3",)


def test_each_of_several_unanswered_starts_is_asked_again_by_the_next_pass() -> None:
    desktop = Desktop(slots=2)
    questions = list(starts(desktop.offer(command("r1"), command("r2"), command("r3"))).values())
    for _ in range(START_TRIES):
        questions = [each for one in questions for each in desktop.unanswered(one)]
    assert questions == []
    again = starts(desktop.poll())
    assert list(again) == ["r1", "r2"]
    assert desktop.answer(again["r1"], StartAnswer(go=False)) == [], "r3 is for a new offer"
    assert only(desktop.poll(), Sync).body.open == ("r2",)


def test_strict_consent_stops_every_run_of_the_session() -> None:
    desktop = working("r1", "r2", slots=3, strict_consent=True)
    sent = desktop.owner(Unshare(session=SESSION.id))
    stopped = [each.body for each in sent if isinstance(each.body, FleetCancel)]
    assert stopped == [FleetCancel(execution_id="x-r1"), FleetCancel(execution_id="x-r2")]


# A Graph that does not stop


def stopped(**config: Any) -> Desktop:
    """A desktop whose run was told to stop."""
    desktop = working("r1", slots=1, **config)
    desktop.control(stop=True)
    return desktop


def test_a_lost_cancel_is_said_again_but_not_at_every_poll() -> None:
    desktop = stopped()
    told = [[each.body for each in desktop.control(stop=True)] for _ in range(9)]
    again = [FleetCancel(execution_id="x-r1")]
    assert told == [[], [], [], again, [], [], [], again, []], "every 10 s, at a poll of 3 s"


def test_without_a_limit_it_is_waited_for_for_ever() -> None:
    desktop = stopped()
    desktop.context.now_us += 10**12
    assert [each.body for each in desktop.control(stop=True)] == [FleetCancel(execution_id="x-r1")]


def test_a_graph_that_does_not_stop_is_dropped_and_the_next_run_goes_on() -> None:
    desktop = stopped(stop_limit_us=Duration(30 * S))
    desktop.actor.commands.append(command("r2"))
    told = [body for _ in range(16) for body in map(kind, desktop.control(stop=True))]
    assert told == [FleetCancel, FleetCancel, FleetDrop, Complete], "and then it is given up"
    (posting,) = desktop.actor.outbox.scan("order", limit=9)
    done = posting.complete.completion
    assert (done.status, done.execution_id) == ("cancelled", "x-r1")
    assert "did not stop" in (done.error or "")
    assert "control" not in desktop.context.timers


def kind(sent: Sent) -> type[Any]:
    return type(sent.body)


def test_a_drop_that_works_ends_it_as_any_end_does() -> None:
    desktop = stopped(stop_limit_us=Duration(S))
    told = [each.body for _ in range(4) for each in desktop.control(stop=True)]
    assert told == [FleetDrop(execution_id="x-r1")]
    done = Completion(execution_id="x-r1", status="cancelled", error="dropped")
    assert desktop.finished("r1", done).body.completion == done


def test_an_engine_that_never_told_an_id_is_given_up_too() -> None:
    desktop = Desktop(stop_limit_us=Duration(S))
    desktop.handed_over()
    told = [each.body for _ in range(5) for each in desktop.control(stop=True)]
    assert [type(body) for body in told] == [Complete]
    assert told[0].completion.status == "interrupted", "it may begin yet: cancelled would promise"


def test_a_server_that_says_nothing_does_not_keep_a_graph_that_does_not_stop() -> None:
    desktop = working("r1", slots=1, strict_consent=True, stop_limit_us=Duration(30 * S))
    desktop.owner(Unshare(session=SESSION.id))
    told = [kind(each) for _ in range(6) for each in desktop.poll()]
    assert told == [FleetCancel, FleetDrop, Complete]


# All of it, with what may go wrong


@settings(max_examples=30, deadline=None)
@given(
    slots=st.integers(1, 4),
    runs=st.integers(1, 7),
    seed=st.integers(0, 10**6),
    fails=st.dictionaries(
        st.integers(0, 150), st.sampled_from([Commit.FAILED, Commit.CRASHED]), max_size=4
    ),
)
def test_runs_begin_once_end_once_and_never_more_at_once_than_slots(
    slots: int, runs: int, seed: int, fails: dict[int, Commit]
) -> None:
    turns = iter(range(10**9))

    def hook(context: Any, _writes: Any) -> Commit:
        return fails.get(next(turns), Commit.DONE) if context.name == "relay" else Commit.DONE

    cell = make_cell(
        seed=seed,
        server=Server.Config(reconcile=True),
        relay=Relay.Config(slots=slots),
        engine=Engine.Config(duration_us=Durations.parse("uniform(10s, 100s)")),
        agent=Agent.Config(runs=runs),
        commit_hook=hook,
    )
    cell.on_begin.append(lambda: cell.at(3600 * S, cell.finish))
    trace = Trace()
    cell.run(0, trace)
    ends = [event["run"] for event in trace.events("run.terminal")]
    assert len(ends) == len(set(ends)) == runs
    assert {event["status"] for event in trace.events("run.terminal")} <= {
        "completed", "interrupted",
    }  # fmt: skip
    begun = [event["run"] for event in trace.events("engine.started")]
    assert len(begun) == len(set(begun))
    at_once = most = 0
    for record in trace.kinds("event"):
        at_once += {"engine.started": 1, "engine.finished": -1}.get(record[5], 0)
        most = max(most, at_once)
    assert most <= slots
    assert rows(cell, "relay", "outbox") == []
