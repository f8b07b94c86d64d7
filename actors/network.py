"""The trio host's network: between each two actors one wire, with a bounded queue at each end.

An actor's turn never waits: what its wire doesn't take at once goes into the queue of its end, and
a task of that end writes it. A target that is behind with its mail stops reading, so the wire
fills, then the queue, and then messages are lost and recorded: two full actors can't deadlock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import combinations
from typing import Any

import trio

from actors.errors import ActorFailedError, SimulationError
from transports.codec import FrameError
from transports.connection import BrokenLinkError
from transports.envelope import Envelope
from transports.local import TcpTransport, Transport, Wire
from transports.wire import WireCodec

QUEUE_LIMIT = 256  # messages that wait to be written to one wire, as many as a mailbox holds
JOIN_LIMIT_S = 10.0  # real time; on one machine a greeting takes milliseconds
DISCONNECTED = "disconnected"  # what loses a message to whom there is no connection
# Pairs, one with a detour counted as three: two sockets each must stay well below the usual 1,024
# of a process.
EAGER_LIMIT = 200

Arrive = Callable[[str, Envelope[Any]], Awaitable[None]]
Lose = Callable[[Envelope[Any], str], None]


class _End:
    """One actor's end of the wire to another: what it has still to write."""

    __slots__ = (
        "broken", "driver", "queue", "reader", "sent", "up", "waiting", "wire", "writing",
    )  # fmt: skip

    def __init__(self) -> None:
        self.queue: deque[tuple[Envelope[Any], bytes]] = deque()
        self.waiting = trio.lowlevel.ParkingLot()
        self.up = trio.Event()  # set by the first greeting
        self.sent: deque[Envelope[Any]] | None = None  # under way, where a fault may lose them
        self.broken = False
        self.writing = False
        self.reader: trio.CancelScope | None = None
        self.driver: trio.CancelScope | None = None  # of the connection that counts, the last
        self.wire: Wire | None = None


class Network:
    """Carries the messages of one replication."""

    def __init__(self, transport: Transport, codec: WireCodec, arrive: Arrive, lose: Lose) -> None:
        self._transport = transport
        self._codec = codec
        self._arrive = arrive
        self._lose = lose
        self._ends: dict[tuple[str, str], _End] = {}
        self._stopped = False

    async def open(self, nursery: trio.Nursery, names: Sequence[str]) -> None:
        """Get ready; a transport whose joining takes time joins every two actors now.

        SimulationError if two of them can't be joined within JOIN_LIMIT_S of real time.
        """
        await self._transport.open(nursery, names, self._drive)
        pairs = list(combinations(names, 2))
        detours = sum(self._is_faulty(*pair) for pair in pairs)
        if not self._transport.eager or len(pairs) + 2 * detours > EAGER_LIMIT:
            return
        ends = [end for pair in pairs for end in self._join(*pair)]
        with trio.move_on_after(JOIN_LIMIT_S):
            for end in ends:
                await end.up.wait()
            return
        missing = next(pair for pair, end in self._ends.items() if not end.up.is_set())
        raise SimulationError(
            f"{missing[0]} and {missing[1]} could not be joined within {JOIN_LIMIT_S:g} s: "
            "is the machine out of sockets?"
        )

    def _join(self, one: str, other: str) -> tuple[_End, _End]:
        near = self._ends[one, other] = _End()
        far = self._ends[other, one] = _End()
        if self._is_faulty(one, other):
            near.sent, far.sent = deque(), deque()
        self._transport.join(one, other)
        return near, far

    def _is_faulty(self, one: str, other: str) -> bool:
        """Whether two actors are joined by a detour, which takes three sockets more."""
        return isinstance(self._transport, TcpTransport) and self._transport.is_faulty(one, other)

    def send(self, envelope: Envelope[Any], now_us: int) -> bool:
        """Queue a message for its wire; lost if the wire is broken or its queue is full.

        Returns whether it left or is queued. ActorFailedError if it has no bytes, its sender's
        mistake.
        """
        try:
            frame = self._codec.encode(envelope)
        except FrameError as error:
            what = f"its {type(envelope.body).__name__} to {envelope.target}"
            raise ActorFailedError(envelope.source, what, now_us) from error
        end = self._ends.get((envelope.source, envelope.target))
        if end is None:
            end, _ = self._join(envelope.source, envelope.target)
        if end.broken:
            self._lose(envelope, DISCONNECTED)
        elif len(end.queue) >= QUEUE_LIMIT:
            self._lose(envelope, "queue full")
        else:
            if end.queue or end.writing or end.wire is None or not end.wire.send_nowait(frame):
                end.queue.append((envelope, frame))
                end.waiting.unpark()
            elif end.sent is not None:
                end.sent.append(envelope)
            return True
        return False

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not any(end.queue or end.writing for end in self._ends.values())

    def stop_reading(self) -> None:
        """Take no more messages in; what is queued is still written."""
        self._stopped = True
        for end in self._ends.values():
            if end.reader is not None:
                end.reader.cancel()

    async def _drive(self, me: str, peer: str, wire: Wire) -> None:
        """Write and read one end of a wire until it breaks; BrokenLinkError or FrameError then.

        What it did not write is lost with it. At the end of a replication nothing is lost: it was
        still under way. A new wire between the same two ends the one before, whose break this end
        may not have noticed yet.
        """
        end = self._ends.setdefault((me, peer), _End())  # a peer may have joined by itself
        reason: Exception = BrokenLinkError("it has connected anew")
        former = end.driver
        with trio.CancelScope() as driver:
            end.broken, end.wire, end.driver = False, wire, driver
            end.up.set()
            if former is not None:
                former.cancel()
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write, end, wire)
                    with trio.CancelScope() as end.reader:
                        if not self._stopped:
                            await self._read(me, peer, wire)
                    await trio.sleep_forever()  # it reads no more: what is queued is still written
            except* (BrokenLinkError, FrameError) as errors:
                reason = errors.exceptions[0]
        if end.driver is driver:
            end.broken, end.reader, end.wire, end.driver = True, None, None, None
            queue, end.queue = end.queue, deque()
            for envelope, _ in queue:
                self._lose(envelope, DISCONNECTED)
            other = self._ends.get((peer, me))
            if other is not None and other.broken:
                self._lose_sent(me, peer)
                self._lose_sent(peer, me)
        raise reason

    def _lose_sent(self, source: str, target: str, up_to: int | None = None) -> None:
        """Record what was under way as lost: all, or what was sent before the message `up_to`.

        That one has arrived. If it is not known, its number has changed on the way.
        """
        sent = self._ends[source, target].sent
        if not sent or (up_to is not None and all(one.id != up_to for one in sent)):
            return
        assert isinstance(self._transport, TcpTransport), "no other one has faults"
        fault = self._transport.culprit(source, target) or DISCONNECTED
        while sent:
            envelope = sent.popleft()
            if envelope.id == up_to:
                return
            self._lose(envelope, fault)

    async def _write(self, end: _End, wire: Wire) -> None:
        try:
            while True:
                while not end.queue:
                    await end.waiting.park()
                end.writing = True
                envelope, frame = end.queue.popleft()
                if end.sent is not None:
                    end.sent.append(envelope)
                await wire.send(frame)
                end.writing = False
        finally:
            end.writing = False

    async def _read(self, me: str, peer: str, wire: Wire) -> None:
        """Hand over what comes, one message after another."""
        while True:
            envelope = self._codec.decode(await wire.receive(), peer)
            if envelope.target != me:
                raise FrameError(f"a message to {envelope.target}, but this is {me}")
            sender = self._ends.get((peer, me))
            if sender is not None and sender.sent:
                self._lose_sent(peer, me, envelope.id)
            await self._arrive(me, envelope)
