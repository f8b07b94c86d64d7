"""What is measured: counts, values and times, from what the host observes.

Messages are observed when they are delivered; a count of messages has the dropped ones too, since
somebody sent them. An answer that comes after its time-out was dropped by nobody and reaches
nobody: it is not observed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Protocol

from actors.actor import Handler
from actors.messages import TERMINAL, GraphRun, Message
from actors.simulator import Simulator
from scenarios.matchers import Key, Matcher, MetricError, parse_matcher, read
from scenarios.spec import MetricTable
from transports.envelope import Envelope

START = "start"  # the beginning of a replication, as a metric's `from`
Hit = Callable[[int, Any], None]  # (time in us, what was matched: an event's fields or a body)
Wrapper = Callable[[Handler], Handler]


class Metric(Protocol):
    """One metric at work in a cell."""

    def attach(self, taps: Taps) -> None:
        """Begin to observe, before the first replication."""

    def begin(self) -> None:
        """Begin a replication."""

    def rows(self) -> list[float]:
        """Return the replication's rows."""


class Taps:
    """Ties metrics to what a simulator lets them observe; call `install` when all are attached.

    What is tapped first is told first, so a metric's `from` is before its `to`.
    """

    def __init__(self, simulator: Simulator, agents: tuple[str, ...]) -> None:
        self.simulator = simulator
        self._agents = agents
        self._agent_hits: dict[str, list[Hit]] = {}
        self._wraps: list[tuple[type[Message], Wrapper, tuple[str, ...]]] = []

    def tap(self, matcher: Matcher, hit: Hit, dropped: bool = False) -> None:
        """Call `hit(time, what)` for everything that the matcher accepts."""
        if matcher.filters:
            hit = _filtered(matcher, hit)
        if matcher.name in _AGENT_EVENTS:
            self._tap_agents(matcher.name, hit)
        elif matcher.message is None:
            self.simulator.watch(matcher.name, hit)
        else:
            self._tap_message(matcher.message, hit, dropped)

    def wrap(self, message: type[Message], wrapper: Wrapper, targets: tuple[str, ...] = ()) -> None:
        """See each delivery of a message: at some actors, or at all."""
        self._wraps.append((message, wrapper, targets))

    def install(self) -> None:
        """Begin to observe."""
        for wrap in reversed(self._wraps):  # the last to be put around a handler is called first
            self.simulator.wrap(*wrap)

    def _tap_message(self, message: type[Message], hit: Hit, dropped: bool) -> None:
        simulator = self.simulator

        def wrapper(handler: Handler) -> Handler:
            def observed(context: Any, envelope: Envelope[Any]) -> Any:
                hit(simulator.now_us, envelope.body)
                return handler(context, envelope)

            return observed

        self.wrap(message, wrapper)
        if dropped:
            simulator.observe_drops(message, lambda now, envelope: hit(now, envelope.body))

    def _tap_agents(self, event: str, hit: Hit) -> None:
        hits = self._agent_hits.get(event)
        if hits is None:
            hits = self._agent_hits[event] = []
            seen: set[str] = set()  # the runs that have had the event
            make = _AGENT_EVENTS[event]
            wrapper = make(self.simulator, seen, hits)
            self.wrap(GraphRun, wrapper, self._agents)
            self.simulator.on_begin.append(seen.clear)
        hits.append(hit)


def _watch_tickets(simulator: Simulator, seen: set[str], hits: list[Hit]) -> Wrapper:
    """Return what sees the first answer about each run that reaches an agent."""

    def wrapper(handler: Handler) -> Handler:
        def observed(context: Any, envelope: Envelope[GraphRun]) -> Any:
            run = envelope.body.command_id
            if run not in seen:
                seen.add(run)
                for hit in hits:
                    hit(simulator.now_us, {"run": run})
            return handler(context, envelope)

        return observed

    return wrapper


def _watch_notices(simulator: Simulator, seen: set[str], hits: list[Hit]) -> Wrapper:
    """Return what sees the first answer that has a run's final status reach an agent."""

    def wrapper(handler: Handler) -> Handler:
        def observed(context: Any, envelope: Envelope[GraphRun]) -> Any:
            body = envelope.body
            if body.status in TERMINAL and body.command_id not in seen:
                seen.add(body.command_id)
                for hit in hits:
                    hit(simulator.now_us, {"run": body.command_id, "status": body.status})
            return handler(context, envelope)

        return observed

    return wrapper


_AGENT_EVENTS = {"agent.ticket": _watch_tickets, "agent.noticed": _watch_notices}


def _filtered(matcher: Matcher, hit: Hit) -> Hit:
    def filtered(now_us: int, what: Any) -> None:
        if matcher.accepts(what):
            hit(now_us, what)

    return filtered


class CountByReplication:
    """How often something happened in a replication."""

    def __init__(self, what: Matcher) -> None:
        self._what = what
        self._count = 0

    def attach(self, taps: Taps) -> None:
        """Observe it."""
        taps.tap(self._what, self._hit, dropped=True)

    def _hit(self, now_us: int, what: Any) -> None:
        self._count += 1

    def begin(self) -> None:
        """Begin a replication."""
        self._count = 0

    def rows(self) -> list[float]:
        """Return the count."""
        return [float(self._count)]


class CountByRun:
    """How often something happened to each run that was queued; runs in the order of queueing."""

    def __init__(self, what: Matcher) -> None:
        self._what = what
        self._run_of = what.run_of
        self._counts: dict[str, int] = {}

    def attach(self, taps: Taps) -> None:
        """Observe it, and every run that is queued."""
        counts, message = self._counts, self._what.message

        def queued(_now_us: int, fields: dict[str, Any]) -> None:
            counts.setdefault(fields["run"], 0)

        taps.simulator.watch("run.queued", queued)
        if message is not None and not self._what.filters:
            taps.wrap(message, self._wrapper)
            taps.simulator.observe_drops(
                message, lambda now_us, envelope: self._hit(now_us, envelope.body)
            )
        else:
            taps.tap(self._what, self._hit, dropped=True)

    def _wrapper(self, handler: Handler) -> Handler:
        """The hot path of most experiments, so it is one frame."""
        counts = self._counts

        def counted(context: Any, envelope: Envelope[Any]) -> Any:
            try:  # a test of the key would be one more look-up
                counts[envelope.body.command_id] += 1
            except KeyError:  # nobody queued it: it was guessed
                return handler(context, envelope)
            return handler(context, envelope)

        return counted

    def _hit(self, _now_us: int, what: Any) -> None:
        run = self._run_of(what)
        if run in self._counts:
            self._counts[run] += 1

    def begin(self) -> None:
        """Begin a replication."""
        self._counts.clear()

    def rows(self) -> list[float]:
        """Return each run's count."""
        return list(map(float, self._counts.values()))


class Values:
    """A field's value at each occurrence."""

    def __init__(self, what: Matcher) -> None:
        self._what = what
        self._values: list[Any] = []

    def attach(self, taps: Taps) -> None:
        """Observe it."""
        taps.tap(self._what, self._hit)

    def _hit(self, now_us: int, what: Any) -> None:
        assert self._what.field is not None, "a value is read from a field"
        self._values.append(read(what, self._what.field))

    def begin(self) -> None:
        """Begin a replication."""
        self._values.clear()

    def rows(self) -> list[float]:
        """Return the values in order, less those that aren't there; MetricError if one is text."""
        values = [value for value in self._values if value is not None]
        for value in values:
            if not isinstance(value, bool | int | float):
                name = f"{self._what.name}.{self._what.field}"
                raise MetricError(f"{name} is {value!r}, which is no number")
        return [float(value) for value in values]


class TimeByRun:
    """Seconds from a run's first `begin` to its first `end` after that."""

    def __init__(self, source: Matcher, target: Matcher) -> None:
        self._source = source
        self._target = target
        self._begun: dict[str, int] = {}
        self._values: list[float] = []

    def attach(self, taps: Taps) -> None:
        """Observe both."""
        source, target, begun = self._source.run_of, self._target.run_of, self._begun

        def begin(now_us: int, what: Any) -> None:
            begun.setdefault(source(what), now_us)

        taps.tap(self._source, begin)
        taps.tap(self._target, lambda now_us, what: self._end(now_us, target(what)))

    def _end(self, now_us: int, run: str) -> None:
        begun_us = self._begun.get(run, -1)
        if begun_us >= 0:
            self._values.append((now_us - begun_us) / 1e6)
            self._begun[run] = -1  # measured: later ends don't count

    def begin(self) -> None:
        """Begin a replication."""
        self._begun.clear()
        self._values.clear()

    def rows(self) -> list[float]:
        """Return the times in the order of their ends."""
        return list(self._values)


class TimeByReplication:
    """Seconds from the first `source` (or the start) to the first or last `target` after it."""

    def __init__(self, source: Matcher | None, target: Matcher, take: str) -> None:
        self._source = source
        self._target = target
        self._take = take
        self._from_us: int | None = None
        self._to_us: int | None = None

    def attach(self, taps: Taps) -> None:
        """Observe both."""
        if self._source is not None:
            taps.tap(self._source, self._begin_at)
        taps.tap(self._target, self._end_at)

    def _begin_at(self, now_us: int, what: Any) -> None:
        if self._from_us is None:
            self._from_us = now_us

    def _end_at(self, now_us: int, what: Any) -> None:
        if self._from_us is not None and (self._to_us is None or self._take == "last"):
            self._to_us = now_us

    def begin(self) -> None:
        """Begin a replication."""
        self._from_us = 0 if self._source is None else None
        self._to_us = None

    def rows(self) -> list[float]:
        """Return the time, nothing if one of the two did not happen."""
        if self._from_us is None or self._to_us is None:
            return []
        return [(self._to_us - self._from_us) / 1e6]


def make_metric(table: MetricTable) -> Metric:
    """Return the metric that a table describes; MetricError if its texts can't be understood."""
    by_run = table.per == "run"
    if table.count is not None:
        what = _matcher("count", table.count, by_run)
        return CountByRun(what) if by_run else CountByReplication(what)
    if table.value is not None:
        return Values(_matcher("value", table.value, by_run=False))
    assert table.source is not None, "checked when the table was decoded"
    assert table.target is not None, "checked when the table was decoded"
    if table.source != START:
        begin, end = _matcher("from", table.source, by_run), _matcher("to", table.target, by_run)
        return TimeByRun(begin, end) if by_run else TimeByReplication(begin, end, table.take)
    if by_run:
        raise MetricError('"start" belongs to no run', 'add per = "replication"', "from")
    return TimeByReplication(None, _matcher("to", table.target, by_run), table.take)


def _matcher(key: Key, text: str, by_run: bool) -> Matcher:
    """Read the matcher of a metric's key."""
    try:
        what = parse_matcher(text, with_field=key == "value")
    except MetricError as error:
        error.key = key
        raise
    if by_run and what.run_field is None:
        raise MetricError(f"{what.name} belongs to no run", 'add per = "replication"', key)
    return what


class Column:
    """A metric's rows of a range of replications: values, and how many each replication has."""

    __slots__ = ("counts", "values")

    def __init__(self) -> None:
        self.values = array("d")
        self.counts: array[int] | None = None

    def add(self, rows: list[float], before: int) -> None:
        """Add a replication's rows; `before` replications were added already."""
        if self.counts is None:
            if len(rows) == 1:
                self.values.append(rows[0])
                return
            self.counts = array("L", [1] * before)
        self.values.extend(rows)
        self.counts.append(len(rows))
