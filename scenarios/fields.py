"""The keys of a table, as its struct declares them: what `names` prints and `schema` checks.

A key's meaning stands in its annotation, right at the field:

    poll_us: Annotated[Duration, "the time between two polls"] = msgspec.field(name="poll", ...)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from actors.agent import Agent
from actors.chance import Counts, Distribution, Durations, Numbers, Sizes
from actors.polls import PollPlan
from scenarios.problems import listed
from scenarios.spec import FAULTS, WorkloadTable
from transports.units import Duration, Offset, Size

_WORDS: Mapping[Any, str] = {
    Duration: "duration",
    Offset: "duration, + or -",
    Size: "size",
    Durations: "duration or distribution",
    Sizes: "size or distribution",
    Numbers: "number or distribution",
    Counts: "whole number or distribution",
    PollPlan: "poll plan",
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    dict: "table",
    Any: "anything",
}


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key: `kind` is its type without annotations, `limits` the constraints on it.

    `default` is the value that it has where the file says nothing; None also where it is required.
    """

    name: str
    kind: Any
    limits: tuple[msgspec.Meta, ...] = ()
    required: bool = False
    default: Any = None
    meaning: str = ""


def keys_of(table: type[msgspec.Struct]) -> tuple[Key, ...]:
    """Return a table's keys in the order of its struct."""
    return tuple(_key(field) for field in msgspec.structs.fields(table))


def workload_keys() -> tuple[Key, ...]:
    """Return the keys of [workload], which are the agent's own but for their meaning."""
    theirs = {key.name: key for key in keys_of(Agent.Config)}
    return tuple(
        msgspec.structs.replace(theirs[key.name], meaning=key.meaning)
        for key in keys_of(WorkloadTable)
    )


def fault_kind() -> Key:
    """Return the key of [[fault]] that says which fault it is."""
    kinds = Literal.__getitem__(tuple(FAULTS))  # made here, so that a new fault is in it
    return Key(name="kind", kind=kinds, required=True, meaning="what goes wrong")


def _key(field: msgspec.structs.FieldInfo) -> Key:
    kind, annotations = bare(field.type)
    default = field.default
    if default is msgspec.NODEFAULT:
        factory = field.default_factory
        default = None if factory is msgspec.NODEFAULT else factory()
    return Key(
        name=field.encode_name,
        kind=kind,
        limits=tuple(one for one in annotations if isinstance(one, msgspec.Meta)),
        required=field.required,
        default=default,
        meaning=next((one for one in annotations if isinstance(one, str)), ""),
    )


def bare(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without its annotations, and these."""
    if get_origin(kind) is not Annotated:
        return kind, ()
    inner, *annotations = get_args(kind)
    return inner, tuple(annotations)


def members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union but for None; of any other type itself."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(one for one in get_args(kind) if one is not NoneType)
    return (kind,)


def type_words(kind: Any, limits: tuple[msgspec.Meta, ...] = ()) -> str:
    """Return what a key takes in a few words: "duration", "whole number, 1 to 10000"."""
    if len(members(kind)) > 1 or members(kind)[0] is not kind:
        return " or ".join(type_words(one, limits) for one in members(kind))
    inner, annotations = bare(kind)
    limits = (*limits, *(one for one in annotations if isinstance(one, msgspec.Meta)))
    origin = get_origin(inner) or inner
    if origin is Literal:
        return listed(f'"{choice}"' for choice in get_args(inner))
    if origin is tuple:
        return f"list of {_plural(type_words(get_args(inner)[0]))}"
    return _WORDS[origin] + _range_words(limits)


def _plural(words: str) -> str:
    if words.startswith("list of "):
        return words.replace("list", "lists", 1)
    noun, comma, limits = words.partition(",")
    return f"{noun}s{comma}{limits}"


def _range_words(limits: tuple[msgspec.Meta, ...]) -> str:
    for limit in limits:
        if limit.ge is not None:
            return f", {limit.ge} or more" if limit.le is None else f", {limit.ge} to {limit.le}"
    return ""


def toml_value(value: Any) -> str:
    """Return a key's default as TOML writes it; "" for None and for what is empty."""
    if value is None or (isinstance(value, str | tuple | dict) and not value):
        return ""
    if isinstance(value, Numbers | Counts) and value.constant is not None:
        return str(value)
    if isinstance(value, Duration | Offset | Size | Distribution | PollPlan):
        return f'"{value}"'
    return msgspec.json.encode(value).decode()
