"""What records are looked for: the little language of `--where`.

    actor=relay*              a glob; several are parted by |, as in kind=drop|late
    run=32128a12              the beginning or the end of a run's id; 3212…000000000001 as shown
    trace=4bf92f35            the same of a trace's id, or a whole traceparent
    t>=30s                    a time, also n>100
    message=GraphRun[status=completed]    a message, delivered, sent, late or lost
    event=run.*               an event
    status!=completed         any field: of the record, its message's body or its event's fields
    body.completion.status=failed         a field within others

A mistake of which nothing would ever come is found at once: a kind that there is not, a name that
nearly is one of ours. Names that are like none of ours may be a user's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from actors.events import EVENTS
from logs.record import KINDS, Carried, EventRecord, Record, type_of
from logs.runs import Runs
from logs.words import kind_of
from scenarios.matchers import MESSAGES, PARTS, MetricError, parse_matcher
from scenarios.problems import Problem, ScenarioError, listed, quote, suggest
from transports.envelope import Envelope
from transports.traceparent import trace_of
from transports.units import parse_duration

FLAG = "--where"
NUMBERED = tuple(kind for kind in KINDS if kind not in ("header", "end"))
KEYS = ("actor", "kind", "run", "trace", "event", "message", "t", "n", "cause")

Test = Callable[[Record], bool]

_EXPRESSION = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*(!=|>=|<=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_MESSAGE = re.compile(r"([\w*?.-]+)\s*(?:\[([^\]]*)\])?")
_NEXT_FILTER = re.compile(r",\s*(?=[A-Za-z_][\w.]*\s*=)")  # a value may have commas too
_EXAMPLES = "write actor=relay, kind=drop, t>=30s or message=GraphRun[status=completed]"
_FREE = ("body", "fields", "envelope")  # what stands behind these may be a user's own
_ORDER: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}


class Filter:
    """Every expression of one command: a record is wanted if all of them hold for it."""

    def __init__(
        self,
        tests: Sequence[Test],
        runs_wanted: Sequence[tuple[str, bool]] = (),
        traces_wanted: Sequence[tuple[str, bool]] = (),
    ) -> None:
        self._tests = tests
        self._runs = runs_wanted
        self._traces = traces_wanted

    @property
    def needs_runs(self) -> bool:
        """Whether it asks which runs a record concerns."""
        return bool(self._runs or self._traces)

    def accepts(self, record: Record, runs: Runs | None = None) -> bool:
        """Whether a record is wanted; `runs` must be given where they are needed."""
        if not all(test(record) for test in self._tests):
            return False
        if not self.needs_runs or runs is None:
            return True
        concerned = runs.of(record)
        return all(
            any(is_run(run, text) for run in concerned) is wanted for text, wanted in self._runs
        ) and (not self._traces or self._is_traced(record, [*map(runs.traceparent, concerned)]))

    def _is_traced(self, record: Record, found: list[str]) -> bool:
        """Whether its runs' traces and its own message's are those that are wanted."""
        if isinstance(record, Carried):
            found.append(record.envelope.traceparent)
        return all(
            any(one and (one == text or is_run(trace_of(one), text)) for one in found) is wanted
            for text, wanted in self._traces
        )


def is_run(run: str, text: str) -> bool:
    """Whether a run is meant by a text: its id, the beginning or end of it, or a glob."""
    if "…" in text or "*" in text or "?" in text:
        return fnmatchcase(run, text.replace("…", "*"))
    return run.startswith(text) or run.endswith(text)


def parse_where(
    expressions: Sequence[str], *, begin: str | None = None, end: str | None = None
) -> Filter:
    """Read the expressions; ScenarioError with every mistake in them.

    `begin` and `end` bound the records' times, both inclusive: "30s".
    """
    tests: list[Test] = []
    runs: list[tuple[str, bool]] = []
    traces: list[tuple[str, bool]] = []
    problems: list[Problem] = []
    for flag, sign, bound in (("--from", ">=", begin), ("--to", "<=", end)):
        if bound is not None:
            try:
                tests.append(_test("t", sign, bound))
            except MetricError as error:
                problems.append(Problem(path=flag, message=str(error), cure=error.cure))
    for text in expressions:
        try:
            key, sign, value = _parts(text)
            if key in ("run", "trace"):
                wanted = runs if key == "run" else traces
                wanted.append((_equality(key, sign, value), sign != "!="))
            else:
                tests.append(_test(key, sign, value))
        except MetricError as error:
            problems.append(Problem(path=f"{FLAG} {text}", message=str(error), cure=error.cure))
    if problems:
        raise ScenarioError(problems)
    return Filter(tests, runs, traces)


def _parts(text: str) -> tuple[str, str, str]:
    found = _EXPRESSION.fullmatch(text)
    if found is None:
        raise MetricError("this is no condition", _EXAMPLES)
    key, sign, value = found.groups()
    if not value:
        raise MetricError(f"{key} is compared with nothing", _EXAMPLES)
    return key, "=" if sign == "==" else sign, value


def _equality(key: str, sign: str, value: str) -> str:
    if sign not in ("=", "!="):
        raise MetricError(f"{key} has no order", f"write {key}={value} or {key}!={value}")
    return value


def _test(key: str, sign: str, value: str) -> Test:
    """Return the test of one expression; MetricError if nothing would ever pass it."""
    if key == "t":
        return _number_test(lambda record: record.t, sign, _time_us(value))
    if key in ("n", "cause"):
        return _number_test(lambda record: getattr(record, key), sign, _whole(key, value))
    if key == "message":
        test = _any([_message_test(one) for one in _alternatives(_equality(key, sign, value))])
    elif key in ("actor", "kind", "event"):
        globs = _alternatives(_equality(key, sign, value))
        for glob in globs:
            _check_name(key, glob)
        test = _name_test(key, globs)
    else:
        _check_field(key)
        if sign in _ORDER and _number_in(value) is None:
            raise MetricError(f"{quote(value)} is no number to compare with", f"write {key}>100")
        return _field_test(key.split("."), sign, value)
    return test if sign == "=" else lambda record: not test(record)


def _any(tests: Sequence[Test]) -> Test:
    return lambda record: any(test(record) for test in tests)


def _alternatives(value: str) -> list[str]:
    """Part a value at |, but not within brackets."""
    return [one.strip() for one in re.split(r"\|(?![^\[]*\])", value)]


def _time_us(value: str) -> int:
    try:
        return parse_duration(value)
    except ValueError as error:
        sentence, _, cure = str(error).partition(": ")
        raise MetricError(sentence, cure or "write t>=30s") from None


def _whole(key: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise MetricError(f"{key} is a whole number, not {quote(value)}", f"write {key}>100")
    return int(value)


def _number_test(read: Callable[[Record], int], sign: str, wanted: int) -> Test:
    if sign == "=":
        return lambda record: read(record) == wanted
    if sign == "!=":
        return lambda record: read(record) != wanted
    order = _ORDER[sign]
    return lambda record: order(read(record), wanted)


# Names


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _near(word: str, names: Sequence[str], what: str, strict: bool = False) -> None:
    """Refuse a word that nearly is one of the names; with `strict` any that is none of them."""
    if word in names or _is_glob(word):
        return
    near = suggest(word, names)
    if near is not None:
        cure = f"did you mean {quote(near)}?"
        raise MetricError(f"no {what} is called {quote(word)}", cure)
    if strict:
        raise MetricError(
            f"no {what} is called {quote(word)}", f"there are {listed(names, last='and')}"
        )


def _check_name(key: str, glob: str) -> None:
    if key == "kind":
        _near(glob, NUMBERED, "kind", strict=True)
    elif key == "event" and glob in MESSAGES:
        raise MetricError(f"{glob} is a message", f"write message={glob}")
    elif key == "event":
        _near(glob, list(EVENTS), "event")


def _name_test(key: str, globs: Sequence[str]) -> Test:
    def test(record: Record) -> bool:
        if key == "event":
            if not isinstance(record, EventRecord):
                return False
            name = record.event
        else:
            name = record.actor if key == "actor" else kind_of(record)
        return any(fnmatchcase(name, glob) for glob in globs)

    return test


def _message_test(text: str) -> Test:
    found = _MESSAGE.fullmatch(text)
    if found is None:
        raise MetricError(
            f"{quote(text)} is no message", "write message=GraphRun[status=completed]"
        )
    glob, filters = found.groups()
    if glob in MESSAGES and "." not in (filters or "").partition("=")[0]:
        if not _is_glob(filters or ""):
            parse_matcher(text)
    elif glob in EVENTS:
        raise MetricError(f"{glob} is an event", f"write event={text}")
    else:
        _near(glob, list(MESSAGES), "message")
    pairs = [(path.split("."), value) for path, value in _filters(filters)]

    def test(record: Record) -> bool:
        if not isinstance(record, Carried):
            return False
        body = record.envelope.body
        return fnmatchcase(type_of(body), glob) and all(
            any(_equals(one, value) for one in _values(body, path)) for path, value in pairs
        )

    return test


def _filters(text: str | None) -> Iterator[tuple[str, str]]:
    for pair in () if text is None else _NEXT_FILTER.split(text):
        key, equals, value = pair.partition("=")
        if not equals:
            raise MetricError(f"{quote(pair.strip())} is no filter", "write [status=completed]")
        yield key.strip(), value.strip()


# Fields


def _known_fields() -> list[str]:
    """Every name that a field of a record, an envelope, a message or an event of ours has."""
    names = dict.fromkeys([*KEYS, *_FREE])
    kinds: tuple[type[msgspec.Struct], ...] = (
        *KINDS.values(),
        Envelope,
        *MESSAGES.values(),
        *PARTS,
    )
    for kind in kinds:
        names.update(dict.fromkeys(kind.__struct_fields__))
    for event in EVENTS.values():
        names.update(dict.fromkeys(event.fields))
    return list(names)


def _check_field(key: str) -> None:
    head, _, rest = key.partition(".")
    if head in _FREE and rest:
        return
    names = _known_fields()
    if head not in names:
        _near(head, [*KEYS, *names], "field")


def _field_test(path: list[str], sign: str, value: str) -> Test:
    def test(record: Record) -> bool:
        found = list(_of_record(record, path))
        if sign == "=":
            return any(_equals(one, value) for one in found)
        if sign == "!=":
            return bool(found) and not any(_equals(one, value) for one in found)
        return any(_ordered(one, sign, value) for one in found)

    return test


def _of_record(record: Record, path: list[str]) -> Iterator[Any]:
    """Yield what a path means in a record: of itself, its envelope, its body, its event."""
    head, rest = path[0], path[1:]
    if head in record.__struct_fields__:
        yield from _values(getattr(record, head), rest)
        return
    if isinstance(record, EventRecord):
        yield from _values(record.fields, path)
    elif isinstance(record, Carried):
        envelope = record.envelope
        if head == "body":
            yield from _values(envelope.body, rest)
        elif head in envelope.__struct_fields__:
            yield from _values(getattr(envelope, head), rest)
        else:
            yield from _values(envelope.body, path)


def _values(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield what a path leads to; through a list it leads to something in each element."""
    if isinstance(value, list):
        for one in value:
            yield from _values(one, path)
    elif not path:
        yield value
    elif isinstance(value, dict):
        if path[0] in value:
            yield from _values(value[path[0]], path[1:])
    elif isinstance(value, msgspec.Struct) and path[0] in value.__struct_fields__:
        yield from _values(getattr(value, path[0]), path[1:])


def _equals(value: Any, text: str) -> bool:
    shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if _is_glob(text) or "…" in text:
        return fnmatchcase(shown, text.replace("…", "*"))
    if shown == text:
        return True
    number = _number(value)
    return number is not None and number == _number_in(text)


def _ordered(value: Any, sign: str, text: str) -> bool:
    number, wanted = _number(value), _number_in(text)
    return number is not None and wanted is not None and _ORDER[sign](number, wanted)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number_in(text: str) -> float | None:
    """The number that a text is, a duration's in microseconds as logs have them; None for none."""
    try:
        return float(text)
    except ValueError:
        try:
            return parse_duration(text)
        except ValueError:
            return None
