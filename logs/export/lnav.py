"""The definition by which lnav (https://lnav.org) reads our logs: `lnav -i pullcord.lnav.json`."""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "pullcord_log"
SCHEMA: Final = "https://lnav.org/schemas/format-v1.schema.json"
SAMPLE: Final = '{"kind":"timer","n":8,"t":5000000,"actor":"relay","cause":2,"timer":"poll"}'
# What can stand in a line behind number and actor; each kind has some of it.
SHOWN: Final = (
    ("envelope/source", " "),
    ("envelope/target", " -> "),
    ("envelope/body/type", "  "),
    ("envelope/body/status", " "),
    ("timer", " "),
    ("event", " "),
    ("fields/run", " run="),
    ("fields/status", " status="),
    ("fault", " by "),
    ("act", " "),
    ("why", ": "),
    ("outcome", " "),
)
KINDS: Final[dict[str, str]] = {
    "kind": "string",
    "n": "integer",
    "actor": "string",
    "cause": "integer",
    "boot": "integer",
    "id": "integer",
    "timer": "string",
    "event": "string",
    "fields": "json",
    "fields/run": "string",
    "fields/status": "string",
    "fault": "string",
    "act": "string",
    "why": "string",
    "outcome": "string",
    "envelope/id": "integer",
    "envelope/source": "string",
    "envelope/target": "string",
    "envelope/reply_to": "integer",
    "envelope/cause": "integer",
    "envelope/body": "json",
    "envelope/body/type": "string",
    "envelope/body/status": "string",
}
IDENTIFIERS: Final = ("kind", "actor", "event", "envelope/body/type", "fields/run")


def definition() -> dict[str, Any]:
    """Return the definition, as JSON has it."""
    line: list[Any] = [
        {"field": "__timestamp__", "timestamp-format": "%H:%M:%S.%f"},
        " ",
        {"field": "n", "min-width": 5, "align": "right"},
        " ",
        {"field": "actor", "min-width": 8},
        " ",
        {"field": "kind", "min-width": 10},
    ]
    line += [{"field": field, "prefix": prefix, "default-value": ""} for field, prefix in SHOWN]
    return {
        "$schema": SCHEMA,
        NAME: {
            "title": "pullcord's log",
            "description": "A record a line: what actors received, said and lost.",
            "json": True,
            "hide-extra": True,
            "file-pattern": r".*\.jsonl$",
            "timestamp-field": "t",
            "timestamp-divisor": 1_000_000,
            "level-field": "kind",
            "level": {
                "error": "^(drop|fault)$",
                "warning": "^(late|unanswered|undone)$",
                "debug": "^(timer|send)$",
            },
            "opid-field": "actor",
            "line-format": line,
            "value": {
                name: {"kind": kind, "hidden": True}
                | ({"identifier": True} if name in IDENTIFIERS else {})
                for name, kind in KINDS.items()
            },
            "sample": [{"line": SAMPLE}],
        },
    }
