"""One address in front of several servers, whose network can be cut."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from transports.faults.black_hole import BlackHole
from transports.faults.byte_fault import Direction
from transports.listening import Address, listen
from transports.proxy import Proxy
from transports.toxic import Toxic


class Balancer(Proxy):
    """One address in front of several servers: each connection goes to the next that answers."""

    upstreams: tuple[Address, ...] = ()
    _next = 0

    async def _connect(self) -> trio.SocketStream:
        for _ in self.upstreams:
            self._next += 1
            host, port = self.upstreams[self._next % len(self.upstreams)]
            try:
                return await trio.open_tcp_stream(host, port)
            except OSError:
                continue
        raise OSError("no server answers")

    async def cut(self) -> None:
        """Break every connection and take none."""
        await self.stop()

    async def mend(self) -> None:
        """Take connections again."""
        self.remove_toxics()
        if self.enabled:
            self.drop_connections()  # what was swallowed left a gap in them
        else:
            listeners, _ = await listen(self.address)
            self.start(listeners)

    def swallow(self, ways: Sequence[Direction]) -> None:
        """Take every byte of these directions, and pass none."""
        self.add_toxic(
            Toxic(BlackHole(name="silent"), tuple(ways), type="black_hole", attributes={})
        )
