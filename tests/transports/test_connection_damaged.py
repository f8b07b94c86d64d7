"""A connection whose bytes are damaged on the way: it breaks, and no message arrives changed."""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.transports.test_connection import connected, why_it_broke
from transports.connection import BrokenLinkError
from transports.frames import pack
from transports.pipe import PipeStream


async def test_damage_breaks_the_link_with_a_reason_and_what_came_before_is_heard() -> None:
    sound = pack(b"payload")
    for at, part in ((2, "header"), (5, "header"), (11, "header"), (12, "of 7 bytes")):
        connection, there = connected()
        damaged = bytearray(sound)
        damaged[at] ^= 0x10
        await there.send(pack(b"good") + bytes(damaged) + pack(b"after"))
        assert await connection.receive() == b"good"
        assert part in (reason := await why_it_broke(connection))
        assert "has a wrong checksum: bytes were damaged on the way" in reason
        with pytest.raises(anyio.EndOfStream):
            await there.receive()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(min_size=0, max_size=30), max_size=6),
    st.lists(st.tuples(st.sampled_from(["flip", "cut", "2x"]), st.integers(0, 200)), max_size=3),
    st.integers(1, 50),
)
def test_damaged_streams_end_in_a_broken_link(
    contents: list[bytes], damages: list[tuple[str, int]], piece_bytes: int
) -> None:
    """No crash and no hang; what comes before the damage is right, and nothing else comes."""
    stream, intact = damaged(contents, damages)
    found: list[bytes] = []

    async def check() -> None:
        connection, there = connected()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_pieces, there, stream, piece_bytes)
            with suppress(BrokenLinkError):
                while True:
                    found.append(await connection.receive())

    trio.run(check, clock=MockClock(autojump_threshold=0))
    assert found[: len(intact)] == intact
    assert all(frame in contents for frame in found)


def damaged(contents: list[bytes], damages: list[tuple[str, int]]) -> tuple[bytearray, list[bytes]]:
    """The frames' bytes after each damage, and the messages that lie before the first."""
    stream = bytearray(b"".join(map(pack, contents)))
    whole = len(stream)
    for kind, place in damages:
        at = place % (len(stream) + 1)
        whole = min(whole, at)
        if kind == "flip" and at < len(stream):
            stream[at] ^= 0x55
        elif kind == "cut":
            del stream[at:]
        else:
            stream[at:at] = stream[at : at + 9]
    ends = accumulate(len(pack(content)) for content in contents)
    return stream, [each for each, end in zip(contents, ends, strict=True) if each and end <= whole]


async def send_pieces(stream: PipeStream, content: bytearray, piece_bytes: int) -> None:
    """Send piece by piece, as far as the other end takes it, and close."""
    with suppress(anyio.BrokenResourceError):
        for at in range(0, len(content), piece_bytes):
            await stream.send(bytes(content[at : at + piece_bytes]))
    await stream.aclose()
