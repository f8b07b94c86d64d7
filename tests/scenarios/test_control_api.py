"""The control API's routes: Toxiproxy's, with one shape of error and the right status."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from scenarios.control_api import Answer, ControlApi
from tests.transports.serving import ask, line, until
from transports.version import VERSION


class Client:
    """Asks the API without HTTP."""

    def __init__(self, api: ControlApi) -> None:
        self.api = api

    async def ask(self, method: str, target: str, body: Any = None) -> Answer:
        content = b"" if body is None else msgspec.json.encode(body)
        return await self.api.answer(method, target, content)

    async def get(self, target: str) -> Any:
        answer = await self.ask("GET", target)
        assert answer.status == 200
        return answer.data

    async def refused(self, status: int, method: str, target: str, body: Any = None) -> str:
        """The sentence of a request that is refused."""
        answer = await self.ask(method, target, body)
        assert answer.status == status
        assert set(answer.data) == {"error", "status"}
        assert answer.data["status"] == status
        sentence: str = answer.data["error"]
        return sentence


@asynccontextmanager
async def client() -> AsyncIterator[tuple[Client, Any]]:
    async with line() as one:
        yield Client(ControlApi(one.proxies)), one


async def test_proxies_are_listed_added_shown_and_removed() -> None:
    async with client() as (api, one):
        shown = await api.get("/proxies/echo")
        assert shown == {
            "name": "echo",
            "listen": str(one.proxy.address),
            "upstream": str(one.proxy.upstream),
            "enabled": True,
            "toxics": [],
        }
        assert await api.get("/proxies") == {"echo": shown}
        body = {"name": "two words", "upstream": "127.0.0.1:1", "enabled": False}
        added = await api.ask("POST", "/proxies", body)
        assert (added.status, added.data["listen"]) == (201, "127.0.0.1:0")
        assert await api.get("/proxies/two%20words/") == added.data
        assert (await api.ask("DELETE", "/proxies/two%20words")) == Answer(204)
        assert list(await api.get("/proxies?x=1")) == ["echo"]


async def test_a_proxy_is_changed_in_part() -> None:
    async with client() as (api, one):
        whole = await api.get("/proxies/echo") | {"enabled": False}
        for method, body in (("POST", whole), ("PATCH", {"enabled": False})):
            answer = await api.ask(method, "/proxies/echo", body)
            assert answer.data == whole
            assert not one.proxy.enabled
            await api.ask("POST", "/proxies/echo", {"enabled": True})
            assert one.proxy.enabled
        await api.ask("POST", "/proxies/echo", {"upstream": "127.0.0.1:1"})
        assert str(one.proxy.upstream) == "127.0.0.1:1"


async def test_toxics_are_added_changed_and_removed_and_act() -> None:
    async with client() as (api, one):
        body = {"type": "latency", "attributes": {"latency": 60_000}}
        added = await api.ask("POST", "/proxies/echo/toxics", body)
        assert (added.status, added.data["name"]) == (200, "latency_downstream")
        assert await api.get("/proxies/echo/toxics") == [added.data]
        assert await api.get("/proxies/echo/toxics/latency_downstream") == added.data
        async with await one.connect() as stream:
            await stream.send_all(b"held")
            await until(lambda: one.proxy.toxics["latency_downstream"].fired == 1)
            change = {"attributes": {"latency": 0}}
            target = "/proxies/echo/toxics/latency_downstream"
            changed = await api.ask("POST", target, change)
            assert changed.data["attributes"] == {"latency": 0, "jitter": 0}
            assert await stream.receive_some() == b"held"
            assert await ask(stream, b"x") == b"x"
            assert (await api.ask("DELETE", target)).status == 204
        assert await api.get("/proxies/echo/toxics") == []


async def test_what_fired_is_told_also_of_what_is_gone() -> None:
    async with client() as (api, one):
        await api.ask("POST", "/proxies/echo/toxics", {"type": "reset", "attributes": {"nth": 1}})
        async with await one.connect():
            await until(lambda: one.proxy.toxics["reset_downstream"].fired == 1)
        expected = {
            "proxy": "echo",
            "name": "reset_downstream",
            "type": "reset",
            "state": "active",
            "fired": 1,
            "connections": 1,
            "of": 1,
        }
        assert await api.get("/fired") == [expected]
        assert (await api.ask("POST", "/reset")).status == 204
        assert await api.get("/fired") == [expected | {"state": "healed"}]


async def test_reset_enables_and_heals() -> None:
    async with client() as (api, one):
        await api.ask("POST", "/proxies/echo/toxics", {"type": "timeout"})
        await api.ask("POST", "/proxies/echo", {"enabled": False})
        assert await api.ask("POST", "/reset", {}) == Answer(204)
        assert (one.proxy.enabled, one.proxy.toxics) == (True, {})


async def test_populate_leaves_what_is_as_wanted() -> None:
    async with client() as (api, one):
        same = {
            "name": "echo",
            "listen": str(one.proxy.address),
            "upstream": str(one.proxy.upstream),
        }
        other = {"name": "other", "upstream": "127.0.0.1:1"}
        answer = await api.ask("POST", "/populate", [same, other])
        assert answer.status == 201
        assert [proxy["name"] for proxy in answer.data["proxies"]] == ["echo", "other"]
        assert one.proxies.get("echo") is one.proxy
        again = await api.ask("POST", "/populate", [same, other])
        assert again == answer, "safe to repeat, also with a free port"
        await api.ask("POST", "/populate", [same | {"upstream": "127.0.0.1:2"}])
        assert one.proxies.get("echo") is not one.proxy
        await api.refused(400, "POST", "/populate", {"name": "echo"})
        await api.refused(400, "POST", "/populate", [same, {"name": "x"}])
        await api.refused(400, "POST", "/populate", [other] * 101)


async def test_the_version_is_ours() -> None:
    async with client() as (api, _):
        assert await api.get("/version") == {"version": VERSION}


@pytest.mark.parametrize(
    ("status", "method", "target", "body", "says"),
    [
        (404, "GET", "/proxes", None, "did you mean /proxies?"),
        (404, "GET", "/", None, "there is /proxies"),
        (404, "GET", "/proxies/echo/toxics/x/y", None, "there is nothing at"),
        (404, "GET", "/proxies/ecco", None, 'did you mean "echo"?'),
        (404, "GET", "/proxies/zzzz/toxics", None, 'there is no proxy "zzzz"'),
        (404, "DELETE", "/proxies/echo/toxics/x", None, 'there is no toxic "x"'),
        (405, "PUT", "/proxies", None, "use GET or POST"),
        (405, "get", "/version", None, "use GET"),
        (400, "POST", "/proxies", None, 'needs the key "name"'),
        (400, "POST", "/proxies", [], "the body must be a JSON object"),
        (400, "POST", "/proxies", {"name": "x", "upstream": "y"}, "write HOST:PORT"),
        (400, "POST", "/proxies", {"name": "x", "upstream": "a:1", "lisen": ""}, '"listen"?'),
        (409, "POST", "/proxies", {"name": "echo", "upstream": "a:1"}, 'proxy "echo" already'),
        (400, "POST", "/proxies/echo", {"enabled": 1}, '"enabled" must be true or false'),
        (400, "POST", "/proxies/echo/toxics", {"type": "latncy"}, 'did you mean "latency"?'),
    ],
)
async def test_what_is_refused_has_its_status_and_its_cure(
    status: int, method: str, target: str, body: Any, says: str
) -> None:
    async with client() as (api, _):
        assert says in await api.refused(status, method, target, body)


async def test_an_address_in_use_is_a_conflict() -> None:
    async with client() as (api, one):
        body = {"name": "x", "upstream": "a:1", "listen": str(one.proxy.address)}
        assert "in use by another program" in await api.refused(409, "POST", "/proxies", body)


async def test_a_refused_method_names_those_that_are_allowed() -> None:
    async with client() as (api, _):
        answer = await api.ask("PUT", "/proxies")
        assert answer.allow == ("GET", "POST")


@pytest.mark.parametrize("body", [b"{", b"\xff", b'"\\ud800"', b"[" * 100_000, b"NaN", b'{"a":1}x'])
async def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    async with client() as (api, _):
        answer = await api.api.answer("POST", "/proxies", body)
        assert answer.status == 400
        assert answer.data["error"].startswith("the body ")
