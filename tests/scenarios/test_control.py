"""The control API over HTTP: it answers, it is bounded, and no bytes break it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair

from scenarios.control import (
    ANSWER_LIMIT_S,
    BODY_LIMIT_BYTES,
    CLIENTS_LIMIT,
    HEAD_LIMIT_BYTES,
    HEADERS_LIMIT,
    REQUEST_LIMIT_S,
    serve_control,
    talk_control,
)
from scenarios.control_api import ControlApi
from tests.transports.serving import LOCAL
from transports.listening import Address, listen
from transports.proxy import Proxies, open_proxies

ANSWERS_LIMIT_BYTES = 10_000_000


def request(method: str, target: str, body: bytes = b"", *headers: str) -> bytes:
    """A request as a client writes it."""
    lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def talk(sent: bytes, proxies: Proxies | None = None, *, ends: bool = True) -> bytes:
    """Send bytes on one connection and return all that comes back until it is closed."""
    if proxies is None:
        async with open_proxies(1, print) as made:
            return await talk(sent, made, ends=ends)
    ours, theirs = memory_stream_pair()
    answer = b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk_control, ControlApi(proxies), theirs)
        with suppress(trio.BrokenResourceError):
            await ours.send_all(sent)
            if ends:
                await ours.send_eof()
        async for data in ours:
            answer += data
        await ours.aclose()
    return answer


def answers(data: bytes) -> list[tuple[int, Any]]:
    """The statuses and bodies of some answers."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        length = int(fields.get("content-length", 0))
        status = int(lines[0].split()[1])
        body = rest[:length]
        data = rest[length:]
        if status != 100:
            found.append((status, json.loads(body) if body else None))
    return found


async def test_requests_follow_each_other_on_one_connection() -> None:
    sent = (
        request("GET", "/version")
        + request("POST", "/proxies", b'{"name":"x","upstream":"a:1","enabled":false}')
        + request("DELETE", "/proxies/x")
        + request("GET", "/nothing")
    )
    got = answers(await talk(sent))
    assert [status for status, _ in got] == [200, 201, 204, 404]
    assert got[1][1]["name"] == "x"
    assert got[3][1]["status"] == 404


async def test_whoever_asks_to_close_is_closed() -> None:
    sent = request("GET", "/version", b"", "Connection: close") + request("GET", "/version")
    assert len(answers(await talk(sent, ends=False))) == 1


async def test_head_is_answered_without_a_body() -> None:
    answer = await talk(request("HEAD", "/version"))
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"Allow: GET\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_a_client_that_waits_to_be_told_is_told() -> None:
    body = b'{"name":"x","upstream":"a:1","enabled":false}'
    whole = request("POST", "/proxies", body, "Expect: 100-continue")
    head, _, _ = whole.partition(b"\r\n\r\n")
    async with open_proxies(1, print) as proxies, trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        nursery.start_soon(talk_control, ControlApi(proxies), theirs)
        await ours.send_all(head + b"\r\n\r\n")
        assert (await ours.receive_some()).startswith(b"HTTP/1.1 100 ")
        await ours.send_all(body)
        assert (await ours.receive_some()).startswith(b"HTTP/1.1 201 ")
        await ours.aclose()


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (b"no http\r\n\r\n", 400, "this is not HTTP/1.1"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
        (b"GET /" + b"x" * 2 * HEAD_LIMIT_BYTES, 431, "not HTTP/1.1"),
        (
            request("GET", "/version", b"", *(["A: b"] * HEADERS_LIMIT)),
            431,
            f"at most {HEADERS_LIMIT} headers",
        ),
        (request("POST", "/proxies", bytes(BODY_LIMIT_BYTES + 1)), 413, "a body has at most"),
        (b"POST /proxies HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 413, "body"),
        (
            b"POST /proxies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"ffff\r\n" + bytes(0xFFFF) + b"\r\n" + (b"ffff\r\n" + bytes(0xFFFF) + b"\r\n") * 4,
            413,
            "a body has at most",
        ),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
            400,
            "not HTTP/1.1",
        ),
        (request("GET", "/version", b"", "Origin: http://x"), 403, "browsers are refused"),
        (request("GET", "/version", b"", "User-Agent: Mozilla/5.0"), 403, "browsers are refused"),
    ],
)
async def test_what_is_too_much_or_no_http_is_refused_and_closed(
    sent: bytes, status: int, says: str
) -> None:
    answer = await talk(sent + request("GET", "/version"), ends=False)
    assert b"\r\nconnection: close\r\n" in answer.lower()
    ((got, body),) = answers(answer)
    assert got == status == body["status"]
    assert says in body["error"]


@pytest.mark.parametrize("length", [0, 1, 20, 60])
async def test_a_client_that_leaves_in_the_middle_is_no_error(length: int) -> None:
    whole = request("POST", "/proxies", b"{}" * 20)
    got = answers(await talk(whole[:length]))
    assert [status for status, _ in got] in ([], [400])


async def test_a_client_that_sends_nothing_is_closed_in_silence(
    autojump_clock: MockClock,
) -> None:
    assert await talk(b"", ends=False) == b""
    assert autojump_clock.current_time() >= REQUEST_LIMIT_S


async def test_a_client_that_is_slow_is_told_so(autojump_clock: MockClock) -> None:
    for part in (b"GET /ver", request("POST", "/proxies", b"{}")[:-1]):
        begun_s = autojump_clock.current_time()
        ((status, body),) = answers(await talk(part, ends=False))
        assert status == 408
        assert "took longer than 10 s" in body["error"]
        assert autojump_clock.current_time() >= begun_s + REQUEST_LIMIT_S


async def test_a_client_that_never_reads_is_given_up(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    theirs.send_stream.send_all_hook = trio.sleep_forever
    async with open_proxies(1, print) as proxies:
        await ours.send_all(request("GET", "/version"))
        await talk_control(ControlApi(proxies), theirs)
    assert autojump_clock.current_time() >= ANSWER_LIMIT_S


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Address, trio.Nursery]]:
    """The API on a real port."""
    async with open_proxies(1, print) as proxies, trio.open_nursery() as nursery:
        listeners, address = await listen(LOCAL)
        nursery.start_soon(serve_control, proxies, listeners, print)
        yield address, nursery
        nursery.cancel_scope.cancel()


async def test_it_is_served_over_tcp_to_so_many_at_a_time() -> None:
    async with served() as (address, _):
        idle = [await trio.open_tcp_stream(*address) for _ in range(CLIENTS_LIMIT)]
        async with await trio.open_tcp_stream(*address) as late:
            await late.send_all(request("GET", "/version"))
            with trio.move_on_after(0.03):
                assert await late.receive_some() == b"no answer yet"
            await idle[0].aclose()
            assert (await late.receive_some()).startswith(b"HTTP/1.1 200 ")
        for stream in idle[1:]:
            await stream.aclose()


# Fuzzing

_requests = st.sampled_from(
    [
        request("GET", "/proxies"),
        request("GET", "/fired"),
        request("POST", "/reset"),
        request("POST", "/proxies", b'{"name":"x","upstream":"127.0.0.1:1","enabled":false}'),
        request("POST", "/proxies/x/toxics", b'{"type":"latency","attributes":{"latency":5}}'),
        request("POST", "/proxies/x/toxics/latency_downstream", b'{"attributes":{"jitter":5}}'),
        request("POST", "/proxies/x", b'{"upstream":"127.0.0.1:2"}'),
        request("POST", "/populate", b'[{"name":"y","upstream":"a:1","enabled":false}]'),
        request("DELETE", "/proxies/x/toxics/latency_downstream"),
        request("DELETE", "/proxies/x"),
        b"POST /reset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n\r\n",
    ]
)


@st.composite
def broken_bytes(draw: st.DrawFn) -> bytes:
    """Some requests, with bytes cut, flipped, doubled or put in."""
    data = bytearray(b"".join(draw(st.lists(_requests, min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(start + 40, len(data))))
        change = draw(st.sampled_from(["cut", "flip", "double", "put"]))
        if change == "cut":
            del data[start:end]
        elif change == "double":
            data[end:end] = data[start:end]
        elif change == "put":
            data[start:start] = draw(st.binary(max_size=20))
        else:
            data[start:end] = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[start:end])
    return bytes(data)


@settings(max_examples=150, deadline=None)
@given(sent=broken_bytes())
def test_no_bytes_crash_or_hang_it(sent: bytes) -> None:
    got = trio.run(talk, sent, clock=MockClock(autojump_threshold=0))
    assert len(got) < ANSWERS_LIMIT_BYTES
    for status, body in answers(got):
        assert status in {200, 201, 204, 400, 403, 404, 405, 408, 409, 413, 431, 501}
        if status >= 400:
            assert body is None or set(body) == {"error", "status"}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["name", "listen", "upstream", "enabled", "type", "attributes"])
            | st.text(max_size=6),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(
    body=_json,
    target=st.sampled_from(["/proxies", "/proxies/x", "/proxies/x/toxics", "/populate", "/reset"]),
    method=st.sampled_from(["GET", "POST", "PATCH", "PUT", "DELETE", "BREW"]),
)
def test_any_json_to_any_route_is_answered(body: Any, target: str, method: str) -> None:
    first = request("POST", "/proxies", b'{"name":"x","upstream":"a:1","enabled":false}')
    sent = first + request(method, target, json.dumps(body).encode())
    got = answers(trio.run(talk, sent))
    assert len(got) == 2
    assert got[1][0] in {200, 201, 204, 400, 404, 405, 409}
