"""What a metric may look for; a mistake of which nothing would come is found at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.actor import Place
from actors.desktop.messages import DESKTOP_MESSAGES
from actors.events import EVENTS
from actors.graphs.messages import GRAPH_MESSAGES
from actors.messages import GetGraphRun, GraphRun
from actors.transitions import TRANSITIONS
from scenarios.cast import BUILT_IN, config_class
from scenarios.matchers import MESSAGES, STATUSES, Matcher, MetricError, parse_matcher

NAMES = st.sampled_from([*EVENTS, *MESSAGES])
TICKET = GraphRun(command_id="r", status="failed", error="x, y=1, z")


@given(NAMES, st.data())
def test_a_matcher_is_read_as_it_is_written(name: str, data: st.DataObject) -> None:
    fields = Matcher(name).fields
    used = data.draw(st.lists(st.sampled_from(fields), unique=True)) if fields else []
    filters = []
    for field in used:
        choices = Matcher(name).choices(field)
        filters.append((field, data.draw(st.sampled_from(choices or ("a", "1", "x y, z")))))
    brackets = "[" + ", ".join(f"{key}={value}" for key, value in filters) + "]" if filters else ""
    assert parse_matcher(f" {name}{brackets} ") == Matcher(name, tuple(filters))


@pytest.mark.parametrize(
    ("text", "matcher"),
    [
        ("run.terminal.chars", Matcher("run.terminal", (), "chars")),
        ("GraphRun.total_tokens", Matcher("GraphRun", (), "total_tokens")),
        ("GraphRun.poll_after_us", Matcher("GraphRun", (), "poll_after_us")),
        (
            "run.terminal[status=failed].cost",
            Matcher("run.terminal", (("status", "failed"),), "cost"),
        ),
        ("Sync . capacity".replace(" ", ""), Matcher("Sync", (), "capacity")),
    ],
)
def test_a_matcher_with_a_field(text: str, matcher: Matcher) -> None:
    assert parse_matcher(text, with_field=True) == matcher


@pytest.mark.parametrize(
    ("text", "sentence", "cure"),
    [
        ("", '"" is neither an event nor a message', "write run.terminal, GetGraphRun or "),
        ("run terminal", '"run terminal" is neither an event nor a message', "write run.terminal"),
        ("run.terminal[", '"run.terminal[" is neither', "write run.terminal"),
        ("GetGraphRunn", "no event or message is called", 'did you mean "GetGraphRun"?'),
        ("run.cancel", "no event or message is called", 'did you mean "run.cancel_asked"?'),
        ("xyzzy", 'no event or message is called "xyzzy"', "`pullcord names` lists them"),
        ("Completion", "no event or message is called", 'did you mean "Complete"?'),
        ("relay.owner", "no event or message is called", ""),
        ("run.terminal[stats=x]", 'run.terminal has no field "stats"', 'did you mean "status"?'),
        ("run.queued[x=1]", 'run.queued has no field "x"', "its fields are run, agent and session"),
        ("Noted[x=1]", 'Noted has no field "x"', "its fields are none"),
        (
            "run.terminal[status=complete]",
            "run.terminal.status is never",
            'did you mean "completed"?',
        ),
        ("run.terminal[truncated=yes]", "run.terminal.truncated is never", "it is true or false"),
        ("GraphRun[replayed=1]", "GraphRun.replayed is never", "it is true or false"),
        ("run.terminal[]", "the brackets are empty", "write [status=completed]"),
        ("run.terminal[failed]", '"failed" is no filter', "write [status=completed]"),
        ("run.terminal.chars", "names a field", 'count run.terminal, or write value = "run.term'),
    ],
)
def test_what_is_no_matcher(text: str, sentence: str, cure: str) -> None:
    with pytest.raises(MetricError) as error:
        parse_matcher(text)
    assert sentence in str(error.value)
    assert (error.value.cure or "").startswith(cure)


@pytest.mark.parametrize(
    ("text", "sentence", "cure"),
    [
        ("run.terminal", "names no field to read", "write run.terminal.tokens"),
        ("run.queued", "names no field to read", "no field of run.queued is a number"),
        ("run.terminal.status", "run.terminal.status is no number", "count it, as in count = "),
        ("GraphRun.error", "GraphRun.error is no number", "count it"),
        ("GraphRun.result", "GraphRun.result is no number", "count it"),
        ("run.terminal.char", 'run.terminal has no field "char"', 'did you mean "chars"?'),
        ("run.termina.chars", "no event or message is called", 'did you mean "run.terminal"?'),
    ],
)
def test_what_is_no_value(text: str, sentence: str, cure: str) -> None:
    with pytest.raises(MetricError) as error:
        parse_matcher(text, with_field=True)
    assert sentence in str(error.value)
    assert (error.value.cure or "").startswith(cure)


@pytest.mark.parametrize(
    ("text", "what", "accepted"),
    [
        ("run.terminal[status=failed]", {"status": "failed"}, True),
        ("run.terminal[status=failed]", {"status": "completed"}, False),
        ("run.terminal[status=failed]", {}, False),
        ("run.terminal[status=failed, was=queued]", {"status": "failed", "was": "running"}, False),
        ("run.terminal[truncated=true]", {"truncated": True}, True),
        ("run.terminal[tokens=5]", {"tokens": 5}, True),
        ("GraphRun[status=failed, error=x, y=1, z]".replace(", y=1", ""), TICKET, False),
        ("GraphRun[replayed=false]", TICKET, True),
        ("GraphRun[replayed=true]", TICKET, False),
        ("GraphRun[error=x]", TICKET, False),
    ],
)
def test_filters(text: str, what: Any, accepted: bool) -> None:
    assert parse_matcher(text).accepts(what) is accepted


def test_a_filters_value_may_have_commas() -> None:
    matcher = parse_matcher("run.terminal[cause=late, or never, status=failed]")
    assert matcher.filters == (("cause", "late, or never"), ("status", "failed"))


def test_what_belongs_to_a_run() -> None:
    assert parse_matcher("run.terminal").run_of({"run": "r"}) == "r"
    assert parse_matcher("GetGraphRun").run_of(GetGraphRun(command_id="r")) == "r"
    assert [name for name in MESSAGES if Matcher(name).run_field is None].count("Sync") == 1
    assert all(Matcher(name).run_field == "run" for name in EVENTS)


def test_every_message_is_one_that_some_actor_understands() -> None:
    place = Place(name="x")
    handled = {
        message.__name__
        for actor in BUILT_IN.values()
        for message in actor(config_class(actor)(), place).handlers
    }
    handled |= {kind.__name__ for kind in GRAPH_MESSAGES}  # a Graph's engine and its model
    handled |= {kind.__name__ for kind in DESKTOP_MESSAGES}  # an owner and the own desktop
    listing = {"GraphSessions"}  # no built-in agent asks for it
    assert set(MESSAGES) == handled - {"Unanswered"} | listing


def test_statuses_are_those_of_the_servers_table() -> None:
    known = {text for one in TRANSITIONS for text in (one.source, one.target)} - {""}
    assert known == set(STATUSES)
