"""`pullcord names` has every name, each with its meaning, and fits on a terminal."""

from pathlib import Path

import msgspec
import pytest

from actors.chance import FAMILIES, Durations
from actors.events import EVENTS
from actors.polls import parse_polls
from scenarios.cast import BUILT_IN
from scenarios.cell import SECTIONS
from scenarios.expect import FORMS
from scenarios.matchers import MESSAGES, parse_matcher
from scenarios.names import (
    DISTRIBUTIONS,
    EXPECTATIONS,
    MATCHERS,
    POLL_PLANS,
    STATISTICS,
    WIDTH_COLUMNS,
    Entry,
    Section,
    names,
    render,
)
from scenarios.problems import ScenarioError
from scenarios.spec import FAULTS, KINDS, PROFILES
from scenarios.stats import NAMES

ROOT = Path(__file__).resolve().parents[2]


def section(title: str) -> Section:
    return next(one for one in names() if one.title == title)


def entry(title: str, name: str) -> Entry:
    return next(one for one in section(title).entries if one.name == name)


def test_every_name_has_a_meaning() -> None:
    bare = [(one.title, e.name) for one in names() for e in one.entries if not e.meaning]
    assert bare == []


def test_every_table_of_a_file_has_its_section() -> None:
    titles = {one.title.strip("[]").partition(".")[0] for one in names()}
    assert set(SECTIONS) <= titles


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_an_actor_is_there(kind: str) -> None:
    fields = msgspec.structs.fields(BUILT_IN[kind].Config)  # type: ignore[index]  # a kind, by KINDS
    assert [e.name for e in section(f"[{kind}]").entries] == [f.encode_name for f in fields]


def test_a_key_has_type_unit_default_and_meaning() -> None:
    poll = entry("[relay]", "poll")
    assert (poll.type, poll.default) == ("duration", '"20s"')
    assert "units us, ms, s, m, h, d" in poll.takes
    assert poll.meaning == "the time between two polls"
    assert entry("[[step]]", "at").required


def test_events_and_messages_have_their_fields() -> None:
    assert {e.name: e.fields for e in section("events").entries} == {
        name: event.fields for name, event in EVENTS.items()
    }
    assert {e.name for e in section("messages").entries} == set(MESSAGES)
    assert entry("messages", "GetGraphRun").fields == ("command_id", "wait_us")
    assert entry("messages", "GetGraphRun").meaning.startswith("Agent asks the server how")


def test_every_fault_and_what_profiles_change_are_there() -> None:
    assert {e.name for e in section("faults").entries} == set(FAULTS)
    changed = {f"{kind}.{key}" for kind, keys in PROFILES["recommended"].items() for key in keys}
    assert {e.name for e in section("profiles").entries} == changed
    assert entry("profiles", "relay.jitter").meaning == '"window", in the place of "none"'


def test_the_small_languages_are_complete() -> None:
    assert set(EXPECTATIONS) == set(FORMS)
    assert set(STATISTICS) == {*NAMES, "p95"}
    assert {text.partition("(")[0] for text in DISTRIBUTIONS} == {"25s", *FAMILIES}


def test_the_examples_are_valid() -> None:
    for text in DISTRIBUTIONS:
        assert Durations.parse(text).text == text
    for text in POLL_PLANS:
        assert parse_polls(text).text == text
    for text in MATCHERS:
        parse_matcher(text, with_field=text.endswith(".chars"))


def test_text_fits_on_a_terminal() -> None:
    lines = render().splitlines()
    assert max(map(len, lines)) <= WIDTH_COLUMNS
    assert "  poll            the time between two polls" in lines
    assert '                  duration; default "20s"' in lines


def test_a_word_narrows_to_what_has_it_in_its_name() -> None:
    found = names("POLL")
    assert [one.title for one in found] == ["[relay]", "[agent]", "poll plans"]
    assert [e.name for e in found[0].entries] == ["poll"]
    assert len(found[2].entries) == len(POLL_PLANS), "the title has the word: all of it"


def test_a_word_that_is_in_no_name_is_looked_for_in_meanings() -> None:
    assert ("[engine]", "tokens") in {
        (one.title, e.name) for one in names("Graph uses") for e in one.entries
    }


def test_an_unknown_word_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ScenarioError) as caught:
        render("run.terminl")
    assert str(caught.value).splitlines() == [
        'pullcord names: nothing is called "run.terminl"',
        'help: did you mean "run.terminal"?',
    ]


def test_json_has_the_same() -> None:
    text = render("wait_limit", "json")
    assert text.endswith("]\n")
    assert msgspec.json.decode(text, type=list[Section]) == names("wait_limit")


def markdown(one: Section) -> str:
    """The keys of a table of the file as docs/scenarios.md has them."""
    lines = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    for e in one.entries:
        default = "required" if e.required else f"`{e.default}`" if e.default else ""
        lines.append(f"| `{e.name}` | {e.type} | {default} | {e.meaning} |")
    return "\n".join(lines).replace("|  |", "| |")


@pytest.mark.parametrize(
    "one", [one for one in names() if one.group == "keys"], ids=lambda s: s.title
)
def test_the_page_on_scenario_files_has_every_key(one: Section) -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    assert markdown(one) in page, f"put this under {one.title}:\n{markdown(one)}"


def test_the_page_on_scenario_files_has_every_event() -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    for e in section("events").entries:
        assert f"| `{e.name}` | {', '.join(e.fields)} | {e.meaning} |" in page
