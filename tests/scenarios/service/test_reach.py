"""Reaching a server: what is trusted, and what each wrong server is told as, with its cure."""

from __future__ import annotations

import datetime as dt
import hashlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
import trustme
from anyio.abc import ByteStream

from actors.messages import Failure, GetGraphRun, GraphRun
from scenarios.problems import ScenarioError
from scenarios.service.client import CALL_ERRORS, call_problem, calling
from scenarios.service.config import ReachSettings
from scenarios.service.reach import Reach, reach_of, server_context
from tests.transports.test_acceptor import Log
from transports.acceptor import serve
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.envelope import Envelope
from transports.frames import pack_greeting
from transports.handshake import NOT_KNOWN, PROTOCOL, Hello
from transports.listening import Address
from transports.tcp import listen_tcp
from transports.wire import WireCodec

ORIGINS = dict.fromkeys(ReachSettings.__struct_fields__, "--flag")
CA = trustme.CA()
TODAY = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)
HELLO = Hello(name="agent", boot="b", token="word")  # noqa: S106  a test's
TIMINGS = Timings(connect_s=2, handshake_s=0.5)
CODEC = WireCodec([GetGraphRun, GraphRun])
ME = Peer(protocol=PROTOCOL, name="server", boot="s")

Handle = Callable[[ByteStream], Awaitable[None]]


def settings(server: str = "127.0.0.1:1", **how: Any) -> ReachSettings:
    return ReachSettings(server=server, **how)


def reach(server: str = "127.0.0.1:1", **how: Any) -> Reach:
    return reach_of(settings(server, **how), ORIGINS)


def context_of(name: str = "localhost", **how: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert(name, **how).configure_cert(context)
    return context


@pytest.fixture
def authority(tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    CA.cert_pem.write_to_path(str(path))
    return str(path)


@asynccontextmanager
async def listening(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve strangers; gives the port."""

    async def guarded(stream: ByteStream) -> None:
        async with stream:
            try:
                await handle(stream)
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                return

    listener = await listen_tcp("127.0.0.1", 0, tls)
    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, guarded)
        yield listener.port
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None, **how: Any) -> AsyncIterator[int]:
    """A server that answers every question with one run."""

    async def handle(connection: Connection) -> None:
        while True:
            told = CODEC.decode(await connection.receive(), "agent")
            answer = GraphRun(command_id=told.body.command_id, status="queued")
            await connection.send(CODEC.encode(Envelope(1, "", "agent", told.id, 0, answer)))

    listener = await listen_tcp("127.0.0.1", 0, tls)

    async def run() -> None:
        await serve(
            listener,
            ME,
            accept=how.get("accept", lambda _: None),
            handle=handle,
            log=Log(),
        )

    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield listener.port
        nursery.cancel_scope.cancel()


async def call(to: Reach) -> str:
    """Ask after a run, and return its status; or what a user is told of the failure."""
    try:
        async with calling(to.connect, HELLO, [GraphRun, Failure], timings=TIMINGS) as caller:
            run: GraphRun = await caller.ask(GetGraphRun(command_id="c"), 2)
            return run.status
    except CALL_ERRORS as error:
        return str(call_problem("there", error, "ask for a token"))


# Settings


@pytest.mark.parametrize(
    ("told", "tls"),
    [
        (settings("127.0.0.1:1"), False),
        (settings("localhost:1"), False),
        (settings("[::1]:1"), False),
        (settings("10.0.0.1:1"), True),
        (settings("server.example:1"), True),
        (settings("server.example:1", plain=True), False),
        (settings("localhost:1", fingerprint="A" * 64), True),
        (settings("localhost:1", fingerprint="sha256:" + "A" * 64), True),
    ],
)
def test_tokens_cross_a_network_in_plain_only_if_that_is_asked_for(
    told: ReachSettings, tls: bool
) -> None:
    assert reach_of(told, ORIGINS).tls is tls


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (settings(""), "which server?"),
        (settings("nowhere"), "is not an address"),
        (settings("host:0"), "0 is no server's port"),
        (settings("host:1", fingerprint="abc"), "64 hexadecimal digits"),
        (settings("host:1", plain=True, fingerprint="a" * 64), "mean nothing"),
        (settings("host:1", ca="/none.pem"), "can't be read: No such file"),
        (settings("host:1", ca=__file__), "has no certificates in PEM"),
    ],
)
def test_settings_that_can_not_be_used_are_told(told: ReachSettings, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        reach_of(told, ORIGINS)


# What is trusted


async def test_a_certificate_of_a_given_authority_counts(authority: str) -> None:
    async with server(context_of()) as port:
        assert await call(reach(f"localhost:{port}", ca=authority)) == "queued"


async def test_the_one_certificate_with_the_fingerprint_counts_and_no_other() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued = CA.issue_cert("elsewhere.example")
    issued.configure_cert(context)
    der = ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())
    found = hashlib.sha256(der).hexdigest()
    async with server(context) as port:
        spaced = ":".join(found[at : at + 2] for at in range(0, 64, 2)).upper()
        assert await call(reach(f"localhost:{port}", fingerprint=spaced)) == "queued"
        told = await call(reach(f"localhost:{port}", fingerprint="0" * 64))
        assert told == (
            f"there: the server's certificate has another fingerprint: {found}\n"
            "help: if the server has a new certificate, give its fingerprint"
        )


# Wrong servers: each one line, and what to do


async def test_a_certificate_for_another_name(authority: str) -> None:
    async with server(context_of("elsewhere.example")) as port:
        told = await call(reach(f"localhost:{port}", ca=authority))
    assert "the peer's certificate is refused: Hostname mismatch" in told
    assert told.endswith("help: reach it by a name that its certificate has")


async def test_a_certificate_that_nobody_vouches_for() -> None:
    async with server(context_of()) as port:
        told = await call(Reach(Address("localhost", port), tls=True))
    assert "the peer's certificate is refused" in told
    assert told.endswith("help: give --ca FILE with its authority, or --fingerprint")


@pytest.mark.parametrize(
    "how",
    [
        {"not_before": TODAY + DAY, "not_after": TODAY + 2 * DAY},
        {"not_before": TODAY - 2 * DAY, "not_after": TODAY - DAY},
    ],
)
async def test_a_clock_that_is_a_day_off(authority: str, how: dict[str, Any]) -> None:
    async with server(context_of(**how)) as port:
        told = await call(reach(f"localhost:{port}", ca=authority))
    assert "(or this machine's clock is wrong)" in told
    assert told.endswith("help: compare the date on both machines")


async def test_tls_spoken_to_a_plain_server(authority: str) -> None:
    async with server() as port:
        told = await call(reach(f"localhost:{port}", ca=authority))
    assert "TLS failed" in told
    assert "help: it speaks no TLS: start it with --tls-cert; --plain if it is near" in told


async def test_plain_spoken_to_a_tls_server() -> None:
    async with server(context_of()) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert told == (
        "there: the peer closed the connection\n"
        "help: is this a pullcord server? if it speaks TLS, give --ca or --fingerprint"
    )

    async def alert(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"\x15\x03\x03\x00\x02\x02\x28")
        await trio.sleep_forever()

    async with listening(alert) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert told.startswith("there: this is TLS")
    assert "help: it speaks TLS" in told


async def test_a_web_server() -> None:
    async def answer(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n<html>no</html>")
        await trio.sleep_forever()

    async with listening(answer) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert told.startswith("there: this is HTTP")
    assert told.endswith("help: a web server answers there: check host and port")


async def test_a_newer_protocol() -> None:
    newer = b"\x83\xa4type\xa7refusal\xa8protocol\x03\xa6reason\xa5newer"

    async def answer(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(pack_greeting(newer))
        await trio.sleep_forever()

    async with listening(answer) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert told.startswith("there: refused: newer")

    welcome = b"\x84\xa4type\xa7welcome\xa8protocol\x03\xa4name\xa6server\xa4boot\xa1b"

    async def welcomed(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(pack_greeting(welcome))
        await trio.sleep_forever()

    async with listening(welcomed) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert "server speaks protocol 3 and this side 2" in told
    assert told.endswith("help: update pullcord on the older side")


async def test_somebody_who_says_nothing_and_nobody_at_all() -> None:
    async def wait(_stream: ByteStream) -> None:
        await trio.sleep_forever()

    async with listening(wait) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert told == ("there: no welcome within 0.5 s\nhelp: does a pullcord server listen there?")
    told = await call(reach(f"127.0.0.1:{port}"))
    assert told == "there: Connection refused\nhelp: is the server running there?"


async def test_a_host_that_there_is_none_of() -> None:
    told = await call(reach("host.invalid:1", plain=True))
    assert "there: " in told
    assert "\nhelp: " in told


async def test_a_token_that_is_not_known() -> None:
    async with server(accept=lambda _: NOT_KNOWN) as port:
        told = await call(reach(f"127.0.0.1:{port}"))
    assert told == f"there: refused: {NOT_KNOWN}\nhelp: ask for a token"


async def test_a_link_that_breaks_in_the_middle() -> None:
    async def hang_up(_connection: Connection) -> None:
        raise BrokenLinkError("gone")

    listener = await listen_tcp("127.0.0.1", 0)

    async def run() -> None:
        await serve(listener, ME, accept=lambda _: None, handle=hang_up, log=Log())

    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(run)
        told = await call(reach(f"127.0.0.1:{listener.port}"))
        nursery.cancel_scope.cancel()
    assert told.startswith("there: ")


# A server's own certificate


def test_a_servers_files_are_looked_at_before_it_begins(tmp_path: Path) -> None:
    issued, other = CA.issue_cert("localhost"), CA.issue_cert("localhost")
    cert, key, wrong = (str(tmp_path / name) for name in ("cert", "key", "wrong"))
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    other.private_key_pem.write_to_path(wrong)
    origins = {"tls_cert": "--tls-cert", "tls_key": "--tls-key"}
    assert server_context("", "", origins) is None
    assert server_context(cert, key, origins) is not None
    for files, words in (
        ((cert, ""), "TLS needs --tls-key too"),
        (("", key), "TLS needs --tls-cert too"),
        ((cert, wrong), "is not the key of"),
        ((cert, str(tmp_path / "none")), "can't be read: No such file"),
        ((__file__, key), "are no certificate and its key in PEM"),
    ):
        with pytest.raises(ScenarioError, match=words):
            server_context(*files, origins)
