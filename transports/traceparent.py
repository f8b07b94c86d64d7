"""W3C Trace Context's `traceparent`: which trace of a distributed tracer something belongs to.

    00-<trace id: 32 hex digits>-<parent id: 16 hex digits>-<flags: 2 hex digits>

We carry it and never interpret it: hops don't put ids of their own in it. What is not of this very
form is dropped where it comes in and counts as none, which is the empty text. The specification:
https://www.w3.org/TR/trace-context/
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

NONE = ""
SAMPLED = "01"  # whoever asks for a trace wants it kept
REMEMBERED = 1_024  # texts whose form is known; a run's is looked at a dozen times
_FORM = re.compile("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_LENGTH_CHARS = 55
_TRACE, _PARENT = slice(3, 35), slice(36, 52)


def accepted(value: Any) -> str:
    """Return a traceparent as it is, and nothing else: "" for what has not W3C's form."""
    if isinstance(value, str) and len(value) == _LENGTH_CHARS and _has_form(value):
        return value
    return NONE


@lru_cache(REMEMBERED)
def _has_form(text: str) -> bool:
    return _FORM.fullmatch(text) is not None


def trace_of(traceparent: str) -> str:
    """Return the trace's id, 32 hex digits; "" without one."""
    return traceparent[_TRACE]


def parent_of(traceparent: str) -> str:
    """Return the id of the span that began it, 16 hex digits; "" without one."""
    return traceparent[_PARENT]


def made(chance: Callable[[], float]) -> str:
    """Return a new traceparent, from six uniform numbers of [0, 1)."""
    words = [int(chance() * (1 << 32)) for _ in range(6)]
    words[0] = words[0] or 1  # no id may be all zeros
    words[4] = words[4] or 1
    digits = "".join(f"{word:08x}" for word in words)
    return f"00-{digits[:32]}-{digits[32:]}-{SAMPLED}"
