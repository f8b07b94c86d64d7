"""What every byte stream under a link promises: one suite, run on memory, TCP, TLS, UNIX and pipes.

A stream's own test subclasses `StreamContract` and says how the two ends of one are opened. The
suite runs the real handshake and the real frames on it:

    class TestPipe(StreamContract):
        @asynccontextmanager
        async def open(self) -> AsyncIterator[Ends]: ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count

import msgspec
import pytest
import trio
from anyio.abc import ByteStream

from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.frames import pack, pack_greeting
from transports.handshake import PROTOCOL, Hello, answer, greet

Ends = tuple[ByteStream, ByteStream]

WORD = "open sesame"
ME = Hello(name="relay", boot="r1", token=WORD)
SERVER = Peer(protocol=PROTOCOL, name="server", boot="s1")
PATIENT = Timings()


async def greeted(ends: Ends, timings: Timings = PATIENT) -> tuple[Connection, Connection]:
    """The dialler's and the acceptor's connection over a stream's two ends."""
    found: list[Connection] = []

    async def accepting() -> None:
        found.append(await answer(ends[1], SERVER, lambda _hello: None, timings))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accepting)
        dialler = await greet(ends[0], ME, timings)
    return dialler, found[0]


def frames(number: int) -> list[bytes]:
    """Frames that all differ, from one byte to some 40 KB."""
    return [str(n).encode() * (1 + (n * n) % 9_000) for n in range(number)]


async def rest(connection: Connection) -> list[bytes]:
    """Every frame that still comes before the link breaks."""
    found: list[bytes] = []
    try:
        while True:
            found.append(await connection.receive())
    except BrokenLinkError:
        return found


async def flood(connection: Connection) -> None:
    """Send more than any stream holds."""
    for number in range(2_000):
        await connection.send(number.to_bytes(2, "big") * 32_768)


class StreamContract:
    """Subclass it, and say how a stream is opened."""

    def open(self) -> AbstractAsyncContextManager[Ends]:
        """A new stream's two ends, the dialler's first, closed afterwards."""
        raise NotImplementedError

    @asynccontextmanager
    async def links(
        self, timings: Timings = PATIENT
    ) -> AsyncIterator[tuple[Connection, Connection]]:
        async with self.open() as ends:
            there, here = await greeted(ends, timings)
            yield there, here
            await there.aclose()
            await here.aclose()

    async def test_the_greeting_tells_each_side_who_is_there(self) -> None:
        async with self.links() as (dialler, acceptor):
            assert acceptor.peer == Peer(protocol=PROTOCOL, name="relay", boot="r1")
            assert dialler.peer == SERVER

    async def test_frames_arrive_in_order_and_once_both_ways_at_once(self) -> None:
        wanted = frames(150)
        async with self.links() as ends:

            async def sending(connection: Connection) -> None:
                for frame in wanted:
                    await connection.send(frame)

            async def receiving(connection: Connection) -> None:
                assert [await connection.receive() for _ in wanted] == wanted

            async with trio.open_nursery() as nursery:
                for connection in ends:
                    nursery.start_soon(sending, connection)
                    nursery.start_soon(receiving, connection)

    async def test_frames_that_are_sent_at_once_or_else_waited_for_keep_their_order(self) -> None:
        wanted = frames(150)
        async with self.links() as (there, here), trio.open_nursery() as nursery:

            async def sending() -> None:
                for frame in wanted:
                    if not there.send_nowait(frame):
                        await there.send(frame)

            nursery.start_soon(sending)
            assert [await here.receive() for _ in wanted] == wanted

    async def test_a_frame_at_the_limit_arrives_and_one_over_it_is_not_sent(self) -> None:
        largest = bytes(range(256)) * (FRAME_LIMIT_BYTES // 256)
        async with self.links() as (there, here):
            with pytest.raises(FrameError, match="the limit is 1048576"):
                await there.send(largest + b"x")
            with pytest.raises(FrameError, match="heartbeat"):
                await there.send(b"")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(there.send, largest)
                assert await here.receive() == largest

    async def test_frames_of_several_tasks_are_not_mixed(self) -> None:
        wanted = [bytes([65 + n]) * 200_000 for n in range(6)]
        async with self.links() as (there, here), trio.open_nursery() as nursery:
            for frame in wanted:
                nursery.start_soon(there.send, frame)
            assert sorted([await here.receive() for _ in wanted]) == wanted

    async def test_a_sender_waits_for_a_peer_that_does_not_read(self) -> None:
        sent: list[int] = []
        stop = False

        async def sending(connection: Connection) -> None:
            for number in range(2_000):
                if stop:
                    break
                await connection.send(number.to_bytes(4, "big") * 16_384)
                sent.append(number)
            await connection.send(b"last")

        async with self.links() as (there, here), trio.open_nursery() as nursery:
            nursery.start_soon(sending, there)
            await trio.testing.wait_all_tasks_blocked(0.02)
            assert len(sent) < 2_000
            stop = True
            for number in count():
                frame = await here.receive()
                if frame == b"last":
                    break
                assert frame[:4] == number.to_bytes(4, "big")
            assert number == len(sent)

    async def test_a_peer_that_closes_breaks_the_link_after_a_prefix(self) -> None:
        wanted = frames(20)
        async with self.links() as (there, here):
            for frame in wanted[:10]:  # fits into every stream's buffer
                await there.send(frame)
            await there.aclose()
            found = await rest(here)
            assert found == wanted[: len(found)]
            with pytest.raises(BrokenLinkError):
                await here.receive()

    async def test_a_send_to_a_peer_that_is_gone_breaks_in_the_end(self) -> None:
        async with self.links() as (there, here):
            await there.aclose()
            with pytest.raises(BrokenLinkError):
                await flood(here)
            with pytest.raises(BrokenLinkError):
                await here.receive()

    async def test_closing_wakes_whoever_waits_on_the_same_side(self) -> None:
        async with self.links() as (there, _here):

            async def receiving() -> None:
                with pytest.raises(BrokenLinkError, match="closed on this side"):
                    await there.receive()

            async def sending() -> None:
                with pytest.raises(BrokenLinkError, match="closed on this side"):
                    await flood(there)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(receiving)
                nursery.start_soon(sending)
                await trio.testing.wait_all_tasks_blocked(0.02)
                await there.aclose()

    async def test_a_cancelled_receive_loses_nothing(self) -> None:
        wanted = frames(60)
        async with self.links() as (there, here), trio.open_nursery() as nursery:

            async def sending() -> None:
                for frame in wanted:
                    await there.send(frame)
                    await trio.lowlevel.checkpoint()

            nursery.start_soon(sending)
            found: list[bytes] = []
            for n in count():
                with trio.CancelScope() as scope:
                    if n % 2 == 0:
                        scope.cancel()
                    found.append(await here.receive())
                if len(found) == len(wanted):
                    break
            assert found == wanted

    async def test_a_send_that_is_cancelled_half_way_breaks_the_link(self) -> None:
        async with self.links() as (there, here):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(flood, there)
                    await trio.testing.wait_all_tasks_blocked(0.02)
                    scope.cancel()
            with pytest.raises(BrokenLinkError, match="cut short"):
                await there.send(b"x")
            found = await rest(here)
            assert found == [n.to_bytes(2, "big") * 32_768 for n in range(len(found))]

    @pytest.mark.parametrize("kept", [False, True])
    async def test_a_peer_that_is_silent_is_given_up(self, kept: bool) -> None:
        quick = Timings(heartbeat_s=0.01, silence_s=0.04)
        async with self.links(quick) as (there, here), trio.open_nursery() as nursery:
            if kept:
                nursery.start_soon(here.keep_alive)
                await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(BrokenLinkError, match=r"heard nothing for 0\.04 s"):
                await here.receive()
            assert await rest(there) == []

    async def test_what_comes_with_the_greeting_is_kept(self) -> None:
        async with self.open() as (there, here), trio.open_nursery() as nursery:
            hello = (
                pack_greeting(msgspec.msgpack.encode(ME))
                + pack(b"first")
                + pack(b"")
                + pack(b"second")
            )
            nursery.start_soon(there.send, hello)
            connection = await answer(here, SERVER, lambda _hello: None, PATIENT)
            assert await connection.receive() == b"first"
            assert await connection.receive() == b"second"
            await connection.aclose()

    async def test_a_refusal_reaches_the_dialler(self) -> None:
        async with self.open() as (there, here), trio.open_nursery() as nursery:

            async def refusing() -> None:
                with pytest.raises(BrokenLinkError, match="not you"):
                    await answer(here, SERVER, lambda _hello: "not you", PATIENT)

            nursery.start_soon(refusing)
            with pytest.raises(BrokenLinkError, match="refused: not you"):
                await greet(there, ME, PATIENT)
