"""Connections as a model, where there are no sockets: in the simulator, and on trio in memory.

Two actors between whom a byte fault may act are joined by a `Line`. Each message is the frame that
it would be on a wire; the stages that act over sockets act on its bytes, and the same code cuts
what arrives into frames and reads them. What is modelled is the rest: the time that stages take,
the end of a connection with what is lost by it, the silence and the slow frame that end it too, the
back-off and the greeting after it. Two actors are joined by their first message, without a
greeting; heartbeats are not sent.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from actors.chance import Stream
from transports.codec import FrameError
from transports.connection import Timings
from transports.dialer import Backoff
from transports.envelope import Envelope
from transports.faults.byte_fault import (
    DOWN,
    UP,
    Direction,
    End,
    Ends,
    Pause,
    Piece,
    Stage,
    through,
)
from transports.faults.fault import World
from transports.frames import FrameBuffer, pack, pack_greeting
from transports.handshake import PROTOCOL, Hello, Welcome
from transports.memory import Carrier
from transports.wire import WireCodec
from transports.wiring import Wiring

QUEUE_LIMIT = 256  # messages that stages hold up on one way, as many as a wire's queue holds
DISCONNECTED = "disconnected"  # what loses a message while there is no connection


class Host(World, Protocol):
    """What a line needs of the host whose messages it carries."""

    def stream(self, purpose: str) -> Stream:
        """Return the replication's stream of chance for `purpose`."""

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Put the message behind those that are due at this instant."""

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        """Record that the message is lost."""


class Passed(NamedTuple):
    """What stages made of a frame: its bytes, when the first and the last passed, and the end."""

    data: bytes
    first_us: int
    last_us: int
    end: End | None


class Flying:
    """What is under way: a message, or with None what its receiver can't read."""

    __slots__ = ("due_us", "envelope", "unheld_us")

    def __init__(self, envelope: Envelope[Any] | None, due_us: int, unheld_us: int) -> None:
        self.envelope = envelope
        self.due_us = due_us  # when it arrives
        self.unheld_us = unheld_us  # when it would arrive if no stage held it up


class Way:
    """One direction of a line."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.flying: list[Flying] = []  # the next to arrive first
        self.clear()

    def clear(self) -> None:
        """Be as on a new connection, but for what is still under way."""
        self.stages: tuple[Stage, ...] = ()
        self.buffer = FrameBuffer()
        self.absorbed: list[Envelope[Any]] = []  # whose bytes lie in the buffer
        self.taken = 0  # frames from the buffer
        self.silent_us: int | None = None  # since when nothing can arrive
        self.ended = False  # whether what is sent from now on is lost

    def put(self, one: Flying) -> None:
        """Let it be under way.

        Its link has said what may pass what: it passes nothing that was to arrive before it, though
        stages hold that up.
        """
        before = [other.due_us for other in self.flying if other.unheld_us <= one.unheld_us]
        one.due_us = max([one.due_us, *before])
        insort(self.flying, one, key=_due_us)

    def hurry(self, now_us: int) -> None:
        """Let all arrive as if no stage had ever held it up, but not in the past."""
        for one in self.flying:
            one.due_us = max(now_us, one.unheld_us)
        self.flying.sort(key=_due_us)

    def lose_all(self) -> list[Envelope[Any]]:
        """Return the messages that are under way, which now aren't."""
        lost = [one.envelope for one in self.flying if one.envelope is not None]
        self.flying.clear()
        return lost

    @property
    def is_full(self) -> bool:
        """Whether stages hold up as much as may wait."""
        if len(self.flying) < QUEUE_LIMIT:
            return False
        return sum(one.due_us > one.unheld_us for one in self.flying) >= QUEUE_LIMIT


def _due_us(one: Flying) -> int:
    return one.due_us


class Side:
    """One actor's end of a line: what its link delivers through."""

    def __init__(self, host: Host, line: Line, way: Way) -> None:
        self._host = host
        self._line = line
        self._way = way

    @property
    def now_us(self) -> int:
        """What time it is."""
        return self._host.now_us

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Send the message, which takes no time but what stages need."""
        self._line.carry(self._way, envelope, 0)

    def deliver_at(self, envelope: Envelope[Any], due_us: int) -> None:
        """Send the message, which is under way until a time and longer if stages hold it up."""
        self._line.carry(self._way, envelope, due_us - self._host.now_us)

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        """Record that the message is lost."""
        self._host.lose(envelope, fault)


class Line:
    """Two actors' connection and, when that has ended, the next one."""

    def __init__(
        self,
        host: Host,
        wiring: Wiring,
        codec: WireCodec,
        ends: tuple[str, str],
        timings: Timings | None = None,
    ) -> None:
        self._host = host
        self._wiring = wiring
        self._codec = codec
        self._client, self._server = ends
        self._timings = timings or Timings()
        self._ways: dict[Direction, Way] = {UP: Way(*ends), DOWN: Way(*ends[::-1])}
        hello = Hello(name=self._client, boot="0" * 16, token="0" * 64)
        welcome = Welcome(protocol=PROTOCOL, name=self._server, boot="0" * 16)
        self._greeting = (
            (self._ways[UP], pack_greeting(msgspec.msgpack.encode(hello))),
            (self._ways[DOWN], pack_greeting(msgspec.msgpack.encode(welcome))),
        )
        self.reset()

    def reset(self) -> None:
        """Begin a replication, not joined yet."""
        self._number = 0  # of connections so far
        self._ends: Ends | None = None  # of the present one
        self._up_us: int | None = None  # since when it has been greeted
        chance = self._host.stream(f"connection/{self._client}/{self._server}")
        self._backoff = Backoff(self._timings, chance.random)
        for way in self._ways.values():
            way.flying.clear()
            way.clear()

    def side(self, source: str) -> Side:
        """Return the end that `source` sends from."""
        way = self._ways[UP if source == self._client else DOWN]
        return Side(self._host, self, way)

    # Messages

    def carry(self, way: Way, envelope: Envelope[Any], later_us: int) -> None:
        """Let a message pass the stages, and arrive `later_us` after it has, or be lost."""
        if not self._number:
            self._connect()
            self._up_us = self._host.now_us
        ends = self._ends
        if ends is None or self._up_us is None or way.ended or way.is_full:
            connected = ends is not None and self._up_us is not None and not way.ended
            self._host.lose(envelope, "queue full" if connected else DISCONNECTED)
            return
        if not way.stages and not way.buffer.is_partial:
            due_us = self._host.now_us + later_us  # nothing looks at its bytes
            self._fly(way, envelope, due_us, due_us, due_us)
            return
        # Without the record that caused it: a world must not change by being logged.
        frame = pack(self._codec.encode(replace(envelope, cause=0)))
        passed = self._pass(way, frame)
        number = self._number
        if passed.data:
            self._read(way, envelope, frame, passed, later_us)
        else:
            self._host.lose(envelope, self._wiring.blamed(ends) or DISCONNECTED)
        if passed.end is not None and number == self._number:
            way.ended = True
            self._at(passed.last_us, partial(self._end, number, way, passed.end))

    def _pass(self, way: Way, frame: bytes) -> Passed:
        """Take a frame through the stages, behind those that they are still at work on."""
        at_us = self._host.now_us
        clock = [at_us]
        data, first_us, end = b"", -1, None
        for _, step in through(way.stages, frame, at_us, lambda: clock[0]):
            if isinstance(step, Piece):
                first_us = clock[0] if first_us < 0 else first_us
                data += step.data
            elif isinstance(step, Pause):
                clock[0] = max(clock[0], step.until_us or 0)
            else:
                end = step
                break
        return Passed(data, max(first_us, at_us), clock[0], end)

    def _read(
        self, way: Way, envelope: Envelope[Any], frame: bytes, passed: Passed, later_us: int
    ) -> None:
        """Let what passed arrive: the message, another one, none yet, or what nobody can read."""
        unheld_us = self._host.now_us + later_us
        due_us = passed.last_us + later_us
        begun_us = passed.first_us + later_us
        if passed.data == frame and not way.buffer.is_partial:
            self._fly(way, envelope, due_us, unheld_us, begun_us)
            return
        way.absorbed.append(envelope)
        way.buffer.feed(passed.data)
        try:
            while (content := way.buffer.take()) is not None:
                way.taken += 1
                if content:
                    cause = way.absorbed[0].cause if way.absorbed else 0
                    read = replace(self._decode(way, content), cause=cause)
                    del way.absorbed[:1]
                    self._fly(way, read, due_us, unheld_us, begun_us)
        except FrameError:
            way.ended = True
            self._fly(way, None, due_us, unheld_us, begun_us)
            return
        if way.buffer.is_partial:
            late_us = begun_us + round(self._timings.frame_s * 1e6)
            self._at(late_us, partial(self._give_up_partial, self._number, way, way.taken))

    def _decode(self, way: Way, content: bytes) -> Envelope[Any]:
        """Return the message in a frame; FrameError if the receiver would take it for none."""
        read = self._codec.decode(content, way.source)
        if read.target != way.target:
            raise FrameError(f"a message to {read.target}, but this is {way.target}")
        return read

    def _fly(
        self, way: Way, envelope: Envelope[Any] | None, due_us: int, unheld_us: int, begun_us: int
    ) -> None:
        one = Flying(envelope, due_us, unheld_us)
        if due_us <= self._host.now_us and not way.flying:
            self._land(one)
            return
        way.put(one)
        if one.due_us <= self._host.now_us:
            self._arrive(way)
            return
        late_us = begun_us + round(self._timings.frame_s * 1e6)
        if late_us < one.due_us:
            self._at(late_us, partial(self._give_up_slow, self._number, way, one))
        self._at(one.due_us, partial(self._arrive, way))

    def _arrive(self, way: Way) -> None:
        """Deliver what is due."""
        while way.flying and way.flying[0].due_us <= self._host.now_us:
            self._land(way.flying.pop(0))

    def _land(self, one: Flying) -> None:
        if one.envelope is None:
            self._break(None)
        else:
            self._host.deliver_now(one.envelope)

    def _hurry(self, way: Way) -> None:
        """Let what stages have held up, which are gone now, go on at once."""
        way.hurry(self._host.now_us)
        for one in way.flying:
            self._at(one.due_us, partial(self._arrive, way))

    def _at(self, due_us: int, action: Any) -> None:
        self._host.at(due_us, action)

    # Stages

    def set_stages(self, stages: Mapping[Direction, tuple[Stage, ...]]) -> None:
        """Replace the stages of both directions; each new one begins to act."""
        now_us = self._host.now_us
        for direction, way in self._ways.items():
            before, way.stages = way.stages, stages[direction]
            for stage in way.stages:
                if stage.due_us is not None and stage not in before:
                    due = partial(self._due, self._number, way, stage)
                    self._at(max(now_us, stage.due_us), due)
            if before and not way.stages:
                self._hurry(way)
            self._listen(way)

    def _listen(self, way: Way) -> None:
        """Notice when nothing can arrive any more, which ends the connection in the long run."""
        now_us = self._host.now_us
        if not any(stage.silences for stage in way.stages):
            way.silent_us = None
        elif way.silent_us is None:
            way.silent_us = now_us
            late_us = now_us + round(self._timings.silence_s * 1e6)
            self._at(late_us, partial(self._give_up_silent, self._number, way, now_us))

    def _due(self, number: int, way: Way, stage: Stage) -> None:
        """Do what a stage does at its time, if it and the connection are still there."""
        if number == self._number and self._ends is not None and not stage.healed:
            self._end(number, way, stage.on_due())

    # The end of a connection

    def _end(self, number: int, way: Way, how: End) -> None:
        """End it as a stage says.

        Only an RST destroys what is under way on the stage's own direction. Where one direction
        has ended, the receiver closes the other too: half a link is none.
        """
        if number == self._number:
            self._break(None if how is End.RESET else way)

    def _give_up_partial(self, number: int, way: Way, taken: int) -> None:
        """End it if the rest of a frame has not come in time."""
        if number == self._number and taken == way.taken and way.buffer.is_partial:
            self._break(None)

    def _give_up_slow(self, number: int, way: Way, one: Flying) -> None:
        """End it if a frame takes too long."""
        if number == self._number and one in way.flying:
            self._break(None)

    def _give_up_silent(self, number: int, way: Way, since_us: int) -> None:
        """End it if nothing could arrive all the time, no heartbeat either."""
        if number == self._number and self._ends is not None and way.silent_us == since_us:
            for stage in way.stages:
                if stage.silences:
                    stage.fire()
            self._break(None)

    def _break(self, keeps: Way | None) -> None:
        """Lose what is under way, but on one direction, and dial again after the back-off."""
        ends = self._ends
        if ends is None:
            return
        fault = self._wiring.blamed(ends) or DISCONNECTED
        self._wiring.broke(ends)
        self._wiring.closed(ends)
        now_us, up_us = self._host.now_us, self._up_us
        self._ends = self._up_us = None
        for way in self._ways.values():
            if way is keeps:
                way.flying = [one for one in way.flying if one.envelope is not None]
            lost = ([] if way is keeps else way.lose_all()) + way.absorbed
            way.clear()
            for envelope in lost:
                self._host.lose(envelope, fault)
        lasted_s = 0.0 if up_us is None else (now_us - up_us) / 1e6
        retry_us = round(self._backoff.after(lasted_s) * 1e6)
        self._at(now_us + retry_us, self._dial)

    # The next connection

    def _connect(self) -> None:
        self._number += 1
        self._ends = self._wiring.opened(self._client, self._server, self)

    def _dial(self) -> None:
        """Connect and greet, through the stages of the new connection."""
        self._connect()
        number, now_us = self._number, self._host.now_us
        limit_us = now_us + round(self._timings.handshake_s * 1e6)
        due_us = now_us
        for way, frame in self._greeting:
            passed = self._pass(way, frame)
            due_us += passed.last_us - now_us
            if passed.end is not None or (passed.data and passed.data != frame):
                self._at(min(due_us, limit_us), partial(self._give_up_greeting, number))
                return
            if not passed.data:
                due_us = limit_us + 1
        if due_us > limit_us:
            self._at(limit_us, partial(self._give_up_greeting, number))
        else:
            self._at(due_us, partial(self._come_up, number))

    def _give_up_greeting(self, number: int) -> None:
        if number == self._number:
            self._break(None)

    def _come_up(self, number: int) -> None:
        if number == self._number and self._ends is not None:
            self._up_us = self._host.now_us


class Lines:
    """The lines between those actors of a cell between whom a byte fault may act.

    `ranks` says who dials, as over sockets: the higher rank the lower, equal ones by name.
    """

    def __init__(
        self, host: Host, wiring: Wiring, codec: WireCodec, ranks: Mapping[str, int]
    ) -> None:
        self._host = host
        self._wiring = wiring
        self._codec = codec
        self._ranks = ranks
        self._lines: dict[tuple[str, str], Line] = {}

    def reset(self) -> None:
        """Begin a replication."""
        for line in self._lines.values():
            line.reset()

    def carrier(self, source: str, target: str) -> Carrier | None:
        """Return what a link delivers through, None for its host itself."""
        server, client = sorted((source, target), key=lambda one: (self._ranks.get(one, 0), one))
        ends = client, server
        if client == server or not self._wiring.concerns(*ends):
            return None
        if ends not in self._lines:
            self._lines[ends] = Line(self._host, self._wiring, self._codec, ends)
        return self._lines[ends].side(source)
