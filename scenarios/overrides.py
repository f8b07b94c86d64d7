"""Setting a key from outside the file: by --set, by a sweep, from Python.

A key is `TABLE.KEY`, `TABLE.NAME.KEY`, for an actor's table with a name `NAME.KEY`, or one of the
few at the top. `TABLE.KEY` of an array of tables means the key of each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from scenarios.places import Keys
from scenarios.problems import Problem, listed, quote, suggest
from scenarios.spec import KINDS

if sys.version_info >= (3, 15):
    import tomllib
else:
    import tomli as tomllib

TABLES = ("run", *KINDS, "workload")
ARRAYS = ("session", "step", "link", "fault")
NAMED = (*KINDS, "session", "fault")
TOP = ("profile", "repetition")
FIXED = ("sweep", "metrics", "table", "expect")
FLAG = "--set"

_FORM = 'write TABLE.KEY as in "relay.poll", or NAME.KEY for an actor\'s table with a name'


class Override(msgspec.Struct, frozen=True):
    """A key and the value that it gets."""

    key: str
    value: Any


def parse_override(text: str) -> Override:
    """Read `relay.poll=5s`: the value as TOML writes it, or else as plain text. ValueError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ValueError(f'"{text}" sets nothing: write --set relay.poll=5s')
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    return Override(key.strip(), parsed["value"] if len(parsed) == 1 else value.strip())


def apply_overrides(data: dict[str, Any], overrides: tuple[Override, ...]) -> list[Problem]:
    """Set the keys in a file's data, whose tables are copied; return what can't be set."""
    problems = []
    swept = set(_swept(data.get("sweep")))
    for override in overrides:
        key = override.key
        cure = reachable(key, data)
        if key in swept:
            message = f"{quote(key)} is swept in this file"
            cure = f'choose a cell with --cell "{key}=VALUE", or change the sweep'
            problems.append(Problem(path=FLAG, message=message, cure=cure))
        elif cure is not None:
            message = f"{quote(key)} can't be set"
            problems.append(Problem(path=FLAG, message=message, cure=cure))
        else:
            assign(data, key, override.value)
    return problems


def _swept(sweep: Any) -> Iterator[str]:
    for way in ("product", "zip"):
        axes = sweep.get(way) if isinstance(sweep, dict) else None
        yield from axes if isinstance(axes, dict) else ()


def reachable(key: str, data: dict[str, Any]) -> str | None:
    """Return None if the key names a value that a scenario can have, else the cure.

    Whether a table has the key is seen when it is decoded.
    """
    parts = key.split(".")
    head, leaf = parts[0], parts[-1]
    if len(parts) == 1:
        return None if key in TOP else _near(key, [*TOP, *TABLES, *ARRAYS])
    if head in FIXED:
        return "what is measured, judged and swept stands in the file"
    if len(parts) > 3 or not all(parts):
        return _FORM
    if head in (*TABLES, *ARRAYS):
        return _inside(head, parts[1:], data)
    if len(parts) == 2 and any(_named(data.get(kind), head) for kind in KINDS):
        return None
    heads = [*TABLES, *ARRAYS, *(name for kind in KINDS for name in _names(data.get(kind)))]
    near = suggest(head, heads)
    return _FORM if near is None else f"did you mean {quote(f'{near}.{leaf}')}?"


def _inside(head: str, rest: list[str], data: dict[str, Any]) -> str | None:
    """As `reachable`, within a table of a known name."""
    if head in ARRAYS and not data.get(head):
        return f"the file has no [[{head}]]"
    if len(rest) == 1 or (head in NAMED and _named(data.get(head), rest[0])):
        return None
    if head not in NAMED:
        return f"tables of [[{head}]] have no names: write {quote(f'{head}.{rest[-1]}')}"
    names = _names(data.get(head))
    near = suggest(rest[0], names)
    if near is not None:
        return f"did you mean {quote(f'{head}.{near}.{rest[1]}')}?"
    return f"there is no [[{head}]] with name = {quote(rest[0])}" + (
        f", but {listed(map(quote, names), last='and')}" if names else ""
    )


def _near(word: str, known: list[str]) -> str:
    near = suggest(word, known)
    if near is None:
        return _FORM
    return f"did you mean {quote(near if near in TOP else f'{near}.KEY')}?"


def _tables(data: Any) -> list[Any]:
    return data if isinstance(data, list) else [data]


def _names(data: Any) -> list[str]:
    found = (table.get("name") for table in _tables(data) if isinstance(table, dict))
    return [name for name in found if isinstance(name, str)]


def _named(data: Any, name: str) -> list[int]:
    """Return the indexes of the tables with a name; a single table has the index 0."""
    return [
        index
        for index, table in enumerate(_tables(data))
        if isinstance(table, dict) and table.get("name") == name
    ]


def assign(data: dict[str, Any], key: str, value: Any) -> list[Keys]:
    """Set a reachable key; return the places that it has in the data.

    What is inside of `data` is copied as far as it changes, so others may hold the same tables.
    """
    parts = key.split(".")
    head, leaf = parts[0], parts[-1]
    if len(parts) == 1:
        data[key] = value
        return [(key,)]
    name = parts[1] if len(parts) == 3 else None
    if head not in (*TABLES, *ARRAYS):
        head, name = next(kind for kind in KINDS if _named(data.get(kind), head)), head
    tables = data.get(head, {})
    if isinstance(tables, dict):
        data[head] = {**tables, leaf: value}
        return [(head, leaf)]
    if not isinstance(tables, list):
        return []  # whoever decodes it says that it must be a table
    indexes = range(len(tables)) if name is None else _named(tables, name)
    places: list[Keys] = []
    copied = list(tables)
    for index in indexes:
        if isinstance(copied[index], dict):
            copied[index] = {**copied[index], leaf: value}
            places.append((head, index, leaf))
    data[head] = copied
    return places
