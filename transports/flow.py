"""One direction of a proxied connection: bytes from a source through stages to a sink.

One task reads; without a stage it sends on at once. With stages what it reads waits in a bounded
queue for the task that takes it through them, so that a chunk is held from when it came and not
from when the one before it has passed. A full queue stops the reading: back-pressure.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import trio

from transports.faults.byte_fault import End, Pause, Piece, Stage, through

CHUNK_BYTES = 65_536  # what one read takes at most; larger is no faster on loopback
QUEUE_LIMIT_BYTES = 262_144  # four full chunks: what a fast link has under way in 20 ms
ITEM_BYTES = 256  # what an item costs beside its bytes, so that tiny chunks are bounded too


class Clock(Protocol):
    """The proxy's time, in microseconds since it began."""

    def now_us(self) -> int:
        """What time it is."""

    def deadline(self, at_us: int) -> float:
        """The same time in trio's seconds."""


class Mark(enum.Enum):
    """What may stand in a queue beside bytes."""

    EOF = "eof"  # the source has ended its stream
    RST = "rst"  # the source is broken
    HALF_CLOSE = "half-close"  # a stage ends the direction here


class Flow:
    """Carries one direction until its connection is over.

    `ended(how)` is called when a stage or a peer ends the connection as a whole, `finished()` once
    when this direction alone has ended. Both are called in the flow's tasks and may cancel these.
    """

    def __init__(
        self,
        source: trio.abc.ReceiveStream,
        sink: trio.abc.HalfCloseableStream,
        clock: Clock,
        ended: Callable[[End], None],
        finished: Callable[[], None],
    ) -> None:
        self._source = source
        self._sink = sink
        self._clock = clock
        self._ended = ended
        self._finished = finished
        self._queue: deque[tuple[bytes | Mark, int]] = deque()
        self._queued_bytes = 0
        self._busy = False  # whether the second task has something in hand
        self._direct = False  # whether the first task is sending by itself
        self._over = False  # whether the sink was told that the stream has ended
        self._changed = trio.Event()
        self.stages: tuple[Stage, ...] = ()

    async def settle(self) -> None:
        """Wait until nothing is held back by a stage."""
        while self._queue or self._busy:
            await self._wait(None)

    def set_stages(self, stages: Sequence[Stage]) -> None:
        """Replace the stages; a pause of one that has healed is over."""
        self.stages = tuple(stages)
        self._wake()

    def half_close(self) -> None:
        """End the direction behind all that came so far."""
        self._put(Mark.HALF_CLOSE)

    def abandon(self) -> None:
        """Let go of what is held: the tasks of the flow are over."""
        self._queue.clear()
        self._busy = False
        self._wake()

    async def read(self) -> None:
        """Read until the source ends."""
        while True:
            item: bytes | Mark
            try:
                item = bytes(await self._source.receive_some(CHUNK_BYTES)) or Mark.EOF
            except trio.BrokenResourceError:
                item = Mark.RST
            if self._over and isinstance(item, bytes):
                continue  # the direction was ended: what still comes is swallowed
            if self.stages or self._queue or self._busy:
                self._put(item)
                while self._queued_bytes > QUEUE_LIMIT_BYTES:
                    await self._wait(None)
            else:
                self._direct = True
                await (self._send(item) if isinstance(item, bytes) else self._end(item))
                self._direct = False
                if self._queue:  # a stage that came meanwhile wants to end the direction
                    self._wake()
            if isinstance(item, Mark):
                return

    async def write(self) -> None:
        """Take through the stages what waits in the queue, for ever."""
        while True:
            while not self._queue or self._direct:
                await self._wait(None)
            item, at_us = self._queue.popleft()
            self._busy = True
            await (self._pass(item, at_us) if isinstance(item, bytes) else self._leave(item, at_us))
            self._busy = False
            self._queued_bytes -= _cost_bytes(item)
            self._wake()

    def _put(self, item: bytes | Mark) -> None:
        self._queue.append((item, self._clock.now_us()))
        self._queued_bytes += _cost_bytes(item)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _wait(self, until_us: int | None) -> None:
        """Wait until anything changes here, or until a time."""
        if until_us is None:
            await self._changed.wait()
        else:
            with trio.move_on_at(self._clock.deadline(until_us)):
                await self._changed.wait()

    async def _pass(self, data: bytes, at_us: int) -> None:
        """Do the steps that the stages make of a chunk."""
        for stage, step in through(self.stages, data, at_us, self._clock.now_us):
            if self._over:
                return
            if isinstance(step, Piece):
                await self._send(step.data)
            elif isinstance(step, Pause):
                await self._pause(stage, step)
            elif step is End.HALF_CLOSE:
                await self._end(Mark.HALF_CLOSE)
            else:
                self._ended(step)
                await trio.sleep_forever()  # until the connection takes this task down

    async def _leave(self, mark: Mark, at_us: int) -> None:
        """End the direction, as late as the stages will have it."""
        if mark is not Mark.HALF_CLOSE:
            for stage in self.stages:
                for pause in stage.on_end(at_us):
                    await self._pause(stage, pause)
                    if pause.until_us is not None:
                        at_us = min(pause.until_us, self._clock.now_us())
        await self._end(mark)

    async def _pause(self, stage: Stage | None, pause: Pause) -> None:
        until_us = pause.until_us
        while stage is not None and not stage.healed:
            if until_us is not None and self._clock.now_us() >= until_us:
                return
            await self._wait(until_us)

    async def _send(self, data: bytes) -> None:
        try:
            await self._sink.send_all(data)
        except trio.BrokenResourceError:
            self._ended(End.RESET)  # whoever reads there is gone: the sender is to know
            await trio.sleep_forever()

    async def _end(self, mark: Mark) -> None:
        if mark is Mark.RST:
            self._ended(End.RESET)
            return
        if not self._over:
            self._over = True
            try:
                await self._sink.send_eof()
            except trio.BrokenResourceError:
                self._ended(End.RESET)
            self._finished()


def _cost_bytes(item: bytes | Mark) -> int:
    return ITEM_BYTES + (len(item) if isinstance(item, bytes) else 0)
