"""The page: well-formed, readable by everybody, small, and always the same."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scenarios.report.page import DETAILS, SIZE_LIMIT_BYTES, Page, render
from scenarios.report.reload import reload
from scenarios.report.story import Teller
from scenarios.report.svg import HERE
from scenarios.results import Results
from scenarios.run import run
from scenarios.runner import NO_OPTIONS
from tests.scenarios.commandline import SMALL, USING, result_of, write, write_foreign
from tests.scenarios.report.drawings import check
from tests.scenarios.report.test_strip import FAULTS

VOID = {"meta", "br"}
FAILING = """
[[expect]]
that = "wait.mean < 0.01s"
note = "<b>never</b> & nowhere"
"""
HOSTILE = '"<script>alert(1)</script> & \\u0007 <!-- \\" onload=\\"x"'


class Parsed(HTMLParser):
    """The tags of a page, each with what it holds; fails where one is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def having(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def page_of(*texts: str, folder: Path, **options: int) -> Page:
    ones = []
    for number, text in enumerate(texts):
        (folder / f"{number}").mkdir(exist_ok=True)
        ones.append(result_of(folder / f"{number}", text, **options))
    return render(Results(ones, None), Teller(NO_OPTIONS, None))


def renamed(name: str, text: str = SMALL) -> str:
    return text.replace('"small"', f'"{name}"')


PAGES = {
    "passed": [SMALL],
    "failed": [SMALL + FAILING],
    "faults": [SMALL + FAULTS + FAILING],
    "two": [SMALL, renamed("other", SMALL + FAULTS)],
    "hostile": [SMALL.replace('"How long a run waits, with two intervals."', HOSTILE)],
    "bare": ['schema = 1\nname = "bare"\n'],
}


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(*PAGES[request.param], folder=tmp_path_factory.mktemp("page"))


def test_every_tag_is_closed_and_headings_are_in_order(page: Page) -> None:
    parsed = Parsed(page.html)
    assert parsed.headings.count(1) == 1
    assert parsed.headings[0] == 1
    for before, after in zip(parsed.headings, parsed.headings[1:], strict=False):
        assert after <= before + 1, parsed.headings


def test_nothing_runs_and_nothing_is_fetched(page: Page) -> None:
    parsed = Parsed(page.html)
    assert {tag for tag, _ in parsed.tags}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "form", "base", "image", "use"}
    )
    for _, attributes in parsed.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert (attributes.get("href") or "#").startswith("#")
    style = page.html[page.html.index("<style>") : page.html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_everybody_can_read_it(page: Page) -> None:
    parsed = Parsed(page.html)
    assert parsed.having("html") == [{"lang": "en"}]
    assert all(th.get("scope") in ("col", "row") for th in parsed.having("th"))
    assert all(svg["role"] == "img" for svg in parsed.having("svg"))
    scrolled = [one for _, one in parsed.tags if one.get("class") == "scroll"]
    assert all(one["tabindex"] == "0" and one["role"] == "region" for one in scrolled)
    assert all(one.get("aria-label") or one.get("aria-labelledby") for one in scrolled)
    assert all(one.get("tabindex", "0") == "0" for _, one in parsed.tags)
    ids = [one["id"] for _, one in parsed.tags if "id" in one]
    assert len(ids) == len(set(ids))
    for _, one in parsed.tags:
        for name in ("aria-labelledby", "href"):
            target = (one.get(name) or "").removeprefix("#")
            assert not target or target in ids


def test_every_drawing_is_in_the_page_and_sound(page: Page) -> None:
    assert page.html.count("<svg") == len(page.plots)
    for name, svg in page.plots.items():
        check(svg)
        assert re.fullmatch(r"[\w.=-]{1,140}", name)


def test_it_is_small(page: Page) -> None:
    assert len(page.html.encode()) < SIZE_LIMIT_BYTES


def test_a_failure_stands_at_the_top_with_its_command(tmp_path: Path) -> None:
    html = page_of(SMALL + FAILING, folder=tmp_path).html
    head = html[html.index("<body>") : html.index("<dl")]
    assert "✗ Failed" in head
    assert "2 failed, 3 passed of 5 expectations" in head
    assert "wait.mean &lt; 0.01s [20s]" in head
    assert "--cell relay.poll=20s" in head
    assert "&lt;b&gt;never&lt;/b&gt; &amp; nowhere" in html
    assert "pulls most to the wrong side" in html


def test_text_stays_text(tmp_path: Path) -> None:
    html = page_of(*PAGES["hostile"], folder=tmp_path).html
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "\u0007" not in html


def test_names_of_all_kinds_stay_text(tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>&\"'"
    fault = FAULTS.replace('"sleep"', json.dumps(bad)).replace('"on_start"', json.dumps(bad + "2"))
    text = SMALL.replace("[agent]", f"[[session]]\nname = {json.dumps(bad)}\n[agent]") + fault
    page = page_of(text + FAILING, folder=tmp_path)
    for svg in page.plots.values():
        check(svg)
    assert not Parsed(page.html).having("img")
    assert "<img" not in page.html
    assert page.html.count("&lt;img") >= 4


def test_many_cells_are_cut_and_counted(tmp_path: Path) -> None:
    polls = ", ".join(f'"{number}s"' for number in range(3, 23))
    waits = ", ".join(f'"every {number}s"' for number in range(20, 30))
    text = SMALL.replace('"5s", "20s"]', f'{polls}]\n"agent.poll" = [{waits}]')
    text = text[: text.index("[[expect]]")] + FAILING * 2 + FAULTS
    page = page_of(text, folder=tmp_path, replications=1)
    assert len(page.html.encode()) <= SIZE_LIMIT_BYTES
    assert re.search(r"\d+ more not shown; these begin with what did not pass", page.html)
    assert re.search(r"Not drawn: .*; and 1\d\d more\.", page.html)
    assert "not shown: " in page.html
    Parsed(page.html)


def test_several_scenarios_have_a_contents_list(tmp_path: Path) -> None:
    html = page_of(*PAGES["two"], folder=tmp_path).html
    nav = html[html.index("<nav") : html.index("</nav>")]
    assert re.findall(r'href="#(\w+)">(\w+)<', nav) == [("s1", "small"), ("s2", "other")]
    assert "✓ passed" in nav
    assert "<nav" not in page_of(SMALL, folder=tmp_path).html


def test_trouble_is_shown_with_its_trace(tmp_path: Path) -> None:
    write_foreign(tmp_path, "raise RuntimeError('<no>')")
    one = result_of(tmp_path, USING)
    html = render(Results([one], None), Teller(NO_OPTIONS, None)).html
    assert "RuntimeError: &lt;no&gt;" in html
    assert "A replication in trouble: replication 0" in html
    assert "(outcome: failed)" in html
    Parsed(html)


def test_checks_have_their_sentences(tmp_path: Path) -> None:
    html = page_of(SMALL + FAULTS, folder=tmp_path).html
    assert "14 held</span> in every replication" in html
    assert html.count("Each run&#39;s Graph is started once at most") == 1
    assert "What the checks say" not in page_of(SMALL, folder=tmp_path).html


@pytest.mark.parametrize(("named", "held"), [("never", 0), ("another", 0), (None, 1)])
def test_checks_of_ones_own(tmp_path: Path, named: str | None, held: int) -> None:
    lines = ["from pullcord import Violation", "def never(history):", '    "It never is."']
    lines.append(f"    yield Violation(check={named!r}, sentence='it was')" if named else
                 "    yield from ()")  # fmt: skip
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "mine.py").write_text("\n".join(lines))
    text = SMALL.replace("replications = 40", 'replications = 4\ncheck = "mine.py:never"')
    html = page_of(text, folder=tmp_path).html
    assert html.count("1 held</span>") == held
    assert html.count("✗ violated") == 1 - held
    assert ("mine.py:never</code>" in html) == (named != "another")
    assert ("It never is." in html) == (named != "another")


def test_the_file_itself_is_there(tmp_path: Path) -> None:
    html = page_of(SMALL, folder=tmp_path).html
    assert "duration = &#34;uniform(5s, 40s)&#34;" in html


def test_a_page_that_grows_shows_less_and_says_so(tmp_path: Path) -> None:
    many = [renamed(f"n{number}", SMALL + FAULTS) for number in range(16)]
    page = page_of(*many, folder=tmp_path, replications=6)
    assert len(page.html.encode()) <= SIZE_LIMIT_BYTES
    assert "fewer plots than it could" in page.html
    assert "Not drawn: " in page.html
    assert "fewer plots" not in page_of(many[0], folder=tmp_path).html
    sizes = [(one.panels, one.lanes, one.rows, one.tip_chars, one.entries) for one in DETAILS]
    assert sizes == sorted(sizes, reverse=True)


def test_the_same_results_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SMALL + FAULTS)
    monkeypatch.chdir(tmp_path)
    pages = []
    for jobs, out in ((1, "one"), (2, "other")):
        run("small.toml", jobs=jobs, out=out)
        loaded = reload(tmp_path / out)
        pages.append(render(loaded.results, Teller(loaded.options, tmp_path / out)))
    assert pages[0] == pages[1]
    assert str(tmp_path) not in pages[0].html


def test_results_of_other_code_are_not_told_again(tmp_path: Path) -> None:
    one = result_of(tmp_path)
    for cell in one.cells:
        cell._values["wait"][0] += 1e-3
        for place in range(len(cell._values["late"])):
            cell._values["late"][place] += 1
    html = render(Results([one], None), Teller(NO_OPTIONS, None)).html
    assert "replication can&#39;t be shown" in html or "replication can't be shown" in html
    assert "<h2" in html


# Colours

RULE = re.compile(r"--(\w+): (#[0-9a-f]{6})")


def schemes() -> dict[str, dict[str, str]]:
    css = (HERE / "plot.css").read_text()
    light, dark, paper = css.split("@media")
    return {name: dict(RULE.findall(text)) for name, text in
            (("light", light), ("dark", dark), ("paper", paper))}  # fmt: skip


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
              for part in parts]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
@pytest.mark.parametrize("ink", ["ink", "soft", "blue", "orange", "green", "purple"])
def test_text_has_enough_contrast(scheme: str, ink: str) -> None:
    colors = schemes()[scheme]
    for ground in ("paper", "wash"):
        assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)


def test_every_colour_is_a_name_of_the_scheme() -> None:
    names = set(schemes()["light"])
    for file in ("plot.css", "page.css"):
        css = (HERE / file).read_text()
        assert set(re.findall(r"var\(--(\w+)\)", css)) <= names
        assert file == "plot.css" or not re.findall(r"#[0-9a-f]{3,6}\b", css)


def test_drawings_use_classes_that_the_style_has(page: Page) -> None:
    css = (HERE / "plot.css").read_text() + (HERE / "page.css").read_text()
    for attributes in re.findall(r'class="([^"]+)"', "".join(page.plots.values())):
        for name in attributes.split():
            assert f".{name} " in css or f".{name}:" in css or name == "iv", name
