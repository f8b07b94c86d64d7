"""What `pullcord shrink` prints and writes: the smallest scenario, verified twice.

The file is written under another name first, loaded and run by two new processes, and gets its own
name only if both saw the same.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import msgspec

from scenarios.cell import SECTIONS
from scenarios.executors import processes
from scenarios.json_text import indented
from scenarios.log_sections import refuse
from scenarios.overrides import TOP
from scenarios.render import STYLES, Text, plural
from scenarios.run import run
from scenarios.shrink import Data, Mapper, Search, shrink
from scenarios.shrink_firings import explicit_faults
from scenarios.shrink_start import HERE, Found, Wanted, find
from scenarios.shrink_steps import leaves, passes_of
from scenarios.shrink_trial import Goal, holds, replication_of, scenario_of_data, show
from scenarios.toml_text import toml_of
from scenarios.work import begin_worker
from transports.units import parse_duration

TELL_S = 0.2  # between two words of progress on a terminal
LINE_S = 10.0  # and where they are lines
NOTHING = 3  # the exit code where no check failed
VERIFIED = 2  # times that the file must show the same
ORDER = ("schema", "name", *TOP, *SECTIONS)  # of what stands in a file


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long the search may take, on how many processes, and where its file goes."""

    budget_s: float = 60.0
    jobs: int = 1
    out: Path | None = None
    force: bool = False


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """What a shrink came to: the data, what it shows, and the passes that the budget cut off."""

    data: Data
    sentence: str
    tries: int
    unfinished: list[str]


def limits_of(budget: str, jobs: int | None, out: Path | None, *, force: bool) -> Limits:
    """Return what the flags mean; ScenarioError for one that means nothing."""
    try:
        budget_s = parse_duration(budget) / 1e6
    except ValueError as error:
        refuse("--budget", str(error))
    if not budget_s:
        refuse("--budget", "must be above 0s")
    if jobs is not None and jobs < 1:
        refuse("--jobs", f"must be at least 1, not {jobs}", "leave it out for one")
    return Limits(budget_s=budget_s, jobs=jobs or 1, out=out, force=force)


def shrink_target(target: str, wanted: Wanted, limits: Limits, text: Text) -> int:
    """Find what a target shows, shrink it, and write it; return the exit code.

    0: written and verified. 1: the file did not show it again. 3: no check failed.
    """
    if limits.out is not None:
        _check_out(limits.out, force=limits.force)
    progress = _Progress(sys.stderr)
    begun = time.monotonic()
    found, tried = find(target, wanted, _late(limits.budget_s), progress.tried)
    if found is None:
        progress.end()
        text.line(f"nothing to shrink: no check failed in {plural(tried, 'replication')}")
        return NOTHING
    out = limits.out or Path(f"{found.start.data['name']}-min.toml")
    _check_out(out, force=limits.force)
    shrunk = shrunk_of(found, limits, progress.smaller)
    progress.end()
    tell(found, shrunk, time.monotonic() - begun, text)
    return _write(found, shrunk, out, text)


def shrunk_of(found: Found, limits: Limits, say: Callable[[Search], object] = bool) -> Shrunk:
    """Return the smallest data that shows what was found, as far as the budget goes."""
    start, goal = found.start, found.goal
    rules = start.rules._replace(timed=goal.timed, kind=goal.kind)
    explain = partial(explicit_faults, label=start.label, folder=HERE)
    with _mapper(limits.jobs) as mapper:
        search = Search(
            start.data,
            partial(holds, goal, start.label, HERE),
            mapper=mapper,
            width=limits.jobs,
            late=_late(limits.budget_s),
            say=say,
        )
        unfinished = shrink(search, passes_of(explain, rules))
    data = tidied(search.best)
    shown = show(data, start.label, HERE, goal=goal)
    return Shrunk(
        data=data, sentence=shown.sentence_of(goal), tries=search.tries, unfinished=unfinished
    )


@contextmanager
def _mapper(jobs: int) -> Iterator[Mapper]:
    if jobs == 1:
        yield map
        return
    with processes(jobs) as executor:
        yield executor.map


def _late(budget_s: float) -> Callable[[], bool]:
    until_s = time.monotonic() + budget_s
    return lambda: time.monotonic() > until_s


def tidied(data: Data) -> Data:
    """Return data in the order in which files have it, [run] without what is usual."""
    run = {key: value for key, value in data["run"].items() if (key, value) != ("replications", 1)}
    return {key: run if key == "run" else data[key] for key in ORDER if key in data}


def sizes(data: Data) -> dict[str, int]:
    """Return how much of each thing a scenario has."""
    scenario = scenario_of_data(data, HERE)
    found = {"faults": len(scenario.faults), "runs": 0}
    for one in scenario.cast:
        if one.kind == "agent":
            found["runs"] += int(getattr(one.config, "runs", 1))
    for kind in ("agent", "relay"):
        found[f"{kind}s"] = sum(one.kind == kind for one in scenario.cast)
    found["steps"], found["links"] = len(scenario.steps), len(scenario.links)
    found["replications"] = replication_of(data) + 1
    found["keys"] = sum(1 for _ in leaves(data))
    return found


def tell(found: Found, shrunk: Shrunk, seconds: float, text: Text) -> None:
    """Print what was taken away, and what is still shown."""
    before, after = sizes(found.start.data), sizes(shrunk.data)
    parts = [
        f"{name} {count:,} → {after[name]:,}"
        for name, count in before.items()
        if count != after[name] or name in ("faults", "runs")
    ]
    text.line(f"{', '.join(parts)}; {plural(shrunk.tries, 'candidate')}, {seconds:.1f} s")
    if shrunk.unfinished:
        text.line(f"the budget was up before these were done: {', '.join(shrunk.unfinished)}")
    what = f"violated {found.goal.check}" if found.goal.check else found.goal.kind
    text.line((what, STYLES["fail"]), f": {shrunk.sentence}")


# The file


def _check_out(out: Path, *, force: bool) -> None:
    """Refuse a file that is there already, or that could not be written."""
    if out.suffix not in (".toml", ".json"):
        refuse("--out", f"{out} is no name of a scenario file", "let it end in .toml")
    if not out.parent.is_dir():
        refuse("--out", f"there is no folder {out.parent}")
    if out.exists() and not force:
        refuse(str(out), "is there already", "give --force, or another name by --out")


def _write(found: Found, shrunk: Shrunk, out: Path, text: Text) -> int:
    draft = out.with_name(f".{out.stem}-{os.getpid()}{out.suffix}")
    try:
        draft.write_text(file_text(found, shrunk, out), encoding="utf-8")
        for _ in range(VERIFIED):
            problem = _differs(found.goal, draft)
            if problem:
                text.line(f"not written: run anew, the smallest scenario {problem}")
                return 1
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
    text.line(f"wrote {out}, verified by {VERIFIED} new processes")
    text.line(f"  reproduce: {shlex.join(['pullcord', 'run', str(out)])}")
    return 0


def file_text(found: Found, shrunk: Shrunk, out: Path) -> str:
    """Return the file: where it comes from, what it shows, and the scenario."""
    data = _with_files_near(shrunk.data, out.resolve().parent)
    if found.start.assignments:  # the cell's label names its chance
        swept = {key: [value] for key, value in found.start.assignments}
        data = {**data, "sweep": {"product": swept}}
    if out.suffix == ".json":
        return indented(data)
    head = (
        "The smallest scenario in which "
        + (f"{found.goal.check} does not hold:" if found.goal.check else f"{found.goal.words}:"),
        f"{shrunk.sentence}.",
        f"Found by pullcord shrink from {found.start.origin}.",
    )
    lines = [f"# {line}" for part in head for line in part.splitlines()]
    return "\n".join([*lines, toml_of(data)])


def _with_files_near(value: Any, folder: Path, key: str = "") -> Any:
    """Return data whose files are named from the scenario file's folder, if they lie below it."""
    if key in ("use", "check") and isinstance(value, str) and ".py:" in value:
        path = Path(value)
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else value
    if isinstance(value, dict):
        return {inner: _with_files_near(one, folder, inner) for inner, one in value.items()}
    if isinstance(value, list):
        return [_with_files_near(one, folder, key) for one in value]
    return value


def _differs(goal: Goal, path: Path) -> str:
    """Run a file in a new process; return how it shows something else, "" if it shows the goal."""
    import multiprocessing  # noqa: PLC0415  10 ms that only the end of a shrink needs
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  likewise

    spawn = multiprocessing.get_context("spawn")
    with (
        TemporaryDirectory(prefix="pullcord-", ignore_cleanup_errors=True) as folder,
        ProcessPoolExecutor(
            1, mp_context=spawn, initializer=begin_worker, initargs=(folder,)
        ) as executor,
    ):
        checks, kinds, code = executor.submit(ran, str(path)).result()
    if goal.check:
        if checks:
            return ""
    elif goal.kind in kinds:
        return ""
    what = ", ".join([*checks, *kinds]) or f"ends with exit code {code}"
    return f"shows something else: {what}"


def ran(path: str) -> tuple[list[str], list[str], int]:
    """Run a file as `pullcord run` does; return its violated checks, troubles and exit code."""
    results = run(path, jobs=1)
    (one,) = results.scenarios
    checks = [found.check for _, found in one.found]
    return checks, [trouble.kind for _, trouble in one.troubles], int(results.exit)


class _Progress:
    """Tells on stderr how small it is by now."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._every_s = TELL_S if self._terminal else LINE_S
        self._last = time.monotonic()

    def tried(self, count: int) -> None:
        """Say how many replications showed nothing."""
        if self._due():
            self._say(f"{plural(count, 'replication')}, and no check failed")

    def smaller(self, search: Search) -> None:
        """Say how small the best is."""
        if self._due():
            counts = sizes(search.best)
            words = f"faults {counts['faults']:,}, runs {counts['runs']:,}, keys {counts['keys']:,}"
            self._say(f"{words}; {plural(search.tries, 'candidate')} tried")

    def _due(self) -> bool:
        now = time.monotonic()
        due = now - self._last >= self._every_s
        if due:
            self._last = now
        return due

    def _say(self, words: str) -> None:
        self._stream.write(f"\r\x1b[K{words}" if self._terminal else f"pullcord: {words}\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the terminal's line empty."""
        if self._terminal:
            self._stream.write("\r\x1b[K")
