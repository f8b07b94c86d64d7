"""Coming in and going out: tokens, links, cookies, and everything that must not let in."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from actors.accounts.messages import Authenticate
from actors.edges.door import hash_token
from scenarios.service.http import sessions, tries
from scenarios.service.http.guard import Site
from tests.scenarios.service.http.office import (
    AGENT_TOKEN,
    ANNA,
    OTHER_TOKEN,
    RUN,
    TOKEN,
    Browser,
    House,
)

PAGES = ["/", "/agents", "/pair", "/audit", f"/runs/{RUN}", f"/runs/{RUN}/cancel"]


@pytest.mark.parametrize("path", PAGES)
async def test_nobody_sees_a_page_before_signing_in(path: str) -> None:
    house = House()
    async with house.visit() as browser:
        done = await browser.get(path)
        assert (done.status_code, done.content) == (303, b"")
        assert done.headers["location"].startswith("/sign-in")
        assert (await browser.post(path, {})).status_code in {303, 404}
    assert house.office.asked == []


async def test_a_token_signs_its_owner_in() -> None:
    house = House()
    async with house.sign_in() as browser:
        assert "Anna" in (await browser.get("/")).text
    asked = [body for _, body in house.office.asked if isinstance(body, Authenticate)]
    assert [body.token_hash for body in asked] == [hash_token(TOKEN)]
    assert TOKEN not in str(house.office.asked)


async def test_spaces_around_a_token_are_those_of_copying() -> None:
    async with House().visit() as browser:
        assert (await browser.enter(f"  {TOKEN}\n")).status_code == 303


@pytest.mark.parametrize("token", ["", "pc_own_wrong", AGENT_TOKEN, TOKEN + "x", "\ud800", "é" * 9])
async def test_what_is_no_owners_token_lets_nobody_in(token: str) -> None:
    house = House()
    async with house.visit() as browser:
        done = await browser.enter(token.encode("utf-8", "replace").decode())
        assert done.status_code == 403
        assert "not the token of an owner" in done.text
        assert (await browser.get("/")).status_code == 303
    assert house.desk.sessions.count == 0


async def test_failed_tries_are_bounded_and_a_link_is_not() -> None:
    house = House()
    async with house.visit() as browser:
        for _ in range(tries.ADDRESS_LIMIT):
            await browser.enter("pc_own_wrong")
        done = await browser.enter(TOKEN)
        assert done.status_code == 429
        assert int(done.headers["retry-after"]) == tries.WINDOW_S
        assert "in 11 minutes" in done.text
        house.now_s += tries.WINDOW_S
        assert (await browser.enter(TOKEN)).status_code == 303


@pytest.mark.parametrize(
    ("site", "name", "secure"),
    [
        (Site(), "pullcord_session", False),
        (Site(url="https://127.0.0.1"), "__Host-pullcord_session", True),
        (Site(tls=True), "__Host-pullcord_session", True),
    ],
)
async def test_the_cookie_is_kept_from_scripts_and_other_sites(
    site: Site, name: str, secure: bool
) -> None:
    house = House(site)
    base = "https://127.0.0.1" if secure else "http://127.0.0.1:8787"
    async with house.visit(base) as browser:
        done = await browser.enter(TOKEN)
    cookie = next(one for one in done.headers.get_list("set-cookie") if one.startswith(name))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    assert ("Secure" in cookie) is secure
    assert "Domain" not in cookie


async def test_signing_in_makes_another_session_each_time() -> None:
    async with House().visit() as browser:
        browser.client.cookies.set("pullcord_session", "chosen-by-somebody-else")
        await browser.enter(TOKEN)
        jar = [one.value for one in browser.client.cookies.jar if one.name == "pullcord_session"]
    assert all(value != "chosen-by-somebody-else" or len(jar) > 1 for value in jar)


@pytest.mark.parametrize("after_s", [0.0, sessions.RENEW_S])
async def test_signing_out_ends_the_session_here_and_in_the_browser(after_s: float) -> None:
    house = House()
    async with house.sign_in() as browser:
        key = await browser.key("/")
        house.now_s += after_s
        kept = browser.client.cookies["pullcord_session"]
        done = await browser.post("/sign-out", {"form_key": key})
        assert (done.status_code, done.headers["location"]) == (303, "/sign-in")
        assert "pullcord_session" not in browser.client.cookies
        browser.client.cookies.set("pullcord_session", kept)
        assert (await browser.get("/")).status_code == 303
    assert house.desk.sessions.count == 0


async def test_a_token_that_can_not_be_asked_after_is_asked_after_again() -> None:
    house = House()
    async with house.sign_in() as browser:
        house.now_s += sessions.CHECK_S
        house.office.silent = True
        assert (await browser.get("/pair")).status_code == 503
        house.office.silent = False
        del house.office.tokens[hash_token(TOKEN)]
        assert (await browser.get("/pair")).status_code == 303


@pytest.mark.parametrize("fields", [{}, {"form_key": ""}, {"form_key": "0" * 64}])
async def test_nobody_can_be_signed_in_or_out_by_another_site(fields: dict[str, str]) -> None:
    house = House()
    async with house.visit() as browser:
        await browser.get("/sign-in")
        assert (await browser.post("/sign-in", fields | {"token": TOKEN})).status_code == 403
    async with house.visit() as bare:  # brings no cookie, so no key can be its
        assert (await bare.post("/sign-in", fields | {"token": TOKEN})).status_code == 403
    async with house.sign_in() as browser:
        assert (await browser.post("/sign-out", fields)).status_code == 403
        assert (await browser.get("/")).status_code == 200


@pytest.mark.parametrize(
    ("after", "lands"),
    [
        (f"/runs/{RUN}", f"/runs/{RUN}"),
        ("/audit", "/audit"),
        ("//evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/runs/../../x", "/"),
        ("/runs/%2e%2e", "/"),
        ("/sign-out", "/"),
        ("", "/"),
        ("/runs/a\r\nSet-Cookie: x=1", "/"),
    ],
)
async def test_after_signing_in_one_lands_on_a_page_of_ours(after: str, lands: str) -> None:
    async with House().visit() as browser:
        done = await browser.enter(TOKEN, after=after)
        assert (done.status_code, done.headers["location"]) == (303, lands)
        assert "evil" not in (await browser.get(f"/sign-in?after={quote(after)}")).text


async def test_one_comes_back_to_the_page_that_was_asked_for() -> None:
    async with House().visit() as browser:
        asked = await browser.get(f"/runs/{RUN}")
        text = (await browser.get(asked.headers["location"])).text
    assert f'name="after" value="/runs/{RUN}"' in text


async def test_a_link_signs_in_once() -> None:
    house = House()
    code = house.desk.links.make(ANNA, "Anna")
    async with house.visit() as looker:  # a program that looks at links uses nothing up
        assert (await looker.get(f"/link/{code}")).status_code == 200
    async with house.visit() as browser:
        assert (await browser.submit(f"/link/{code}")).headers["location"] == "/"
        assert (await browser.get("/")).status_code == 200
    async with house.visit() as second:
        done = await second.submit(f"/link/{code}")
        assert done.status_code == 403
        assert "was used" in done.text
        assert (await second.get("/")).status_code == 303


async def test_a_link_needs_its_page() -> None:
    house = House()
    code = house.desk.links.make(ANNA, "Anna")
    async with house.visit() as browser:
        assert (await browser.post(f"/link/{code}", {})).status_code == 403
        assert (await browser.submit(f"/link/{code}")).status_code == 303


async def test_wrong_links_count_as_tries() -> None:
    async with House().visit() as browser:
        for _ in range(tries.ADDRESS_LIMIT):
            assert (await browser.submit("/link/wrong")).status_code == 403
        assert (await browser.submit("/link/wrong")).status_code == 429
        assert (await browser.enter(TOKEN)).status_code == 429


async def test_a_session_ends_with_its_token() -> None:
    house = House()
    async with house.sign_in() as browser:
        del house.office.tokens[hash_token(TOKEN)]
        assert (await browser.get("/")).status_code == 200
        house.now_s += sessions.CHECK_S
        assert (await browser.get("/")).status_code == 303
    assert house.desk.sessions.count == 0


async def test_a_token_that_became_anothers_ends_the_session() -> None:
    house = House()
    async with house.sign_in() as browser:
        house.office.tokens[hash_token(TOKEN)] = "own_ben"
        house.now_s += sessions.CHECK_S
        assert (await browser.get("/")).status_code == 303


async def test_a_cookie_is_replaced_while_it_is_used() -> None:
    house = House()
    async with house.sign_in() as browser:
        first = browser.client.cookies["pullcord_session"]
        house.now_s += sessions.RENEW_S
        await browser.get("/pair")
        assert browser.client.cookies["pullcord_session"] != first
        assert (await browser.get("/")).status_code == 200


async def test_a_busy_server_says_so() -> None:
    house = House()
    house.office.silent = True
    async with house.visit() as browser:
        done = await browser.enter(TOKEN)
        assert done.status_code == 503
        assert "busy" in done.text


async def test_owners_see_their_own() -> None:
    house = House()

    async def page(browser: Browser) -> str:
        return (await browser.get("/")).text

    async with house.sign_in() as anna, house.sign_in(OTHER_TOKEN) as ben:
        assert "laptop" in await page(anna)
        assert "tower" not in await page(anna)
        assert "tower" in await page(ben)
