"""What a terminal is told: colours, its width, and how far a run is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from scenarios.choices import Color
from scenarios.problems import printable

Report = Callable[[int, int], None]
LINE_S = 30.0  # how often progress is told where no bar can be drawn
BAR_S = 0.5  # a run that is over by then needs no bar
PIPED_COLUMNS = 100  # what is no terminal has room, but people look at it

_color: Color = "auto"


def set_color(color: Color) -> None:
    """Choose whether output is coloured; `auto` colours terminals unless NO_COLOR is set."""
    global _color  # noqa: PLW0603  one choice for the process, made by a flag
    _color = color


def colored(stream: IO[str]) -> bool:
    """Whether what goes to the stream is coloured."""
    if _color != "auto":
        return _color == "always"
    dumb = os.environ.get("TERM") == "dumb"
    return stream.isatty() and not os.environ.get("NO_COLOR") and not dumb


def width_columns(stream: IO[str]) -> int:
    """Return the width of a terminal; COLUMNS or 100 for what is none."""
    fallback = shutil.get_terminal_size((PIPED_COLUMNS, 24)).columns
    if not stream.isatty():
        return fallback if os.environ.get("COLUMNS") else PIPED_COLUMNS
    return fallback


def write_outside_text(text: str) -> None:
    """Write to stdout what a model, a script or another user wrote, and end its line.

    A file or a pipe gets it as it is. On a terminal control characters are shown as signs: they
    could move its cursor, hide text or fill its clipboard.
    """
    if sys.stdout.isatty():
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextmanager
def progress(wanted: bool) -> Iterator[Report | None]:
    """Tell on stderr how far a run is: a bar with the time left, or a line every 30 s."""
    if not wanted:
        yield None
    elif sys.stderr.isatty():
        with ExitStack() as stack:
            yield _Bar(stack).report
    else:
        yield _Lines().report


class _Lines:
    """A line now and then, for logs of machines."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._begun: tuple[float, int] | None = None

    def report(self, done: int, total: int) -> None:
        """Print a line if the last one is old enough."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = now, done  # a resumed run has done some already
        begun, before = self._begun
        if now - self._last < LINE_S or done <= before:
            return
        self._last = now
        left_s = (now - begun) * (total - done) / (done - before)
        sys.stderr.write(
            f"pullcord: {done:,} of {total:,} replications, about {left_s:.0f} s left\n"
        )
        sys.stderr.flush()


class _Bar:
    """A bar, begun when a run proves to take a while: it has a thread, and forks come before."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._begun = time.monotonic()
        self._update: Report | None = None

    def report(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._update is None:
            if not done or time.monotonic() - self._begun < BAR_S:
                return
            self._update = self._stack.enter_context(_bar())
        self._update(done, total)


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    console = Console(stderr=True, no_color=not colored(sys.stderr))
    columns = (TextColumn("replications"), BarColumn(), MofNCompleteColumn(), TimeLeft())
    with Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
