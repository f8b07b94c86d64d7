"""What holds for every request: bounds, hosts, origins, headers, and errors of ours."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from scenarios.service.http import guard as module
from scenarios.service.http.guard import BODY_LIMIT_BYTES, BODY_LIMIT_S, HEADERS, Guard, Site
from tests.scenarios.service.http.office import ORIGIN, House


class Asked:
    """One request, by the words of ASGI, and what came of it."""

    def __init__(self, method: str = "GET", path: str = "/healthz", **headers: str) -> None:
        given = {"host": "127.0.0.1:8787"} | headers
        self.headers = [
            (name.replace("_", "-").encode(), text.encode()) for name, text in given.items()
        ]
        self.scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": self.headers,
            "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 8787),
        }
        self.parts: list[dict[str, Any]] = [{"type": "http.request", "body": b""}]
        self.sent: list[Any] = []

    async def _receive(self) -> dict[str, Any]:
        if not self.parts:
            await trio.sleep_forever()
        return self.parts.pop(0)

    async def _send(self, event: Any) -> None:
        self.sent.append(event)

    async def of(self, app: Guard) -> int:
        """Have the request answered; return the status."""
        await app(self.scope, self._receive, self._send)
        status: int = self.sent[0]["status"]
        return status

    @property
    def text(self) -> str:
        """The body of the answer."""
        return b"".join(event.get("body", b"") for event in self.sent[1:]).decode()


async def broken(_scope: Any, _receive: Any, _send: Any) -> None:
    raise RuntimeError("the secret reason")


async def echo(_scope: Any, receive: Any, send: Any) -> None:
    """Answer with the body that came."""
    event = await receive()
    assert not event["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": event["body"]})


def guarded(app: Any = echo, site: Site | None = None) -> tuple[Guard, list[str]]:
    said: list[str] = []
    return Guard(app, site or Site(), said.append, {}), said


@pytest.mark.parametrize("path", ["/healthz", "/", "/sign-in", "/nothing", "/style.css"])
async def test_every_answer_has_the_headers(path: str) -> None:
    async with House().visit() as browser:
        headers = (await browser.get(path)).headers
    for name, value in HEADERS.items():
        if name != "Cache-Control" or path != "/style.css":
            assert headers[name] == value, name
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "script-src" not in headers["Content-Security-Policy"]


async def test_refusals_have_the_headers_too() -> None:
    asked = Asked(host="evil.example")
    assert await asked.of(guarded()[0]) == 421
    names = {name.decode().lower() for name, _ in asked.sent[0]["headers"]}
    assert {name.lower() for name in HEADERS} <= names


@pytest.mark.parametrize(
    ("host", "url", "known"),
    [
        ("127.0.0.1:8787", "", True),
        ("192.0.2.5", "", True),
        ("[::1]:8787", "", True),
        ("localhost:8787", "", True),
        ("pull.example.org", "https://pull.example.org", True),
        ("PULL.example.org:443", "https://pull.example.org", True),
        ("pull.example.org.evil.example", "https://pull.example.org", False),
        ("pull.example.org", "", False),
        ("", "", False),
        ("localhost.evil.example", "", False),
        ("[::1", "", False),
        ("127.0.0.1@evil.example", "", False),
    ],
)
def test_hosts_that_it_goes_by(host: str, url: str, known: bool) -> None:
    assert Site(url=url).knows(host) is known


async def test_one_host_is_named() -> None:
    app, _ = guarded()
    twice = Asked()
    twice.headers.append((b"host", b"127.0.0.1"))
    assert await twice.of(app) == 421
    none = Asked()
    none.headers.clear()
    assert await none.of(app) == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": ORIGIN}, 200),
        ({"origin": "https://127.0.0.1:8787"}, 200),  # encrypted up to a proxy
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example/?://127.0.0.1:8787"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({}, 200),
    ],
)
async def test_forms_of_other_sites_are_refused(headers: dict[str, str], status: int) -> None:
    assert await Asked("POST", **headers).of(guarded()[0]) == status
    assert await Asked("GET", **headers).of(guarded()[0]) == 200


async def test_a_body_is_handed_over_whole() -> None:
    asked = Asked("POST")
    asked.parts = [
        {"type": "http.request", "body": b"a" * 40, "more_body": True},
        {"type": "http.request", "body": b"b", "more_body": False},
    ]
    assert await asked.of(guarded()[0]) == 200
    assert asked.text == "a" * 40 + "b"


async def test_the_largest_body_fits_and_one_byte_more_does_not() -> None:
    for size, status in ((BODY_LIMIT_BYTES, 200), (BODY_LIMIT_BYTES + 1, 413)):
        asked = Asked("POST")
        asked.parts = [{"type": "http.request", "body": b"x" * size, "more_body": False}]
        assert await asked.of(guarded()[0]) == status


@pytest.mark.parametrize("length", [str(BODY_LIMIT_BYTES + 1), "9" * 40, "-1", "1e3", "¹"])
async def test_a_body_that_says_it_is_too_large_is_not_read(length: str) -> None:
    asked = Asked("POST", content_length=length)
    asked.parts = []  # to read would wait for ever
    with trio.fail_after(5):
        assert await asked.of(guarded()[0]) == 413


async def test_an_endless_body_is_cut_off() -> None:
    asked = Asked("POST")
    part = {"type": "http.request", "body": b"x" * 10_000, "more_body": True}
    asked.parts = [part] * 20
    assert await asked.of(guarded()[0]) == 413
    assert len(asked.parts) == 13


async def test_a_slow_body_times_out(autojump_clock: MockClock) -> None:
    asked = Asked("POST")
    asked.parts = [{"type": "http.request", "body": b"x", "more_body": True}]
    before_s = autojump_clock.current_time()
    assert await asked.of(guarded()[0]) == 408
    assert autojump_clock.current_time() - before_s == pytest.approx(BODY_LIMIT_S)
    assert "longer than 10 s" in asked.text


async def test_a_client_that_leaves_is_let_go() -> None:
    asked = Asked("POST")
    asked.parts = [{"type": "http.disconnect"}]
    assert await asked.of(guarded()[0]) == 400


async def test_heads_are_bounded() -> None:
    many = Asked()
    many.headers.extend((f"x-{n}".encode(), b"1") for n in range(module.HEADERS_LIMIT))
    assert await many.of(guarded()[0]) == 431
    assert await Asked(x="y" * 17_000).of(guarded()[0]) == 431
    assert await Asked(path="/" + "x" * 2_000).of(guarded()[0]) == 414


async def test_http2_is_for_encrypted_connections() -> None:
    asked = Asked()
    asked.scope["http_version"] = "2"
    assert await asked.of(guarded()[0]) == 505
    asked.scope["scheme"] = "https"
    asked.sent.clear()
    asked.parts = [{"type": "http.request", "body": b""}]
    assert await asked.of(guarded()[0]) == 200


async def test_an_error_of_ours_is_told_at_home_alone() -> None:
    app, said = guarded(broken)
    asked = Asked(path="/link/secret-code")
    assert await asked.of(app) == 500
    assert "secret" not in asked.text
    assert said[0] == "a request for '/link' failed: RuntimeError('the secret reason')"
    assert not any("secret-code" in line for line in said)
    assert app._room == module.REQUESTS_LIMIT


async def test_too_many_requests_at_once_are_refused(autojump_clock: MockClock) -> None:
    assert autojump_clock.autojump_threshold == 0, "slow clients take their time"
    app, _ = guarded()
    slow = [Asked("POST") for _ in range(module.REQUESTS_LIMIT)]
    async with trio.open_nursery() as nursery:
        for asked in slow:
            asked.parts = []
            nursery.start_soon(asked.of, app)
        await trio.testing.wait_all_tasks_blocked()
        refused = Asked()
        assert await refused.of(app) == 503
        assert (b"retry-after", b"5") in refused.sent[0]["headers"]
    assert await Asked().of(app) == 200


async def test_there_are_no_websockets() -> None:
    asked = Asked()
    asked.scope["type"] = "websocket"
    await guarded()[0](asked.scope, asked._receive, asked._send)
    assert asked.sent == [{"type": "websocket.close", "code": 1002}]


def test_what_is_private_and_what_is_secure() -> None:
    assert Site().private
    assert not Site(local=False).private
    assert not Site(url="http://x.example").private
    assert Site(tls=True).secure
    assert Site(url="https://x.example").secure
    assert not Site(url="http://x.example").secure
