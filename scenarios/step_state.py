"""What an actor is, as plain data that is shown and compared: its attributes as trees.

A tree is what stays of a value when it is looked at later: numbers, texts, lists, dictionaries and
frozen structs as they are, every other object by the name of its class and its attributes. What has
nothing to show (a function, an iterator, the context) is opaque: two of a kind are equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

import msgspec

from actors.chance import Distribution
from actors.checkpoints import PINNED
from actors.copies import doubtful_fields
from actors.polls import PollPlan
from actors.stores.memory import MemoryTable
from logs.words import short

DEPTH_LIMIT: Final = 12  # how deep a tree goes; deeper lies a cycle more often than anything else
TEXT_LIMIT_CHARS: Final = 10_000  # of a result that may have 100,000; no line is as long
CHANGES_LIMIT: Final = 200  # of one turn; the first hundreds tell what it did
_EXACT: Final = frozenset({int, float, str, bytes, bool, type(None)})
_SETS: Final = (set, frozenset)
_DATA: Final = frozenset({dict, list, tuple})
_VALUES: Final = (Distribution, PollPlan)
_CONTAINERS: Final = (Mapping, list, tuple, deque, *_SETS)
_GIVEN: Final = ("config", "place")
_SAME: Final = object()


class Shape(msgspec.Struct, frozen=True):
    """An object that may change: its class's name and what it holds."""

    name: str
    fields: dict[str, Any]


class Opaque(msgspec.Struct, frozen=True):
    """Something with nothing to show, in words."""

    words: str


class Change(msgspec.Struct, frozen=True):
    """What became another: where, as `polled.118`, before and after as trees.

    `is_new` and `is_gone` tell what was not there before, and is not there any more.
    """

    path: str
    old: Any
    new: Any
    is_new: bool = False
    is_gone: bool = False


def tree(value: Any, depth: int = DEPTH_LIMIT) -> Any:
    """Return a value as a tree."""
    if type(value) in _EXACT or isinstance(value, Enum | type):
        return value
    if not depth:
        return Opaque("…")
    if isinstance(value, _CONTAINERS):
        return _container(value, depth - 1)
    if isinstance(value, msgspec.Struct):
        return _struct(value, depth - 1)
    return _object(value, depth - 1)


def _container(value: Any, deeper: int) -> Any:
    if isinstance(value, MemoryTable):
        return Opaque("a table of its store")
    if isinstance(value, Mapping):
        return {_key(key): tree(one, deeper) for key, one in value.items()}
    if isinstance(value, _SETS):
        return sorted((tree(one, deeper) for one in value), key=repr)
    if type(value) is tuple and all(map(_is_data, value)):
        return value
    return [tree(one, deeper) for one in value]


def _struct(value: msgspec.Struct, deeper: int) -> Any:
    if _is_data(value):
        return value
    names = value.__struct_fields__
    return Shape(type(value).__name__, {name: tree(getattr(value, name), deeper) for name in names})


def _is_data(value: Any) -> bool:
    """Whether a value is never changed: frozen, and as JSON has it, as messages and rows are."""
    kind = type(value)
    if kind in _EXACT or kind in _DATA:
        return True
    if not isinstance(value, msgspec.Struct):
        return isinstance(value, _VALUES)
    if not value.__struct_config__.frozen:
        return False
    return all(_is_data(getattr(value, name)) for name in doubtful_fields(type(value)))


def _key(key: Any) -> Any:
    if type(key) in _EXACT or isinstance(key, tuple | type):
        return key
    return repr(key)


def _object(value: Any, deeper: int) -> Any:
    kind = type(value)
    if isinstance(value, PINNED):
        told = isinstance(value, Distribution | PollPlan)
        return Opaque(str(value) if told else f"the {kind.__name__}")
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType):
        return Opaque(f"{value.__name__}()")
    if isinstance(value, int | float | str):
        return value
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return Opaque(f"a {kind.__name__}")
    return Shape(kind.__name__, {str(name): tree(one, deeper) for name, one in held.items()})


def state_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return an actor's attributes as trees, in their order, what was given to it last.

    Its table of handlers, which says nothing, is left out.
    """
    found = {name: tree(value) for name, value in attributes.items() if name != "handlers"}
    given = [name for name, one in found.items() if name in _GIVEN or isinstance(one, Opaque)]
    for name in given:
        found[name] = found.pop(name)
    return found


# In words


def text(value: Any, limit_chars: int) -> str:
    """Return a tree in one line of at most so many characters; a cut one ends with an ellipsis."""
    found, size = [], 0
    for piece in _pieces(value):
        found.append(piece)
        size += len(piece)
        if size > limit_chars:
            return "".join(found)[: limit_chars - 1] + "…"
    return "".join(found)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Opaque):
        yield f"<{value.words}>"
    elif isinstance(value, Shape):
        yield from _fields(value.name, value.fields)
    elif isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        yield from _fields(type(value).__name__, fields)
    elif isinstance(value, dict):
        yield from _joined("{", ((f"{_name(key)}: ", one) for key, one in value.items()), "}")
    elif isinstance(value, list | tuple):
        yield from _joined("[", (("", one) for one in value), "]")
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, str):
        begin = value[:TEXT_LIMIT_CHARS].encode(errors="replace").decode()
        return msgspec.json.encode(short(begin)).decode()
    if value is None or isinstance(value, bool):
        return msgspec.json.encode(value).decode()
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return value.__name__ if isinstance(value, type) else str(value)


def _name(key: Any) -> str:
    if isinstance(key, tuple):
        return "/".join(map(_name, key))
    return short(key) if isinstance(key, str) else _scalar(key)


def _fields(name: str, fields: Mapping[str, Any]) -> Iterator[str]:
    told = ((key, one) for key, one in fields.items() if one is not None and one != "")
    yield name
    yield from _joined("(", ((f"{key}=", one) for key, one in told), ")")


def _joined(opening: str, parts: Iterator[tuple[str, Any]], closing: str) -> Iterator[str]:
    yield opening
    for number, (head, value) in enumerate(parts):
        yield f", {head}" if number else head
        yield from _pieces(value)
    yield closing


# What differs


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return what became another, in the order of `after`; what is gone comes last."""
    found: list[Change] = []
    for change in _of_fields("", before, after):
        found.append(change)
        if len(found) == CHANGES_LIMIT:
            break
    return found


def _of_fields(path: str, before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[Change]:
    for key, new in after.items():
        old = before.get(key, _SAME)
        if old is new:
            continue
        if old is _SAME:
            yield Change(_at(path, key), None, new, is_new=True)
        else:
            yield from _between(path, key, old, new)
    for key, old in before.items():
        if key not in after:
            yield Change(_at(path, key), old, None, is_gone=True)


def _at(path: str, key: Any) -> str:
    return f"{path}.{_name(key)}" if path else _name(key)


def _between(path: str, key: Any, old: Any, new: Any) -> Iterator[Change]:
    if type(old) is type(new):
        if isinstance(old, dict):
            yield from _of_fields(_at(path, key), old, new)
            return
        if isinstance(old, Shape) and old.name == new.name:
            yield from _of_fields(_at(path, key), old.fields, new.fields)
            return
        if _equal(old, new):
            return
        if isinstance(old, msgspec.Struct) and not isinstance(old, Shape | Opaque):
            yield from _of_fields(_at(path, key), _table(old), _table(new))
            return
    yield Change(_at(path, key), old, new)


def _equal(old: Any, new: Any) -> bool:
    try:
        return bool(old == new)
    except Exception:  # noqa: BLE001  a user's class may compare as it likes
        return False


def _table(value: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}
