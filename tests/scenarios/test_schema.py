"""The JSON Schema takes every valid file, and marks the usual mistakes at their place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from actors.chance import Durations
from actors.polls import parse_polls
from scenarios.names import DISTRIBUTIONS, POLL_PLANS
from scenarios.schema import DIALECT, json_schema
from scenarios.source import parse_source
from transports.units import DURATION_LIMIT_US, Duration

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

GOOD = """
schema = 1
name = "good"
[run]
until = ["done", "run.terminal", "8h"]
[relay]
poll = "20s"
phase = "uniform(0s, 20s)"
use = "built-in"
[engine]
cost = 0.5
tokens = "choice(1, 2)"
[[agent]]
name = "first"
poll = "backoff 2s x2 max 30s"
arguments = { any = ["thing"] }
[[agent]]
count = 2
[[session]]
name = "demo"
[[step]]
at = "5s"
do = "unshare"
[[fault]]
kind = "drop"
probability = 0.3
[sweep.product]
"relay.poll" = ["5s", "20s"]
"relay.use" = ["built-in", "own.py:Own"]
"relay.a_key_of_its_own" = [1, 2]
"first.poll" = ["every 2s"]
"session.demo.shared" = [true, false]
profile = ["published", "recommended"]
[[sweep.exclude]]
"relay.poll" = "5s"
[metrics.late]
from = "run.terminal"
to = "agent.noticed"
[[table]]
rows = "relay.poll"
columns = ["late.mean"]
[[expect]]
that = "late.mean > 0"
"""


def mistakes(text: str) -> list[tuple[str, str]]:
    """Where the schema marks a file, as dotted paths, and the messages."""
    data = parse_source(text, "test.toml").data
    return [
        (".".join(map(str, error.instance_path)), error.message)
        for error in VALIDATOR.iter_errors(data)
    ]


def test_it_is_a_valid_schema() -> None:
    Draft202012Validator({"$ref": DIALECT}).validate(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize(
    "path", sorted(SCENARIOS.glob("*/*.toml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_shipped_scenarios_are_valid(path: Path) -> None:
    assert mistakes(path.read_text(encoding="utf-8")) == []


def test_a_file_with_everything_is_valid() -> None:
    assert mistakes(GOOD) == []


def test_a_key_that_kinds_of_fault_read_differently_is_its_kind_s() -> None:
    strikes = 'schema = 1\nname = "x"\n[[fault]]\nkind = "kill"\nactor = "relay"\nevery = "80s"\n'
    counts = 'schema = 1\nname = "x"\n[[fault]]\nkind = "reset"\nevery = 3\n'
    assert mistakes(strikes) == mistakes(counts) == []
    assert [where for where, _ in mistakes(counts.replace("3", '"80s"'))] == ["fault.0.every"]
    assert [where for where, _ in mistakes(strikes.replace('"80s"', "3"))] == ["fault.0.every"]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('name = "good"', 'name = "Not Good"', "name"),
        ('name = "good"', "", ""),
        ('poll = "20s"', "poll = 20", "relay.poll"),
        ('poll = "20s"', 'poll = "20"', "relay.poll"),
        ('poll = "20s"', 'pol = "20s"', "relay"),
        ('phase = "uniform(0s, 20s)"', 'phase = "uniferm(0s, 20s)"', "relay.phase"),
        ("cost = 0.5", "cost = true", "engine.cost"),
        ('poll = "backoff 2s x2 max 30s"', 'poll = "evry 2s"', "agent.0.poll"),
        ("count = 2", "count = 0", "agent.1.count"),
        ("count = 2", 'cuont = "2"', "agent.1"),
        ('do = "unshare"', 'do = "remove"', "step.0.do"),
        ('at = "5s"', "", "step.0"),
        ('kind = "drop"', 'kind = "dorp"', "fault.0.kind"),
        ("probability = 0.3", "probability = 3", "fault.0.probability"),
        ("[run]", "[runs]\n[run]", ""),
        ('["5s", "20s"]', '["5s", "20"]', "sweep.product.relay.poll.1"),
        ('["5s", "20s"]', "[]", "sweep.product.relay.poll"),
        ('"first.poll"', '"run.polls"', "sweep.product"),
        ('"first.poll"', "pol", "sweep.product"),
        ('to = "agent.noticed"', "", "metrics.late"),
        ('columns = ["late.mean"]', 'columns = "late.mean"', "table.0.columns"),
        ('that = "late.mean > 0"', "that = 0", "expect.0.that"),
    ],
)
def test_a_mistake_is_marked_at_its_place(old: str, new: str, where: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    assert where in {place for place, _ in mistakes(text)}


def test_an_actor_of_ones_own_may_have_any_key() -> None:
    own = GOOD.replace('use = "built-in"', 'use = "own.py:Own"').replace(
        'poll = "20s"', "poll = 20"
    )
    assert mistakes(own + "\n[server]\nuse = 'own.py:Server'\nits_key = [1]\n") == []
    assert mistakes(own.replace("count = 2", "count = 2\nits_key = 1")) != []


def test_keys_have_hints() -> None:
    poll = SCHEMA["$defs"]["built-in-relay"]["properties"]["poll"]
    assert (poll["description"], poll["default"]) == ("the time between two polls", "20s")
    assert SCHEMA["properties"]["relay"]["description"].startswith("Polls the server")
    letters = SCHEMA["$defs"]["built-in-engine"]["properties"]["alphabet"]["enum"]
    assert "japanese" in letters


def valid(kind: str, key: str, value: Any) -> bool:
    schema = SCHEMA["$defs"][f"built-in-{kind}"]["properties"][key]
    return Draft202012Validator(schema).is_valid(value)


@given(st.integers(0, DURATION_LIMIT_US))
def test_every_duration_is_valid(us: int) -> None:
    assert valid("relay", "poll", str(Duration(us)))


@pytest.mark.parametrize(
    ("by", "takes"),
    [("+1d", True), ("-1h30m", True), ("20s", True), ("--1h", False), ("1", False), (-5, False)],
)
def test_an_offset_has_a_sign_or_none(by: Any, takes: bool) -> None:
    schema = SCHEMA["$defs"]["fault"]
    fault = {"kind": "clock_step", "actor": "relay", "by": by}
    assert Draft202012Validator(schema).is_valid(fault) is takes


def test_the_examples_of_the_small_languages_are_valid() -> None:
    assert all(valid("relay", "phase", Durations.parse(text).text) for text in DISTRIBUTIONS)
    assert all(valid("agent", "poll", parse_polls(text).text) for text in POLL_PLANS)


@pytest.mark.parametrize("text", ["", "20", "s", "20 s", "-5s", "1.5h30m", "20s5", "20sec"])
def test_what_is_no_duration_is_marked(text: str) -> None:
    assert not valid("relay", "poll", text)
