"""What a host observed, by who said what, and the recorder that keeps it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.messages import NOT_FOUND, GetGraphRun, GraphRun, Noted
from logs.keep import MemoryRecorder
from logs.record import KINDS as LOG_KINDS
from logs.record import EndRecord, FaultRecord, HeaderRecord, Record, SendRecord
from logs.write import SectionWriter
from scenarios.build import CellRun
from scenarios.checks.history import History, history_of, said_in
from tests.scenarios.checks.chaos import ChaosCell, history, scenario
from tests.scenarios.checks.tale import KINDS, S, Tale
from tests.scenarios.loading import load
from transports.clock import EPOCH_US
from transports.envelope import Envelope

ASK = GetGraphRun(command_id="r1")
RUNNING = GraphRun(command_id="r1", status="running")


class Unknown(Record, frozen=True, tag="unknown"):
    """A kind of record that a history does not know."""


# Messages


def test_delivered_is_what_a_committed_turn_got_and_sent_is_what_a_committed_turn_said() -> None:
    tale = Tale()
    arrived = tale.say("claude", "server", ASK)
    undone = tale.say("claude", "server", ASK)
    tale.recorder.undone(0, "server", undone, "the commit failed")
    lost = tale.say("claude", "server", ASK, lost=True)
    late = tale.say("eve", "server", ASK, late=True)
    seen = tale.history()
    assert [one.n for one in seen.delivered(GetGraphRun)] == [arrived]
    assert [one.n for one in seen.sent(GetGraphRun)] == [arrived, undone, lost, late]
    assert seen.undone == {undone}
    assert list(seen.delivered(Noted)) == list(seen.sent(Noted)) == []


def test_a_message_that_comes_twice_was_sent_once() -> None:
    tale = Tale()
    envelope = Envelope(7, "claude", "server", 0, 0, ASK)
    for _ in range(2):
        tale.recorder.message(0, envelope)
    tale.recorder.late(0, envelope)
    tale.recorder.message(0, msgspec.structs.replace(envelope, source="eve"))
    seen = tale.history()
    assert [one.n for one in seen.sent(GetGraphRun)] == [1, 4]
    assert [one.n for one in seen.delivered(GetGraphRun)] == [1, 2, 4]
    assert [one.n for one in seen.said_by("agent", GetGraphRun)] == [1, 4]
    assert seen.said_by("server", GetGraphRun) == []


def test_a_question_is_found_in_the_turn_that_answers_it_and_elsewhere() -> None:
    tale = Tale()
    asked = tale.say("claude", "server", ASK)
    other = tale.say("eve", "server", ASK)
    timer = tale.recorder.timer(0, "server", 0, "wait:r1")
    tale.say("server", "claude", RUNNING, to=asked)
    tale.say("server", "claude", RUNNING, to=asked, by=timer)  # held back
    tale.say("server", "claude", RUNNING, to=asked, by=other)  # in another question's turn
    tale.say("server", "claude", RUNNING)  # no answer
    seen = tale.history()
    questions = [seen.question(answer) for answer in seen.sent(GraphRun)]
    assert questions == [seen.turn(asked)] * 3 + [None]
    stray = Envelope(99, "server", "claude", 1_000, 0, RUNNING)
    tale.recorder.message(0, stray)
    seen = tale.history()
    assert seen.question(seen.sent(GraphRun)[-1]) is None  # a question that is not on record


def test_a_turn_is_found_by_its_number_where_records_are_missing() -> None:
    tale = Tale()
    for _ in range(4):
        tale.recorder.timer(0, "server", 0, "x")
    whole = tale.recorder.records
    seen = History(whole[2:], kinds=KINDS)
    assert [seen.turn(number) for number in range(6)] == [None, None, None, *whole[2:], None]


# Events


def test_only_servers_and_engines_are_believed_and_what_was_undone_never_was() -> None:
    tale = Tale()
    tale.event("said", actor="server")
    tale.event("said", actor="engine")
    for actor in ("relay", "claude", "nobody"):
        tale.event("said", actor=actor)
    turn = tale.recorder.timer(0, "server", 0, "x")
    tale.event("said", by=turn)
    tale.recorder.records.append(Unknown(8, 0, "server", 0))
    tale.recorder.records.append(
        type(tale.recorder.records[0])(9, 0, "server", 0, "said", {})  # type: ignore[call-arg]  # an event
    )
    assert [one.n for one in tale.history().events("said")] == [1, 2, 7, 9]
    undone = MemoryRecorder()
    turn = undone.timer(0, "server", 0, "x")
    undone.event(0, "server", turn, "said", {})
    records = list(undone.records)
    undone.undone(0, "server", turn, "killed")
    late = undone.records[-1]
    assert History([*records, late], kinds=KINDS).events("said") == []


def test_an_event_of_a_run_names_it() -> None:
    tale = Tale()
    for name in ("run.started", "run.terminal", "engine.started"):
        tale.event(name)
    whole = tale.event("run.started", run="r1")
    seen = tale.history()
    assert [one.n for one in seen.events("run.started")] == [whole]
    assert list(seen.stories) == ["r1"]


# Stories


def test_a_story_has_what_was_said_of_a_run_in_its_order() -> None:
    tale = Tale()
    queued = tale.queue()
    started = tale.event("run.started", run="r1", device="relay")
    executed = tale.event("engine.started", actor="engine", run="r1", execution="e1")
    turn = tale.recorder.timer(0, "server", 0, "x")
    ended = tale.end("completed", by=turn)
    tale.say("server", "claude", GraphRun(command_id="r1", status="completed"), by=turn)
    tale.say("server", "claude", RUNNING, by=started)  # overtaken
    story = tale.history().stories["r1"]
    assert (story.run, story.agent) == ("r1", "claude")
    assert story.queued is not None
    assert story.begun is story.queued
    assert story.queued.n == queued
    assert [one.n for one in story.starts] == [started]
    assert [one.n for one in story.executions] == [executed]
    assert [one.n for one in story.ends] == [ended]
    statuses = [one.envelope.body.status for one in story.answers]
    assert statuses == ["queued", "running", "completed"]
    first = story.first()
    assert first is not None
    assert (first.n, said_in(first)) == (ended, turn)
    assert story.first("cancelled") is None


def test_a_ticket_tells_whose_run_it_is_where_no_event_does() -> None:
    tale = Tale()
    tale.queue()
    del tale.recorder.records[1]
    seen = tale.history()
    story = seen.stories["r1"]
    assert (story.queued, story.agent) == (None, "claude")
    assert story.begun is story.ticket is seen.sent(GraphRun)[0]
    tale = Tale()
    tale.say("server", "claude", RUNNING, to=tale.say("claude", "server", ASK))
    tale.say("server", "claude", NOT_FOUND)
    stories = tale.history().stories
    assert [(one.run, one.agent, one.begun) for one in stories.values()] == [("r1", None, None)]


# The end


@pytest.mark.parametrize("outcome", ["ended", "limit reached", "would sleep for ever", "failed"])
def test_rows_count_only_where_the_world_stopped_between_two_turns(outcome: str) -> None:
    row = RUNNING
    stores: dict[str, Any] = {"server": {"t": {"a": row}}, "relay": {"t": {"a": row}}}
    seen = History([], kinds=KINDS, stores=stores, outcome=outcome)
    assert seen.settled == (outcome != "failed")
    assert list(seen.rows("server", "t")) == [("server", row)] * seen.settled
    assert list(seen.rows("server", "other")) == []


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(0, 300))
def test_what_is_due_is_due_after_the_heal_and_after_its_beginning(
    healed: int, since: int, converge: int, ended: int
) -> None:
    seen = History([], kinds={}, healed_us=healed, converge_us=converge, ended_us=ended)
    due = seen.due_us(since)
    if max(healed, since) + converge > ended:
        assert due is None
    else:
        assert due == max(healed, since) + converge


# The recorder


def logged(cell: CellRun) -> list[bytes]:
    """The lines of the log of a cell's first replication, without its end."""
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    cell.simulator.run(0, writer)
    writer.close("ended", cell.simulator.now_us)
    return out.getvalue().splitlines()[:-1]


@pytest.mark.parametrize("odds", [0.0, 0.2])
def test_it_keeps_what_a_log_holds_under_the_same_numbers(tmp_path: Path, odds: float) -> None:
    world = scenario(tmp_path, "recommended", 1)
    seen = history(ChaosCell(world, 1, odds))
    encoded = [msgspec.json.encode(record) for record in seen.records]
    assert encoded == logged(ChaosCell(world, 1, odds))
    assert len(encoded) > 300
    kinds = {type(record) for record in seen.records}
    assert not odds or kinds == {*LOG_KINDS.values()} - {
        HeaderRecord,
        EndRecord,
        FaultRecord,
        SendRecord,
    }


def test_it_begins_anew_and_leaves_the_last_history_alone() -> None:
    recorder = MemoryRecorder()
    assert [recorder.timer(0, "a", 0, "x"), recorder.start(0, "a", 0)] == [1, 2]
    first = recorder.records
    recorder.clear()
    assert recorder.unanswered(5, "a", 0, 7) == 1
    assert (len(first), len(recorder.records)) == (2, 1)


def test_the_history_of_a_cell_has_its_cast_its_stores_and_its_timers(tmp_path: Path) -> None:
    plan = load(tmp_path, '[run]\nuntil = "5s"\n[server]\nagent_limit = 9\n')
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    recorder = MemoryRecorder()
    cell.simulator.run(0, recorder)
    seen = history_of(cell, recorder, healed_us=1, converge_us=2, outcome="limit reached")
    assert seen.kinds == {
        "server": "server",
        "relay": "relay",
        "engine": "engine",
        "agent": "agent",
    }  # the owner has nothing to do, so it isn't there
    assert seen.configs["server"].agent_limit == 9
    assert (seen.ended_us, seen.healed_us, seen.converge_us) == (5 * S, 1, 2)
    assert seen.outcome == "limit reached"
    (row,) = seen.run_rows.values()
    assert row.queued_us == EPOCH_US
    assert set(seen.timers["server"]) == {"sweep"}
    assert seen.timers["relay"]["poll"] > 0
    assert seen.keeps_runs
    assert seen.actors("relay") == ["relay"]
