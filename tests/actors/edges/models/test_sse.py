"""Event streams: the same events wherever the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.models.sse import EVENT_LIMIT_BYTES, SseError, SseEvent, SseReader
from tests.actors.edges.models.stub_server import cut_everywhere

ENDS = st.sampled_from(["\n", "\r", "\r\n"])
WORDS = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=12)


def read(*chunks: bytes) -> list[SseEvent]:
    reader = SseReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def test_fields_comments_and_names() -> None:
    stream = b": hello\nevent: ping\nid: 7\ndata: one\ndata:two\ndata\nretry: 3\n\ndata: x\n\n"
    assert read(stream) == [SseEvent("ping", "one\ntwo\n"), SseEvent("", "x")]


def test_an_event_without_data_or_without_its_end_never_was() -> None:
    assert read(b"event: ping\n\ndata: cut off") == []


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    assert read(b"\xef\xbb\xbfdata: x\n\n") == [SseEvent("", "x")]


@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1))), ENDS, st.lists(st.integers(0)))
def test_cut_anywhere_the_events_are_the_same(
    events: list[tuple[str, list[str]]], end: str, places: list[int]
) -> None:
    text = "".join(
        f"event: {name}{end}" + "".join(f"data: {line}{end}" for line in lines) + end
        for name, lines in events
    )
    stream = text.encode()
    expected = [SseEvent(name, "\n".join(lines)) for name, lines in events]
    assert read(stream) == expected
    assert read(*cut_everywhere(stream, places)) == expected
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == expected


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(SseError, match="no text in UTF-8"):
        read(b"data: \xff\n\n")


@pytest.mark.parametrize("line", [b"data: " + b"x" * EVENT_LIMIT_BYTES, b"data: xxxxxxxx\n"])
def test_an_event_without_end_is_refused(line: bytes) -> None:
    chunks = [line] * (2 * EVENT_LIMIT_BYTES // len(line))
    with pytest.raises(SseError, match="more than 1,048,576 bytes"):
        read(*chunks)
