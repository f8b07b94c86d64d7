"""What a metric looks for: an event or a message type, with filters on its fields.

    run.terminal                          an event
    GetGraphRun                           a message type
    run.cancel_asked[status=queued]       with a filter; several are parted by commas
    run.terminal.chars                    with a field, for a metric of its value

A mistake in it, of which nothing would ever come, is found when the file is loaded: an unknown
name, a field that isn't there, a status that no run has, a field that is no number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter, itemgetter
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec

from actors import messages
from actors.desktop.messages import DESKTOP_MESSAGES
from actors.events import EVENTS
from actors.graphs.messages import GRAPH_MESSAGES
from actors.messages import TERMINAL, Message
from scenarios.decode import fields_of
from scenarios.problems import listed, quote, suggest

STATUSES = ("queued", "running", *sorted(TERMINAL))

# Parts of other messages, which are never sent by themselves.
PARTS = (messages.SessionListing, messages.SessionMeta, messages.Completion, messages.Command)
MESSAGES: dict[str, type[Message]] = {
    name: kind
    for name, kind in vars(messages).items()
    if isinstance(kind, type) and issubclass(kind, Message) and kind not in (Message, *PARTS)
} | {kind.__name__: kind for kind in (*GRAPH_MESSAGES, *DESKTOP_MESSAGES)}

Key = Literal["count", "value", "from", "to"]  # the keys of a metric that have a matcher

_RUN_NUMBERS = ("tokens", "cost", "truncated", "chars", "bytes", "delivery")
_FLEET_NUMBERS = ("agents", "attempt", "delay_ms", "depth", "refused", "spent")
_EVENT_NUMBERS = frozenset((*_RUN_NUMBERS, *_FLEET_NUMBERS))
_CHOICES: dict[str, tuple[str, ...]] = {
    "status": STATUSES,
    "was": STATUSES,
    "truncated": ("true", "false"),
}


class MetricError(ValueError):
    """A metric can't be understood or measured: one sentence, a cure, and the key at fault."""

    def __init__(self, sentence: str, cure: str | None = None, key: Key = "count") -> None:
        self.cure = cure
        self.key = key
        super().__init__(sentence)


class Matcher(msgspec.Struct, frozen=True):
    """What a metric looks for: an event or a message type, with filters on its fields."""

    name: str
    filters: tuple[tuple[str, str], ...] = ()
    field: str | None = None

    @property
    def message(self) -> type[Message] | None:
        """The message type, None for an event."""
        return MESSAGES.get(self.name)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that can be filtered and read."""
        kind = self.message
        return EVENTS[self.name].fields if kind is None else kind.__struct_fields__

    @property
    def run_field(self) -> str | None:
        """The field that tells which run it belongs to, None if it belongs to none."""
        wanted = "run" if self.message is None else "command_id"
        return wanted if wanted in self.fields else None

    @property
    def run_of(self) -> Callable[[Any], str]:
        """A function from what was observed to its run."""
        assert self.run_field is not None, "a metric by run is of something that has a run"
        if self.message is None:
            return itemgetter(self.run_field)
        return attrgetter(self.run_field)

    def accepts(self, what: Any) -> bool:
        """Whether what was observed passes the filters."""
        return all(_text(read(what, field)) == text for field, text in self.filters)

    def choices(self, field: str) -> tuple[str, ...]:
        """Return the texts that a field may have; none if it may have any."""
        kinds = self._kinds(field)
        if kinds == (bool,):
            return ("true", "false")
        if len(kinds) == 1 and get_origin(kinds[0]) is Literal:
            return tuple(map(str, get_args(kinds[0])))
        return _CHOICES.get(field, ())

    def is_number(self, field: str) -> bool:
        """Whether a field has numbers; true and false are 1 and 0."""
        if self.message is None:
            return field in _EVENT_NUMBERS
        return all(kind in (bool, int, float) for kind in self._kinds(field))

    def _kinds(self, field: str) -> tuple[Any, ...]:
        """Return the types of a message's field but for None."""
        if self.message is None:
            return ()
        kind = fields_of(self.message)[field].type
        kind = getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind
        if get_origin(kind) in (Literal, dict, tuple):
            return (kind,)
        return tuple(one for one in get_args(kind) or (kind,) if one is not NoneType)


_MATCHER = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(?:\[([^\]]*)\])?\s*(?:\.(\w+))?\s*")
_NEXT_FILTER = re.compile(r",\s*(?=[A-Za-z_]\w*\s*=)")  # a filter's value may have commas too


def parse_matcher(text: str, with_field: bool = False) -> Matcher:
    """Read a matcher; with `with_field` a field's name follows it after a dot. MetricError."""
    match = _MATCHER.fullmatch(text)
    if match is None:
        raise MetricError(
            f"{quote(text)} is neither an event nor a message",
            "write run.terminal, GetGraphRun or run.terminal[status=failed]",
        )
    name, filters, field = match.groups()
    if field is None and name not in EVENTS:
        head, _, tail = name.rpartition(".")
        if head and (with_field or head in EVENTS or head in MESSAGES):
            name, field = head, tail
    if name not in EVENTS and name not in MESSAGES:
        near = suggest(name, [*EVENTS, *MESSAGES])
        raise MetricError(
            f"no event or message is called {quote(name)}",
            f"did you mean {quote(near)}?" if near else "`pullcord names` lists them",
        )
    matcher = Matcher(name, tuple(_filters(filters)), field)
    _check_fields(matcher)
    if with_field and field is None:
        fields = [one for one in matcher.fields if matcher.is_number(one)]
        cure = f"write {name}.{fields[0]}" if fields else f"no field of {name} is a number"
        raise MetricError(f"{quote(text)} names no field to read", cure)
    if not with_field and field is not None:
        raise MetricError(
            f"{quote(text)} names a field", f'count {name}, or write value = "{name}.{field}"'
        )
    return matcher


def _check_fields(matcher: Matcher) -> None:
    """Raise MetricError for fields that aren't there, and values that they never have."""
    used = [field for field, _ in matcher.filters]
    for field in [*used, matcher.field] if matcher.field is not None else used:
        if field not in matcher.fields:
            near = suggest(field, matcher.fields)
            has = listed(matcher.fields, last="and") if matcher.fields else "none"
            raise MetricError(
                f"{matcher.name} has no field {quote(field)}",
                f"did you mean {quote(near)}?" if near else f"its fields are {has}",
            )
    for field, text in matcher.filters:
        choices = matcher.choices(field)
        if choices and text not in choices:
            near = suggest(text, choices)
            raise MetricError(
                f"{matcher.name}.{field} is never {quote(text)}",
                f"did you mean {quote(near)}?" if near else f"it is {listed(choices)}",
            )
    if matcher.field is not None and not matcher.is_number(matcher.field):
        raise MetricError(
            f"{matcher.name}.{matcher.field} is no number",
            f'count it, as in count = "{matcher.name}[{matcher.field}=...]"',
        )


def _filters(text: str | None) -> Iterator[tuple[str, str]]:
    for pair in () if text is None else _NEXT_FILTER.split(text):
        key, equals, value = pair.partition("=")
        if not equals:
            text = pair.strip()
            what = f"{quote(text)} is no filter" if text else "the brackets are empty"
            raise MetricError(what, "write [status=completed], or leave the brackets out")
        yield key.strip(), value.strip()


def read(what: Any, field: str) -> Any:
    """Return a field of what was observed: an event's fields, or a message's body."""
    return what.get(field) if isinstance(what, dict) else getattr(what, field)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
