"""What can go wrong between a fleet engine and a model, and whether to ask again is worth while.

Nobody here asks again: a Graph's own `retry` does. No sentence holds a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

FailureCode = Literal[
    "cut_short",  # the model stopped at its limit of tokens
    "disconnected",  # the stream broke off
    "failed",  # a command ended with an error
    "malformed",  # what came is not what the protocol says
    "rate_limited",  # too many questions, or no room
    "refused",  # the server won't: a key, a name or a request is wrong
    "server_error",  # the server broke
    "timeout",  # nothing came in time
    "too_large",  # more came than anybody asks for
    "unreachable",  # no connection
    "unsupported",  # this backend can't do what the agent needs
]
DETAIL_LIMIT_CHARS = 300  # of what a server says of its error
OVERLOADED = (429, 503, 529)
WORTH_ASKING_AGAIN = (408, 409, 425)
_SECONDS = re.compile(r"\d{1,6}(?:\.\d+)?")
_SPACE = re.compile(r"\s+")
HIDDEN = "[key]"


class BackendError(Exception):
    """A model has no answer: the kind of failure, one sentence, and whether to ask again."""

    def __init__(self, code: FailureCode, sentence: str, *, retryable: bool) -> None:
        self.code: FailureCode = code
        self.retryable = retryable
        super().__init__(f"{code}: {sentence}")


class Detail(msgspec.Struct, frozen=True):
    """What a server says of an error: its words, and the kind that it names."""

    text: str = ""
    kind: str = ""


def read_detail(body: bytes) -> Detail:
    """Return what an error's body says, as far as it says anything."""
    try:
        decoded: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Detail(body.decode(errors="replace"))
    return detail_of(decoded)


def detail_of(decoded: Any) -> Detail:
    """Return the same of a body that was JSON: `error` is an object or a text in most."""
    error = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    if not isinstance(error, dict):
        return Detail("" if error is None else str(error))
    kind = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
    return Detail(str(error.get("message") or ""), str(kind or ""))


def of_status(status: int, detail: Detail, retry_after: str | None = None) -> BackendError:
    """Return the failure that an HTTP status other than 200 stands for."""
    words = _SPACE.sub(" ", detail.text).strip()[:DETAIL_LIMIT_CHARS]
    said = f"{status}: {words}" if words else str(status)
    if "insufficient_quota" in detail.kind:
        return BackendError("refused", f"the account has no credit left ({said})", retryable=False)
    if status in OVERLOADED:
        wait = ""
        if retry_after is not None and _SECONDS.fullmatch(retry_after.strip()):
            wait = f"; it asks to wait {retry_after.strip()} s"
        return BackendError("rate_limited", f"the model server is busy ({said}){wait}",
                            retryable=True)  # fmt: skip
    if status >= 500:
        return BackendError("server_error", f"the model server failed ({said})", retryable=True)
    if 300 <= status < 400:
        sentence = f"the model server sends us elsewhere ({status}): correct the base URL"
        return BackendError("refused", sentence, retryable=False)
    if status in (401, 403):
        sentence = f"the model server does not accept the key ({said})"
        return BackendError("refused", sentence, retryable=False)
    if status == 404:
        sentence = f"the model server knows no such model or path ({said}): see the base URL, too"
        return BackendError("refused", sentence, retryable=False)
    retryable = status in WORTH_ASKING_AGAIN
    return BackendError("refused", f"the model server refuses ({said})", retryable=retryable)


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret in it hidden: a server may say back what it was told."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    return text
