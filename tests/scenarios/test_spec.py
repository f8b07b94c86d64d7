"""The tables of a file as structs: rules within one table, and what they share with actors."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.agent import Agent
from scenarios.cast import BUILT_IN, config_class
from scenarios.decode import fields_of
from scenarios.fields import bare, members
from scenarios.spec import (
    ACTOR_KEYS,
    PROFILES,
    ActorTable,
    MetricTable,
    Name,
    TopTable,
    WorkloadTable,
)


@pytest.mark.parametrize(
    "keys",
    [
        {"count": "Sync"},
        {"value": "run.terminal.chars"},
        {"source": "run.queued", "target": "run.started"},
        {"source": "start", "target": "run.started", "per": "replication", "take": "last"},
        {"count": "Sync", "per": "replication"},
    ],
)
def test_forms_of_a_metric(keys: dict[str, Any]) -> None:
    assert MetricTable(**keys).per == keys.get("per", "run")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "a metric has either count, or value, or from and to"),
        ({"count": "x", "value": "y"}, "a metric has either count, or value, or from and to"),
        ({"count": "x", "target": "y"}, "a metric has either count, or value, or from and to"),
        ({"target": "y"}, "a time has both from and to"),
        ({"source": "y"}, "a time has both from and to"),
        ({"value": "x", "per": "replication"}, "each occurrence of a value is a row"),
        ({"count": "x", "per": "replication", "take": "last"}, "take is for a time with per"),
        ({"source": "x", "target": "y", "take": "last"}, "take is for a time with per"),
    ],
)
def test_what_is_no_metric(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        MetricTable(**keys)


def test_workload_has_the_types_of_the_agents_keys() -> None:
    agent = fields_of(Agent.Config)
    for key, field in fields_of(WorkloadTable).items():
        ours, theirs = (
            {bare(kind)[0] for kind in members(bare(one.type)[0])} for one in (field, agent[key])
        )
        assert ours == theirs, key
        assert field.default is None


def test_profiles_set_what_actors_have() -> None:
    for values in PROFILES.values():
        for kind, keys in values.items():
            assert set(keys) <= set(fields_of(config_class(BUILT_IN[kind]))), kind


def test_no_actor_has_a_key_of_every_actors_table() -> None:
    assert tuple(fields_of(ActorTable)) == ACTOR_KEYS
    for actor in BUILT_IN.values():
        assert set(ACTOR_KEYS).isdisjoint(fields_of(config_class(actor)))


@given(st.text(max_size=70))
def test_names_have_no_sign_of_globs_subscripts_and_keys(text: str) -> None:
    pattern = get_args(Name)[1].pattern
    assert isinstance(pattern, str)
    if re.search(pattern, text):
        assert set(text).isdisjoint(".*?[]=, \n/'\"")
        assert 0 < len(text) <= 64
    assert msgspec.convert("agent-1", Name) == "agent-1"


@pytest.mark.parametrize("name", ["x\n", "X", "", "x y", "-x", "x" * 65])
def test_what_can_t_be_the_name_of_a_scenario(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"schema": 1, "name": name}, TopTable)
