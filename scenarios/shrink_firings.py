"""What each fault of a replication did, as faults that do one thing each and draw nothing.

A fault that loses a message with a probability becomes a `drop` of the third GraphRun from the
server to the agent, one that kills every five minutes becomes kills at the times at which it
killed. Together they do the same, and then the few that matter can be found.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from actors.actor import Commit
from actors.chance import Stream
from actors.errors import SimulationError
from actors.simulator import ActorContext
from actors.stores.memory import Undo
from scenarios.shrink import Data
from scenarios.shrink_trial import cell_of, replication_of
from scenarios.watchdog import PATIENCE_S, watchdog
from transports.envelope import Envelope
from transports.faults.crash import Crash
from transports.faults.failed_write import FailedWrite
from transports.faults.fault import (
    CommitFault,
    Committing,
    Fault,
    LinkFault,
    LinkWorking,
    Striking,
    StrikingFault,
    Working,
    World,
)
from transports.faults.kill import Kill
from transports.units import Duration
from transports.verdict import Verdict

Table = dict[str, Any]
WHEN = ("at", "for", "on", "probability", "every", "min_fired")


def explicit_faults(data: Data, label: str, folder: Path) -> list[list[Table]]:
    """Run data's replication; return for each of its faults what would do the same, act by act.

    Nothing for a fault that did nothing, that counts already, or whose acts can't be told apart.
    What counts messages or turns comes last first, so that none hides one from the next.
    """
    commits = _Commits()
    cell = cell_of(data, label, folder, commit_hook=commits.turn)
    tables = [dict(table) for table in data.get("fault", [])]
    watched = [
        _watch(fault, working, table, commits)
        for fault, working, table in zip(cell.scenario.faults, cell.faults, tables, strict=True)
    ]
    with (
        contextlib.suppress(SimulationError, SystemExit),
        contextlib.redirect_stdout(io.StringIO()),
        watchdog(cell.simulator, PATIENCE_S),
    ):
        cell.simulator.run(replication_of(data))
    names = _new_names(one.name for one in cell.scenario.faults)
    return [[{**one, "name": next(names)} for one in made] for made in watched]


def _new_names(known: Iterable[str]) -> Iterator[str]:
    """Yield names that no fault has yet."""
    taken = frozenset(known)
    return (name for number in count(1) if (name := f"act-{number}") not in taken)


def _watch(fault: Fault, working: Working, table: Table, commits: _Commits) -> list[Table]:
    """Return a list that is filled with what the fault does, while the replication runs."""
    made: list[Table] = []
    if isinstance(fault, LinkFault) and isinstance(working, LinkWorking):
        if fault.nth is None:
            _watch_link(fault, working, made)
    elif isinstance(fault, CommitFault) and isinstance(working, Committing):
        # What a full disk does lasts; a turn that one of them counts is still none of the others'.
        single = isinstance(fault, Crash | FailedWrite) and fault.nth is None
        commits.watch(fault, working, table, made if single else [])
    elif isinstance(fault, StrikingFault) and isinstance(working, Striking):
        _watch_strikes(fault, working, table, made)
    return made


def _watch_link(fault: LinkFault, working: LinkWorking, made: list[Table]) -> None:
    """Note each message that a fault acts on, by its place among those of its kind on its way."""
    seen: Counter[tuple[str, str, str]] = Counter()
    judge = working.judge

    def watched(envelope: Envelope[Any]) -> Verdict | None:
        verdict = judge(envelope)
        accepts, message = working.accepts, type(envelope.body).__name__
        if accepts is not None:
            if not accepts(envelope.body):
                return verdict
            message = fault.message or message
        way = (envelope.source, envelope.target, message)
        seen[way] += 1
        if verdict is not None:
            source, target, _ = way
            ends = {"from": source, "to": target, "message": message, "nth": seen[way]}
            made.insert(0, {**_act(verdict), **ends})
        return verdict

    working.judge = watched  # type: ignore[method-assign]  # links look it up at each message


def _act(verdict: Verdict) -> Table:
    """Return what a verdict does, as a kind of fault with its own keys."""
    if verdict.lost:
        return {"kind": "drop"}
    if verdict.copies:
        return {"kind": "duplicate", "copies": verdict.copies}
    kind = "reorder" if verdict.overtaken else "delay"
    return {"kind": kind, "delay": str(Duration(verdict.later_us))}


def _watch_strikes(
    fault: StrikingFault, working: Striking, table: Table, made: list[Table]
) -> None:
    """Note each victim that a fault hits, with the time."""
    strike = working.strike
    kept = {key: value for key, value in table.items() if key not in WHEN}
    if not isinstance(fault, Kill) and fault.lasts is not None:
        kept["for"] = str(fault.lasts)

    def watched(world: World, chance: Stream, name: str) -> int | None:
        until_us = strike(world, chance, name)
        if until_us is not None:
            one = {**kept, "actor": name, "at": str(Duration(world.now_us))}
            if isinstance(fault, Kill):
                one["down"] = str(Duration(until_us - world.now_us))
            made.append(one)
        return until_us

    working.strike = watched  # type: ignore[method-assign]  # the fault looks it up at each victim


class _Watched:
    """A fault of commits: how many turns of each actor it was asked about, and of the last one."""

    def __init__(self, fault: CommitFault, working: Committing, table: Table) -> None:
        self.fault = fault
        self.working = working
        self.kept = {key: value for key, value in table.items() if key not in WHEN}
        self.seen: Counter[str] = Counter()
        self.asked = False

    def turn(self, name: str, *, wrote: bool) -> None:
        """Count a turn if the fault is asked about it, unless another acts first."""
        self.asked = name in self.working.victims and (wrote or not self.fault.writes_only)
        self.seen[name] += self.asked

    def take_back(self, name: str) -> None:
        """Forget the turn: another has acted on it."""
        self.seen[name] -= self.asked


class _Commits:
    """Counts the turns that faults of commits are asked about, as each of them does."""

    def __init__(self) -> None:
        self._watched: list[_Watched] = []

    def turn(self, context: ActorContext, writes: Sequence[Undo]) -> Commit | None:
        """Count a turn for each fault; as the first commit hook this is asked before any."""
        for each in self._watched:
            each.turn(context.name, wrote=bool(writes))
        return None

    def watch(
        self, fault: CommitFault, working: Committing, table: Table, made: list[Table]
    ) -> None:
        """Note each turn that a fault acts on, by its place among its actor's."""
        mine = _Watched(fault, working, table)
        self._watched.append(mine)
        place = len(self._watched)
        act = working.act

        def watched(name: str) -> Commit:
            world, before_us = working.world, working.over_us
            assert world is not None, "it has acted"
            working.over_us = 0  # so that what it says is of this turn
            commit = act(name)
            one = {**mine.kept, "actor": name, "nth": mine.seen[name]}
            if isinstance(fault, Crash):
                one["down"] = str(Duration(working.over_us - world.now_us))
            made.insert(0, one)
            working.over_us = max(before_us, working.over_us)
            for later in self._watched[place:]:
                later.take_back(name)
            return commit

        working.act = watched  # type: ignore[method-assign]  # the fault looks it up at each turn
