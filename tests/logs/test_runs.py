"""Which runs a record concerns."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors import messages
from logs.record import MessageRecord, TimerRecord, type_of
from logs.runs import Runs
from logs.words import kind_of
from tests.logs.samples import OUTBOX_RUN, Made, log_of, section


def test_everything_of_a_single_run_s_life_is_found() -> None:
    records = section(log_of("published/outbox")).records
    runs = Runs(records)
    assert list(runs) == [OUTBOX_RUN]
    found = [record for record in records if OUTBOX_RUN in runs.of(record)]
    carried = {type_of(record.envelope.body) for record in found if hasattr(record, "envelope")}
    assert carried == {
        "RunGraphSession", "GraphRun", "GetGraphRun", "Commands", "Start", "StartAnswer",
        "FleetRun", "FleetStarted", "FleetFinished", "FleetAcknowledged", "Control",
        "ControlAnswer", "Complete", "Accepted",
    }  # fmt: skip
    assert {kind_of(record) for record in found} == {
        "message", "event", "drop", "unanswered", "timer",
    }  # fmt: skip
    timers = [record.timer for record in found if isinstance(record, TimerRecord)]
    assert [timer.partition(":")[0] for timer in timers] == ["end"]


def test_runs_of_one_log_are_told_apart() -> None:
    records = section(log_of("chaos/agent_dies")).records
    runs = Runs(records)
    assert len(list(runs)) == 4
    calls = [
        runs.of(record)
        for record in records
        if isinstance(record, MessageRecord) and type_of(record.envelope.body) == "RunGraphSession"
    ]
    # The first call's answer was lost; its repetition, by the same key, got the same run.
    first, again, *others = calls
    assert first == again
    assert [len(run) for run in calls] == [1] * 5
    assert len({first, *others}) == 4


class Hello(messages.Message, frozen=True, kw_only=True):
    """A user's own message."""

    about: str
    deep: dict[str, Any]


def test_messages_and_events_of_a_stranger_count_but_not_what_users_send() -> None:
    made = Made()
    made.tell.event(0, "server", 0, "run.queued", {"run": "r-1"})
    body = Hello(about="r-1", deep={})
    made.tell.message(1, made.envelope("a", "b", body))
    made.tell.message(1, made.envelope("a", "b", Hello(about="x", deep={"l": [{"k": "c:r-1"}]})))
    made.tell.message(1, made.envelope("a", "b", Hello(about="x", deep={"result": "r-1"})))
    made.tell.event(2, "relay", 0, "mine.said", {"of": "r-1"})
    made.tell.event(2, "relay", 0, "mine.said", {"of": "r-2"})
    runs = Runs(made.records())
    assert [runs.of(record) for record in made.records()] == [
        ("r-1",), ("r-1",), ("r-1",), (), ("r-1",), ()
    ]  # fmt: skip


def test_an_undone_turn_concerns_what_its_input_did() -> None:
    made = Made()
    turn = made.tell.message(0, made.envelope("a", "s", messages.GetGraphRun(command_id="r")))
    made.tell.undone(0, "s", turn, "the commit failed")
    made.tell.undone(0, "s", 77, "of a turn that is not there")
    runs = Runs(made.records())
    assert [runs.of(record) for record in made.records()] == [("r",), ("r",), ()]


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["run", "command_id", "channel", "x"]), inner)
        ),
    )
)
def test_a_body_of_any_form_is_looked_at(body: Any) -> None:
    made = Made()
    made.tell.event(0, "s", 0, "x", {"run": body})
    made.tell.message(0, made.envelope("a", "b", msgspec.Raw(msgspec.json.encode(body))))
    runs = Runs(made.records())
    for record in made.records():
        assert set(runs.of(record)) <= set(runs)


ONE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_a_run_s_trace_is_the_first_that_a_message_about_it_has() -> None:
    made = Made()
    for run, trace in (("r1", ""), ("r1", ONE), ("r1", OTHER), ("r2", "00-edited"), ("r3", OTHER)):
        body = {"type": "GetGraphRun", "command_id": run}
        made.tell.message(0, made.envelope("agent", "server", body, traceparent=trace))
    runs = Runs(made.records())
    assert [runs.traceparent(run) for run in ("r1", "r2", "r3", "r4")] == [ONE, "", OTHER, ""]
