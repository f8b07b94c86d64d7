"""Measure request and reply between two actors on sockets against a bare echo of the same bytes.

Each way asks `GetGraphRun` and is answered with `GraphRun`, one question at a time, both ends in
one process and one thread. The ways take turns, so that a slow spell of the machine falls on all of
them; the median of a way's rounds is shown. What a layer costs is the difference between a way and
the one before it:

- bare: trio's socket streams, and frames that were encoded beforehand;
- frames: a `Connection` (the contract of a link: checksums, time-outs, heartbeats), same bytes;
- wire: a `Connection` and the `WireCodec`, an envelope into bytes and back at each end;
- actors: two actors of a `TrioWorld` over its `TcpTransport`: queues, mailboxes, turns, stores.

Frames may be faster than the bare echo: trio's streams go through the scheduler at each send too,
a `Connection` only where it has to wait.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import anyio
import trio

from actors.actor import Context, Handler, Unanswered
from actors.messages import GetGraphRun, GraphRun
from actors.world import TrioWorld
from transports.connection import Connection, Peer, Timings, converse
from transports.envelope import Envelope
from transports.frames import FrameBuffer, pack
from transports.handshake import PROTOCOL
from transports.local import LOOPBACK, TcpTransport
from transports.tcp import connect_tcp, connect_unix, listen_tcp, listen_unix
from transports.wire import WireCodec

REQUESTS = 4_000  # of a round: under a second for each way
ROUNDS = 7
WARM_UP = 200  # requests before the clock starts: caches and the socket's buffers settle
BAR = 0.5  # of the bare echo's rate, for request and reply between two actors
TIMEOUT_US = 600_000_000  # nothing is lost on loopback; a question is only ever answered
RUN = "6f1f0a58-7c1e-4c43-9d5e-2f6f3d1a0b77"
QUESTION = GetGraphRun(command_id=RUN)
ANSWER = GraphRun(command_id=RUN, status="running", execution_id=RUN, poll_after_us=10_000_000)
CODEC = WireCodec([GetGraphRun, GraphRun])

# Asks so often and returns the seconds that it took.
Way = Callable[[int], float]


def _question(number: int) -> Envelope[Any]:
    return Envelope(number, "asker", "answerer", 0, 0, QUESTION)


def _answer(number: int, question: Envelope[Any]) -> Envelope[Any]:
    return Envelope(number, "answerer", "asker", question.id, 0, ANSWER)


FRAMES = CODEC.encode(_question(1 << 32)), CODEC.encode(_answer(1 << 32, _question(1 << 32)))
PACKED = pack(FRAMES[0]), pack(FRAMES[1])


# The bare echo


async def _read_exactly(stream: trio.SocketStream, size: int) -> bytes:
    """Return so many bytes, b"" if the peer has closed."""
    got = await stream.receive_some(size)
    while got and len(got) < size:
        more = await stream.receive_some(size - len(got))
        if not more:
            return b""
        got += more
    return bytes(got)


async def _echo(stream: trio.SocketStream) -> None:
    while await _read_exactly(stream, len(PACKED[0])):
        await stream.send_all(PACKED[1])


async def _ask_bare(near: trio.SocketStream, far: trio.SocketStream, requests: int) -> float:
    begun_s = 0.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_echo, far)
        for number in range(WARM_UP + requests):
            if number == WARM_UP:
                begun_s = time.perf_counter()
            await near.send_all(PACKED[0])
            await _read_exactly(near, len(PACKED[1]))
        took_s = time.perf_counter() - begun_s
        nursery.cancel_scope.cancel()
    await near.aclose()
    await far.aclose()
    return took_s


async def _bare_tcp(requests: int) -> float:
    (listener,) = await trio.open_tcp_listeners(0, host=LOOPBACK)
    async with listener:
        port = listener.socket.getsockname()[1]
        near = await trio.open_tcp_stream(LOOPBACK, port)
        return await _ask_bare(near, await listener.accept(), requests)


async def _bare_unix(requests: int) -> float:
    one, other = trio.socket.socketpair()
    return await _ask_bare(trio.SocketStream(one), trio.SocketStream(other), requests)


# Over the wire's modules


async def _serve_frames(connection: Connection) -> None:
    while True:
        await connection.receive()
        await connection.send(FRAMES[1])


async def _ask_frames(connection: Connection, _number: int) -> None:
    await connection.send(FRAMES[0])
    await connection.receive()


async def _serve_envelopes(connection: Connection) -> None:
    number = 1 << 32
    while True:
        question = CODEC.decode(await connection.receive(), "asker")
        number += 1
        await connection.send(CODEC.encode(_answer(number, question)))


async def _ask_envelopes(connection: Connection, number: int) -> None:
    await connection.send(CODEC.encode(_question((1 << 32) + number)))
    answer = CODEC.decode(await connection.receive(), "answerer")
    assert type(answer.body) is GraphRun, "the answerer knows one answer"


Serve = Callable[[Connection], Awaitable[None]]
Ask = Callable[[Connection, int], Awaitable[None]]


async def _ask_over(family: str, serve: Serve, ask: Ask, requests: int) -> float:
    """Join two connections by a socket of this family, and ask."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "socket")
        unix = family == "unix"
        listener = await (listen_unix(path) if unix else listen_tcp(LOOPBACK, 0))
        took_s: list[float] = []

        async def answer(stream: anyio.abc.ByteStream) -> None:
            await converse(_connection(stream, "asker"), serve)

        async def drive(connection: Connection) -> None:
            for number in range(WARM_UP):
                await ask(connection, number)
            begun_s = time.perf_counter()
            for number in range(requests):
                await ask(connection, WARM_UP + number)
            took_s.append(time.perf_counter() - begun_s)

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, answer)
            near = await (connect_unix(path) if unix else connect_tcp(LOOPBACK, listener.port))
            await converse(_connection(near, "answerer"), drive)
            tasks.cancel_scope.cancel()
    return took_s[0]


def _connection(stream: anyio.abc.ByteStream, peer: str) -> Connection:
    known = Peer(protocol=PROTOCOL, name=peer, boot="")
    return Connection(stream, known, Timings(), FrameBuffer())


# Two actors


class Answerer:
    """Says how a run stands to whoever asks."""

    def __init__(self) -> None:
        self.handlers: Mapping[type[Any], Handler] = {GetGraphRun: self.on_get}

    def on_start(self, context: Context) -> None: ...

    def on_timer(self, context: Context, timer: str) -> None: ...

    def on_get(self, context: Context, envelope: Envelope[GetGraphRun]) -> GraphRun:
        return ANSWER


class Asker:
    """Asks again as soon as it is answered, `requests` times on the clock; then it is done."""

    def __init__(self, requests: int) -> None:
        self.handlers: Mapping[type[Any], Handler] = {
            GraphRun: self.on_run,
            Unanswered: self.on_unanswered,
        }
        self._requests = requests
        self._answers = 0
        self._begun_s = self.took_s = 0.0

    def on_start(self, context: Context) -> None:
        context.request("answerer", QUESTION, TIMEOUT_US)

    def on_timer(self, context: Context, timer: str) -> None: ...

    def on_run(self, context: Context, envelope: Envelope[GraphRun]) -> None:
        self._answers += 1
        if self._answers == WARM_UP:
            self._begun_s = time.perf_counter()
        if self._answers < WARM_UP + self._requests:
            context.request("answerer", QUESTION, TIMEOUT_US)
        else:
            self.took_s = time.perf_counter() - self._begun_s
            context.done()

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        raise AssertionError("nothing is lost on loopback")


def actors_tcp(requests: int) -> float:
    """Let two actors of a world on real sockets ask and answer."""
    asker = Asker(requests)
    world = TrioWorld(1, "", transport=TcpTransport({"asker": 1}), clock=None)
    world.add("asker", asker)
    world.add("answerer", Answerer())
    world.connect(lambda _source, _target: None)
    world.on_done = lambda _name: world.finish()
    world.run(0)
    return asker.took_s


# What is measured


def _on_trio(way: Callable[..., Awaitable[float]], *how: Any) -> Way:
    return lambda requests: trio.run(partial(way, *how, requests))


WAYS: dict[str, Way] = {
    "bare, TCP": _on_trio(_bare_tcp),
    "frames, TCP": _on_trio(_ask_over, "tcp", _serve_frames, _ask_frames),
    "wire, TCP": _on_trio(_ask_over, "tcp", _serve_envelopes, _ask_envelopes),
    "actors, TCP": actors_tcp,
    "bare, UNIX": _on_trio(_bare_unix),
    "frames, UNIX": _on_trio(_ask_over, "unix", _serve_frames, _ask_frames),
    "wire, UNIX": _on_trio(_ask_over, "unix", _serve_envelopes, _ask_envelopes),
}


class Rate(NamedTuple):
    """How fast a way is: requests answered a second, and as a share of its bare echo."""

    per_s: float
    share: float


def measure(requests: int, rounds: int) -> dict[str, Rate]:
    """Return the rate of each way: medians of the rounds, shares of the same round's bare echo."""
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            rates[name].append(requests / way(requests))
    return {
        name: Rate(
            median(each),
            median(own / bare for own, bare in zip(each, rates[_bare_of(name)], strict=True)),
        )
        for name, each in rates.items()
    }


def _bare_of(name: str) -> str:
    return f"bare, {name.partition(', ')[2]}"


def table(rates: dict[str, Rate]) -> str:
    """One line a way: its rate, its share of the bare echo, and the microseconds that it adds."""
    columns = "{:14} {:>11} {:>8} {:>10} {:>10}"
    lines = [columns.format("", "requests/s", "of bare", "us each", "us added")]
    before_us = 0.0
    for name, rate in rates.items():
        each_us = 1e6 / rate.per_s
        added = "" if name.startswith("bare") else f"{each_us - before_us:.1f}"
        lines.append(
            columns.format(name, f"{rate.per_s:,.0f}", f"{rate.share:.2f}", f"{each_us:.1f}", added)
        )
        before_us = each_us
    return "\n".join(lines)


def main() -> int:
    """Measure every way and print the table; 1 if two actors are slower than the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=REQUESTS, help="on the clock, in a round")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns that each way takes")
    asked = parser.parse_args()
    rates = measure(asked.requests, asked.rounds)
    sizes = " and ".join(str(len(packed)) for packed in PACKED)
    print(
        f"Request and reply, frames of {sizes} bytes, Python {platform.python_version()}, "
        f"median of {asked.rounds} rounds of {asked.requests:,}\n"
    )
    print(table(rates))
    share = rates["actors, TCP"].share
    print(f"\nthe bar: {BAR:.2f} of the bare echo; two actors over TCP {share:.2f}")
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
