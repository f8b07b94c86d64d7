"""Frames come back as they were sent, or not at all; no length makes us keep too much."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.frames import HEADER_BYTES, FrameBuffer, pack, pack_greeting

PAGE = Path(__file__).resolve().parents[2] / "docs" / "wire.md"
CONTENTS = st.lists(st.binary(max_size=40), max_size=12)


def taken(buffer: FrameBuffer) -> list[bytes]:
    """Every frame that has come."""
    found = []
    while (frame := buffer.take()) is not None:
        found.append(frame)
    return found


@settings(max_examples=200, deadline=None)
@given(CONTENTS, st.lists(st.integers(0, 900), max_size=20))
def test_frames_come_back_however_they_are_cut(contents: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(pack, contents))
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    buffer, found = FrameBuffer(), list[bytes]()
    for start, end in itertools.pairwise(places):
        buffer.feed(stream[start:end])
        found += taken(buffer)
    assert found == contents
    assert not buffer.is_partial


def test_the_form_is_a_header_and_the_content() -> None:
    assert pack(b"abc") == b"\0\0\0\x03\x35\x24\x41\xc2\x46\x3b\x9e\xceabc"
    assert pack(b"") == b"\0\0\0\0\0\0\0\0\x65\x22\xdf\x69"
    head = (258).to_bytes(4, "big") + crc32(b"x" * 258).to_bytes(4, "big")
    assert pack(b"x" * 258)[:13] == head + crc32(head).to_bytes(4, "big") + b"x"


def test_the_page_on_the_wire_has_these_bytes() -> None:
    examples = re.findall(
        r"^    ((?:[0-9a-f]{2} )+) +(\S.*)$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert [(bytes.fromhex(shown), what) for shown, what in examples] == [
        (pack(b"abc"), 'the content "abc"'),
        (pack(b""), "a heartbeat"),
        (pack_greeting(b"abc"), 'a greeting of "abc"'),
    ]


def test_the_page_on_the_wire_says_which_checksum_it_is() -> None:
    text = PAGE.read_text("utf-8")
    assert f"0x{crc32(b'123456789'):08X}" in text
    for content in (b"", b"abc", bytes(range(256))):
        assert reckoned(content) == crc32(content)
    # The C of the page is the function below.
    for line in ("crc = 0xFFFFFFFF;", "crc & 1 ? crc >> 1 ^ 0xEDB88320 : crc >> 1", "return ~crc;"):
        assert line in text


def reckoned(content: bytes) -> int:
    """The checksum by the page's text."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xEDB88320 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF


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


# Damage

# Where it lies in a frame: of the content too, however long that is.
SMALL = st.binary(max_size=300)


def is_found(frame: bytes, change: int, lowest_bit: int) -> bool:
    """Whether a frame whose bits are flipped as `change` has them is an error at once.

    Without another byte: neither the frame's end is waited for nor what follows.
    """
    bits = int.from_bytes(frame, "big") ^ change << lowest_bit
    buffer = FrameBuffer()
    buffer.feed(bits.to_bytes(len(frame), "big"))
    try:
        buffer.take()
    except FrameError:
        return True
    return False


@pytest.mark.parametrize("content", [b"", b"abc", bytes(200), bytes(range(256)), b"\xff" * 90])
def test_every_single_flip_is_found_at_once(content: bytes) -> None:
    frame = pack(content)
    assert all(is_found(frame, 1, bit) for bit in range(8 * len(frame)))


@pytest.mark.parametrize("content", [b"", b"abcd"])
def test_every_pair_of_flips_is_found_at_once(content: bytes) -> None:
    frame = pack(content)
    pairs = itertools.combinations(range(8 * len(frame)), 2)
    assert all(is_found(frame, 1 | 1 << high - low, low) for low, high in pairs)


@settings(max_examples=300, deadline=None)
@given(SMALL, st.integers(0, 3_000), st.integers(0, 3_000))
def test_pairs_of_flips_in_longer_frames_are_found_at_once(
    content: bytes, one: int, other: int
) -> None:
    frame = pack(content)
    low, high = sorted(bit % (8 * len(frame)) for bit in (one, other))
    assume(low != high)
    assert is_found(frame, 1 | 1 << high - low, low)


@settings(max_examples=500, deadline=None)
@given(SMALL, st.integers(1, 2**32 - 1), st.integers(0, 3_000))
def test_every_burst_of_up_to_32_bits_is_found_at_once(
    content: bytes, change: int, place: int
) -> None:
    frame = pack(content)
    assert is_found(frame, change, place % (8 * len(frame) - 31))


@pytest.mark.parametrize("change", [0x80000001, 0xFFFFFFFF, 0xEDB88320, 0x04C11DB7, 0xA5A5A5A5])
def test_bursts_are_found_wherever_they_lie(change: int) -> None:
    """Over the borders of the header's numbers and of the content too."""
    frame = pack(b"a message of a few bytes")
    assert all(is_found(frame, change, bit) for bit in range(8 * len(frame) - 31))


def test_a_damaged_header_is_found_before_the_content_has_come() -> None:
    for at in range(12):
        head = bytearray(pack(bytes(1_000))[:12])
        head[at] ^= 2
        buffer = FrameBuffer()
        buffer.feed(bytes(head))
        with pytest.raises(FrameError):
            buffer.take()


def test_what_is_wrong_is_named() -> None:
    for at, named in ((3, "a frame's header"), (8, "a frame's header"), (12, "a frame of 3 bytes")):
        damaged = bytearray(pack(b"abc"))
        damaged[at] ^= 8
        buffer = FrameBuffer()
        buffer.feed(bytes(damaged))
        with pytest.raises(FrameError, match=f"{named} has a wrong checksum: bytes were damaged"):
            buffer.take()


def test_zeros_are_no_heartbeats() -> None:
    buffer = FrameBuffer()
    buffer.feed(bytes(12))
    with pytest.raises(FrameError, match="header has a wrong checksum"):
        buffer.take()


def test_a_frame_alone_in_a_read_is_kept_as_it_came() -> None:
    """Else it were copied once more than its content."""
    buffer = FrameBuffer()
    piece = pack(bytes(FRAME_LIMIT_BYTES))
    tracemalloc.start()
    buffer.feed(piece)
    content = buffer.take()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert content == bytes(FRAME_LIMIT_BYTES)
    assert peak_bytes < FRAME_LIMIT_BYTES + 10_000
    assert buffer.take() is None


@settings(max_examples=300, deadline=None)
@example(contents=[b"abc", b"d"], place=4, change=255, kind="flip")
@given(
    CONTENTS, st.integers(0, 900), st.integers(1, 255), st.sampled_from(["flip", "cut", "twice"])
)
def test_damaged_bytes_are_no_other_frames(
    contents: list[bytes], place: int, change: int, kind: str
) -> None:
    """An error, never another exception, and never a content that was not sent."""
    stream = bytearray(b"".join(map(pack, contents)) or pack(b""))
    place %= len(stream)
    if kind == "flip":
        stream[place] ^= change
    elif kind == "cut":
        del stream[place:]
    else:
        stream[place:place] = stream[place : place + change]
    buffer, found = FrameBuffer(limit_bytes=64), list[bytes]()
    buffer.feed(bytes(stream))
    try:
        while (frame := buffer.take()) is not None:
            found.append(frame)
    except FrameError:
        assert kind != "cut"
    else:
        assert kind != "flip"
    assert all(frame in contents or not frame for frame in found)
    assert sum(len(frame) + HEADER_BYTES for frame in found) <= len(stream)


# Greetings


def test_a_greeting_is_a_length_the_content_and_a_checksum() -> None:
    said = pack_greeting(b"abc")
    assert said == b"\0\0\0\x03abc" + crc32(b"\0\0\0\x03abc").to_bytes(4, "big")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40), st.lists(st.integers(0, 100), max_size=5))
def test_a_greeting_comes_back_however_it_is_cut_and_frames_behind_it(
    content: bytes, cuts: list[int]
) -> None:
    stream = pack_greeting(content) + pack(b"next")
    places = [0, *sorted(cut % len(stream) for cut in cuts), len(stream)]
    buffer, pieces = FrameBuffer(), [stream[a:b] for a, b in itertools.pairwise(places)]
    while (found := buffer.take_greeting()) is None:
        buffer.feed(pieces.pop(0))
    assert found == content
    while not buffer.take_check(content):
        buffer.feed(pieces.pop(0))
    for piece in pieces:
        buffer.feed(piece)
    assert taken(buffer) == [b"next"]


def test_a_greeting_s_checksum_may_be_wrong() -> None:
    for bit in range(56, 88):
        bits = int.from_bytes(pack_greeting(b"abc"), "big") ^ 1 << 87 - bit
        buffer = FrameBuffer()
        buffer.feed(bits.to_bytes(11, "big"))
        assert buffer.take_greeting() == b"abc"
        with pytest.raises(FrameError, match="a greeting has a wrong checksum"):
            buffer.take_check(b"abc")


def test_a_greeting_over_the_limit_is_refused_for_four_bytes() -> None:
    buffer = FrameBuffer(limit_bytes=100)
    buffer.feed(b"\0\0\0")
    assert buffer.take_greeting() is None
    buffer.feed(b"\x65")
    with pytest.raises(FrameError, match="frame of 101 bytes, the limit is 100"):
        buffer.take_greeting()
