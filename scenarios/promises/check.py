"""Every promise of an actor, tried; the broken ones in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from actors.actor import Place
from actors.config import decode_hook
from actors.errors import SimulationError
from scenarios.promises import common, engine, people, relay, server
from scenarios.promises.stage import Finding, Promise, Subject
from scenarios.spec import Kind

SHOWN_LIMIT: Final = 3  # findings of one promise; the others are the same mistake again
OF_KIND: Final[Mapping[Kind, tuple[Promise, ...]]] = {
    "server": server.PROMISES,
    "relay": relay.PROMISES,
    "engine": engine.PROMISES,
    "agent": people.AGENT,
    "owner": people.OWNER,
}


def broken_promises(
    kind: Kind, actor_class: Callable[[Any, Place], Any], config: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Try a class in the part of `kind`, and return what it promises and does not keep.

    `config` is what its table in a scenario would have; msgspec.ValidationError says what is wrong
    with it. A warning is a promise that may be broken for a good reason.
    """
    config_class: Any = getattr(actor_class, "Config", None)
    if config_class is None:
        return [Finding("It has a Config", f"{actor_class!r} has none")]
    read = msgspec.convert(dict(config or {}), config_class, dec_hook=decode_hook)
    subject = Subject(kind, actor_class, read)
    found = [finding for promise in common.SHAPE for finding in _tried(promise, subject)]
    if any(finding.level == "error" for finding in found):
        return found  # it would fail every other promise too, in less clear words
    for promise in (*common.COMMON, *OF_KIND[kind]):
        found += _tried(promise, subject)
    return found


def _tried(promise: Promise, subject: Subject) -> Iterator[Finding]:
    """Try one promise; an exception in a turn breaks it too."""
    seen = promise.trial(subject)
    try:
        for text in islice(seen, SHOWN_LIMIT):
            yield Finding(promise.words, text, promise.level)
    except SimulationError as error:
        cause = "" if error.__cause__ is None else f": {error.__cause__!r}"
        yield Finding(promise.words, f"{error}{cause}")
