"""What an owner does: asked first, done once, and shown what is shown once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from actors.accounts.messages import (
    AddAgent,
    CancelRun,
    ForgetRun,
    NewPairingCode,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
)
from tests.scenarios.service.http.office import ANNA, RUN, House, completed

CHANGES = [
    (f"/runs/{RUN}/cancel", CancelRun(command_id=RUN), "/runs/" + RUN),
    ("/devices/dev_1/revoke", RevokeDevice(device="dev_1"), "/"),
    ("/agents/agt_1/revoke", RevokeAgent(agent="agt_1"), "/agents"),
]


def changes_of(house: House) -> list[tuple[str, Any]]:
    """What the server was asked to change, and by whom."""
    kinds = (AddAgent, CancelRun, ForgetRun, NewPairingCode, RenewToken, RevokeAgent, RevokeDevice)
    return [(source, body) for source, body in house.office.asked if isinstance(body, kinds)]


@pytest.mark.parametrize(("path", "body", "lands"), CHANGES)
async def test_a_change_is_asked_about_then_done(path: str, body: Any, lands: str) -> None:
    house = House()
    async with house.sign_in() as browser:
        asked = await browser.get(path)
        assert asked.status_code == 200
        assert "?</h1>" in asked.text
        assert changes_of(house) == []
        done = await browser.submit(path)
        assert (done.status_code, done.headers["location"]) == (303, lands)
    assert changes_of(house) == [(ANNA, body)]


@pytest.mark.parametrize("path", [path for path, _, _ in CHANGES] + ["/pair", "/agents"])
async def test_nothing_is_changed_without_the_forms_key(path: str) -> None:
    house = House()
    async with house.sign_in() as browser:
        done = await browser.post(path, {"form_key": "0" * 64, "name": "x"})
        assert done.status_code == 403
        await browser.client.put(path)
        await browser.client.delete(path)
    assert changes_of(house) == []


async def test_a_run_is_cancelled_and_then_forgotten() -> None:
    house = House()
    async with house.sign_in() as browser:
        await browser.submit(f"/runs/{RUN}/cancel")
        assert "cancelled" in (await browser.get(f"/runs/{RUN}")).text
        done = await browser.submit(f"/runs/{RUN}/forget")
        assert done.headers["location"] == "/#runs"
        assert (await browser.get(f"/runs/{RUN}")).status_code == 404
        key = await browser.key("/pair")
        again = await browser.post(f"/runs/{RUN}/forget", {"form_key": key})
        assert again.status_code == 404
    assert changes_of(house)[-1] == (ANNA, ForgetRun(command_id=RUN))


async def test_a_pairing_code_is_shown_with_what_to_type() -> None:
    house = House()
    async with house.sign_in() as browser:
        assert "HOST:PORT" not in (await browser.get("/pair")).text
        done = await browser.submit("/pair")
        assert re.search(r"desktop pair [2-9A-Z]{4}-[2-9A-Z]{4} --server HOST:PORT<", done.text)
        assert "for 10 minutes" in done.text
        assert "HOST:PORT" not in (await browser.get("/pair")).text


@pytest.mark.parametrize(
    ("may", "scopes"),
    [("run", ("graphs:read", "graphs:run")), ("look", ("graphs:read",))],
)
async def test_an_agents_token_is_shown_once(may: str, scopes: Any) -> None:
    house = House()
    async with house.sign_in() as browser:
        done = await browser.submit("/agents", name="  day \n shift ", may=may)
        assert done.status_code == 200
        assert done.headers["cache-control"] == "no-store"
        assert re.search(r"pc_agt_[A-Za-z0-9_-]{43}<", done.text)
        assert "pc_agt_" not in (await browser.get("/agents")).text
    assert changes_of(house) == [(ANNA, AddAgent(name="day shift", scopes=scopes))]


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": " "}, {"name": "x" * 101}])
async def test_a_name_that_is_none_is_refused(fields: dict[str, str]) -> None:
    house = House()
    async with house.sign_in() as browser:
        assert (await browser.submit("/agents", **fields)).status_code == 400
        refused = await browser.submit("/agents", name="x", may="everything")
        assert refused.status_code == 400
    assert changes_of(house) == []


@pytest.mark.parametrize("principal", ["agt_1", ANNA])
async def test_a_token_is_renewed_and_shown_once(principal: str) -> None:
    house = House()
    path = f"/agents/{principal}/renew"
    async with house.sign_in() as browser:
        assert "ends at once" in (await browser.get(path)).text
        kind = principal[:3]
        assert re.search(rf"pc_{kind}_[A-Za-z0-9_-]{{43}}<", (await browser.submit(path)).text)
    assert changes_of(house) == [(ANNA, RenewToken(principal=principal))]


@pytest.mark.parametrize(
    "path",
    [
        "/devices/dev_2/revoke",
        "/agents/agt_2/revoke",
        "/agents/agt_2/renew",
        "/agents/own_ben/renew",
    ],
)
async def test_what_is_anothers_can_not_be_changed(path: str) -> None:
    house = House()
    house.office.put(ANNA, completed())
    async with house.sign_in() as browser:
        key = await browser.key("/pair")
        asked = await browser.get(path)
        assert asked.status_code == 404
        assert changes_of(house) == []
        done = await browser.post(path, {"form_key": key})
        assert (done.status_code, done.content) == (404, asked.content)
