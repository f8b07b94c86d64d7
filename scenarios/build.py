"""From a cell's scenario to a simulator that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from actors.actor import Place, Session, Step
from actors.errors import LimitReachedError, WouldSleepForeverError
from actors.events import EVENTS
from actors.graph_engine import GraphEngine
from actors.guarded import CommitHook, simulator
from actors.messages import Message
from actors.simulator import Simulator
from actors.text import slug_of
from scenarios.cast import ForeignActorError, make_actor
from scenarios.graph_engines import approver_for, name_for, vm_port
from scenarios.matchers import Matcher, parse_matcher
from scenarios.metrics import Column, Metric, Taps, make_metric
from scenarios.problems import listed
from scenarios.spec import Cast, LinkTable, Scenario
from scenarios.stand_in import NEEDS_TCP
from transports.codec import Codec
from transports.faults.byte_fault import ByteWorking
from transports.faults.fault import Fault, LinkFault, LinkWorking, Working, World
from transports.memory import Link
from transports.units import Duration, parse_duration
from transports.wiring import Wiring

if TYPE_CHECKING:
    from scenarios.judging import Judging
    from transports.lines import Host, Lines

WAITS_SHOWN = 5  # of what a replication waits for; a hundred agents would fill the screen


class CellRun:
    """One cell, built: run its replications one after another.

    `coded` sends every message as bytes through the codec; `twin()` builds the same cell anew.
    `world` makes another host than the simulator, for a seed and a label. ForeignActorError if an
    actor can't be made, or is a program of its own and there is no other host.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        label: str,
        folder: Path,
        commit_hook: CommitHook | None = None,
        *,
        coded: bool = False,
        world: Callable[[int, str], Simulator] | None = None,
    ) -> None:
        self.scenario = scenario
        self._folder = folder
        self.twin = partial(CellRun, scenario, seed, label, folder)
        chance = scenario.run.chance or label
        if world is not None:
            self.simulator = world(seed, chance)
        else:
            guarded = any(fault.needs_world for fault in scenario.faults)
            self.simulator = simulator(seed, chance, commit_hook, guarded=guarded)
        places = places_of(scenario)
        programs = {one.name for one in scenario.cast if one.command}
        for one in scenario.cast:
            if one.name in programs and world is None:
                raise ForeignActorError(NEEDS_TCP.format(one.name), "give --transport tcp")
            if one.kind == "owner" and one.use is None and not places[one.name].steps:
                continue  # it would only make every replication longer
            if one.kind == "engine" and places[one.name].relay in programs:
                continue  # the program is its own
            heard = one.kind in ("server", "engine")  # metrics don't believe the others' own words
            actor = make_actor(one, places[one.name], folder)
            self.simulator.add(one.name, actor, heard)
            if isinstance(actor, GraphEngine):
                self.simulator.vm = vm_port()
        self.faults = [_at_work(fault) for fault in scenario.faults]
        self._codec = Codec(self._messages()) if coded else None
        self._wiring, self._lines = self._wire()
        self.simulator.connect(self._link)
        agents = tuple(one.name for one in scenario.cast if one.kind == "agent")
        self.metrics: dict[str, Metric] = {
            name: make_metric(table) for name, table in scenario.metrics.items()
        }
        taps = Taps(self.simulator, agents)
        for metric in self.metrics.values():
            metric.attach(taps)
            self.simulator.on_begin.append(metric.begin)
        _Ending(scenario, self.simulator, taps)
        taps.install()
        # Only a guarded simulator can kill; what needs that is only put into one.
        for fault in self.faults:
            fault.attach(cast(World, self.simulator), tuple(self.simulator.contexts))
        if self.faults:
            self.simulator.on_begin.append(self._start_faults)

    def _messages(self) -> list[type[Message]]:
        """Return every message type that some actor understands."""
        contexts = self.simulator.contexts.values()
        kinds = {kind for context in contexts for kind in context.actor.handlers}
        return [kind for kind in kinds if issubclass(kind, Message)]

    def _wire(self) -> tuple[Wiring | None, Lines | None]:
        """Return the connections that byte faults act on, and their model where it is no sockets.

        Both are None if the scenario has no such fault.
        """
        faults = [fault for fault in self.faults if isinstance(fault, ByteWorking)]
        if not faults:
            return None, None
        # These need trio, which few runs of the simulator do.
        from actors.host import HostedWorld  # noqa: PLC0415  see above
        from transports.lines import Lines  # noqa: PLC0415  likewise
        from transports.local import RANKS  # noqa: PLC0415  likewise
        from transports.wire import WireCodec  # noqa: PLC0415  likewise

        simulator = cast("Host", self.simulator)
        wiring = Wiring(simulator, faults)
        if isinstance(self.simulator, HostedWorld) and self.simulator.interpose(wiring):
            return wiring, None
        ranks = {one.name: RANKS[one.kind] for one in self.scenario.cast}
        return wiring, Lines(simulator, wiring, WireCodec(self._messages()), ranks)

    def _link(self, source: str, target: str) -> Link | None:
        """Return the imperfect way between two actors, None if the scenario says nothing of it."""
        latency = next(
            (link for link in self.scenario.links if _matches(link, source, target)), None
        )
        judges = [
            judge
            for judge, fault in zip(self.faults, self.scenario.faults, strict=True)
            if isinstance(judge, LinkWorking) and fault.acts_on(source, target)
        ]
        carrier = None if self._lines is None else self._lines.carrier(source, target)
        if latency is None and not judges and self._codec is None and carrier is None:
            return None
        way = self.simulator.new_link(
            latency_us=None if latency is None else self._latency(latency, source, target),
            judges=judges,
            codec=self._codec,
        )
        return way if carrier is None else way.over(carrier)

    def _latency(self, link: LinkTable, source: str, target: str) -> Callable[[], int]:
        """Return what draws this way's latency, from a stream of its own."""
        constant, draw = link.latency.constant, link.latency.draw
        if constant is not None:
            return lambda: int(constant)
        simulator, purpose = self.simulator, f"link/{source}/{target}"
        return lambda: int(draw(simulator.link_stream(purpose)))

    @property
    def healed_us(self) -> int | None:
        """When the replication's last fault had healed, None if one may still act."""
        times = [fault.healed_us for fault in self.faults]
        return None if None in times else max((time or 0 for time in times), default=0)

    def judging(self) -> Judging | None:
        """Return the checks that the scenario asks for at work, None if it asks for none.

        ForeignActorError if a user's own can't be used.
        """
        wanted, faults = self.scenario.run.check, bool(self.scenario.faults)
        if wanted == "none" or (wanted == "auto" and not faults):
            return None
        from scenarios.judging import Judging, checks_of  # noqa: PLC0415  what few runs need

        checks = checks_of(wanted, self._folder, faults=faults)
        if any(one.kind == "relay" and one.command for one in self.scenario.cast):
            checks.pop("result_from_engine", None)  # nobody heard what a program's engine said
        return Judging(self, checks) if checks else None

    def _start_faults(self) -> None:
        if self._wiring is not None:
            self._wiring.reset()
        if self._lines is not None:
            self._lines.reset()
        for fault in self.faults:
            fault.start(self.simulator.stream(f"fault/{fault.name}"))

    def collect(self, columns: dict[str, Column], before: int) -> None:
        """Add the rows of the replication that has just ended; `before` were added already."""
        rows = [(columns[name], metric.rows()) for name, metric in self.metrics.items()]
        for column, values in rows:  # all or nothing: `rows` may raise MetricError
            column.add(values, before)


def _at_work(fault: Fault) -> Working:
    """Return what acts for a fault; the fields of its message are filtered as a metric's are."""
    working = fault.at_work()
    if isinstance(fault, LinkFault) and isinstance(working, LinkWorking) and fault.message:
        matcher = parse_matcher(fault.message)
        if matcher.filters:
            kind = matcher.message
            working.accepts = lambda body: type(body) is kind and matcher.accepts(body)
    return working


def session_id(name: str) -> str:
    """Return the id of a scenario's session: `gs_` and 32 hex digits that depend on its name."""
    return f"gs_{blake2b(name.encode(), digest_size=16).hexdigest()}"


def _matches(link: LinkTable, source: str, target: str) -> bool:
    if fnmatchcase(source, link.source) and fnmatchcase(target, link.target):
        return True
    return link.both and fnmatchcase(target, link.source) and fnmatchcase(source, link.target)


def places_of(scenario: Scenario) -> dict[str, Place]:
    """Return where each actor stands."""
    by_kind: dict[str, list[str]] = {}
    for one in scenario.cast:
        by_kind.setdefault(one.kind, []).append(one.name)
    relays, engines = by_kind["relay"], by_kind["engine"]
    sessions = tuple(
        Session(
            id=session_id(one.name),
            name=one.name,
            slug=slug_of(one.name),
            project=one.project,
            relay=one.relay or relays[0],
            shared=one.shared,
        )
        for one in scenario.sessions
    )
    places = {}
    by_name = {one.name: one for one in scenario.cast}
    approvers = [approver_for(by_name[engine]) for engine in engines]
    paired: dict[str, str] = {}
    for names in (approvers, relays, engines, by_kind.get("owner", relays)):
        paired |= dict(zip(names, relays, strict=True))
    for one in scenario.cast:
        relay = paired.get(one.name, relays[0])
        mine = tuple(s for s in sessions if s.relay == relay)
        engine = by_name[engines[relays.index(relay)]]
        places[one.name] = Place(
            name=one.name,
            server=by_kind["server"][0],
            relay=relay,
            engine=engine.name,
            model=name_for(engine.name, "model"),
            tools=name_for(engine.name, "tools"),
            approver=approver_for(engine),
            sessions=_sessions_of(one, sessions, mine),
            steps=_steps(scenario, mine) if one.kind == "owner" else (),
        )
    return places


def _sessions_of(
    one: Cast, sessions: tuple[Session, ...], mine: tuple[Session, ...]
) -> tuple[Session, ...]:
    """Return the sessions that an actor knows: a relay its own, an agent those that it may run."""
    if one.kind == "server":
        return sessions
    if one.kind == "agent":
        wanted = getattr(one.config, "session", None)
        return tuple(s for s in sessions if wanted is None or s.name == wanted)
    return mine


def _steps(scenario: Scenario, mine: tuple[Session, ...]) -> tuple[Step, ...]:
    """Return the steps that concern an owner's sessions; without a session, its first."""
    steps: list[Step] = []
    for step in scenario.steps:
        name = scenario.sessions[0].name if step.session is None else step.session
        steps += [
            Step(at_us=step.at, act=step.act, session=session.id)
            for session in mine
            if session.name == name
        ]
    return tuple(steps)


class _Ending:
    """Ends a replication when everything that `until` names has happened."""

    def __init__(self, scenario: Scenario, simulator: Simulator, taps: Taps) -> None:
        self._simulator = simulator
        self._limit = scenario.run.limit
        kinds = {one.name: one.kind for one in scenario.cast}
        self._drivers = [name for name in simulator.contexts if kinds[name] in ("agent", "owner")]
        runs = sum(
            int(getattr(one.config, "runs", 1)) for one in scenario.cast if one.kind == "agent"
        )
        self._events: dict[str, int] = {}  # how many runs must have each event
        self._seen: dict[str, set[str]] = {}  # which have
        self._done: set[str] = set()
        self._wait_for_done = False
        self._time = Duration(0)
        for condition in scenario.until:
            if condition == "done":
                self._wait_for_done = True
            elif condition in EVENTS:
                if condition not in self._events:
                    taps.tap(Matcher(condition), self._watcher(condition))
                self._events[condition] = runs
            else:
                self._time = max(self._time, parse_duration(condition))
        self._needed = sum(1 for runs in self._events.values() if runs)
        self._needed += bool(self._wait_for_done and self._drivers)
        self._timed = bool(self._time or not self._needed)
        self._needed += self._timed
        self._left = 0  # conditions that are not met yet
        simulator.on_done = self._on_done
        simulator.on_begin.append(self._begin)

    def _begin(self) -> None:
        self._done.clear()
        for seen in self._seen.values():
            seen.clear()
        self._left = self._needed
        if self._timed:
            self._simulator.at(int(self._time), self._met)
        self._simulator.at(int(self._limit), self._too_long)

    def _watcher(self, event: str) -> Callable[[int, dict[str, Any]], None]:
        seen = self._seen[event] = set()

        def happened(_now_us: int, fields: dict[str, Any]) -> None:
            run = fields["run"]
            if run not in seen:
                seen.add(run)
                if len(seen) == self._events[event]:
                    self._met()

        return happened

    def _on_done(self, name: str) -> None:
        if name in self._drivers and name not in self._done:
            self._done.add(name)
            if self._wait_for_done and len(self._done) == len(self._drivers):
                self._met()

    def _met(self) -> None:
        self._left -= 1
        if not self._left:
            self._simulator.finish()

    def _too_long(self) -> None:
        waits = [*self._missing_events(), *self._missing_actors()]
        if len(waits) > WAITS_SHOWN:
            waits = [*waits[:WAITS_SHOWN], f"{len(waits) - WAITS_SHOWN} more"]
        what = listed(waits, last="and")
        if not self._simulator.heap:
            raise WouldSleepForeverError(
                f"it waits for {what}, but nothing is due: no timer is set, no message under way"
            )
        raise LimitReachedError(
            f"it did not end within {self._limit} of scenario time: it waits for {what}"
        )

    def _missing_events(self) -> Iterator[str]:
        for event, runs in self._events.items():
            missing = runs - len(self._seen[event])
            if missing > 0:
                yield f"{event} of {missing} run{'' if missing == 1 else 's'}"

    def _missing_actors(self) -> Iterator[str]:
        for name in self._drivers:
            if self._wait_for_done and name not in self._done:
                yield f"{name} to be done"
