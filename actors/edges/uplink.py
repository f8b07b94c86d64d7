"""The uplink: the edge of a desktop that dials its server, and stays connected for ever.

Its token is read anew for each connection. A new one that the server sends is on disk before
anything else happens: the first use of it ends the one before.

What was asked over a connection that broke is never answered, so the actor is told of each new one.
A machine that slept has none that is of use: it dials anew, at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import trio

from actors.desktop.messages import Connected
from actors.edges.door import NewToken
from actors.edges.line import Inside, Line
from actors.messages import Message
from transports.codec import FrameError
from transports.connection import Connection, Log, Timings
from transports.dialer import Backoff, Connect, stay_connected
from transports.envelope import Envelope
from transports.handshake import Hello
from transports.wire import WireCodec

UPLINK = "uplink"  # whose word it is that there is a link
LOOK_S = 1.0  # how often it is looked whether the machine has slept
SLEPT_S = 10.0  # a busy machine stands still for less


class Dialling(msgspec.Struct, frozen=True):
    """How a desktop reaches its server.

    `connect` opens a stream, `hello` says who this is at each greeting, and `keep_token` writes a
    new token down, in any thread.
    """

    connect: Connect
    hello: Callable[[], Hello]
    keep_token: Callable[[str], None]
    timings: Timings = Timings()


class Uplink:
    """See the module's docstring.

    `actor` is who talks to `server` here, and `heard` what it understands of it. `random` draws
    from [0, 1), `wall_s` is a clock that goes on while the machine sleeps.
    """

    def __init__(
        self,
        inside: Inside,
        dialling: Dialling,
        actor: str,
        server: str,
        heard: Iterable[type[Message]],
        log: Log,
        random: Callable[[], float],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._inside = inside
        self._dialling = dialling
        self._actor = actor
        self._server = server
        self._codec = WireCodec([*heard, NewToken])
        self._log = log
        self._random = random
        self._wall_s = wall_s
        self._backoff = Backoff(dialling.timings, random)
        self._line: Line | None = None
        self._stopped = False

    async def open(self) -> None:
        """Nothing need be had: a server that is not there may come."""

    async def live(self) -> None:
        """Stay connected until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._notice_sleep)
            await stay_connected(
                self._dialling.connect,
                self._dialling.hello,
                handle=self._attend,
                log=self._log,
                random=self._random,
                timings=self._dialling.timings,
                backoff=self._backoff,
            )

    async def _notice_sleep(self) -> None:
        """Dial anew after each sleep of the machine: the other side has given its link up."""
        while True:
            since_s = self._wall_s()
            await trio.sleep(LOOK_S)
            if self._wall_s() - since_s > LOOK_S + SLEPT_S:
                self._backoff.hurry()
                if self._line is not None:
                    self._line.close("this machine has slept")

    def take(self, envelope: Envelope[Any]) -> bool:
        """Send a message to the server; False if it is for somebody else, or there is no link."""
        if envelope.target != self._server or self._line is None:
            return False
        try:
            if not self._line.post(self._codec.encode(envelope)):
                self._inside.lose(envelope, "queue full")
        except FrameError as error:
            self._inside.lose(envelope, f"it can't be sent: {error}")
        return True

    def stop_reading(self) -> None:
        """Hear nothing more; what waits is still written."""
        self._stopped = True
        if self._line is not None:
            self._line.stop_reading()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return self._line is None or self._line.idle

    async def _attend(self, connection: Connection) -> None:
        self._line = line = Line(connection)
        me = self._dialling.hello().name
        if self._stopped:
            line.stop_reading()

        async def hear(frame: bytes) -> None:
            told = self._codec.decode(frame, self._server)
            if told.target != me:
                raise FrameError(f"a message to {told.target}, but this is {me}")
            if isinstance(told.body, NewToken):
                await self._keep(told.body.token)
                return
            number = self._inside.number()
            mine = msgspec.structs.replace(told, id=number, target=self._actor, cause=0)
            await self._inside.enter(mine)

        try:
            if not self._stopped:
                number = self._inside.number()
                told = Envelope(number, UPLINK, self._actor, 0, 0, Connected())
                await self._inside.enter(told)
            await line.run(hear)
        finally:
            self._line = None

    async def _keep(self, token: str) -> None:
        """Write a new token down; one that can't be written is not used, and the old one stays."""
        try:
            with trio.CancelScope(shield=True):  # not given up half way
                await trio.to_thread.run_sync(self._dialling.keep_token, token)
        except OSError as error:
            self._log("token.not_kept", reason=error.strerror or str(error))
