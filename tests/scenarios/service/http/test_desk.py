"""Where owners are served: forms, refusals, and which paths one may come back to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.accounts.messages import Devices, ListDevices, PrincipalRevoked
from actors.messages import Failure
from scenarios.service.http.desk import NAMES_PAGES, is_ours
from tests.scenarios.service.http.office import ANNA, FORM, RUN, House, device


@given(st.text())
def test_nothing_is_ours_that_leads_elsewhere(path: str) -> None:
    if is_ours(path):
        assert path.startswith("/")
        assert not path.startswith(("//", "/\\"))
        assert path.isascii()
        assert path.isprintable()


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/agents", True),
        (f"/runs/{RUN}", True),
        ("/agents/x", False),
        ("/runs/é", False),
        ("/runs/", False),
        ("/runs/a/b", False),
        ("agents", False),
        ("/sign-out", False),
    ],
)
def test_pages_that_one_may_come_back_to(path: str, ours: bool) -> None:
    assert is_ours(path) is ours


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b'{"form_key": "x"}', "application/json", 415),
        (b"--b\r\n\r\n--b--", "multipart/form-data; boundary=b", 415),
        (b"form_key=x", "text/plain", 415),
        (b"\xff\xfe", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 100, "application/x-www-form-urlencoded", 400),
        (b"form_key=%ff%fe", "application/x-www-form-urlencoded", 403),
        (b"form_key=%ED%A0%80", "application/x-www-form-urlencoded", 403),
        (b"", "application/x-www-form-urlencoded; charset=utf-8", 403),
    ],
)
async def test_what_is_no_form_of_ours_is_refused(content: bytes, kind: str, status: int) -> None:
    house = House()
    async with house.sign_in() as browser:
        headers = FORM | {"Content-Type": kind}
        done = await browser.client.post("/pair", content=content, headers=headers)
    assert done.status_code == status
    assert "<h1>This was not done</h1>" in done.text
    assert house.said == []


async def test_another_sessions_form_is_refused() -> None:
    house = House()
    async with house.sign_in() as one, house.sign_in() as other:
        key = await one.key("/pair")
        assert (await other.post("/pair", {"form_key": key})).status_code == 403
        assert (await one.post("/pair", {"form_key": key})).status_code == 200


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        (Failure(code="bad_request", error="no such cursor"), 400, "no such cursor"),
        (Failure(code="name_taken", error="<b>taken</b>"), 409, "&lt;b&gt;taken&lt;/b&gt;"),
        (Failure(code="not_found", error="x"), 404, "not yours"),
    ],
)
async def test_the_servers_refusals_are_told(failure: Failure, status: int, words: str) -> None:
    house = House()
    async with house.sign_in() as browser:
        house.office.refuse = failure
        done = await browser.get("/")
    assert done.status_code == status
    assert words in done.text


async def test_a_revoked_owner_is_signed_out() -> None:
    house = House()
    async with house.sign_in() as browser:
        house.office.refuse = PrincipalRevoked(principal="own_anna", reason="gone")  # type: ignore[assignment]  # the server's other way to refuse
        assert (await browser.get("/")).status_code == 303
    assert house.desk.sessions.count == 0


async def test_a_silent_server_is_a_page_that_says_so() -> None:
    house = House()
    async with house.sign_in() as browser:
        house.office.silent = True
        done = await browser.get(f"/runs/{RUN}")
    assert done.status_code == 503
    assert done.headers["retry-after"] == "5"
    assert "reload in a few seconds" in done.text


async def test_a_cursor_that_nobody_gave_is_refused() -> None:
    async with House().sign_in() as browser:
        assert (await browser.get("/audit?cursor=" + "x" * 501)).status_code == 400


async def test_names_are_those_of_many_pages() -> None:
    house = House()
    told = {"": Devices(devices=(device("dev_1", "one"),), cursor="2")}
    told["2"] = Devices(devices=(device("dev_2", "two"),))
    answers = house.office.answers

    def paged() -> dict[type[Any], Callable[[Any, str], Any]]:
        return answers() | {ListDevices: lambda body, _source: told[body.cursor]}

    house.office.answers = paged  # type: ignore[method-assign]  # an office with two pages
    session, _ = house.desk.sessions.begin(ANNA, "Anna")
    names = await house.desk.names(session)
    assert names == {
        "dev_1": "one",
        "dev_2": "two",
        "agt_1": "night shift",
        ANNA: "Anna",
    }
    told["2"] = Devices(devices=(device("dev_2", "two"),), cursor="2")  # without end
    assert len(await house.desk.all_devices(session)) == NAMES_PAGES
