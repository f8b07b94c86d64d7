"""Records are kept under the numbers that a section of a log gives them."""

from __future__ import annotations

from typing import Any

from actors.messages import GetGraphRun
from logs.keep import MemoryRecorder
from logs.record import KINDS, EndRecord, HeaderRecord
from transports.envelope import Envelope

ENVELOPE: Envelope[Any] = Envelope(1, "agent", "server", 0, 0, GetGraphRun(command_id="r"))


def tell(recorder: MemoryRecorder) -> None:
    """One record of each kind."""
    assert recorder.start(0, "relay", 0) == 1
    assert recorder.message(1, ENVELOPE) == 2
    assert recorder.timer(2, "relay", 2, "poll") == 3
    assert recorder.unanswered(3, "agent", 2, 1) == 4
    recorder.late(4, ENVELOPE)
    recorder.drop(5, ENVELOPE, "lossy")
    recorder.send(5, ENVELOPE)
    recorder.fault(6, "relay", "killer", "kill")
    turn = recorder.message(7, ENVELOPE)
    recorder.undone(7, "server", turn, "the commit failed")
    recorder.event(8, "server", turn, "run.queued", {"run": "r"})


def test_every_kind_is_kept_and_numbered_from_one() -> None:
    recorder = MemoryRecorder()
    tell(recorder)
    assert [record.n for record in recorder.records] == list(range(1, 12))
    assert {type(record) for record in recorder.records} == {*KINDS.values()} - {
        HeaderRecord,
        EndRecord,
    }


def test_an_undone_turn_takes_back_nothing_of_what_happened_meanwhile() -> None:
    recorder = MemoryRecorder()
    turn = recorder.message(7, ENVELOPE)
    recorder.fault(7, "server", "full", "unwritable")
    recorder.timer(8, "relay", 0, "poll")
    recorder.undone(9, "server", turn, "the commit failed")
    assert [(record.n, type(record).__name__) for record in recorder.records] == [
        (1, "MessageRecord"),
        (2, "FaultRecord"),
        (3, "TimerRecord"),
        (4, "UndoneRecord"),
    ]
    assert recorder.records[-1].cause == turn


def test_a_cleared_recorder_begins_anew_and_leaves_what_was_handed_out() -> None:
    recorder = MemoryRecorder()
    tell(recorder)
    kept = recorder.records
    recorder.clear()
    assert (len(kept), recorder.records) == (11, [])
    assert recorder.timer(0, "relay", 0, "poll") == 1


def test_room_is_made_before_a_turn_and_never_within_one() -> None:
    class Small(MemoryRecorder):
        batch = 2

        def _flush(self) -> None:
            flushed.append(len(self.records))
            self.records.clear()

    flushed: list[int] = []
    recorder = Small()
    recorder.message(0, ENVELOPE)
    for _ in range(3):
        recorder.event(0, "server", 1, "run.queued", {"run": "r"})
    assert flushed == []
    recorder.timer(1, "relay", 0, "poll")
    assert flushed == [4]
