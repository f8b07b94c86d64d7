"""The contract between actors and hosts: every host offers it, every actor has it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import msgspec
import pytest

from actors.actor import Context, Place, Session, Step, Store, Table, TableSpec, Unanswered
from actors.agent import Agent
from actors.engine import Engine
from actors.messages import Noted
from actors.owner import Owner
from actors.relay import Relay
from actors.server import Server
from actors.simulator import ActorContext
from actors.stores.memory import MemoryStore, MemoryTable
from tests.actors.harness import SESSION, FakeContext

ACTORS: list[Any] = [Server, Relay, Engine, Agent, Owner]


def promised(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("host", [ActorContext, FakeContext])
def test_a_host_offers_the_whole_context(host: type) -> None:
    offered = set(dir(host)) | {"name", "store", "now_us", "traceparent", "vm"}
    assert promised(Context) <= offered
    for name in (
        "send",
        "request",
        "request_every",
        "reply",
        "set_timer",
        "cancel_timer",
        "new_id",
        "log",
    ):
        wanted = list(signature(getattr(Context, name)).parameters)
        assert list(signature(getattr(host, name)).parameters) == wanted


def test_a_store_offers_the_whole_table() -> None:
    assert promised(Table) <= set(dir(MemoryTable))
    assert promised(Store) <= set(dir(MemoryStore))


@pytest.mark.parametrize("actor_class", ACTORS)
def test_an_actor_is_made_of_its_config_and_place_alone(actor_class: Any) -> None:
    place = Place(name="x", sessions=(SESSION,))
    actor = actor_class(actor_class.Config(), place)
    assert actor.handlers
    for kind, handler in actor.handlers.items():
        assert isinstance(kind, type)
        assert list(signature(handler).parameters) == ["context", "envelope"]
    assert list(signature(actor.on_start).parameters) == ["context"]
    assert list(signature(actor.on_timer).parameters) == ["context", "timer"]


@pytest.mark.parametrize("actor_class", ACTORS)
def test_a_config_is_frozen_strict_and_complete(actor_class: Any) -> None:
    config = actor_class.Config.__struct_config__
    assert config.frozen
    assert config.forbid_unknown_fields
    assert not any(field.required for field in msgspec.structs.fields(actor_class.Config))


def test_what_a_scenario_gives_never_changes() -> None:
    for value in (
        Place(name="x"),
        SESSION,
        Step(at_us=1, act="share", session="s"),
        Unanswered(Noted()),
    ):
        with pytest.raises(AttributeError):
            setattr(value, value.__struct_fields__[0], None)


def test_a_place_knows_the_usual_names() -> None:
    place = Place(name="relay-2")
    assert (place.server, place.relay, place.engine) == ("server", "relay", "engine")
    assert (place.sessions, place.steps) == ((), ())
    assert Session(id="i", name="n", slug="s", project="p", relay="r").shared


def test_a_table_names_its_rows_and_indexes() -> None:
    spec = TableSpec("notes", Noted, by=("a", "b"))
    assert (spec.name, spec.row, spec.indexes) == ("notes", Noted, {"by": ("a", "b")})
