"""What one table of a scenario file says of another: names that must be there."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from scenarios.decode import Decoder
from scenarios.places import Keys
from scenarios.problems import listed, quote, suggest
from scenarios.spec import Cast, StepTable

NAMES_LIMIT = 8  # a longer list of what there is hides the message; `pullcord names` has all


class Role(NamedTuple):
    """An actor, the place of its table, and the keys that stand in it."""

    cast: Cast
    path: Keys
    keys: frozenset[str]


class References:
    """Reports names in a cell that nothing has."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    def unknown(self, path: Keys, what: str, name: Any, known: Iterable[str]) -> None:
        """Report a name that nothing has."""
        names = list(known)
        near = suggest(name, names) if isinstance(name, str) else None
        cure = f"did you mean {quote(near)}?" if near else f"there is {some(names)}"
        shown = quote(name) if isinstance(name, str) else name
        self.decoder.problem(path, f"there is no {what} {shown}", cure=cure)

    def check_steps(self, steps: list[tuple[Keys, StepTable]], sessions: list[str]) -> None:
        """Report steps about a session that isn't there."""
        for path, step in steps:
            if not sessions:
                self.decoder.problem(path, "this step concerns no session: there is none")
            elif step.session is not None and step.session not in sessions:
                self.unknown((*path, "session"), "session", step.session, sessions)

    def check_agents(self, roles: list[Role], sessions: list[str]) -> None:
        """Report agents that name a session or an agent that isn't there, or have none to run."""
        agents = [role for role in roles if role.cast.kind == "agent"]
        names = [role.cast.name for role in agents]
        for role in agents:
            wanted = getattr(role.cast.config, "session", None)
            leak_to = getattr(role.cast.config, "leak_to", None)
            runs: Any = getattr(role.cast.config, "runs", 1)
            if isinstance(wanted, str) and wanted not in sessions:
                path = (*role.path, "session") if "session" in role.keys else _WORKLOAD_SESSION
                self.unknown(path, "session", wanted, sessions)
            elif not sessions and runs:
                message = f"{role.cast.name} has no session to run"
                self.decoder.problem(("session",), message, cure="add a table [[session]]")
            if isinstance(leak_to, str) and leak_to not in names:
                self.unknown((*role.path, "leak_to"), "agent", leak_to, names)

    def check_ways(self, ways: Iterable[tuple[Keys, Any]], actors: list[str]) -> None:
        """Report globs of links and faults that match no actor."""
        for path, way in ways:
            ends = (("from", way.source), ("to", way.target)) if hasattr(way, "source") else ()
            whom = (("actor", way.actor),) if hasattr(way, "actor") else ()
            for key, pattern in (*ends, *whom):
                if not any(fnmatchcase(name, pattern) for name in actors):
                    self.unknown((*path, key), "actor", pattern, actors)


_WORKLOAD_SESSION: Keys = ("workload", "session")


def some(names: Iterable[str]) -> str:
    """Return the first of some names, for a sentence."""
    known = list(names)
    if len(known) > NAMES_LIMIT:
        return f"{', '.join(known[:NAMES_LIMIT])} and {len(known) - NAMES_LIMIT} more"
    return listed(known, last="and") if known else "none"
