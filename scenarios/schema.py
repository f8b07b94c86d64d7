"""The JSON Schema of a scenario file, for editors: completion, hints and early warnings.

A schema says less than `pullcord check`, which knows what refers to what; but a file that is valid
is never marked as wrong. Editors that know no conditions find an actor's keys through `anyOf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from actors.chance import FAMILIES, Counts, Durations, Numbers, Sizes
from actors.graph_engine import GraphEngine
from actors.polls import PollPlan
from scenarios.cast import BUILT_IN, BUILT_IN_USE, config_class
from scenarios.fields import Key, bare, fault_kind, keys_of, members, toml_value, workload_keys
from scenarios.names import SWEEP, names
from scenarios.overrides import TABLES, TOP
from scenarios.spec import (
    FAULTS,
    GRAPH_USE,
    KINDS,
    ActorTable,
    ExpectTable,
    Kind,
    LinkTable,
    MetricTable,
    RunTable,
    SessionTable,
    StepTable,
    TableTable,
    TopTable,
)
from transports.faults.fault import Fault
from transports.units import Duration, Offset, Size

GRAPH_ENGINE: Final = "engine-of-graphs"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_AMOUNT: Final = r"(?:[0-9]+(?:us|ms|s|m|h|d))*[0-9]+(?:\.[0-9]+)?(?:us|ms|s|m|h|d)"
_SIZE: Final = r"[0-9]+(?:\.[0-9]+)?(?:B|KB|MB|GB|KiB|MiB|GiB)"
_NUMBER: Final = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_FAMILY: Final = rf"(?:{'|'.join(FAMILIES)})\s*\([^()]*\)"
_POLLS: Final = r"never|every\s.+|backoff\s.+|wait\s.+|after\s.+|hinted(?:\selse\s.+)?"
# NAME.KEY, TABLE.NAME.KEY, and keys that only an actor of one's own has.
_OTHER_KEYS: Final = r"^(?!(?:run|workload)\.)[^.]+(?:\.[^.]+){1,2}$"


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*(?:{pattern})\s*$"}


_TYPES: Final[Mapping[Any, dict[str, Any]]] = {
    Duration: _text(_AMOUNT),
    Offset: _text(f"[+-]?{_AMOUNT}"),
    Size: _text(_SIZE),
    Durations: _text(f"{_AMOUNT}|{_FAMILY}"),
    Sizes: _text(f"{_SIZE}|{_FAMILY}"),
    Numbers: {"anyOf": [{"type": "number"}, _text(f"{_NUMBER}|{_FAMILY}")]},
    Counts: {"anyOf": [{"type": "integer"}, _text(f"{_NUMBER}|{_FAMILY}")]},
    PollPlan: _text(_POLLS),
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    Any: {},
}
_LIMITS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
}


def json_schema() -> dict[str, Any]:
    """Return the schema of a scenario file, JSON Schema 2020-12."""
    top = _table(keys_of(TopTable))
    several = {kind: _actor(kind) for kind in KINDS} | {
        "session": _table(keys_of(SessionTable)),
        "step": _table(keys_of(StepTable)),
        "link": _table(keys_of(LinkTable)),
        "fault": _fault(),
        "table": _table(keys_of(TableTable)),
        "expect": _table(keys_of(ExpectTable)),
    }
    top["properties"] |= {
        "run": _table(keys_of(RunTable)),
        "workload": _table(workload_keys()),
        **{name: _one_or_more(name) for name in several},
        "sweep": _sweep(),
        "metrics": {"type": "object", "additionalProperties": _metric()},
    }
    for title, meaning in _meanings().items():
        top["properties"][title]["description"] = meaning
    return {
        "$schema": DIALECT,
        "title": "pullcord scenario",
        "description": "What is tried, what is measured, and what must hold.",
        **top,
        "$defs": several
        | {f"built-in-{kind}": _built_in(kind) for kind in KINDS}
        | {GRAPH_ENGINE: _table((*keys_of(ActorTable), *keys_of(GraphEngine.Config)))},
    }


def _meanings() -> dict[str, str]:
    """Return what each table is for, by its name in the file."""
    tables = [one for one in names() if one.group == "keys" and one.title[0] == "["]
    titles = {section.title: section.meaning for section in tables}
    meanings = {title.strip("[]").partition(".")[0]: text for title, text in titles.items()}
    return {name: f"{text[0].upper()}{text[1:]}." for name, text in meanings.items()}


# Tables


def _table(keys: tuple[Key, ...]) -> dict[str, Any]:
    """Return an object with these keys and no other."""
    table: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: _key(key) for key in keys},
        "additionalProperties": False,
    }
    required = [key.name for key in keys if key.required]
    return table | {"required": required} if required else table


def _one_or_more(name: str) -> dict[str, Any]:
    """Return a table of $defs, or an array of it.

    The condition marks a mistake at its own key, where `anyOf` would mark the whole table; the
    `anyOf`, which everything passes, is for editors that look for keys nowhere else.
    """
    table = {"$ref": f"#/$defs/{name}"}
    several = {"type": "array", "items": table}
    condition = {"if": {"type": "array"}, "then": several, "else": table}
    return condition | {"anyOf": [several, table, {}]}


def _actor(kind: Kind) -> dict[str, Any]:
    """Return an actor's table; with a class of one's own it may have any key."""
    config = {"$ref": f"#/$defs/built-in-{kind}"}
    table: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: _key(key) for key in keys_of(ActorTable)},
        "if": {"required": ["use"], "properties": {"use": {"not": {"const": BUILT_IN_USE}}}},
        "else": config,
        "anyOf": [config, {}],
    }
    if kind == "engine":
        graphs = {"$ref": f"#/$defs/{GRAPH_ENGINE}"}
        runs_graphs = {"required": ["use"], "properties": {"use": {"const": GRAPH_USE}}}
        table["allOf"] = [{"if": runs_graphs, "then": graphs}]
        table["anyOf"] = [config, graphs, {}]
    return table


def _built_in(kind: Kind) -> dict[str, Any]:
    return _table(_actor_keys(kind))


def _actor_keys(kind: Kind) -> tuple[Key, ...]:
    return (*keys_of(ActorTable), *keys_of(config_class(BUILT_IN[kind])))


def _fault() -> dict[str, Any]:
    """Return [[fault]]: what every kind has, and what its own kind adds."""
    common = (fault_kind(), *keys_of(Fault))
    own = [key for kind in FAULTS.values() for key in keys_of(kind)]
    everything = {key.name: key for key in (*own, *common)}
    table = _table(tuple(everything.values()))
    for name, key in everything.items():
        if any(
            _type(one.kind, one.limits) != _type(key.kind, key.limits)
            for one in own
            if one.name == name
        ):
            table["properties"][name] = {"description": key.meaning}  # its type is its kind's
    table["required"] = ["kind"]
    table["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": name}}},
            "then": _table((fault_kind(), *keys_of(kind))),
        }
        for name, kind in FAULTS.items()
    ]
    return table


def _metric() -> dict[str, Any]:
    """Return [metrics.NAME]: a count, a value, or from and to."""
    forms = (["count"], ["value"], ["from", "to"])
    return _table(keys_of(MetricTable)) | {"oneOf": [{"required": form} for form in forms]}


def _sweep() -> dict[str, Any]:
    """Return [sweep]: the keys of the built-in actors have types, those of others may follow."""
    known: dict[str, tuple[Key, ...]] = {"run": keys_of(RunTable), "workload": workload_keys()}
    known |= {kind: _actor_keys(kind) for kind in KINDS}
    values = {key.name: _type(key.kind, key.limits) for key in keys_of(TopTable) if key.name in TOP}
    for table in TABLES:
        values |= {f"{table}.{key.name}": _type(key.kind, key.limits) for key in known[table]}
    lists = {
        "type": "object",
        "properties": {
            name: {"type": "array", "items": value, "minItems": 1} for name, value in values.items()
        },
        "patternProperties": {_OTHER_KEYS: {"type": "array", "minItems": 1}},
        "additionalProperties": False,
    }
    excluded = {"type": "array", "items": {"type": "object"}}
    kinds: dict[str, dict[str, Any]] = {"product": lists, "zip": lists, "exclude": excluded}
    return {
        "type": "object",
        "properties": {name: {"description": SWEEP[name][1], **kinds[name]} for name in SWEEP},
        "additionalProperties": False,
    }


# Keys


def _key(key: Key) -> dict[str, Any]:
    """Return a key's schema, with its meaning and default."""
    schema = {"description": key.meaning, **_type(key.kind, key.limits)}
    default = toml_value(key.default)
    return schema | {"default": msgspec.json.decode(default)} if default else schema


def _type(kind: Any, limits: tuple[msgspec.Meta, ...] = ()) -> dict[str, Any]:
    inner, annotations = bare(kind)
    limits = (*limits, *(one for one in annotations if isinstance(one, msgspec.Meta)))
    kinds = members(inner)
    if len(kinds) > 1:
        return {"anyOf": [_type(one, limits) for one in kinds]}
    if kinds[0] is not inner:
        return _type(kinds[0], limits)
    origin = get_origin(inner) or inner
    if origin is Literal:
        return {"enum": list(get_args(inner))}
    if origin is tuple:
        return {"type": "array", "items": _type(get_args(inner)[0])}
    bounds = {
        keyword: getattr(limit, name)
        for limit in limits
        for name, keyword in _LIMITS.items()
        if getattr(limit, name) is not None
    }
    return _TYPES[origin] | bounds
