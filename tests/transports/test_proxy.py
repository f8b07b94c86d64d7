"""Proxies over real TCP: bytes pass, faults act and heal, and nothing stays behind."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.chance import Sizes
from tests.transports.serving import (
    LOCAL,
    ask,
    is_reset,
    line,
    millis,
    read_all,
    service,
    until,
)
from transports.faults.black_hole import BlackHole
from transports.faults.byte_delay import ByteDelay
from transports.faults.byte_fault import DOWN, UP
from transports.faults.byte_partition import BytePartition
from transports.faults.close_after import CloseAfter
from transports.faults.corrupt import Corrupt
from transports.faults.half_close import HalfClose
from transports.faults.reset import Reset
from transports.faults.slice import Slice
from transports.listening import ProxyError
from transports.proxied import abort
from transports.proxy import PROXIES_LIMIT, TOXICS_LIMIT, open_proxies
from transports.toxic import Toxic
from transports.units import Duration, Size


def delayed(name: str = "late", **fields: Duration) -> ByteDelay:
    return ByteDelay(name=name, delay=millis("100s"), **fields)  # type: ignore[arg-type]  # any key


# Without a fault


async def test_bytes_pass_both_ways_and_the_end_too() -> None:
    async with line() as one, await one.connect() as client:
        assert await ask(client, b"hello") == b"hello"
        await client.send_all(b"last words")
        await client.send_eof()
        assert await read_all(client) == b"last words"
        await until(lambda: not one.proxy.connections)


async def test_a_megabyte_arrives_whole_through_slices() -> None:
    data = os.urandom(1_000_000)
    async with line() as one, await one.connect() as client:
        toxic = one.put(Slice(name="cut", size=Sizes.parse("uniform(1000B, 9000B)")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send_all, data)
            answer = b""
            while len(answer) < len(data):
                answer += await client.receive_some()
        assert answer == data
        assert toxic.fired > 20


async def test_an_rst_is_passed_on_as_rst() -> None:
    async with line() as one:
        client = await one.connect()
        assert await ask(client, b"x") == b"x"
        seen: list[bool] = []

        async def watch(stream: trio.SocketStream) -> None:
            seen.append(await is_reset(stream))

        async with service(watch) as upstream:
            await one.proxies.change(one.proxy, one.proxy.address, upstream, enabled=True)
            other = await one.connect()
            await until(lambda: bool(one.proxy.connections))
            await trio.sleep(0.01)
            abort(other)
            await until(lambda: seen == [True])
        await client.aclose()


async def test_an_rst_of_the_service_reaches_the_client() -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        abort(stream)

    async with line(refuse) as one, await one.connect() as client:
        await client.send_all(b"x")
        assert await is_reset(client)


async def test_a_service_that_is_not_there_is_told_once_and_counted() -> None:
    async with service() as upstream:
        gone = upstream
    async with line() as one:
        await one.proxies.change(one.proxy, one.proxy.address, gone, enabled=True)
        for _ in range(3):
            async with await one.connect() as client:
                assert await is_reset(client)
        await until(lambda: one.proxy.unreached == 3)
        (told,) = one.told
        assert told.startswith(f"echo: {gone} was not reached")


# Faults at work


async def test_a_delay_heals_and_what_it_held_arrives() -> None:
    async with line() as one, await one.connect() as client:
        toxic = one.put(delayed())
        await client.send_all(b"held")
        await until(lambda: toxic.fired == 1)
        one.proxy.remove_toxic(toxic)
        assert await client.receive_some() == b"held"


async def test_a_partition_holds_new_connections_and_loses_nothing() -> None:
    async with line() as one:
        toxic = one.put(BytePartition(name="apart"))
        async with await one.connect() as client:
            await client.send_all(b"hello")
            await until(lambda: one.proxy.accepted == 1)
            one.proxy.remove_toxic(toxic)
            assert await client.receive_some() == b"hello"


async def test_a_direction_alone_is_hit() -> None:
    async with line() as one, await one.connect() as client:
        up = one.put(BlackHole(name="up"), UP)
        await client.send_all(b"lost")
        await until(lambda: up.fired == 1)
        one.proxy.remove_toxic(up)
        down = one.put(BlackHole(name="down"), DOWN)
        await client.send_all(b"lost too")
        await until(lambda: down.fired == 1)
        one.proxy.remove_toxic(down)
        assert await ask(client, b"there") == b"there"


async def test_a_reset_at_once_hits_open_and_new_connections() -> None:
    async with line() as one:
        client = await one.connect()
        assert await ask(client, b"x") == b"x"
        toxic = one.put(Reset(name="rst"), DOWN)
        assert await is_reset(client)
        await client.aclose()
        async with await one.connect() as other:
            assert await is_reset(other)
        assert (toxic.fired, toxic.met, toxic.picked) == (2, 2, 2)


async def test_close_after_delivers_exactly_its_bytes() -> None:
    async with line() as one, await one.connect() as client:
        one.put(CloseAfter(name="short", limit=Size(700)), DOWN)
        await client.send_all(bytes(1_000))
        assert await read_all(client) == bytes(700)


async def test_a_half_close_lets_the_other_direction_go_on() -> None:
    got: list[bytes] = []

    async def answer_late(stream: trio.SocketStream) -> None:
        got.append(await read_all(stream))
        await stream.send_all(b"answer")

    async with line(answer_late) as one, await one.connect() as client:
        one.put(HalfClose(name="half", limit=Size(3)), UP)
        await client.send_all(b"abcdef")
        assert await read_all(client) == b"answer"
        assert got == [b"abc"]


async def test_nth_picks_a_connection() -> None:
    async with line() as one:
        one.put(Reset(name="rst", nth=2), UP)
        outcomes = []
        for _ in range(3):
            async with await one.connect() as client:
                try:
                    outcomes.append(await ask(client, b"x"))
                except trio.BrokenResourceError:
                    outcomes.append(b"reset")
        assert outcomes == [b"x", b"reset", b"x"]


async def test_the_same_seed_corrupts_the_same_bytes() -> None:
    async def corrupted(seed: int) -> bytes:
        async with line(seed=seed) as one, await one.connect() as client:
            one.put(Corrupt(name="noise", share=0.05))
            return await ask(client, bytes(2_000))

    first = await corrupted(1)
    assert first == await corrupted(1) != bytes(2_000)
    assert first != await corrupted(2)


async def test_a_fault_has_its_time() -> None:
    async with line() as one, await one.connect() as client:
        toxic = one.put(delayed(at=Duration(20_000), lasts=Duration(30_000)))
        assert toxic.state == "waiting"
        assert await ask(client, b"x") == b"x"
        await until(lambda: toxic.state == "active")
        await client.send_all(b"held")
        assert await client.receive_some() == b"held", "it heals by itself"
        assert (toxic.state, toxic.fired) == ("healed", 1)
        assert await ask(client, b"y") == b"y"


async def test_a_fault_taken_away_before_its_time_never_begins() -> None:
    async with line() as one, await one.connect() as client:
        toxic = one.put(delayed(at=Duration(10_000)))
        one.proxy.remove_toxic(toxic)
        await trio.sleep(0.03)
        assert await ask(client, b"x") == b"x"
        assert toxic.state == "healed"


async def test_one_in_the_place_of_another_goes_on_with_its_count() -> None:
    async with line() as one, await one.connect() as client:
        before = one.put(ByteDelay(name="late", delay=millis("1us")), UP)
        assert await ask(client, b"x") == b"x"
        after = Toxic(BlackHole(name="late"), (UP,), type="black_hole", attributes={})
        one.proxy.replace_toxic(before, after)
        await client.send_all(b"lost")
        await until(lambda: after.fired == before.fired + 1)
        assert [toxic for _, toxic in one.proxies.toxics()] == [after]


# Changing proxies


async def test_disabled_it_is_not_there_and_enabled_it_is_again() -> None:
    async with line() as one:
        client = await one.connect()
        assert await ask(client, b"x") == b"x"
        address, upstream = one.proxy.address, one.proxy.upstream
        await one.proxies.change(one.proxy, address, upstream, enabled=False)
        assert await client.receive_some() == b""
        await client.aclose()
        assert not one.proxy.enabled
        with pytest.raises(OSError, match="connect"):
            await one.connect()
        await one.proxies.change(one.proxy, address, upstream, enabled=True)
        assert one.proxy.address == address
        async with await one.connect() as other:
            assert await ask(other, b"y") == b"y"


async def test_another_address_is_taken_before_the_old_one_is_left() -> None:
    async with line() as one, service() as taken:
        before = one.proxy.address
        with pytest.raises(ProxyError, match="in use"):
            await one.proxies.change(one.proxy, taken, one.proxy.upstream, enabled=True)
        assert one.proxy.address == before
        async with await one.connect() as client:
            assert await ask(client, b"x") == b"x"
        await one.proxies.change(one.proxy, LOCAL, one.proxy.upstream, enabled=True)
        assert one.proxy.address != before


async def test_reset_takes_all_faults_and_enables_all() -> None:
    async with line() as one:
        one.put(delayed())
        await one.proxies.change(one.proxy, one.proxy.address, one.proxy.upstream, enabled=False)
        await one.proxies.reset()
        assert (one.proxy.enabled, one.proxy.toxics) == (True, {})
        assert [(place, toxic.state) for place, toxic in one.proxies.toxics()] == [
            ("echo", "healed")
        ]


async def test_removed_its_port_is_free_and_what_it_fired_is_known() -> None:
    async with line() as one:
        one.put(delayed())
        await one.proxies.remove(one.proxy)
        assert list(one.proxies) == []
        assert one.proxies.get("echo") is None
        assert [toxic.name for _, toxic in one.proxies.toxics()] == ["late"]
        again = await one.proxies.add("echo", one.proxy.address, one.proxy.upstream)
        assert again.address == one.proxy.address


async def test_names_and_numbers_have_limits() -> None:
    async with line() as one:
        with pytest.raises(ProxyError, match='a proxy "echo" already'):
            await one.proxies.add("echo", LOCAL, LOCAL)
        one.put(delayed("0"))
        with pytest.raises(ProxyError, match='a toxic "0" already'):
            one.put(delayed("0"))
        for number in range(1, TOXICS_LIMIT):
            one.put(delayed(str(number)))
        with pytest.raises(ProxyError, match=f"at most {TOXICS_LIMIT}"):
            one.put(delayed("more"))
        for number in range(1, PROXIES_LIMIT):
            await one.proxies.add(str(number), LOCAL, LOCAL, enabled=False)
        with pytest.raises(ProxyError, match=f"at most {PROXIES_LIMIT}"):
            await one.proxies.add("more", LOCAL, LOCAL)


# The end


async def test_at_the_end_all_heals_and_what_was_held_arrives() -> None:
    got: list[bytes] = []
    held = bytes(200_000)  # several reads, so that one turn of the flow is not enough

    async def keep(stream: trio.SocketStream) -> None:
        got.append(await read_all(stream))

    async with service(keep) as upstream:
        async with open_proxies(1, print) as proxies:
            proxy = await proxies.add("echo", LOCAL, upstream)
            client = await trio.open_tcp_stream(*proxy.address)
            toxic = Toxic(delayed(), (UP,), type="delay", attributes={})
            proxy.add_toxic(toxic)
            await client.send_all(held)
            await until(lambda: toxic.fired == 1)
        assert toxic.state == "healed"
        await until(lambda: got == [held])
        assert await read_all(client) == b"", "an end, and no reset"
        await client.aclose()
        with pytest.raises(OSError, match="connect"):
            await trio.open_tcp_stream(*proxy.address)


def descriptors() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
async def test_cancelled_it_leaves_no_socket() -> None:
    before = descriptors()
    with trio.CancelScope() as scope:
        async with line() as one:
            clients = [await one.connect() for _ in range(5)]
            one.put(delayed())
            for client in clients:
                await client.send_all(b"held")
            await until(lambda: len(one.proxy.connections) == 5)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    for client in clients:
        await trio.aclose_forcefully(client)
    assert descriptors() == before


@settings(max_examples=15, deadline=None)
@given(
    chunks=st.lists(st.binary(min_size=1, max_size=5_000), min_size=1, max_size=5),
    seed=st.integers(0, 3),
)
def test_whatever_is_sent_arrives_as_it_was(chunks: list[bytes], seed: int) -> None:
    async def send() -> bytes:
        async with line(seed=seed) as one, await one.connect() as client:
            one.put(Slice(name="cut", size=Sizes.parse("uniform(100B, 3000B)")))
            one.put(ByteDelay(name="late", delay=millis("uniform(0s, 200us)")))
            for chunk in chunks:
                await client.send_all(chunk)
            await client.send_eof()
            return await read_all(client)

    assert trio.run(send) == b"".join(chunks)
