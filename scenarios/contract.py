"""What every actor promises, tried on one: the contract suite for actors of one's own.

The actor takes its part in a small world of built-in ones, where runs are queued, executed and
noticed. Its promises are those of `actors.actor`: it gives the same results each time, it rebuilds
itself from its store after a crash at any of its turns, and it bears lost messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from actors.actor import Commit
from actors.errors import ActorFailedError, SimulationError
from actors.simulator import ActorContext
from actors.stores.memory import Undo
from scenarios.build import CellRun
from scenarios.cast import actor_class, config_class, foreign_path
from scenarios.cell import CellLoader
from scenarios.decode import Decoder, fields_of
from scenarios.promises.check import broken_promises
from scenarios.source import Source
from scenarios.spec import Kind, Scenario
from scenarios.work import NotDeterministicError, check_determinism

REPLICATIONS: Final = 10  # worlds of other chance; a mistake that shows in one of 20 is for sweeps
CRASHES_LIMIT: Final = 200  # turns to crash at; a relay has some 60 in this world
DROPPED: Final = 0.2  # the share of its messages that is lost, either way

_STEPS: Final = (
    {"at": "30s", "do": "unshare"},
    {"at": "60s", "do": "share"},
)


class ContractError(AssertionError):
    """An actor broke a promise: a sentence a line that says which, and when."""


def check_actor(
    use: str,
    kind: Kind,
    config: Mapping[str, Any] | None = None,
    *,
    folder: Path | str = ".",
    replications: int = REPLICATIONS,
) -> None:
    """Try the class that `use = "file.py:Class"` names, from `folder`, in the part of `kind`.

    `config` is what its table in a scenario would have. ContractError names the first promise that
    is broken; ScenarioError or ForeignActorError says that the class or its config can't be used.
    """
    place = Path(folder)
    actor = actor_class(kind, use, place)
    scenario = _scenario(use, kind, dict(config or {}), place, {})
    for replication in range(replications):
        _World(scenario, place, kind).run(replication, "in a world without faults")
    try:
        for replication in range(min(2, replications)):
            check_determinism(CellRun(scenario, 1, "", place), replication)
    except NotDeterministicError as error:
        raise ContractError(str(error)) from error
    for verdict in (Commit.CRASHED, Commit.FAILED):
        _check_turns(scenario, place, kind, verdict)
    lossy = _scenario(use, kind, dict(config or {}), place, {"fault": _faults(kind)})
    for replication in range(replications):
        _World(lossy, place, kind).run(replication, "with lost messages")
    broken = [each for each in broken_promises(kind, actor, config) if each.level == "error"]
    if broken:
        raise ContractError("\n".join(map(str, broken)))


def _check_turns(scenario: Scenario, folder: Path, kind: str, verdict: Commit) -> None:
    """Let each of the actor's turns fail to commit, one a replication."""
    world = _World(scenario, folder, kind)
    world.run(0, "in a world without faults")
    for turn in range(min(world.turns, CRASHES_LIMIT)):
        world.failing, world.verdict = turn, verdict
        world.run(0, f"where {verdict.value} in its turn {turn + 1}")


def _faults(kind: str) -> list[dict[str, Any]]:
    ways = ({"from": kind}, {"to": kind})
    return [{"kind": "drop", "probability": DROPPED, **way} for way in ways]


def _scenario(
    use: str, kind: Kind, config: dict[str, Any], folder: Path, more: dict[str, Any]
) -> Scenario:
    """Return the world: three runs, half a minute from one to the next."""
    data: dict[str, Any] = {
        "schema": 1,
        "name": "contract",
        "run": {"limit": "3d"},  # the server itself ends after one day what nobody reports
        "server": {"reconcile": True},
        "engine": {"duration": "uniform(5s, 40s)"},
        "workload": {"runs": 3, "every": "30s"},
        **({"step": list(_STEPS)} if kind == "owner" else {}),
        **more,
    }
    known = fields_of(config_class(actor_class(kind, use, folder)))
    given = {key: value for key, value in data.get(kind, {}).items() if key in known}
    data[kind] = {**given, **config, "use": use}
    decoder = Decoder(Source(str(foreign_path(use, folder)[0]), "", data))
    scenario = CellLoader(decoder, data, folder).load()
    decoder.finish()
    assert scenario is not None, "a cell without problems is a scenario"
    return scenario


class _World:
    """The scenario, observed: what was committed of runs, and which turn is to fail."""

    def __init__(self, scenario: Scenario, folder: Path, kind: str) -> None:
        self.kind = kind
        self.turns = 0
        self.failing: int | None = None
        self.verdict = Commit.DONE
        self._cell = CellRun(scenario, 1, "", folder, self._commit)
        self._happened: dict[tuple[str, str], int] = {}
        for event in ("run.queued", "engine.started", "run.terminal"):
            self._cell.simulator.watch(event, self._watcher(event))

    def _watcher(self, event: str) -> Callable[[int, dict[str, Any]], None]:
        def told(_now_us: int, fields: dict[str, Any]) -> None:
            key = (event, fields["run"])
            self._happened[key] = self._happened.get(key, 0) + 1

        return told

    def _commit(self, context: ActorContext, journal: Sequence[Undo]) -> Commit:
        fails = False
        if context.name == self.kind:
            fails = self.turns == self.failing
            self.turns += 1
        return self.verdict if fails else Commit.DONE

    def run(self, replication: int, where: str) -> None:
        """Run one replication; ContractError if it doesn't end, or ends with a promise broken."""
        self.turns = 0
        self._happened.clear()
        try:
            self._cell.simulator.run(replication)
        except ActorFailedError as error:
            cause = error.__cause__
            sentence = f"{where}: {error}: {type(cause).__name__}: {cause}"
            raise ContractError(sentence) from cause
        except SimulationError as error:
            raise ContractError(f"{where}: {error}") from error
        for (event, run), count in self._happened.items():
            if count > 1:
                raise ContractError(f"{where}: {event} happened {count} times for the run {run}")
            if event == "run.queued" and ("run.terminal", run) not in self._happened:
                raise ContractError(f"{where}: the run {run} never ended")
