"""Whether an agent's answer fits the JSON Schema that its script gave.

The library is part of the extra [graphs] and is loaded when the first schema is met. Nothing is
fetched: a `$ref` to another document is an error. Patterns are matched in linear time, so that no
answer can hold the engine up.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec

PROBLEM_LIMIT_CHARS = 500  # what a model is told of its mistake; more would cost more than it helps
PART_LIMIT_CHARS = 120  # of the place and of the value in it, so that there is room for the reason
MASK = "\0"  # stands for the value in what the library says, where the reason comes behind it
KNOWN_LIMIT = 64  # compiled schemas; a Graph has a handful
NEEDS_EXTRA = "a schema can't be checked: pip install 'pullcord[graphs]'"

_encode = msgspec.json.Encoder(order="sorted").encode


class SchemaError(ValueError):
    """A script's schema is none, or refers to what is not in it: one sentence."""


def read_answer(schema: Any, answer: Any) -> tuple[Any, str | None]:
    """Return an answer as its script gets it, and what is wrong with it, None if it fits.

    A text in which the schema's value stands as JSON is taken for that value. SchemaError if the
    schema can't be used.
    """
    problem = problem_of(schema, answer)
    if problem is None or not isinstance(answer, str):
        return answer, problem
    try:
        value = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return answer, problem
    return value, problem_of(schema, value)


def problem_of(schema: Any, value: Any) -> str | None:
    """Return what is wrong with a value by its schema, in a sentence; None if it fits."""
    validator = _validator(_encode(schema))
    error = next(validator.iter_errors(value), None)
    if error is None:
        return None
    place = shortened("".join(f"[{part!r}]" for part in error.instance_path))
    text = unmasked(error.message, error.instance)
    return shortened(f"{place}: {text}" if place else text, PROBLEM_LIMIT_CHARS)


def unmasked(words: str, value: Any) -> str:
    """Return what the library says of a value, with as much of the value as one can read."""
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return words.replace(MASK, shortened(shown))


def shortened(text: str, limit_chars: int = PART_LIMIT_CHARS) -> str:
    """Return a text with its middle left out if it is too long: both ends say what it is."""
    over = len(text) - limit_chars
    if over <= 0:
        return text
    at = limit_chars * 2 // 3
    return f"{text[:at]}…{text[at + over + 1 :]}"


@lru_cache(maxsize=KNOWN_LIMIT)
def _validator(schema: bytes) -> Any:
    try:
        from jsonschema_rs import RegexOptions, validator_for  # noqa: PLC0415  an extra
    except ImportError:
        raise SchemaError(NEEDS_EXTRA) from None
    try:
        return validator_for(
            msgspec.json.decode(schema), offline=True, pattern_options=RegexOptions(), mask=MASK
        )
    except Exception as error:  # noqa: BLE001  its errors have no common base but this
        first = unmasked(str(error).partition("\n")[0], getattr(error, "instance", None))
        raise SchemaError(f"the schema can't be used: {first}"[:PROBLEM_LIMIT_CHARS]) from None
