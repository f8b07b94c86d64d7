"""Measure what the proxy costs: requests and replies of 200 bytes, with it and without.

One client asks a trio echo server over loopback TCP and waits for each answer, first directly, then
through a proxy without a fault; client, server and proxy share one process and one core. The two
take turns, and the best round of each counts, since a busy machine only ever slows them.

    python -m bench.proxy [--seconds 1] [--rounds 3]
"""

import argparse
import time

import trio

from transports.listening import Address
from transports.proxy import open_proxies

MESSAGE = bytes(200)
HOST = "127.0.0.1"


async def echo(stream: trio.SocketStream) -> None:
    """Answer everything with itself."""
    async for data in stream:
        await stream.send_all(data)


async def rate_per_s(port: int, duration_s: float) -> float:
    """Return how many requests a second one connection to this port gets answered."""
    async with await trio.open_tcp_stream(HOST, port) as stream:
        asked = 0
        begun_s = time.perf_counter()
        while (took_s := time.perf_counter() - begun_s) < duration_s:
            await stream.send_all(MESSAGE)
            missing = len(MESSAGE)
            while missing:
                missing -= len(await stream.receive_some())
            asked += 1
    return asked / took_s


async def measure(duration_s: float, rounds: int) -> tuple[float, float]:
    """Return the best rates without and with the proxy."""
    direct, proxied = [], []
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, echo, 0)
        port = listeners[0].socket.getsockname()[1]
        async with open_proxies(1, print) as proxies:
            proxy = await proxies.add("echo", Address(HOST, 0), Address(HOST, port))
            for _ in range(rounds):
                direct.append(await rate_per_s(port, duration_s))
                proxied.append(await rate_per_s(proxy.address.port, duration_s))
        nursery.cancel_scope.cancel()
    return max(direct), max(proxied)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each round takes")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    direct, proxied = trio.run(measure, given.seconds, given.rounds)
    print(f"direct   {direct:>8,.0f} requests/s  {1e6 / direct:>6.0f} us each")
    print(f"proxied  {proxied:>8,.0f} requests/s  {1e6 / proxied:>6.0f} us each")
    print(f"ratio    {proxied / direct:>8.2f}")


if __name__ == "__main__":
    main()
