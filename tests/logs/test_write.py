"""Writing logs: sections, digests, undone turns, files that can't be written."""

import io
import json
from hashlib import blake2b
from typing import Any

import pytest

from actors import messages
from logs.record import HeaderRecord
from logs.write import BATCH_RECORDS, SectionWriter, UnwritableError
from transports.envelope import Envelope
from transports.units import Duration

HEADER = HeaderRecord(
    scenario="s", digest="d", seed=1, cell="c", replication=7, command="pullcord run s",
    pullcord="0", python="3", resolved={},
)  # fmt: skip


def asked(serial: int = 1) -> Envelope[Any]:
    return Envelope(serial, "agent", "server", 0, 0, messages.GetGraphRun(command_id="r"))


def lines(out: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_section_has_a_header_numbered_records_and_a_closing_record() -> None:
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(HEADER)
    assert writer.start(0, "server", 1) == 1
    writer.event(0, "server", 1, "run.queued", {"run": "r"})
    assert writer.message(5, asked()) == 3
    writer.late(6, asked())
    writer.drop(7, asked(), "lossy")
    assert writer.timer(8, "agent", 3, "poll") == 6
    assert writer.unanswered(9, "agent", 3, 1) == 7
    digest = writer.close("ended", 9)
    found = lines(out)
    assert [line["kind"] for line in found] == [
        "header", "start", "event", "message", "late", "drop", "timer", "unanswered", "end"
    ]  # fmt: skip
    assert [line["n"] for line in found[1:-1]] == [1, 2, 3, 4, 5, 6, 7]
    assert found[5]["actor"] == "agent"
    body = b"".join(out.getvalue().splitlines(keepends=True)[1:-1])
    assert digest == blake2b(body, digest_size=16).hexdigest()
    assert found[-1] == {"kind": "end", "count": 7, "digest": digest, "outcome": "ended", "t": 9}


def test_a_digest_needs_no_file_and_no_header() -> None:
    digests = []
    for out, header in ((io.BytesIO(), HEADER), (None, None)):
        writer = SectionWriter(out)
        writer.begin(header)
        writer.start(0, "server", 1)
        digests.append(writer.close("ended", 0))
    assert digests[0] == digests[1]


def test_sections_follow_each_other() -> None:
    out = io.BytesIO()
    writer = SectionWriter(out)
    for _ in range(2):
        writer.begin(HEADER)
        writer.start(0, "server", 1)
        writer.close("ended", 0)
    assert [line.get("n", line["kind"]) for line in lines(out)] == ["header", 1, "end"] * 2


def test_an_undone_turn_is_told_by_its_number_and_takes_nothing_back() -> None:
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    turn = writer.timer(1, "relay", 0, "poll")
    writer.fault(1, "relay", "full", "unwritable")
    writer.undone(1, "relay", turn, "the commit failed")
    assert writer.timer(2, "relay", 0, "poll") == 4
    writer.close("ended", 2)
    found = lines(out)
    assert [line["kind"] for line in found] == ["timer", "fault", "undone", "timer", "end"]
    assert [line["n"] for line in found[:-1]] == [1, 2, 3, 4]
    assert found[2]["cause"] == turn


@pytest.mark.parametrize("kind", ["message", "timer"])
def test_a_long_section_is_written_in_batches_and_a_turn_is_never_cut(kind: str) -> None:
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    turn = before = 0
    for number in range(BATCH_RECORDS + 10):
        before = len(out.getvalue())
        turn = (
            writer.message(number, asked())
            if kind == "message"
            else (writer.timer(number, "relay", 0, "poll"))
        )
    assert before > 0
    writer.undone(1, "relay", turn, "the commit failed")
    writer.event(1, "relay", turn, "said", {})
    writer.close("ended", 1)
    numbers = [line["n"] for line in lines(out)[:-1]]
    assert numbers == list(range(1, BATCH_RECORDS + 13))


def test_an_event_keeps_what_was_said_when_it_was_said() -> None:
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    held = [1, 2]
    writer.event(0, "relay", 0, "held", {"runs": held, "names": {"b", "a"}})
    held.append(3)
    writer.close("ended", 0)
    assert lines(out)[0]["fields"] == {"runs": [1, 2], "names": ["a", "b"]}


def test_an_event_that_json_has_not_is_refused_in_its_turn() -> None:
    writer = SectionWriter(None)
    writer.begin(None)
    with pytest.raises(TypeError, match="object is nothing that JSON has"):
        writer.event(0, "relay", 0, "held", {"thing": object()})
    writer.close("failed", 0)


class Full(io.BytesIO):
    def write(self, data: Any, /) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_told_at_the_end_of_the_section() -> None:
    writer = SectionWriter(Full())
    writer.begin(HEADER)
    for number in range(BATCH_RECORDS + 1):
        writer.timer(number, "relay", 0, "poll")
    with pytest.raises(OSError, match="No space left"):
        writer.close("ended", 0)


def test_a_duration_is_a_number() -> None:
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    writer.timer(Duration(5), "relay", 0, "poll")
    writer.event(0, "relay", 0, "waits", {"for": Duration(7)})
    writer.close("ended", Duration(9))
    found = lines(out)
    assert (found[0]["t"], found[1]["fields"], found[2]["t"]) == (5, {"for": 7}, 9)


def test_a_message_that_json_has_not_is_named() -> None:
    writer = SectionWriter(None)
    writer.begin(None)
    writer.timer(0, "relay", 0, "poll")
    bad: Any = object()
    body = messages.GetGraphRun(command_id=bad)
    writer.message(2_000_000, Envelope(1, "agent", "server", 0, 0, body))
    with pytest.raises(
        UnwritableError,
        match="the GetGraphRun that agent sent at 2 s can't be logged: object is nothing",
    ):
        writer.close("ended", 0)
