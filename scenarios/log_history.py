"""A history from a log: what its host observed of a replication, as far as a log tells it.

A log has no stores and no timers, and does not say when the last fault was lifted. A check that
asks for what is not there is noticed, so that nobody takes its silence for a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from actors.accounts import messages as accounts
from actors.messages import Message
from logs.read import Section
from logs.record import Carried, HeaderRecord, Record, type_of
from scenarios.cast import ForeignActorError
from scenarios.cell import CellLoader
from scenarios.checks.history import History, Tables
from scenarios.decode import Decoder
from scenarios.matchers import MESSAGES
from scenarios.problems import ScenarioError
from scenarios.source import Source
from scenarios.spec import KINDS, Cast, Scenario

# What only the log of a deployment has.
DEPLOYED = {
    name: kind
    for name, kind in vars(accounts).items()
    if isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == accounts.__name__
}
# How the ids of those begin that come to a deployed server.
PRINCIPALS = {"agt_": "agent", "dev_": "relay", "own_": "owner"}
EDGES = ("gateway", "uplink", "desktop")  # which say how connections stand, and take no turns
BUILT_LIMIT = 8  # scenarios that are kept decoded: a file has one cell, a folder a few


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A section as checks can read it, and what of it they can't: one sentence each.

    `own` names the checks of the user's own that its scenario asks for, `folder` where they lie.
    """

    history: LogHistory
    scenario: Scenario | None
    own: tuple[str, ...] = ()
    folder: str = ""
    missing: tuple[str, ...] = ()


class LogHistory(History):
    """A history that notes what a check asks for and a log has not."""

    def __init__(self, records: Sequence[Record], **facts: Any) -> None:
        self.asked: dict[str, None] = {}
        super().__init__(records, **facts)

    def afresh(self) -> None:
        """Forget what was asked for, also what was kept since, for the next check."""
        self.asked.clear()
        for kept in ("runs_at_end", "run_rows"):
            vars(self).pop(kept, None)

    def rows(self, part: str, table: str) -> Iterator[tuple[str, Any]]:
        """No rows, whoever asks."""
        self.asked.setdefault("stores")
        return iter(())

    @property
    def stores(self) -> Mapping[str, Tables]:
        """No tables, whoever asks."""
        self.asked.setdefault("stores")
        return {}

    @stores.setter
    def stores(self, stores: Mapping[str, Tables]) -> None:
        """Take none."""

    @property
    def timers(self) -> Mapping[str, Mapping[str, int]]:
        """No timers, whoever asks."""
        self.asked.setdefault("timers")
        return {}

    @timers.setter
    def timers(self, timers: Mapping[str, Mapping[str, int]]) -> None:
        """Take none."""


def history_of_log(section: Section) -> Cut:
    """Return what checks can read of a section."""
    missing: list[str] = []
    scenario, trouble = _scenario(section.header)
    if trouble:
        missing.append(trouble)
    actors = _actors(section.records)
    kinds = _kinds(scenario, actors)
    strange = [name for name in actors if name not in kinds and name not in EDGES]
    if strange:
        missing.append(f"which parts {', '.join(strange)} play is not known")
    records, unread = _typed(section.records)
    missing += [f"messages of the type {name} are not read" for name in unread]
    end = section.end
    if end is None:
        missing.append("it is truncated, so what comes later is not known")
    last_us = section.records[-1].t if section.records else 0
    history = LogHistory(
        records,
        kinds=kinds,
        configs={one.name: one.config for one in _cast(scenario) if one.name in kinds},
        ended_us=last_us if end is None else end.t,
        healed_us=_healed_us(scenario, section),
        converge_us=None if scenario is None else scenario.run.converge,
        outcome="truncated" if end is None else end.outcome,
    )
    return Cut(
        history=history,
        scenario=scenario,
        own=_own_checks(section.header.resolved),
        folder=section.header.folder,
        missing=tuple(missing),
    )


def _own_checks(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    run = resolved.get("run")
    named = run.get("check") if isinstance(run, dict) else None
    names = named if isinstance(named, list) else [named]
    return tuple(one for one in names if isinstance(one, str) and ":" in one)


def _kinds(scenario: Scenario | None, actors: Sequence[str]) -> dict[str, str]:
    """Return who plays which part, by the scenario or else by the names: `relay-2` is a relay."""
    found: dict[str, str] = {
        name: kind
        for name in actors
        for kind in KINDS
        if name == kind or name.startswith((f"{kind}-", f"{kind}_"))
    }
    if scenario is None:
        return found | {name: PRINCIPALS[name[:4]] for name in actors if name[:4] in PRINCIPALS}
    return found | {one.name: one.kind for one in scenario.cast if one.name in actors}


def _healed_us(scenario: Scenario | None, section: Section) -> int | None:
    """Return when the last fault had healed, None if the log does not say."""
    if section.end is not None and section.end.healed is not None:
        return section.end.healed
    return 0 if scenario is not None and not scenario.faults else None


def _cast(scenario: Scenario | None) -> tuple[Cast, ...]:
    return () if scenario is None else scenario.cast


def _actors(records: Sequence[Record]) -> list[str]:
    """Return all who did or said something; one whose own log this isn't is known by messages."""
    found: dict[str, None] = {}
    for record in records:
        found.setdefault(record.actor)
        if isinstance(record, Carried):
            found.setdefault(record.envelope.source)
            found.setdefault(record.envelope.target)
    return list(found)


def _scenario(header: HeaderRecord) -> tuple[Scenario | None, str]:
    """Return the resolved scenario of a header, or why there is none."""
    if not header.resolved:
        return None, "its header has no scenario: parts are known by the actors' names"
    data = msgspec.json.encode(header.resolved)
    return _decoded(data, header.path or header.scenario, header.folder)


@lru_cache(maxsize=BUILT_LIMIT)
def _decoded(data: bytes, path: str, folder: str) -> tuple[Scenario | None, str]:
    table = msgspec.json.decode(data)
    if isinstance(table.get("run"), dict):
        table["run"].pop("check", None)  # whose files may be gone, and nothing else depends on it
    decoder = Decoder(Source(path, "", table))
    try:
        scenario = CellLoader(decoder, table, Path(folder)).load()
        decoder.finish()
    except ScenarioError as error:
        return None, f"its scenario can't be read here: {error.problems[0].message}"
    except (ForeignActorError, OSError) as error:
        return None, f"its scenario can't be read here: {error}"
    return scenario, ""


def _typed(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """Return the records with bodies of our types, and the types that stay as JSON has them."""
    found: list[Record] = []
    unread: dict[str, None] = {}
    for record in records:
        if not isinstance(record, Carried):
            found.append(record)
            continue
        envelope = record.envelope
        name = type_of(envelope.body)
        kind = MESSAGES.get(name) or DEPLOYED.get(name)
        try:
            body = None if kind is None else msgspec.convert(envelope.body, kind)
        except msgspec.ValidationError:
            body = None
        if body is None:
            unread.setdefault(name)
            found.append(record)
        else:
            typed = msgspec.structs.replace(envelope, body=body)
            found.append(msgspec.structs.replace(record, envelope=typed))
    return found, list(unread)
