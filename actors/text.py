"""The one place where text from outside is made safe and bounded."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import msgspec

from actors.messages import Completion

RESULT_LIMIT_CHARS = 100_000  # the account's bound on JSON.stringify of a completion
ERROR_LIMIT_CHARS = 2_000  # the account's bound on an error's text
DEPTH_LIMIT = 64  # deeper values are no summary for an agent, and recursion costs stack
_CERTAIN = 6  # JSON escapes a UTF-16 unit to six characters at most
_ENVELOPE_CHARS = 400  # all of a completion but its result and error, generously

_json = msgspec.json.Encoder()


def _is_plain(text: str) -> bool:
    return text.isascii() and "\0" not in text


def clean_text(text: str) -> str:
    """Return text that can be stored and sent: NUL and lone surrogates become U+FFFD."""
    if _is_plain(text):
        return text
    text = text.replace("\0", "\ufffd")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_value(value: Any, depth: int = 0) -> Any:
    """Return a JSON value with every text cleaned and non-finite numbers as null.

    ValueError if it is nested deeper than 64 levels or holds what JSON has no form for.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= DEPTH_LIMIT:
        raise ValueError(f"a result may be nested {DEPTH_LIMIT} levels deep")
    if isinstance(value, list | tuple):
        return [clean_value(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_value(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"a result can't hold a {type(value).__name__}")


def units(text: str) -> int:
    """Return JavaScript's `.length` of a text: its UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _js_number(value: float) -> msgspec.Raw:
    """Return a number as JavaScript writes it: 1200 and not 1200.0, plain from 1e-6 to 1e21."""
    if not math.isfinite(value):
        return msgspec.Raw(b"null")
    text = repr(value)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        text = f"{Decimal(text):f}".removesuffix(".0").removeprefix("-" if value == 0 else "")
    return msgspec.Raw(text.replace("e-0", "e-").encode())


def _js_value(value: Any) -> Any:
    if isinstance(value, float):
        return _js_number(value)
    if isinstance(value, list | tuple):
        return [_js_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _js_value(item) for key, item in value.items()}
    return value


def _stringified(**fields: Any) -> int:
    return units(_json.encode(fields).decode())


def completion_chars(completion: Completion) -> int:
    """Return the length of JSON.stringify of what the relay posts, in UTF-16 code units."""
    fields: dict[str, Any] = {
        "execution_id": completion.execution_id,
        "status": completion.status,
        "result": _js_value(completion.result),
        "total_tokens": completion.total_tokens,
        "reported_cost": _js_number(completion.reported_cost),
    }
    if completion.error is not None:
        fields["error"] = completion.error
    return _stringified(**fields)


def bounded(completion: Completion) -> Completion:
    """Return the completion as it may be posted: clean, and whole or without its result.

    Errors are cut. A result that JSON has no form for makes the completion a failed one.
    """
    completion = _cleaned(completion)
    error = completion.error
    if error is not None and units(error) > ERROR_LIMIT_CHARS:
        completion = msgspec.structs.replace(completion, error=cut(error, ERROR_LIMIT_CHARS))
    result = completion.result
    if result is None or (
        isinstance(result, str)
        and _CERTAIN * (2 * len(result) + ERROR_LIMIT_CHARS) + _ENVELOPE_CHARS < RESULT_LIMIT_CHARS
    ):
        return completion
    if completion_chars(completion) <= RESULT_LIMIT_CHARS:
        return completion
    return Completion(
        execution_id=completion.execution_id,
        status=completion.status,
        error=completion.error,
        result_truncated=True,
    )


def _cleaned(completion: Completion) -> Completion:
    """Return the completion with clean text, itself where nothing is to be done."""
    result, error = completion.result, completion.error
    if (result is None or (isinstance(result, str) and _is_plain(result))) and (
        error is None or _is_plain(error)
    ):
        return completion
    error = None if error is None else clean_text(error)
    try:
        result = clean_value(result)
    except ValueError as problem:
        return msgspec.structs.replace(
            completion, status="failed", result=None, error=f"result rejected: {problem}"
        )
    cleaned = msgspec.structs.replace(completion, result=result, error=error)
    return completion if cleaned == completion else cleaned


def cut(text: str, limit_chars: int) -> str:
    """Return the first `limit_chars` UTF-16 code units of a clean text, never half a character."""
    if text.isascii():
        return text[:limit_chars]
    raw = text.encode("utf-16-le")[: 2 * limit_chars]
    return raw.decode("utf-16-le", "ignore")


def slug_of(name: str) -> str:
    """Return a name's slug: lower case, words joined by hyphens."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
