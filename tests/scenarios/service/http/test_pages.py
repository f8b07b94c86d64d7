"""The pages: what an owner finds on them, and that hostile names do no harm."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest

from actors.accounts.messages import RunShown
from actors.messages import Completion
from tests.scenarios.service.http.office import (
    ANNA,
    BENS_RUN,
    OTHER_TOKEN,
    RUN,
    House,
    agent,
    completed,
    device,
    listing,
)

ALL = ["/", "/agents", "/pair", "/audit", f"/runs/{RUN}", f"/runs/{RUN}/cancel", "/sign-in"]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe\u2066",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x00\n\r\t",
    "👩‍👩‍👧‍👦🏴‍☠️",
    "A" * 10_000,
    "javascript:alert(1)",
    "Z̷̢̛̮" * 500,
    " ",
]


class Outline(HTMLParser):
    """What matters of a page to a screen reader, and to whoever would break in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.unlabelled: list[str] = []
        self.scopeless = 0
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: list[str] = []
        self.keys = self.forms = 0
        self.labels: set[str | None] = set()
        self.inputs: list[str | None] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(told)
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append(tag)
        if tag == "th" and "scope" not in told:
            self.scopeless += 1
        self.targets += [told[name] or "" for name in ("href", "action", "src") if name in told]
        self.forms += tag == "form"
        self.keys += told.get("name") == "form_key" and bool(told.get("value"))
        if tag == "label":
            self.labels.add(told.get("for"))
        if tag == "input" and told.get("type") not in ("hidden", "radio"):
            self.inputs.append(told.get("id"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("path", ALL)
async def test_pages_are_well_made(path: str) -> None:
    async with House().sign_in() as browser:
        done = await browser.get(path)
    assert done.headers["content-type"] == "text/html; charset=utf-8"
    outline = Outline(done.text)
    assert outline.open == []
    assert outline.headings.count("h1") == 1
    assert outline.headings[0] == "h1"
    assert outline.scopeless == 0
    assert outline.keys == outline.forms
    assert set(outline.inputs) <= outline.labels
    assert not {"script", "iframe", "object", "style", "img"} & outline.tags
    assert not any(name.startswith("on") or name == "style" for name in outline.attributes)
    assert all(target.startswith(("/", "#")) for target in outline.targets), outline.targets


async def test_devices_and_runs_are_on_the_first_page() -> None:
    async with House().sign_in() as browser:
        text = (await browser.get("/")).text
    for words in ("laptop", "7 s ago", "nightly-report", "night shift", "queued 1 min 30 s ago"):
        assert words in text


async def test_runs_are_filtered_and_paged() -> None:
    house = House()
    house.office.runs[ANNA] = [
        RunShown(run=listing(f"{n:032x}"), arguments={}, completion=None, late=None)
        for n in range(60)
    ] + [completed()]
    async with house.sign_in() as browser:
        seen = []
        path = "/?status=queued"
        while path:
            text = (await browser.get(path)).text
            seen += [part.split('"')[0] for part in text.split('href="/runs/')[1:]]
            more = text.split('">Older runs')
            path = more[0].rpartition('href="')[2].replace("&amp;", "&") if len(more) > 1 else ""
    assert seen == [f"{n:032x}" for n in range(60)]


async def test_a_status_that_there_is_not_is_not_found() -> None:
    async with House().sign_in() as browser:
        assert (await browser.get("/?status=bogus")).status_code == 404


async def test_a_run_has_its_timeline() -> None:
    house = House()
    house.office.put(ANNA, completed())
    async with house.sign_in() as browser:
        text = (await browser.get(f"/runs/{RUN}")).text
    for words in ("It waited 20 s and ran for 1 min.", "2026-03-01T11:59:55Z", "x-1", "1,234"):
        assert words in text
    assert f'href="/runs/{RUN}/forget"' in text
    assert f'href="/runs/{RUN}/cancel"' not in text


async def test_anothers_run_is_as_one_that_never_was() -> None:
    unknown = BENS_RUN[:-1] + "0"
    async with House().sign_in() as browser:
        for rest in ("", "/cancel", "/forget"):
            theirs = await browser.get(f"/runs/{BENS_RUN}{rest}")
            nobodys = await browser.get(f"/runs/{unknown}{rest}")
            assert theirs.status_code == 404
            assert theirs.content == nobodys.content
            assert theirs.headers == nobodys.headers
        key = await browser.key("/pair")
        fields = {"form_key": key}
        theirs = await browser.post(f"/runs/{BENS_RUN}/cancel", fields)
        nobodys = await browser.post(f"/runs/{unknown}/cancel", fields)
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)
    async with House().sign_in(OTHER_TOKEN) as ben:
        assert (await ben.get(f"/runs/{BENS_RUN}")).status_code == 200


@pytest.mark.parametrize("name", ["%00", "x" * 101, "%E2%80%AE"])
async def test_what_can_be_no_id_is_not_found(name: str) -> None:
    house = House()
    async with house.sign_in() as browser:
        assert (await browser.get(f"/runs/{name}")).status_code == 404
        assert (await browser.get(f"/devices/{name}/revoke")).status_code == 404
    assert house.said == []


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_do_no_harm(name: str) -> None:
    house = House()
    office = house.office
    office.devices[ANNA] = [device(name=name)]
    office.agents[ANNA] = [agent(name=name)]
    run = listing(slug=name, session=name, status="failed", error=name, finished_ago_us=1)
    done = Completion(execution_id=name, status="failed", error=name, result={name: [name]})
    office.put(ANNA, RunShown(run=run, arguments={name: name}, completion=done, late=done))
    office.audit = [
        msgspec.structs.replace(office.audit[0], who=name, act=name, subject=name, address=name)
    ]
    async with house.sign_in() as browser:
        for path in (*ALL[:5], f"/runs/{RUN}/forget", "/devices/dev_1/revoke"):
            text = (await browser.get(path)).text
            outline = Outline(text)
            assert outline.open == []
            assert not {"script", "img"} & outline.tags
            assert all(target.startswith(("/", "#")) for target in outline.targets)
            assert not {"\u202e", "\u2066", "\x1b", "\0"} & set(text)
            assert len(text) < 60_000
            assert ">49" not in text


async def test_agents_are_listed_with_a_form_for_another() -> None:
    async with House().sign_in() as browser:
        text = (await browser.get("/agents")).text
    assert "night shift" in text
    assert 'href="/agents/agt_1/revoke"' in text
    assert 'href="/agents/own_anna/renew"' in text


async def test_the_audit_tells_who_did_what() -> None:
    async with House().sign_in() as browser:
        text = (await browser.get("/audit")).text
    for words in ("2026-03-01 12:00:00 UTC", "night shift", "192.0.2.7", RUN):
        assert words in text
