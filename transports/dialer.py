"""The dialling side: connects, greets, and connects again when the link breaks, for ever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import ByteStream

from transports.connection import (
    LOST,
    BrokenLinkError,
    Connection,
    Log,
    Timings,
    converse,
    what_broke,
)
from transports.handshake import Hello, RefusedError, greet

Connect = Callable[[], Awaitable[ByteStream]]


class Backoff:
    """How long to wait before the next attempt: doubling, jittered, without a limit of attempts.

    The delay lies anywhere in the upper half of a window, so that desktops that lost one server at
    one instant don't come back at one instant, and nobody comes back at once. The window doubles
    with each failure; it begins anew once a connection has lasted as long as the window was.
    """

    def __init__(self, timings: Timings, random: Callable[[], float]) -> None:
        self._timings = timings
        self._random = random  # uniform in [0, 1)
        self._window_s = 0.0
        self._pause: anyio.CancelScope | None = None

    def after(self, lasted_s: float) -> float:
        """Return the delay in seconds after a connection that lasted so long, 0 for none."""
        if lasted_s >= self._window_s:
            self._window_s = self._timings.retry_first_s
        else:
            self._window_s = min(2 * self._window_s, self._timings.retry_limit_s)
        return self._window_s * (0.5 + 0.5 * self._random())

    async def pause(self, delay_s: float) -> None:
        """Wait so long, or until somebody is in a hurry."""
        with anyio.CancelScope() as self._pause:
            await anyio.sleep(delay_s)

    def hurry(self) -> None:
        """Begin anew, and end a pause that is under way: the world is not what it was."""
        self._window_s = 0.0
        if self._pause is not None:
            self._pause.cancel()


async def stay_connected(
    connect: Connect,
    me: Hello | Callable[[], Hello],
    *,
    handle: Callable[[Connection], Awaitable[None]],
    log: Log,
    random: Callable[[], float],
    timings: Timings | None = None,
    backoff: Backoff | None = None,
) -> None:
    """Connect, greet and run `handle` until the link breaks, back off, again; never returns.

    A refusal is no end either: what is wrong may be put right on the other side. `handle` ends a
    connection by returning, by BrokenLinkError or by FrameError; any other exception is a mistake
    of the host and is raised. Each connection begins anew: what was sent on the one before is for
    the host to ask after. `random` draws from [0, 1). Who brings a `backoff` may hurry it.
    Events: `link.up` (peer, boot), `link.down` (with reason, retry_s), `link.refused` and
    `link.failed` (reason, retry_s).
    """
    timings = timings or Timings()
    backoff = backoff or Backoff(timings, random)
    while True:
        lasted_s = 0.0
        try:
            connection = await _greeted(connect, me() if callable(me) else me, timings)
        except BrokenLinkError as error:
            event = "link.refused" if isinstance(error, RefusedError) else "link.failed"
            fields = {"reason": error.reason}
        else:
            peer = connection.peer
            log("link.up", peer=peer.name, boot=peer.boot)
            since_s = anyio.current_time()
            reason = await converse(connection, handle)
            lasted_s = anyio.current_time() - since_s
            event = "link.down"
            fields = {"peer": peer.name, "boot": peer.boot, "reason": reason}
        retry_s = backoff.after(lasted_s)
        log(event, **fields, retry_s=round(retry_s, 3))
        await backoff.pause(retry_s)


async def _greeted(connect: Connect, me: Hello, timings: Timings) -> Connection:
    """Return a new connection; BrokenLinkError with the reason why there is none."""
    stream: ByteStream | None = None
    try:
        with anyio.move_on_after(timings.connect_s):
            stream = await connect()
    except LOST as error:
        raise BrokenLinkError(f"cannot connect: {what_broke(error)}") from error
    if stream is None:
        raise BrokenLinkError(f"cannot connect: no answer within {timings.connect_s:g} s")
    return await greet(stream, me, timings)
