"""The HTTP edge over a real socket: a port of its own, bounds, a link on the console, a drain."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
import trustme

from actors.accounts.messages import PrincipalRevoked
from actors.edges.gateway import SERVER, Gateway
from scenarios.problems import ScenarioError
from scenarios.service.http import serving
from scenarios.service.http.edge import HttpEdge, HttpPlace
from scenarios.service.meter import Meter
from tests.actors.edges.fake_inside import FakeInside
from tests.scenarios.service.http.office import ANNA, KEY, NOW_US, RUN, Browser, Office
from transports.connection import Peer
from transports.envelope import Envelope
from transports.handshake import PROTOCOL
from transports.listening import Address

ANY = Address("127.0.0.1", 0)
PATIENCE_S = 20.0  # real time; an answer takes milliseconds


class Site:
    """A gateway before an office, and an HTTP edge beside it."""

    def __init__(self, place: HttpPlace) -> None:
        self.office = Office()
        self.inside = FakeInside(self._answer)
        me = Peer(protocol=PROTOCOL, name=SERVER, boot="s1")
        self.gateway = Gateway(me, self.inside, KEY, lambda _event, /, **_fields: None)
        self.inside.take = self.gateway.take
        self.said: list[str] = []
        self.up = trio.Event()  # set once the way in is printed
        self.edge = HttpEdge(place, self.gateway, lambda: NOW_US, self._hear, Meter())

    def _hear(self, line: str) -> None:
        self.said.append(line)
        if len(self.said) == 2:
            self.up.set()

    def _answer(self, envelope: Envelope[Any]) -> Any:
        return self.office.answers()[type(envelope.body)](envelope.body, envelope.source)

    @property
    def link(self) -> str:
        """The way in that was printed."""
        return self.said[1].partition("five minutes: ")[2]


@asynccontextmanager
async def served(place: HttpPlace | None = None) -> AsyncIterator[Site]:
    site = Site(place or HttpPlace(listen=ANY))
    await site.edge.open()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.edge.live)
            await site.up.wait()
            yield site
            site.edge.stop_reading()


async def raw(site: Site, text: bytes) -> bytes:
    """Send bytes, and return all that comes before the connection ends."""
    stream = await trio.open_tcp_stream(*site.edge.address)
    async with stream:
        await stream.send_all(text)
        return b"".join([part async for part in stream])


async def test_an_owner_comes_in_by_the_link_on_the_console() -> None:
    async with served() as site, httpx.AsyncClient(base_url=site.edge.base) as client:
        browser = Browser(client, site.edge.base)
        assert site.said[0] == f"owner's page: {site.edge.base}/"
        assert site.link.startswith(site.edge.base)
        done = await browser.submit(site.link.removeprefix(site.edge.base))
        assert done.status_code == 303
        shown = await browser.get(f"/runs/{RUN}")
        assert "nightly-report" in shown.text
        assert "server" not in shown.headers
        assert (await browser.submit(f"/runs/{RUN}/cancel")).status_code == 303
        assert "cancelled" in (await browser.get(f"/runs/{RUN}")).text
        assert "pc_agt_" in (await browser.submit("/agents", name="x")).text
    assert site.edge.idle
    assert not site.edge.take(site.inside.heard[0])
    assert site.inside.lost == []


async def test_who_is_revoked_is_signed_out_at_once() -> None:
    async with served() as site, httpx.AsyncClient(base_url=site.edge.base) as client:
        browser = Browser(client, site.edge.base)
        code = site.edge.link(ANNA, "Anna").url.rpartition("/")[2]
        await browser.submit(f"/link/{code}")
        assert (await browser.get("/")).status_code == 200
        notice = PrincipalRevoked(principal=ANNA, reason="gone")
        site.gateway.take(Envelope(1, SERVER, "gateway", 0, 0, notice))
        assert (await browser.get("/")).status_code == 303


async def test_machines_are_answered() -> None:
    async with served() as site, httpx.AsyncClient(base_url=site.edge.base) as client:
        assert (await client.get("/healthz")).text == "ok\n"
        assert (await client.get("/readyz")).text == "ready\n"
        assert "pullcord_server_up 1.0" in (await client.get("/metrics")).text


@pytest.mark.parametrize("end", [b"\r\nConnection: close\r\n\r\n", b""])
async def test_large_heads_are_refused(end: bytes) -> None:
    async with served() as site:
        head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 20_000 + end
        assert (await raw(site, head)).startswith(b"HTTP/1.1 431 ")


async def test_large_bodies_are_refused_before_they_come() -> None:
    async with served() as site:
        head = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 70000\r\n\r\n"
        assert (await raw(site, head)).startswith(b"HTTP/1.1 413 ")


async def test_slow_heads_and_bodies_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEAD_LIMIT_S", 1.0)
    monkeypatch.setattr("scenarios.service.http.guard.BODY_LIMIT_S", 0.2)
    async with served() as site:
        assert await raw(site, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n") == b""
        head = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nx"
        assert (await raw(site, head)).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("text", [b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n", b"\0" * 100])
async def test_what_is_no_http_is_refused(text: bytes) -> None:
    async with served() as site:
        assert (await raw(site, text)).startswith(b"HTTP/1.1 400 ")


async def test_a_port_in_use_is_told_with_its_cure() -> None:
    async with served() as site:
        other = Site(HttpPlace(listen=site.edge.address, origin="--http"))
        with pytest.raises(ScenarioError, match="is in use by another program") as caught:
            await other.edge.open()
    assert caught.value.problems[0].path == "--http"
    assert caught.value.problems[0].cure


async def test_it_speaks_tls_with_the_servers_certificate() -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(server)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    place = HttpPlace(listen=ANY, tls=server)
    async with served(place) as site:
        assert site.edge.base.startswith("https://127.0.0.1:")
        async with httpx.AsyncClient(base_url=site.edge.base, verify=context) as client:
            done = await client.get("/sign-in")
    assert done.status_code == 200
    assert "__Host-pullcord_visit" in done.headers["set-cookie"]
    assert "Secure" in done.headers["set-cookie"]


async def test_it_is_known_by_its_public_url() -> None:
    place = HttpPlace(listen=ANY, url="https://pull.example.org")
    async with served(place) as site:
        assert site.edge.base == "https://pull.example.org"
        address = str(site.edge.address)
        async with httpx.AsyncClient(base_url=f"http://{address}") as client:
            known = await client.get("/sign-in", headers={"Host": "pull.example.org"})
            foreign = await client.get("/sign-in", headers={"Host": "evil.example.org"})
            metrics = await client.get("/metrics")
    assert (known.status_code, foreign.status_code, metrics.status_code) == (200, 421, 401)


async def test_a_drain_answers_what_is_under_way_and_lets_nobody_in() -> None:
    async with served() as site:
        told = site.inside.answer
        asked, answered = trio.Event(), trio.Event()
        done: list[int] = []

        def hold(_envelope: Any) -> None:
            asked.set()

        site.inside.answer = hold

        async def ask() -> None:
            async with httpx.AsyncClient(base_url=site.edge.base) as client:
                done.append((await client.get("/readyz")).status_code)
            answered.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await asked.wait()
            busy = not site.edge.idle
            assert busy
            site.edge.stop_reading()
            question = site.inside.heard[-1]
            site.inside.reply(question, told(question))
            await answered.wait()
        assert done == [503]
        assert site.edge.idle
        with pytest.raises(OSError, match="all attempts to connect"):
            await trio.open_tcp_stream(*site.edge.address)
