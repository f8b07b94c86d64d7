"""An actor as it was before some turns, to go back to: its attributes, its chance and its ids.

For turns that are taken again after a conflict. An actor may share its work among objects of its
own; each of them stays the object that it is, since tables of handlers name its methods, and has
its attributes put back. Timers, questions and messages need nothing: they wait for the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from types import FunctionType, MethodType, ModuleType
from typing import Any

import msgspec

from actors.chance import Distribution
from actors.copies import Copier, UncopyableError, attributes_of, put_attributes
from actors.host import HostContext
from actors.polls import PollPlan
from actors.simulator import Simulator
from actors.streams import HashedStream

_PINNED = (Simulator, HostContext, HashedStream, Distribution, PollPlan)
_NO_PARTS = (
    *_PINNED, Enum, FunctionType, MethodType, ModuleType, type, msgspec.Struct, dict, list, set,
    tuple, frozenset,
)  # fmt: skip


class Chance:
    """Where a context's streams and ids are now, to go back to."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._drawn = {name: stream.drawn for name, stream in context.streams.items()}
        self._ids = context.ids

    def go_back(self) -> None:
        """Let the same be drawn again."""
        context = self._context
        for purpose, stream in context.streams.items():
            stream.go_to(self._drawn.get(purpose, 0))
        context.ids = self._ids


class Rewind:
    """A context's actor as it is now. `pinned` are objects that are no part of it: its tables.

    What an actor's class names in `caches` is not copied: attributes that may hold more than is so.
    """

    def __init__(self, context: HostContext, pinned: Iterable[object]) -> None:
        self._chance = Chance(context)
        outside = list(pinned)
        self._parts = list(_parts_of(context.actor, {id(one) for one in outside}))
        self._caches: frozenset[str] = getattr(context.actor, "caches", frozenset())
        live = [
            {name: value for name, value in attributes_of(part).items() if name not in self._caches}
            for part in self._parts
        ]
        self._held: list[dict[str, Any]] | None = None
        with suppress(UncopyableError):
            self._held = Copier(_PINNED, (*outside, *self._parts)).copy(live)

    def go_back(self) -> bool:
        """Be as it was; return whether the attributes are too, else the actor must start again."""
        self._chance.go_back()
        if self._held is None:
            return False
        for part, attributes in zip(self._parts, self._held, strict=True):
            now = attributes_of(part)
            kept = {name: value for name, value in now.items() if name in self._caches}
            put_attributes(part, kept | attributes)
        return True


def _parts_of(owner: object, outside: set[int]) -> Iterator[object]:
    """Yield an actor and the objects of its own that it is made of, each once."""
    if id(owner) in outside:
        return
    outside.add(id(owner))
    yield owner
    for value in attributes_of(owner).values():
        if hasattr(value, "__dict__") and not isinstance(value, _NO_PARTS):
            yield from _parts_of(value, outside)
