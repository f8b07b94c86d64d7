"""One cell of a scenario file: from its data to a complete Scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from actors.events import EVENTS
from scenarios.build import places_of
from scenarios.cast import (
    BUILT_IN,
    BUILT_IN_USE,
    ForeignActorError,
    actor_class,
    config_class,
    make_actor,
)
from scenarios.decode import Decoder, fields_of
from scenarios.graph_engines import graph_roles
from scenarios.matchers import MESSAGES, MetricError, parse_matcher
from scenarios.metrics import make_metric
from scenarios.places import Keys
from scenarios.problems import listed, quote, suggest
from scenarios.references import References, Role, some
from scenarios.spec import (
    ACTOR_KEYS,
    FAULTS,
    KINDS,
    PROFILES,
    ActorTable,
    Cast,
    Kind,
    LinkTable,
    MetricTable,
    RunTable,
    Scenario,
    SessionTable,
    StepTable,
    TopTable,
    WorkloadTable,
)
from scenarios.stand_in import check_command, check_steps
from transports.faults.fault import Fault, LinkFault
from transports.units import Duration, parse_duration

SECTIONS = (
    "run",
    *KINDS,
    "workload",
    "session",
    "step",
    "link",
    "fault",
    "sweep",
    "metrics",
    "table",
    "expect",
)

_METRIC_NAME = re.compile(r"[A-Za-z_][\w-]*")  # what an expectation can refer to

T = TypeVar("T", bound=msgspec.Struct)


class Part(NamedTuple):
    """A part of the file, decoded: from which data, to what, and whether without problems."""

    raw: tuple[Any, ...]
    value: Any
    sound: bool


def tables_of(section: str, data: Any) -> Iterator[tuple[Keys, Any]]:
    """Return the tables of an array with their places; a single table is as good as an array."""
    if not isinstance(data, list | tuple):
        yield (section,), data
        return
    for index, one in enumerate(data):
        yield (section, index), one


class CellLoader:
    """Decodes one cell's data to a Scenario.

    The cells of a sweep share `known`: what is the same object in the data of two cells is decoded
    once. With it a table is told apart by identity, so a cell's data must be copied where it
    changes, and nowhere else.
    """

    def __init__(
        self,
        decoder: Decoder,
        data: dict[str, Any],
        folder: Path,
        known: dict[Hashable, Part] | None = None,
    ) -> None:
        self.decoder = decoder
        self.data = data
        self.folder = folder
        self.known = {} if known is None else known
        self.broken: set[str] = set()  # the sections that had problems
        self.unnamed: set[str] = set()  # the kinds of which some actors' names aren't known
        self.references = References(decoder)

    def load(self) -> Scenario | None:
        """Return the scenario, None if there were problems."""
        top = self.decoder.struct(
            (), self.data, TopTable, extra_keys=SECTIONS, elsewhere=_elsewhere("")
        )
        run, until = self.part("run", self.run, "run")
        roles = self.roles("published" if top is None else top.profile)
        relays = [role.cast.name for role in roles if role.cast.kind == "relay"]
        sessions = self.part(("session", *relays), partial(self.sessions, relays), "session")
        steps = self.structs("step", StepTable)
        links = self.structs("link", LinkTable)
        faults = self.part("fault", lambda: list(self.faults()), "fault")
        metrics = self.part("metrics", self.metrics, "metrics")
        self.check_names(roles)
        if self.sound("session") and "relay" not in self.unnamed:
            self.references.check_steps(steps, [session.name for _, session in sessions])
            check_steps(self.decoder, roles, sessions, steps)
        if self.sound("session") and self.unnamed.isdisjoint(("relay", "agent")):
            self.references.check_agents(roles, [session.name for _, session in sessions])
        if not self.unnamed:
            self.references.check_ways((*links, *faults), [role.cast.name for role in roles])
        if self.broken or self.decoder.problems or top is None:
            return None
        scenario = Scenario(
            top=top,
            run=run,
            until=until,
            cast=tuple(role.cast for role in roles),
            sessions=tuple(session for _, session in sessions),
            steps=tuple(step for _, step in steps),
            links=tuple(link for _, link in links),
            faults=tuple(fault for _, fault in faults),
            metrics=metrics,
        )
        self.try_foreign(scenario, roles)
        self.try_checks(run)
        return None if self.decoder.problems else scenario

    def part(self, name: Hashable, decode: Callable[[], Any], *sections: str) -> Any:
        """Return a part of the cell, decoded unless another cell had the same sections."""
        raw = tuple(self.data.get(section) for section in sections)
        part = self.known.get(name)
        if part is None or any(a is not b for a, b in zip(part.raw, raw, strict=True)):
            count = len(self.decoder.problems)
            value = decode()
            part = self.known[name] = Part(raw, value, len(self.decoder.problems) == count)
        if not part.sound:
            self.broken.add(sections[0])
        return part.value

    def sound(self, *sections: str) -> bool:
        """Whether sections had no problems, so that what refers to them can be judged."""
        return self.broken.isdisjoint(sections)

    def structs(self, section: str, kind: type[T]) -> list[tuple[Keys, T]]:
        """Decode an array of tables; those with problems are left out."""

        def decode() -> list[tuple[Keys, T]]:
            elsewhere = _elsewhere(section)
            decoded = (
                (path, self.decoder.struct(path, data, kind, elsewhere=elsewhere))
                for path, data in tables_of(section, self.data.get(section, []))
            )
            return [(path, one) for path, one in decoded if one is not None]

        found: list[tuple[Keys, T]] = self.part(section, decode, section)
        return found

    # Actors

    def roles(self, profile: str) -> list[Role]:
        """Return the actors, in the order in which they start."""
        roles: list[Role] = []
        workload = self.part("workload", self.workload, "workload")
        relays = 0
        for kind in KINDS:
            sections = (kind, "workload") if kind == "agent" else (kind,)
            given = PROFILES.get(profile, {}).get(kind, {})
            decoded, named = self.part(
                (kind, profile, relays),
                partial(self.actors, kind, given, workload, relays),
                *sections,
            )
            roles += decoded
            if not named:
                self.unnamed.add(kind)
            elif kind == "relay":
                relays = len(decoded)
        return [*roles, *graph_roles(roles)]

    def actors(
        self, kind: Kind, profile: Mapping[str, Any], workload: Mapping[str, Any], relays: int
    ) -> tuple[list[Role], bool]:
        """Return the actors of a kind, and whether they are all."""
        count = len(self.decoder.problems)
        tables = self.actor_tables(kind, relays)
        named = len(self.decoder.problems) == count
        total = sum(table.count for _, _, table in tables)
        roles: list[Role] = []
        for path, data, table in tables:
            if table.command is None:
                given = workload if kind == "agent" else {}
                config = self.config(kind, path, data, table.use, profile, given)
            else:
                check_command(self.decoder, kind, path, data)
                config = config_class(BUILT_IN[kind])()
            for number in range(1, table.count + 1):
                name = table.name or (kind if total == 1 else f"{kind}-{len(roles) + 1}")
                if table.name and table.count > 1:
                    name = f"{table.name}-{number}"
                cast = Cast(
                    kind=kind, name=name, use=table.use, config=config, command=table.command
                )
                roles.append(Role(cast, path, frozenset(data)))
        return roles, named

    def actor_tables(
        self, kind: Kind, relays: int
    ) -> list[tuple[Keys, dict[str, Any], ActorTable]]:
        """Return a kind's tables with their places; an engine and an owner for each relay."""
        tables: list[tuple[Keys, dict[str, Any], ActorTable]] = []
        count = len(self.decoder.problems)
        for path, data in tables_of(kind, self.data.get(kind, {})):
            known = data
            if isinstance(data, dict):
                known = {key: data[key] for key in ACTOR_KEYS if key in data}
            table = self.decoder.struct(path, known, ActorTable)
            if table is not None:
                use = None if table.use == BUILT_IN_USE else table.use
                tables.append((path, data, msgspec.structs.replace(table, use=use)))
        if len(self.decoder.problems) > count:
            return tables
        number = sum(table.count for _, _, table in tables)
        if kind == "server" and number != 1:
            self.decoder.problem((kind,), f"a scenario has one server, not {number}", of="key")
        elif kind == "relay" and not number:
            self.decoder.problem((kind,), "a scenario has at least one relay")
        elif kind in ("engine", "owner") and relays:
            if len(tables) == 1 and number == 1:  # the only one serves all
                path, data, table = tables[0]
                return [(path, data, msgspec.structs.replace(table, count=relays))]
            if number != relays:
                has = f"there {_are(relays, 'relay')} and {_number(number, kind)}"
                cure = f"write one [{kind}] for all, or as many as relays, in their order"
                self.decoder.problem(
                    (kind,), f"each relay has one {kind}: {has}", of="key", cure=cure
                )
        return tables

    def config(
        self,
        kind: Kind,
        path: Keys,
        data: dict[str, Any],
        use: str | None,
        profile: Mapping[str, Any],
        workload: Mapping[str, Any],
    ) -> Any:
        """Decode an actor's config: its own keys, over the workload's, over its profile's."""
        try:
            actor = actor_class(kind, use, self.folder)
        except ForeignActorError as error:
            self.decoder.problem((*path, "use"), str(error), cure=error.cure)
            return None
        cls = config_class(actor)
        fields = fields_of(cls)
        own = {key: value for key, value in data.items() if key not in ACTOR_KEYS}
        given = {key: value for key, value in profile.items() if key in fields}
        for key, value in workload.items():
            if key in own:
                continue
            if key not in fields:
                message = f"{actor.__name__} has no key {quote(key)}"
                self.decoder.problem(("workload", key), message, of="key")
            elif use is None or self.valid(("workload", key), value, fields[key].type):
                given[key] = value
        try:
            return self.decoder.struct(path, given | own, cls, elsewhere=_elsewhere(kind))
        except Exception as error:  # noqa: BLE001  whatever the __post_init__ of a user's Config raises
            message = f"{cls.__qualname__} can't be made: {type(error).__name__}: {error}"
            self.decoder.problem(path, message)
            return None

    def valid(self, path: Keys, value: Any, kind: Any) -> bool:
        """Report what is wrong with a value; whether nothing is."""
        count = len(self.decoder.problems)
        self.decoder.value(path, value, kind)
        return len(self.decoder.problems) == count

    def workload(self) -> dict[str, Any]:
        """Return what [workload] sets, as the file has it, checked at its own place."""
        data = self.data.get("workload", {})
        table = self.decoder.struct(
            ("workload",), data, WorkloadTable, elsewhere=_elsewhere("workload")
        )
        return {} if table is None else dict(data)

    def check_names(self, roles: list[Role]) -> None:
        """Report two actors of one name."""
        seen: set[str] = set()
        for role in roles:
            name = role.cast.name
            if name in seen:
                self.decoder.problem(
                    (*role.path, "name"),
                    f"two actors are called {quote(name)}",
                    cure="give one of them another name",
                )
            seen.add(name)

    def try_foreign(self, scenario: Scenario, roles: list[Role]) -> None:
        """Report actors that can't be made: a user's own, and those that need files."""
        foreign = [role for role in roles if role.cast.use or role.cast.kind == "model"]
        places = places_of(scenario) if foreign else {}
        for role in foreign:
            try:
                make_actor(role.cast, places[role.cast.name], self.folder)
            except ForeignActorError as error:
                self.decoder.problem((*role.path, error.key), str(error), cure=error.cure)

    # The rest

    def run(self) -> tuple[RunTable | None, tuple[str, ...]]:
        """Return [run], and what ends a replication."""
        data = self.data.get("run", {})
        run = self.decoder.struct(("run",), data, RunTable, elsewhere=_elsewhere("run"))
        if run is None:
            return None, ()
        path: Keys = ("run", "until")
        if isinstance(run.until, str):
            self.check_until(path, run.until, run.limit)
            return run, (run.until,)
        if not run.until:
            self.decoder.problem(path, "nothing would end a replication", cure='write "done"')
        for index, condition in enumerate(run.until):
            self.check_until((*path, index), condition, run.limit)
        return run, run.until

    def check_until(self, path: Keys, condition: str, limit: Duration) -> None:
        """Report what is no condition, and a time that is never reached."""
        if condition == "done" or condition in EVENTS:
            return
        try:
            time = parse_duration(condition)
        except ValueError as error:
            if condition[:1] in tuple("0123456789.+-"):
                self.decoder.problem(path, str(error))
                return
            near = suggest(condition, ["done", *EVENTS])
            cure = f"did you mean {quote(near)}?" if near else 'as in "run.terminal" or "1h"'
            message = f'{quote(condition)} is neither "done", nor an event, nor a time'
            self.decoder.problem(path, message, cure=cure)
            return
        if time >= limit:
            self.decoder.problem(
                path,
                f"a replication can't last {time}: its limit is {limit}",
                cure="set limit in [run] to more",
            )

    def sessions(self, relays: list[str]) -> list[tuple[Keys, SessionTable]]:
        """Return the sessions; without a table, one a relay."""
        if "session" not in self.data:
            names = ["demo"] if len(relays) == 1 else [f"demo-{relay}" for relay in relays]
            return [
                (("session",), SessionTable(name=name, relay=relay))
                for name, relay in zip(names, relays, strict=True)
            ]
        sessions: list[tuple[Keys, SessionTable]] = []
        seen: set[str] = set()
        for path, one in self.structs("session", SessionTable):
            if one.name in seen:
                message = f"two sessions are called {quote(one.name)}"
                self.decoder.problem((*path, "name"), message)
            seen.add(one.name)
            if one.relay is None or one.relay in relays:
                relay = one.relay or next(iter(relays), None)
                sessions.append((path, msgspec.structs.replace(one, relay=relay)))
            elif "relay" not in self.unnamed:
                self.references.unknown((*path, "relay"), "relay", one.relay, relays)
        return sessions

    def faults(self) -> Iterator[tuple[Keys, Any]]:
        """Decode [[fault]] by its kind, each with a name of its own."""
        seen: set[str] = set()
        for number, (path, data) in enumerate(tables_of("fault", self.data.get("fault", [])), 1):
            if not isinstance(data, dict):
                self.decoder.value(path, data, dict[str, Any])
                continue
            kind = data.get("kind")
            if kind is None:
                self.decoder.problem(
                    path, '[[fault]] needs the key "kind"', cure=f"there is {some(FAULTS)}"
                )
                continue
            if kind not in FAULTS:
                self.references.unknown((*path, "kind"), "kind of fault", kind, FAULTS)
                continue
            fault = self.decoder.struct(path, data, FAULTS[kind], ignore=["kind"])
            if fault is None:
                continue
            self.check_fault(path, fault)
            name = fault.name or f"{kind}-{number}"
            if name in seen:
                self.decoder.problem((*path, "name"), f"two faults are called {quote(name)}")
            seen.add(name)
            yield path, msgspec.structs.replace(fault, name=name)

    def try_checks(self, run: RunTable) -> None:
        """Report checks that there are not."""
        if run.check in ("auto", "all", "none"):
            return
        from scenarios.judging import checks_of  # noqa: PLC0415  what few files need

        try:
            checks_of(run.check, self.folder, faults=False)
        except ForeignActorError as error:
            self.decoder.problem(("run", "check"), str(error), cure=error.cure)

    def check_fault(self, path: Keys, fault: Fault) -> None:
        """Report a fault's message or event that there is not."""
        if fault.on is not None and fault.on not in EVENTS:
            self.references.unknown((*path, "on"), "event", fault.on, EVENTS)
        if not isinstance(fault, LinkFault) or fault.message is None:
            return
        if "[" not in fault.message and fault.message not in MESSAGES:
            self.references.unknown((*path, "message"), "message", fault.message, MESSAGES)
            return
        try:
            if parse_matcher(fault.message).message is None:
                message = f"{quote(fault.message)} is an event, and no message"
                self.decoder.problem((*path, "message"), message)
        except MetricError as error:
            self.decoder.problem((*path, "message"), str(error), cure=error.cure)

    def metrics(self) -> dict[str, MetricTable]:
        """Decode [metrics.*] and try to make each."""
        data = self.data.get("metrics", {})
        if not isinstance(data, dict):
            self.decoder.value(("metrics",), data, dict[str, Any])
            return {}
        metrics = {}
        for name, one in data.items():
            path = ("metrics", name)
            if not _METRIC_NAME.fullmatch(name):
                message = f"{quote(name)} can't be the name of a metric"
                cure = "letters, digits, _ and -, and no digit in front"
                self.decoder.problem(path, message, of="key", cure=cure)
            if not isinstance(one, dict):
                message = f"{quote(name)} is no metric"
                self.decoder.problem(path, message, of="key", cure="write it below [metrics.NAME]")
                continue
            table = self.decoder.struct(path, one, MetricTable)
            if table is None:
                continue
            metrics[name] = table
            try:
                make_metric(table)
            except MetricError as error:
                self.decoder.problem((*path, error.key), str(error), cure=error.cure)
        return metrics


@lru_cache(maxsize=32)
def _elsewhere(section: str) -> dict[str, str]:
    """Return the keys of other tables, for who wrote one into the wrong table."""
    tables: dict[str, type[msgspec.Struct]] = {
        f"[{kind}]": config_class(actor) for kind, actor in BUILT_IN.items()
    }
    tables |= {"[run]": RunTable, "[[step]]": StepTable}
    if section not in KINDS:
        tables["[workload]"] = WorkloadTable
    owners: dict[str, list[str]] = {}
    for table, kind in tables.items():
        if table.strip("[]") != section:
            for key in fields_of(kind):
                owners.setdefault(key, []).append(table)
    return {key: listed(where, last="and") for key, where in owners.items()}


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _are(count: int, noun: str) -> str:
    return f"{'is' if count == 1 else 'are'} {_number(count, noun)}"
