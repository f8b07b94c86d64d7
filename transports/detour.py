"""The detour of a scenario's connections through its byte faults, as in front of any TCP service.

The dialling actor connects to a detour in the place of its peer. What happens to the bytes there
goes by the world's clock: at 20 times its speed a throttle of 1 KB/s lets 20 KB pass in a second of
the machine's, and `after = "20s"` is over in one.
"""

from __future__ import annotations

import trio

from transports.proxied import Connect, ProxiedConnection
from transports.wiring import Wiring


class WorldTime:
    """The time of a world that goes `speed` times as fast as trio's clock."""

    def __init__(self, wiring: Wiring, speed: float) -> None:
        self._world = wiring.world
        self._speed = speed

    def now_us(self) -> int:
        """What time it is in the world, in microseconds."""
        return self._world.now_us

    def deadline(self, at_us: int) -> float:
        """The same time in trio's seconds."""
        return trio.current_time() + (at_us - self._world.now_us) / self._speed / 1e6


class Detour:
    """Carries what `client` dials to `server`; `connect` reaches the latter."""

    def __init__(
        self, client: str, server: str, connect: Connect, wiring: Wiring, time: WorldTime
    ) -> None:
        self._ends = client, server
        self._connect = connect
        self._wiring = wiring
        self._time = time
        self._accepted = 0

    async def serve(self, listener: trio.SocketListener) -> None:
        """Carry everybody who connects, for ever; each ends alone."""
        await trio.serve_listeners(self._carry, [listener])

    async def _carry(self, stream: trio.SocketStream) -> None:
        self._accepted += 1
        connection = ProxiedConnection(self._accepted, stream, self._time)
        ends = self._wiring.opened(*self._ends, connection)
        try:
            await connection.run(self._connect)
            self._wiring.broke(ends)
        except (OSError, trio.TooSlowError):
            pass  # nobody is there, or is too busy: the dialler's connection is reset
        finally:
            self._wiring.closed(ends)
