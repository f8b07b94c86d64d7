"""The question of an agent with a schema, and what of its answer is the value. No I/O.

Servers take a schema of an object alone. Another one is put into an object of one member, and what
is answered is taken out again. Models that talk around their JSON are forgiven a fence.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from actors.graphs.messages import AgentAsk
from actors.text import clean_value

MEMBER = "value"
DEFINITIONS = ("$defs", "definitions", "$schema")
_FENCED = re.compile(r"\s*```[A-Za-z]*\s*\n(.*)\n\s*```\s*", re.DOTALL)


def question_of(ask: AgentAsk, *, with_schema: bool = False) -> str:
    """Return what the model is told: the prompt, and what was wrong with its last answer.

    With `with_schema` also the schema, for a model that takes it in no other way.
    """
    parts = [ask.prompt]
    if with_schema and ask.schema is not None:
        text = msgspec.json.encode(ask.schema).decode()
        parts.append(f"Answer with JSON alone, which fits this JSON Schema:\n{text}")
    if ask.problem is not None:
        parts.append(problem_words(ask.problem))
    return "\n\n".join(parts)


def problem_words(problem: str) -> str:
    """Return what a model is told of an answer that did not fit."""
    return f"Your last answer did not fit what was asked for: {problem}\nAnswer again."


def is_object(schema: Any) -> bool:
    """Whether a schema is one of an object, as servers want it."""
    return isinstance(schema, dict) and schema.get("type") == "object"


def object_schema(schema: Any) -> dict[str, Any]:
    """Return the schema that a server is given: itself, or an object with its value."""
    if is_object(schema):
        found: dict[str, Any] = schema
        return found
    outer: dict[str, Any] = {
        "type": "object",
        "properties": {MEMBER: schema},
        "required": [MEMBER],
        "additionalProperties": False,
    }
    if isinstance(schema, dict):
        # References are looked for from the top of the whole.
        outer |= {key: schema[key] for key in DEFINITIONS if key in schema}
        outer["properties"] = {
            MEMBER: {key: value for key, value in schema.items() if key not in DEFINITIONS}
        }
    return outer


def value_of(ask: AgentAsk, text: str, *, wrapped: bool) -> Any:
    """Return the value that an answer's text stands for; the text where it is none, or too deep.

    `wrapped` says that the model was given `object_schema`. Whether the value fits its schema is
    the engine's question.
    """
    if ask.schema is None:
        return text
    inner = _FENCED.fullmatch(text)
    try:
        value = clean_value(msgspec.json.decode(inner[1] if inner else text))
    except (ValueError, RecursionError):
        return text
    if wrapped and not is_object(ask.schema) and isinstance(value, dict) and [*value] == [MEMBER]:
        return value[MEMBER]
    return value
