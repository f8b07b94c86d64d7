"""Health and metrics: what machines are told, and who is told it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.accounts.messages import GATEWAY, GetServerStatus
from scenarios.service.http import tries
from scenarios.service.http.guard import Site
from scenarios.service.http.health import FRESH_S
from tests.scenarios.service.http.office import AGENT_TOKEN, TOKEN, House, Office


async def test_it_lives_whatever_the_server_does() -> None:
    house = House()
    house.office.silent = True
    async with house.visit() as browser:
        done = await browser.get("/healthz")
    assert (done.status_code, done.text) == (200, "ok\n")
    assert house.office.asked == []


async def test_it_is_ready() -> None:
    house = House()
    async with house.visit() as browser:
        done = await browser.get("/readyz")
    assert (done.status_code, done.text) == (200, "ready\n")
    assert house.office.asked == [(GATEWAY, GetServerStatus())]


async def test_however_often_it_is_asked_the_server_is_asked_once_a_second() -> None:
    office = Office()

    async def slow(body: Any, source: str, limit_s: float) -> Any:
        await wait_all_tasks_blocked()
        return await office.ask(body, source, limit_s)

    house = House(ask=slow)
    async with house.visit() as browser:
        async with trio.open_nursery() as nursery:
            for path in ("/readyz", "/metrics") * 10:
                nursery.start_soon(browser.get, path)
        assert len(office.asked) == 1
        office.writable = False
        house.now_s += FRESH_S
        assert (await browser.get("/readyz")).status_code == 503
        office.silent = True
        house.now_s += FRESH_S
        assert "not answered" in (await browser.get("/readyz")).text
    assert len(office.asked) == 3


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("silent", True, "the server's actor has not answered within 1 s"),
        ("writable", False, "the store can't be written"),
    ],
)
async def test_it_is_not_ready(field: str, value: bool, reason: str) -> None:
    house = House()
    setattr(house.office, field, value)
    async with house.visit() as browser:
        done = await browser.get("/readyz")
    assert (done.status_code, done.text) == (503, f"not ready: {reason}\n")


async def test_it_is_not_ready_once_it_stops() -> None:
    house = House()
    house.stopping = True
    async with house.visit() as browser:
        assert (await browser.get("/readyz")).text == "not ready: it is shutting down\n"


async def test_metrics_are_open_on_this_machine() -> None:
    async with House().visit() as browser:
        done = await browser.get("/metrics")
    assert done.status_code == 200
    assert done.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'pullcord_connections{kind="agent"} 2.0' in done.text


async def test_metrics_of_a_silent_server_say_so() -> None:
    house = House()
    house.office.silent = True
    async with house.visit() as browser:
        assert "pullcord_server_up 0.0" in (await browser.get("/metrics")).text


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("", 401),
        ("Bearer ", 401),
        (f"Bearer {AGENT_TOKEN}", 401),
        (f"Basic {TOKEN}", 401),
        ("Bearer wrong", 401),
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN} ", 200),
    ],
)
async def test_metrics_need_an_owner_beyond_this_machine(authorization: str, status: int) -> None:
    for site in (Site(local=False), Site(url="http://127.0.0.1")):
        async with House(site).visit() as browser:
            done = await browser.get("/metrics", Authorization=authorization)
        assert done.status_code == status
        assert ("pullcord_runs" in done.text) is (status == 200)


async def test_wrong_bearers_are_bounded() -> None:
    house = House(Site(local=False))
    async with house.visit() as browser:
        for _ in range(tries.ADDRESS_LIMIT):
            await browser.get("/metrics", Authorization="Bearer wrong")
        asked = len(house.office.asked)
        assert (await browser.get("/metrics", Authorization=f"Bearer {TOKEN}")).status_code == 401
    assert len(house.office.asked) == asked
