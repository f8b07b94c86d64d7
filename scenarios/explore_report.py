"""What `pullcord explore` prints and writes: a line a scenario, a file for each discovery."""

from __future__ import annotations

import shlex
from pathlib import Path

from scenarios.explore import Explored, explore, found_file
from scenarios.folder import unwritable
from scenarios.grid import Row
from scenarios.json_text import indented
from scenarios.load import Plan
from scenarios.render import STYLES, Text
from scenarios.request import ExploreLimits
from scenarios.run import load_plans
from scenarios.runner import Options

HEAD = ("scenario", "what broke", "plan", "replications", "a minute")


def explore_all(targets: list[str], limits: ExploreLimits, out: Path, text: Text) -> int:
    """Explore each cell of the targets; return the exit code, 1 if anything was found."""
    try:
        out.mkdir(parents=True, exist_ok=True)  # now, so that nothing is found in vain
    except OSError as error:
        raise unwritable(out, error) from None
    rows: list[Row] = []
    fired: dict[str, int] = {}
    broken = 0
    for plan in load_plans(targets, Options()):
        for index, cell in enumerate(plan.cells):
            seen = explore(
                plan,
                index,
                limits.seed,
                budget_s=limits.budget_s,
                plans=limits.plans,
                jobs=limits.jobs,
            )
            name = plan.name + (f" [{cell.label}]" if cell.label else "")
            rows.append(_row(name, seen))
            for kind, count in seen.fired.items():
                fired[kind] = fired.get(kind, 0) + count
            if seen.found is not None:
                broken += 1
                _tell(plan, index, limits.seed, seen, out, text, name)
    text.grid(HEAD, rows)
    text.line()
    counts = ", ".join(f"{kind}\xa0{fired[kind]:,}" for kind in sorted(fired))
    text.wrapped(f"faults fired: {counts}")
    return 1 if broken else 0


def _row(name: str, seen: Explored) -> Row:
    broke = "nothing" if seen.found is None else seen.found.check
    plan = "" if seen.found is None else f"{seen.found.plan}"
    rate = seen.replications / seen.seconds * 60 if seen.seconds else 0
    paint = {} if seen.found is None else {1: STYLES["fail"]}
    return Row((name, broke, plan, f"{seen.replications:,}", f"{rate:,.0f}"), paint)


def _tell(
    plan: Plan, index: int, seed: int, seen: Explored, out: Path, text: Text, name: str
) -> None:
    """Print what was found and how to see it again; write the file that shows it."""
    found = seen.found
    assert found is not None, "only a discovery is told"
    cell = f"-{index + 1}" if len(plan.cells) > 1 else ""
    path = out / f"{plan.name}{cell}-{seed}-{found.plan}.json"
    data = found_file(plan, index, seed, found)
    text.line(("violated", STYLES["fail"]), f" {found.check} {name}, plan {found.plan}:")
    text.line(f"  {found.sentence}")
    path.write_text(indented(data), encoding="utf-8")
    words = ["pullcord", "run", str(path), "--logs", "all"]
    text.line(f"  reproduce: {shlex.join(words)}")
    smaller = ["pullcord", "shrink", str(path), "--replication", str(found.plan)]
    text.line(f"  make it smaller: {shlex.join(smaller)}")
    text.line()
