"""An actor goes back to what it was: its attributes, those of its parts, its chance and its ids."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from actors.actor import Context, Place
from actors.copies import attributes_of
from actors.ledger import RUNS
from actors.rewind import Rewind
from actors.server import Server
from actors.world import TrioWorld
from tests.actors.puppets import NOTES, Note


class Ledger:
    """A part of an actor, whose method stands in a table of handlers."""

    def __init__(self) -> None:
        self.lines = ["a"]
        self.deeper = SimpleNamespace(numbers={1: [2]})

    def note(self, text: str) -> None:
        self.lines.append(text)


class Owner:
    """An actor with parts, a table, a cache and a slot of every kind of state."""

    caches = frozenset({"cache"})

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.handlers: Any = {str: self.ledger.note}
        self.cache: list[str] = []
        self.waiting = {"run": (1, ["question"])}

    def on_start(self, context: Context) -> None:
        self.table = context.store.table(NOTES)

    def on_timer(self, context: Context, timer: str) -> None:
        raise AssertionError(timer)


def started() -> tuple[Any, Owner]:
    world = TrioWorld(1, "")
    owner = Owner()
    world.add("owner", owner)
    context = world.contexts["owner"]
    owner.on_start(context)
    return context, owner


def test_all_that_changed_is_as_it_was_and_every_part_is_still_itself() -> None:
    context, owner = started()
    first = context.random("x").random()
    context.new_id()
    rewind = Rewind(context, [owner.table])
    ledger, deeper, table = owner.ledger, owner.ledger.deeper, owner.table
    second, number = context.random("x").random(), context.new_id()
    drawn = context.random("y").random()
    owner.handlers[str]("b")
    deeper.numbers[1].append(3)
    owner.waiting["run"][1].append("another")
    owner.waiting["other"] = (2, [])
    owner.cache.append("kept")
    table.put("n", Note("n"))
    setattr(owner, "new", 1)  # noqa: B010  an attribute that its class does not know
    assert rewind.go_back()
    assert (owner.ledger, owner.ledger.deeper, owner.table) == (ledger, deeper, table)
    assert owner.ledger is ledger
    assert owner.table is table
    assert ledger.lines == ["a"]
    assert deeper.numbers == {1: [2]}
    assert owner.waiting == {"run": (1, ["question"])}
    assert owner.cache == ["kept"], "what its class says may stay"
    assert "new" not in attributes_of(owner)
    assert table.get("n") == Note("n"), "its store is the host's affair"
    owner.handlers[str]("c")
    assert ledger.lines == ["a", "c"], "its handlers are of the part that it has"
    assert (context.random("x").random(), context.new_id()) == (second, number)
    assert context.random("y").random() == drawn != first


def test_what_can_t_be_copied_is_told_and_chance_goes_back_all_the_same() -> None:
    context, owner = started()
    setattr(owner, "lock", threading.Lock())  # noqa: B010  what no actor should have
    rewind = Rewind(context, [owner.table])
    first = context.random("x").random()
    owner.ledger.note("b")
    assert not rewind.go_back()
    assert owner.ledger.lines == ["a", "b"]
    assert context.random("x").random() == first


def test_a_server_s_answers_are_a_cache() -> None:
    world = TrioWorld(1, "")
    server = Server(Server.Config(), Place(name="server"))
    world.add("server", server)
    context = world.contexts["server"]
    server.on_start(context)
    rewind = Rewind(context, context.store.tables.values())
    server.sweep_at_us = 7
    server.answers["x"] = (None, None)  # type: ignore[assignment]  # whatever it is
    assert rewind.go_back()
    assert attributes_of(server)["sweep_at_us"] is None
    assert "x" in server.answers
    assert server.runs is context.store.table(RUNS)
