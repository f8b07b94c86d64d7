"""The trio host with programs of one's own among its actors.

A program takes no turns here. What it sends comes from its connection, goes over its link like
anybody's message, with the link's latency and faults, and so into the receiver's mailbox. What it
is sent counts as delivered, to logs and metrics, when its connection has taken it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import trio

from actors.errors import UnhandledMessageError
from actors.host import HostContext
from actors.network import Network
from actors.world import TrioWorld
from scenarios.programs import ProgramTransport
from transports.codec import FrameError
from transports.envelope import Envelope
from transports.memory import DOWN


class ProgramWorld(TrioWorld):
    """A `TrioWorld` over sockets in which the transport's programs play some of the parts."""

    def __init__(self, seed: int, cell: str, *, programs: ProgramTransport, speed: float) -> None:
        super().__init__(seed, cell, transport=programs, clock=None, speed=speed)
        self._programs = programs
        programs.on_done = self._finished_work

    async def _open(self, network: Network, nursery: trio.Nursery) -> None:
        programs = self._programs.launches
        await network.open(nursery, [name for name in self.contexts if name not in programs])

    def _finished_work(self, name: str) -> None:
        """Say that a program has ended as it should; `on_done` is set after this world is made."""
        self.on_done(name)

    # Messages

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Send the message over its wire; a program's own has come over one already."""
        if envelope.source in self._programs.launches:
            self._offer(envelope)
        elif envelope.target in self._programs.launches:
            self._give(envelope)
        else:
            super().deliver_now(envelope)

    def _give(self, envelope: Envelope[Any]) -> None:
        """Send a program a message, and let it be seen as delivered."""
        program = self.contexts[envelope.target]
        handler = program.handlers.get(type(envelope.body))
        if handler is None:
            kind = type(envelope.body).__name__
            raise UnhandledMessageError(f"{program.name}, a program, has no use for {kind}")
        if program.down or envelope.source != self._programs.server:
            self.lose(envelope, DOWN if program.down else "not connected")
            return
        assert self._network is not None, "messages are sent while the world runs"
        if self._network.send(envelope, self.now_us):
            if self.recorder is not None:
                program.record = self.recorder.message(self.now_us, envelope)
            handler(program, envelope)

    async def _receive(self, me: str, envelope: Envelope[Any]) -> None:
        """Put a program's message on its link; FrameError if nobody there understands it."""
        if envelope.source not in self._programs.launches:
            await super()._receive(me, envelope)
        elif type(envelope.body) not in self.contexts[me].handlers:
            raise FrameError(f"{me} does not understand {type(envelope.body).__name__}")
        else:
            # It has not seen our log, so it can't say which record of it is the cause.
            self.contexts[envelope.source].links[me](msgspec.structs.replace(envelope, cause=0))

    # Actor faults

    def _end(self, context: HostContext) -> None:
        program = self._programs.running.get(context.name)
        if program is None:
            super()._end(context)
        else:
            program.kill()  # by SIGKILL

    def _begin_anew(self, context: HostContext) -> None:
        program = self._programs.running.get(context.name)
        if program is None:
            super()._begin_anew(context)
        else:
            context.begin_boot()
            self._record_start(context)
            program.revive()  # as a new process

    def _stop(self, context: HostContext, now_us: int, clock_stops: bool) -> None:
        program = self._programs.running.get(context.name)
        if program is None:
            super()._stop(context, now_us, clock_stops)
        else:
            context.suspended_us = now_us
            program.stop()  # by SIGSTOP, which stops no clock of it

    def _go_on(self, context: HostContext, now_us: int) -> None:
        program = self._programs.running.get(context.name)
        if program is None:
            super()._go_on(context, now_us)
        else:
            context.suspended_us = -1
            program.go_on()  # by SIGCONT

    def shift_clock(self, name: str, fault: str, by_us: int) -> bool:
        """Let an actor's wall clock jump. False for a program, whose clock is the machine's."""
        return name not in self._programs.launches and super().shift_clock(name, fault, by_us)

    def set_clock_rate(self, name: str, fault: str, rate_ppm: int) -> bool:
        """Let an actor's clocks go at a rate in millionths. False for a program, likewise."""
        ours = name not in self._programs.launches
        return ours and super().set_clock_rate(name, fault, rate_ppm)

    # Turns

    async def _boot(self, actor: HostContext) -> None:
        if actor.name in self._programs.launches:
            self._record_start(actor)
        else:
            await super()._boot(actor)

    async def _live(self, actor: HostContext, boot: bool) -> None:
        if actor.name not in self._programs.launches:
            await super()._live(actor, boot)

    def _record_start(self, program: HostContext) -> None:
        if self.recorder is not None:
            program.record = self.recorder.start(self.now_us, program.name, program.boot)
