"""Checks: what must hold in every replication, whatever the faults do, one file a check.

history   what a host observed of a replication, and the recorder and builder that make one
A check is a function that reads a history and yields its violations, each with the numbers of the
records that prove it; the first line of its docstring says what holds. `CHECKS` has them by name.
A user's own has the same form and is named as `file.py:function`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

from actors.errors import SimulationError
from scenarios.cast import ForeignActorError, foreign_path, load_file
from scenarios.checks.bounds_hold import bounds_hold
from scenarios.checks.cancelled_never_starts import cancelled_never_starts
from scenarios.checks.consent_respected import consent_respected
from scenarios.checks.converges_after_heal import converges_after_heal
from scenarios.checks.every_run_watched import every_run_watched
from scenarios.checks.executed_at_most_once import executed_at_most_once
from scenarios.checks.history import Check, History, Violation, history_of
from scenarios.checks.nothing_accepted_lost import nothing_accepted_lost
from scenarios.checks.nothing_queued_lost import nothing_queued_lost
from scenarios.checks.outbox_drains import outbox_drains
from scenarios.checks.result_from_engine import result_from_engine
from scenarios.checks.results_arrive import results_arrive
from scenarios.checks.same_key_one_run import same_key_one_run
from scenarios.checks.strangers_learn_nothing import strangers_learn_nothing
from scenarios.checks.terminal_never_changes import terminal_never_changes
from scenarios.problems import listed, quote, suggest
from scenarios.watchdog import Stop

__all__ = [
    "CHECKS",
    "Check",
    "CheckFailedError",
    "History",
    "Violation",
    "history_of",
    "judge",
    "load_check",
    "sentence_of",
]

CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        executed_at_most_once,
        same_key_one_run,
        nothing_queued_lost,
        nothing_accepted_lost,
        terminal_never_changes,
        cancelled_never_starts,
        result_from_engine,
        results_arrive,
        consent_respected,
        strangers_learn_nothing,
        bounds_hold,
        outbox_drains,
        every_run_watched,
        converges_after_heal,
    )
}


class CheckFailedError(SimulationError):
    """A check could not judge a history: one sentence with its name, and what it raised."""

    def __init__(self, check: str, sentence: str) -> None:
        self.foreign = check not in CHECKS  # whose mistake it is
        super().__init__(f"{check} {sentence}")


def sentence_of(check: Check) -> str:
    """Return what a check says holds: the first line of its docstring, "" if it has none."""
    return (inspect.getdoc(check) or "").partition("\n")[0]


def load_check(text: str, folder: Path) -> Check:
    """Return a user's own check, named as `file.py:function`.

    The file is looked for from `folder`, the scenario's own, and imported as a user's actors are.
    ForeignActorError with a cure if it can't be used.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        near = suggest(text, CHECKS)
        cure = f"did you mean {quote(near)}?" if near else 'write "my_checks.py:my_check"'
        raise ForeignActorError(f"{quote(text)} names no check", cure)
    path, _ = foreign_path(text, folder)
    module = load_file(path)
    candidate = getattr(module, name, None)
    if inspect.isfunction(candidate):
        _look(candidate)
        return candidate
    functions = [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    near = suggest(name, functions)
    has = listed(functions, last="and") if functions else "no function"
    cure = f"did you mean {quote(near)}?" if near else f"it has {has}"
    raise ForeignActorError(f"{path.name} has no function {name}", cure)


def _look(candidate: Check) -> None:
    """Raise ForeignActorError if a function is no check, as far as that can be seen."""
    try:
        inspect.signature(candidate).bind(None)
    except TypeError:
        raise ForeignActorError(
            f"{candidate.__name__} can't be called with a history alone",
            f"write def {candidate.__name__}(history)",
        ) from None
    if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
        raise ForeignActorError(f"{candidate.__name__} is asynchronous", "write def, not async def")


def judge(history: History, checks: Mapping[str, Check]) -> list[Violation]:
    """Return every violation that the checks find, in their order.

    CheckFailedError if one raises, or yields something else than violations.
    """
    found: list[Violation] = []
    for name, check in checks.items():
        try:
            violations = list(check(history))
        except Stop as stop:
            raise CheckFailedError(name, "did not end: an endless loop") from stop
        except Exception as error:  # whatever a user's check raises
            raise CheckFailedError(name, f"raised {type(error).__name__}: {error}") from error
        for violation in violations:
            if not isinstance(violation, Violation):
                raise CheckFailedError(name, f"yielded {violation!r}, which is no Violation")
        found += violations
    return found
