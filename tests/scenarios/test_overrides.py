"""Keys that are set from outside: what they reach, and that nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scenarios.overrides import Override, apply_overrides, assign, parse_override, reachable

DATA: dict[str, Any] = {
    "relay": {"poll": "20s"},
    "agent": [{"name": "a", "poll": "never"}, {"name": "b"}],
    "engine": {"name": "fast"},
    "session": [{"name": "demo"}, {"name": "other"}],
    "step": [{"at": "5s"}],
    "fault": {"name": "lossy", "kind": "drop"},
    "sweep": {"product": {"relay.jitter": ["none"]}, "zip": {"agent.runs": [1]}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("relay.poll=5s", "5s"),
        ("relay.poll = 5s ", "5s"),
        ('relay.poll="5s"', "5s"),
        ("relay.poll=5", 5),
        ("relay.poll=0.5", 0.5),
        ("relay.poll=true", True),
        ("relay.poll=every 2s", "every 2s"),
        ("relay.poll=uniform(0s, 40s)", "uniform(0s, 40s)"),
        ("relay.poll=lognormal(median=60s, sigma=0.8)", "lognormal(median=60s, sigma=0.8)"),
        ('relay.poll=["done", "1h"]', ["done", "1h"]),
        ("relay.poll=", ""),
        ("relay.poll=5\nb = 6", "5\nb = 6"),
    ],
)
def test_a_value_is_toml_or_else_plain_text(text: str, value: object) -> None:
    assert parse_override(text) == Override("relay.poll", value)


@pytest.mark.parametrize("text", ["relay.poll", "=5s", " = 5s", ""])
def test_what_sets_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"sets nothing: write --set relay\.poll=5s"):
        parse_override(text)


@pytest.mark.parametrize(
    ("key", "places"),
    [
        ("profile", [("profile",)]),
        ("relay.poll", [("relay", "poll")]),
        ("run.seed", [("run", "seed")]),
        ("server.hints", [("server", "hints")]),
        ("agent.poll", [("agent", 0, "poll"), ("agent", 1, "poll")]),
        ("b.poll", [("agent", 1, "poll")]),
        ("agent.b.poll", [("agent", 1, "poll")]),
        ("fast.stop", [("engine", "stop")]),
        ("session.other.shared", [("session", 1, "shared")]),
        ("session.shared", [("session", 0, "shared"), ("session", 1, "shared")]),
        ("step.at", [("step", 0, "at")]),
        ("fault.lossy.nth", [("fault", "nth")]),
        ("fault.nth", [("fault", "nth")]),
    ],
)
def test_a_key_reaches_its_places_and_nothing_else(key: str, places: list[Any]) -> None:
    assert reachable(key, DATA) is None
    before, data = copy.deepcopy(DATA), dict(DATA)
    assert assign(data, key, "new") == places
    assert before == DATA
    for place in places:
        found: Any = data
        for part in place:
            found = found[part]
        assert found == "new"
    touched = {place[0] for place in places}
    assert all(data[section] is DATA[section] for section in DATA if section not in touched)


@pytest.mark.parametrize(
    ("key", "cure"),
    [
        ("profil", 'did you mean "profile"?'),
        ("relay", 'did you mean "relay.KEY"?'),
        ("zzz", "write TABLE.KEY"),
        ("rely.poll", 'did you mean "relay.poll"?'),
        ("aa.poll", 'did you mean "a.poll"?'),
        ("faster.stop", 'did you mean "fast.stop"?'),
        ("link.latency", "the file has no [[link]]"),
        ("step.x.at", 'tables of [[step]] have no names: write "step.at"'),
        ("session.othr.shared", 'did you mean "session.other.shared"?'),
        ("session.x.shared", 'there is no [[session]] with name = "x", but "demo" and "other"'),
        ("relay.x.poll", 'there is no [[relay]] with name = "x"'),
        ("relay..poll", "write TABLE.KEY"),
        (".poll", "write TABLE.KEY"),
        ("a.b.c.d", "write TABLE.KEY"),
        ("metrics.calls.count", "what is measured, judged and swept stands in the file"),
        ("sweep.product", "what is measured, judged and swept stands in the file"),
        ("", "write TABLE.KEY"),
    ],
)
def test_a_key_that_nothing_has(key: str, cure: str) -> None:
    assert (reachable(key, DATA) or "").startswith(cure)


def test_several_overrides_and_all_their_problems() -> None:
    data = dict(DATA)
    wanted = {"relay.poll": "1s", "relay.pol": 1, "x": 2, "relay.jitter": 3, "agent.runs": 4}
    problems = apply_overrides(data, tuple(Override(*pair) for pair in wanted.items()))
    assert [one.message for one in problems] == [
        '"x" can\'t be set',
        '"relay.jitter" is swept in this file',
        '"agent.runs" is swept in this file',
    ]
    assert data["relay"] == {"poll": "1s", "pol": 1}
    assert "runs" not in data["agent"][0]


@pytest.mark.parametrize("section", [5, "text", [5, {"name": "a"}], None])
def test_a_section_of_the_wrong_type_is_left_to_its_decoder(section: object) -> None:
    data = {"relay": section}
    assign(data, "relay.poll", "5s")
    if isinstance(section, list):
        assert data["relay"] == [5, {"name": "a", "poll": "5s"}]
    else:
        assert data["relay"] is section
    assert apply_overrides({"sweep": section}, (Override("relay.poll", 1),)) == []
