"""The command that shows a result again: what every failure prints, and every log's header has."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from scenarios.load import Plan
from scenarios.overrides import parse_override
from scenarios.shipped import shown
from scenarios.sweep import value_text


def flags_of(plan: Plan) -> tuple[str, ...]:
    """Return the flags that make a plan from its file again."""
    words = ["--seed", str(plan.run.seed)]
    for key, value in plan.overrides.items():
        if key == "run.replications":
            words += ["-n", str(value)]
        elif key != "run.seed":
            text = f"{key}={value_text(value)}"
            if parse_override(text).value != value:  # text that looks like something else
                text = f"{key}={msgspec.json.encode(value).decode()}"
            words += ["--set", text]
    return (*words, *plan.host)


def command(
    path: str, flags: Sequence[str], label: str = "", replication: int | None = None
) -> str:
    """Return the command that runs a file again: a cell of it, one replication with its log."""
    words = _command(path, tuple(flags), label)
    return words if replication is None else f"{words} --replication {replication} --logs all"


@lru_cache(maxsize=64)
def _command(path: str, flags: tuple[str, ...], label: str) -> str:
    """Return the part that is the same for each replication: a log has it in each header."""
    return shlex.join(["pullcord", "run", path, *flags, *(["--cell", label] if label else [])])


def again(plan: Plan, label: str = "", replication: int | None = None) -> str:
    """Return the command that shows a cell of a plan again; of two cells (`A : B`), the plan."""
    one = label if any(cell.label == label for cell in plan.cells) else ""
    return command(shown(plan.path), flags_of(plan), one, replication)
