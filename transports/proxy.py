"""The fault proxy: listens in front of TCP services, carries their connections through faults.

`open_proxies` gives a set of proxies that can be changed while they run. Each listens on one
address for one service; its toxics act on the bytes of its connections. When the set is left
everything heals, what was held goes on, and every socket is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from transports.faults.byte_fault import DOWN, UP, End
from transports.listening import Address, ProxyError, Report, listen, serve_all
from transports.proxied import ProxiedConnection
from transports.toxic import Toxic, key_of

CONNECTIONS_LIMIT = 512  # of a proxy; more wait in the system's backlog. Each may hold 600 KiB
PROXIES_LIMIT = 100  # a test has some ten services; each listens on a port
TOXICS_LIMIT = 100  # of a proxy: every chunk passes all of them
GONE_LIMIT = 100  # how many toxics that were taken away are still counted
SETTLE_LIMIT_S = 1.0  # how long what was held may take to reach its peer when all heals


class NameTakenError(ProxyError):
    """There is one of that name already."""


class Time:
    """The proxies' clock: microseconds since they began."""

    def __init__(self) -> None:
        self._begun_s = trio.current_time()

    def now_us(self) -> int:
        """What time it is."""
        return round((trio.current_time() - self._begun_s) * 1e6)

    def deadline(self, at_us: int) -> float:
        """The same time in trio's seconds."""
        return self._begun_s + at_us / 1e6


class Proxy:
    """One listening address in front of one service.

    Its connections are numbered from 1 in the order in which they are accepted.
    """

    def __init__(self, name: str, address: Address, upstream: Address, home: Proxies) -> None:
        self.name = name
        self.address = address
        self.upstream = upstream
        self.toxics: dict[str, Toxic] = {}
        self.connections: dict[int, ProxiedConnection] = {}
        self.accepted = 0
        self.unreached = 0  # how many connections found no service
        self._home = home
        self._accepting: trio.CancelScope | None = None
        self._stopped = trio.Event()

    @property
    def enabled(self) -> bool:
        """Whether it listens."""
        return self._accepting is not None

    # Toxics

    def add_toxic(self, toxic: Toxic) -> None:
        """Put a fault in place; it begins at once unless it has a time.

        Raises NameTakenError, and ProxyError where there are too many.
        """
        if toxic.name in self.toxics:
            message = f'the proxy "{self.name}" has a toxic "{toxic.name}" already'
            raise NameTakenError(message, "give it another name, or remove the other one")
        if len(self.toxics) >= TOXICS_LIMIT:
            raise ProxyError(f"a proxy has at most {TOXICS_LIMIT} toxics", "remove one")
        self.toxics[toxic.name] = toxic
        self._start(toxic)

    def _start(self, toxic: Toxic) -> None:
        if toxic.fault.at is None and toxic.fault.lasts is None:
            self._begin(toxic)
        else:
            self._home.nursery.start_soon(self._stand, toxic)

    def remove_toxic(self, toxic: Toxic) -> None:
        """Take a fault away; it heals."""
        del self.toxics[toxic.name]
        self._heal(toxic)
        self._home.gone.append((self.name, toxic))

    def replace_toxic(self, before: Toxic, after: Toxic) -> None:
        """Put a fault of the same name in the place of another; it goes on with its count."""
        self._heal(before)
        after.fired = before.fired
        self.toxics[before.name] = after
        self._start(after)

    def remove_toxics(self) -> None:
        """Take every fault away."""
        for toxic in list(self.toxics.values()):
            self.remove_toxic(toxic)

    async def _stand(self, toxic: Toxic) -> None:
        """Let a fault act in its time."""
        begun_s = trio.current_time()
        begin_us = toxic.fault.at or 0
        await trio.sleep_until(begun_s + begin_us / 1e6)
        if toxic.state == "waiting":
            self._begin(toxic)
        if toxic.fault.lasts is not None:
            await trio.sleep_until(begun_s + (begin_us + toxic.fault.lasts) / 1e6)
            if toxic.state == "active":
                self._heal(toxic)

    def _begin(self, toxic: Toxic) -> None:
        toxic.state = "active"
        for number in sorted(self.connections):
            self._meet(toxic, number)
            self._put_in_place(number)

    def _heal(self, toxic: Toxic) -> None:
        for number in toxic.heal():
            self._put_in_place(number)

    def _meet(self, toxic: Toxic, number: int) -> None:
        toxic.meet(self.name, number, self._home.key, self._home.time.now_us)

    def _put_in_place(self, number: int) -> None:
        """Give a connection the stages of the toxics that act on it, in the toxics' order."""
        toxics = self.toxics.values()
        self.connections[number].set_stages(
            {
                way: tuple(
                    stage for toxic in toxics if (stage := toxic.stage(number, way)) is not None
                )
                for way in (UP, DOWN)
            }
        )

    # Connections

    def start(self, listeners: list[trio.SocketListener]) -> None:
        """Serve on these listeners, which are its own from now on."""
        self._accepting = trio.CancelScope()
        self._stopped = trio.Event()
        self._home.nursery.start_soon(self._serve, listeners, self._accepting, self._stopped)

    async def stop(self, *, gently: bool = False) -> None:
        """Close its port and its connections, at once or with time for peers; toxics stay."""
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
            if gently:
                for connection in self.connections.values():
                    connection.end(End.CLOSE)
            else:
                self.drop_connections()
            await self._stopped.wait()

    def drop_connections(self) -> None:
        """Close every connection at once."""
        for connection in self.connections.values():
            connection.drop()

    async def _serve(
        self,
        listeners: list[trio.SocketListener],
        accepting: trio.CancelScope,
        stopped: trio.Event,
    ) -> None:
        room = trio.Semaphore(CONNECTIONS_LIMIT)
        try:
            async with trio.open_nursery() as carrying:
                with accepting:
                    await serve_all(listeners, room, self._greet, carrying, self._say)
        finally:
            stopped.set()

    def _say(self, words: str) -> None:
        self._home.report(f"{self.name}: {words}")

    async def _greet(self, client: trio.SocketStream) -> None:
        self.accepted += 1
        connection = ProxiedConnection(self.accepted, client, self._home.time)
        self.connections[connection.number] = connection
        try:
            await self._carry(connection)
        finally:
            del self.connections[connection.number]
            for toxic in self.toxics.values():
                toxic.forget(connection.number)

    async def _carry(self, connection: ProxiedConnection) -> None:
        for toxic in self.toxics.values():
            if toxic.state == "active":
                self._meet(toxic, connection.number)
        self._put_in_place(connection.number)
        try:
            await connection.run(self._connect)
        except (OSError, trio.TooSlowError) as error:
            self.unreached += 1
            if self.unreached == 1:  # the others would say the same; how many is counted
                self._say(f"{self.upstream} was not reached: {str(error) or 'no answer'}")

    async def _connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(self.upstream.host, self.upstream.port)


class Proxies:
    """The proxies of one program, by name. Changes are made one after the other."""

    def __init__(self, nursery: trio.Nursery, seed: int, report: Report) -> None:
        self.nursery = nursery
        self.key = key_of(seed)
        self.report = report
        self.time = Time()
        self.gone: deque[tuple[str, Toxic]] = deque(maxlen=GONE_LIMIT)
        self._proxies: dict[str, Proxy] = {}
        self._changing = trio.Lock()

    def __iter__(self) -> Iterator[Proxy]:
        return iter(list(self._proxies.values()))

    def get(self, name: str) -> Proxy | None:
        """Return the proxy of that name, if there is one."""
        return self._proxies.get(name)

    def toxics(self) -> Iterator[tuple[str, Toxic]]:
        """Every toxic with its proxy's name: those that are gone first."""
        yield from list(self.gone)
        for proxy in self:
            for toxic in list(proxy.toxics.values()):
                yield proxy.name, toxic

    async def add(
        self, name: str, address: Address, upstream: Address, *, enabled: bool = True
    ) -> Proxy:
        """Begin a proxy. Raises ProxyError."""
        async with self._changing:
            if name in self._proxies:
                cure = "give it another name, or change that one"
                raise NameTakenError(f'there is a proxy "{name}" already', cure)
            if len(self._proxies) >= PROXIES_LIMIT:
                raise ProxyError(f"there are at most {PROXIES_LIMIT} proxies", "remove one")
            proxy = Proxy(name, address, upstream, self)
            if enabled:
                listeners, proxy.address = await listen(address)
                proxy.start(listeners)
            self._proxies[name] = proxy
            return proxy

    async def change(
        self, proxy: Proxy, address: Address, upstream: Address, *, enabled: bool
    ) -> None:
        """Change a proxy; a new address of either kind drops its connections. Raises ProxyError."""
        async with self._changing:
            if enabled and (not proxy.enabled or address != proxy.address):
                listeners, address = await listen(address)
                await proxy.stop()
                proxy.start(listeners)
            elif not enabled:
                await proxy.stop()
            elif upstream != proxy.upstream:
                proxy.drop_connections()
            proxy.address, proxy.upstream = address, upstream

    async def remove(self, proxy: Proxy) -> None:
        """Stop a proxy and forget it, but for what its toxics fired."""
        async with self._changing:
            self._proxies.pop(proxy.name, None)
            proxy.remove_toxics()
            await proxy.stop()

    async def reset(self) -> None:
        """Heal everything: every toxic goes, every proxy listens. Raises ProxyError."""
        for proxy in self:
            proxy.remove_toxics()
        for proxy in self:
            if not proxy.enabled:
                await self.change(proxy, proxy.address, proxy.upstream, enabled=True)

    async def finish(self) -> None:
        """Heal, let what was held reach its peers, and stop."""
        for proxy in self:
            proxy.remove_toxics()
        with trio.move_on_after(SETTLE_LIMIT_S):
            for connection in [one for proxy in self for one in proxy.connections.values()]:
                await connection.settle()
        async with trio.open_nursery() as nursery:
            for proxy in self:
                nursery.start_soon(partial(proxy.stop, gently=True))


@asynccontextmanager
async def open_proxies(seed: int, report: Report) -> AsyncIterator[Proxies]:
    """Have a set of proxies, empty at first; `report` is told in a line what goes wrong.

    On the way out everything heals and is closed; no task or socket stays.
    """
    async with trio.open_nursery() as nursery:
        proxies = Proxies(nursery, seed, report)
        yield proxies
        await proxies.finish()
        nursery.cancel_scope.cancel()
