"""Frames come back as they were sent, however they are cut; no length makes us keep too much."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.frames import FrameBuffer, pack

CONTENTS = st.lists(st.binary(max_size=40), max_size=12)


def taken(buffer: FrameBuffer) -> list[bytes]:
    """Every frame that has come."""
    found = []
    while (frame := buffer.take()) is not None:
        found.append(frame)
    return found


@settings(max_examples=200, deadline=None)
@given(CONTENTS, st.lists(st.integers(0, 600), max_size=20))
def test_frames_come_back_however_they_are_cut(contents: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(pack, contents))
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    buffer, found = FrameBuffer(), list[bytes]()
    for start, end in itertools.pairwise(places):
        buffer.feed(stream[start:end])
        found += taken(buffer)
    assert found == contents
    assert not buffer.is_partial


def test_the_form_is_a_length_and_the_content() -> None:
    assert pack(b"abc") == b"\x00\x00\x00\x03abc"
    assert pack(b"") == b"\x00\x00\x00\x00"
    assert pack(b"x" * 258)[:5] == b"\x00\x00\x01\x02x"


def test_a_frame_that_has_begun_is_partial() -> None:
    buffer = FrameBuffer()
    for byte in pack(b"abc")[:-1]:
        buffer.feed(bytes([byte]))
        assert buffer.take() is None
        assert buffer.is_partial
    buffer.feed(b"c")
    assert buffer.take() == b"abc"
    assert not buffer.is_partial


def test_the_limit_holds_for_both_directions() -> None:
    largest = bytes(FRAME_LIMIT_BYTES)
    buffer = FrameBuffer()
    buffer.feed(pack(largest))
    assert buffer.take() == largest
    with pytest.raises(FrameError, match="frame of 1048577 bytes, the limit is 1048576"):
        pack(largest + b"x")
    buffer.feed(b"\x00\x10\x00\x01")
    with pytest.raises(FrameError, match="frame of 1048577 bytes, the limit is 1048576"):
        buffer.take()


def test_a_limit_may_change_between_two_frames() -> None:
    buffer = FrameBuffer(limit_bytes=3)
    buffer.feed(pack(b"abc") + pack(b"abcd"))
    assert buffer.take() == b"abc"
    buffer.limit_bytes = 4
    assert buffer.take() == b"abcd"


def test_an_announced_gigabyte_takes_no_memory() -> None:
    buffer = FrameBuffer()
    tracemalloc.start()
    buffer.feed(b"\x40\x00\x00\x00")
    with pytest.raises(FrameError):
        buffer.take()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 20_000


@pytest.mark.parametrize(
    ("beginning", "named"),
    [
        (b"GET / HTTP/1.1\r\n", "this is HTTP"),
        (b"PRI * HTTP/2.0\r\n", "this is HTTP/2"),
        (b"HTTP/1.1 400 Bad", "this is HTTP"),
        (b"SSH-2.0-OpenSSH", "this is SSH"),
        (b"\x16\x03\x01\x02\x00", "this is TLS"),
        (b"\x15\x03\x01\x00\x02", "this is TLS"),
    ],
)
def test_well_known_strangers_are_named(beginning: bytes, named: str) -> None:
    buffer = FrameBuffer()
    buffer.feed(beginning)
    with pytest.raises(FrameError, match=f"{named}, no frame: check the port"):
        buffer.take()


@settings(max_examples=300, deadline=None)
@example(contents=[b"abc", b"d"], place=4, change=255, kind="flip")
@given(
    CONTENTS, st.integers(0, 600), st.integers(1, 255), st.sampled_from(["flip", "cut", "twice"])
)
def test_damaged_bytes_are_other_frames_or_an_error(
    contents: list[bytes], place: int, change: int, kind: str
) -> None:
    """Never another exception, and never more held than came."""
    stream = bytearray(b"".join(map(pack, contents)) or b"\0")
    place %= len(stream)
    if kind == "flip":
        stream[place] ^= change
    elif kind == "cut":
        del stream[place:]
    else:
        stream[place:place] = stream[place : place + change]
    buffer = FrameBuffer(limit_bytes=64)
    buffer.feed(bytes(stream))
    try:
        found = taken(buffer)
    except FrameError:
        return
    assert sum(len(frame) + 4 for frame in found) <= len(stream)
    assert all(len(frame) <= 64 for frame in found)
