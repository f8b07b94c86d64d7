"""Records without what people wrote and what came of it: the log of a deployment by default.

Of a message stay its type, its ids, states and numbers, which is what tells of it where and when.
What is left out is empty and not missing, so that the message can still be read as one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from logs.record import Carried, EventRecord, Record

# What holds a user's own words or a secret's hash, in whichever message it stands.
PAYLOADS = frozenset(
    {
        "answers", "arguments", "code_hash", "description", "error", "old_hash",
        "old_token", "prompt", "result", "schema", "text", "texts", "token", "token_hash", "value",
    }
)  # fmt: skip
KEPT = frozenset({"traceparent"})
WORDS_LIMIT_CHARS = 200  # of a text in an event; ids and reasons are shorter
_PLAIN = (str, int, float, bool, type(None))

_replace = msgspec.structs.replace


def slim(record: Record) -> Record:
    """Return a record without payloads."""
    if isinstance(record, Carried):
        envelope = record.envelope
        return _replace(record, envelope=_replace(envelope, body=slim_body(envelope.body)))
    if isinstance(record, EventRecord):
        fields = {
            name: _cut(value) for name, value in record.fields.items() if name not in PAYLOADS
        }
        return _replace(record, fields=fields)
    return record


def slim_body(body: Any) -> Any:
    """Return a message, or a part of one, without payloads."""
    if not isinstance(body, msgspec.Struct):
        return body
    changes = {}
    for name in _fields(type(body)):
        value = getattr(body, name)
        small = _empty(value) if name in PAYLOADS else _slim_value(value)
        if small is not value:
            changes[name] = small
    return _replace(body, **changes) if changes else body


def _slim_value(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, msgspec.Struct):
        return slim_body(value)
    if isinstance(value, tuple | list):
        return type(value)(_slim_value(one) for one in value)
    return _empty(value)


def _empty(value: Any) -> Any:
    """Return what stands for a payload: nothing, of the same kind where a field needs that."""
    if isinstance(value, str):
        return ""
    if isinstance(value, dict):
        return {}
    return type(value)() if isinstance(value, tuple | list) else None


def _cut(value: Any) -> Any:
    return value[:WORDS_LIMIT_CHARS] if isinstance(value, str) else value


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in KEPT)
