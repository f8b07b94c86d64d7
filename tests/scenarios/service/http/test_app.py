"""Which paths there are, and what all others are answered."""

from __future__ import annotations

from typing import Any

import pytest

from actors.accounts.messages import GATEWAY, Authenticated, AuthenticateLocal
from actors.edges.grants import with_secret
from scenarios.service.http.sessions import CHECK_S
from tests.actors.accounts.deployed import Deployed
from tests.scenarios.service.http.office import KEY, Browser, House


@pytest.mark.parametrize("path", ["/nothing", "/runs", "/runs/", "/agents/", "/.git/config"])
async def test_where_nothing_is_one_page_says_so(path: str) -> None:
    house = House()
    async with house.visit() as browser:
        answers = [await browser.get(path), await browser.get("/never")]
        answers += [await browser.client.delete("/healthz")]
    assert [done.status_code for done in answers] == [404, 404, 404]
    assert len({done.content for done in answers}) == 1
    assert house.office.asked == []


@pytest.mark.parametrize("path", ["/healthz", "/style.css", "/sign-in"])
async def test_a_head_has_no_body(path: str) -> None:
    async with House().visit() as browser:
        done = await browser.client.head(path)
    assert (done.status_code, done.content) == (200, b"")


async def test_styles_and_the_icon_need_nobody() -> None:
    async with House().visit() as browser:
        style = await browser.get("/style.css")
        icon = await browser.get("/icon.svg")
        robots = await browser.get("/robots.txt")
    assert style.headers["content-type"].startswith("text/css")
    assert "prefers-color-scheme: dark" in style.text
    assert icon.headers["content-type"] == "image/svg+xml"
    assert "Disallow: /" in robots.text


class Whole(House):
    """The application before a server as it is deployed."""

    def __init__(self) -> None:
        self.server = Deployed()
        super().__init__(ask=self.ask)

    async def ask(self, body: Any, source: str, limit_s: float) -> Any:
        """Ask the server as the gateway does."""
        told, amend = with_secret(body, KEY)
        answers = [one.body for one in self.server.deliver(source, told) if one.target == source]
        return answers[-1] if amend is None else amend(answers[-1])

    async def enter(self, browser: Browser) -> None:
        """Sign the first owner in, as the link on the console does."""
        found = self.server.told(GATEWAY, AuthenticateLocal(), Authenticated)
        code = self.desk.links.make(found.principal, found.name)
        assert (await browser.submit(f"/link/{code}")).status_code == 303


async def test_a_deployed_server_is_looked_after() -> None:
    house = Whole()
    server = house.server
    device = server.add_device(name="laptop")
    agent = server.add_agent(name="night shift")
    server.share(device, 1)
    run = server.queued(agent)
    async with house.visit() as browser:
        await house.enter(browser)
        text = (await browser.get("/")).text
        assert "1 queued and 0 running" in text
        assert f'href="/runs/{run}"' in text
        assert "night shift" in text
        shown = (await browser.get(f"/runs/{run}")).text
        assert "It has waited" in shown
        assert "Its desktop gets it with its next sync (laptop, synced " in shown
        assert (await browser.submit(f"/runs/{run}/cancel")).status_code == 303
        assert server.status(run) == "cancelled"
        assert (await browser.submit(f"/runs/{run}/forget")).status_code == 303
        assert (await browser.get(f"/runs/{run}")).status_code == 404
        assert "pc_agt_" in (await browser.submit("/agents", name="day shift")).text
        taken = await browser.submit("/agents", name="day shift")
        assert (taken.status_code, "name is taken" in taken.text) == (400, True)
        assert (await browser.submit("/pair")).status_code == 200
        assert (await browser.submit(f"/devices/{device}/revoke")).status_code == 303
        assert "revoked" in (await browser.get("/")).text
        assert (await browser.submit(f"/agents/{agent}/revoke")).status_code == 303
        audit = (await browser.get("/audit")).text
        assert audit.count("<tr>") > 8
        assert (await browser.get("/readyz")).text == "ready\n"
        assert 'pullcord_runs{status="queued"} 0.0' in (await browser.get("/metrics")).text
    assert house.said == []


async def test_an_owners_token_signs_in_until_there_is_another() -> None:
    house = Whole()
    owner = house.server.add_owner("Ben")
    house.server.add_device(name="not Ben's")
    async with house.visit() as browser:
        assert (await browser.enter(f"secret-{house.server.serial - 2}")).status_code == 303
        text = (await browser.get("/")).text
        assert "Ben</bdi>" in text
        assert "not Ben" not in text
        shown = (await browser.submit(f"/agents/{owner}/renew")).text
        token = "pc_own_" + shown.split("pc_own_")[1][:43]
        house.now_s += CHECK_S
        assert (await browser.get("/")).status_code == 200  # where it was renewed one stays
    async with house.visit() as browser:
        assert (await browser.enter("secret-1")).status_code == 403
        assert (await browser.enter(token)).status_code == 303
