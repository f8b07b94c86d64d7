"""How turns of the simulators begin with the trace of their input, once anything is traced.

An experiment without traces, as most are, pays nothing for them in its loop: only when an actor
names its first trace are handlers wrapped. What was sent before has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from actors.actor import Handler
from transports.envelope import Envelope

OnTimer = Callable[[Any, str], None]


def begin_tracing(contexts: Iterable[Any]) -> None:
    """Let every turn of these contexts' actors begin with the trace of its input, or none."""
    for context in contexts:
        context.on_timer = _untraced(context.on_timer)
        for kind, handler in context.handlers.items():
            context.handlers[kind] = _traced(handler)


def traced_post(post: Callable[[Envelope[Any]], Any], traceparent: str) -> Callable[[Any], Any]:
    """Return what posts messages as ones of a trace."""
    return lambda envelope: post(replace(envelope, traceparent=traceparent))


def _traced(handler: Handler) -> Handler:
    """Let a handler's turn belong to its message's trace, and its answer too."""

    def take(context: Any, envelope: Envelope[Any]) -> None:
        context.traceparent = envelope.traceparent
        answer = handler(context, envelope)
        if answer is not None:
            context.reply(envelope, answer)  # a reply carries its question's

    return take


def _untraced(on_timer: OnTimer) -> OnTimer:
    """Let a timer's turn begin without the trace of the turn before."""

    def take(context: Any, timer: str) -> None:
        context.traceparent = ""
        on_timer(context, timer)

    return take
