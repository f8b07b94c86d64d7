"""Scenario files as text: plain data written as TOML, the way a person would lay it out.

Parsers of TOML are everywhere, writers that need no document to begin with are not; what a scenario
file may hold is little.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_of(data: Mapping[str, Any]) -> str:
    """Return data as TOML that reads as the same data.

    Keys without a table come first, then each table below its header. Keys whose value is None are
    left out: TOML has nothing for them. TypeError for what is no plain data.
    """
    return "\n".join(_table(data, ())) + "\n"


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in data.items() if _has_header(value)}
    yield from _pairs(data, tables)
    for key, value in tables.items():
        below = (*path, key)
        name = ".".join(map(_key, below))
        if isinstance(value, list):
            for one in value:
                yield f"\n[[{name}]]"
                yield from _pairs(one, {})
        else:
            # A table that has nothing but tables needs no header of its own.
            if not value or any(one is not None and not _has_header(one) for one in value.values()):
                yield f"\n[{name}]"
            yield from _table(value, below)


def _pairs(data: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key not in tables and value is not None:
            yield f"{_key(key)} = {_value(value)}"


def _has_header(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) for one in value)
    return isinstance(value, dict)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        inside = (f"{_key(key)} = {_value(one)}" for key, one in value.items() if one is not None)
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    raise TypeError(f"TOML has no {type(value).__name__}")
