"""`pullcord replay LOG --step`: on a whole screen where there is one, else line by line."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from logs.read import LogError
from logs.seek import raw_section
from scenarios.log_sections import chosen, is_deployed, refuse, the_one
from scenarios.log_show import title
from scenarios.problems import printable
from scenarios.step_files import stepper_of, stepper_of_process
from scenarios.step_lines import CommandError, go_to, moment_of, step_by_lines
from scenarios.stepper import Stepper
from scenarios.terminal import colored, width_columns


def step(
    log: Path,
    *,
    cell: str | None = None,
    replication: int | None = None,
    actor: str | None = None,
    first: str | None = None,
    folder: Path | None = None,
    plain: bool = False,
) -> int:
    """Step through one section of a log, from `first` on; return the exit code.

    `actor` is whose state is shown on the screen, by default that of each record's own. LogError if
    the section can't be stepped through, or for what is asked of it is not there.
    """
    screen = (
        not plain
        and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
        and os.environ.get("TERM") != "dumb"
    )
    if screen and find_spec("textual") is None:
        raise LogError(
            "--step", "the screen needs textual", "pip install 'pullcord[step]', or add --plain"
        )
    if is_deployed(entries := chosen(log)):
        from scenarios.service.replaying import the_start  # noqa: PLC0415  has every actor

        stepper = stepper_of_process(the_start(entries, replication))
    else:
        stepper = stepper_of(raw_section(the_one(log, cell, replication)).section(), folder)
    section = stepper.section
    try:
        if actor is not None:
            moment_of(stepper, actor)
        if first is not None:
            go_to(stepper, first)
    except CommandError as error:
        raise LogError(section.where, str(error), error.cure) from None
    # A long log has millions of objects that all stay: looking through them takes 0.1 s each time.
    gc.collect()
    gc.freeze()
    if screen:
        return _screen(stepper, actor)
    cut = "" if section.end is not None else ", cut before its end"
    head = f"{title(section.header)}: {len(section.records):,} records{cut}; help says what to type"
    sys.stdout.write(f"{printable(head)}\n")
    step_by_lines(
        stepper, sys.stdin, sys.stdout, width_columns(sys.stdout), prompt=sys.stdin.isatty()
    )
    return 0


def refuse_others(flags: Mapping[str, object]) -> None:
    """Raise ScenarioError for a flag that is given and means nothing while one steps."""
    for name, given in flags.items():
        if given not in (None, "text"):
            refuse(name, "means nothing with --step", f"leave {name} out, or --step and --plain")


def _screen(stepper: Stepper, actor: str | None) -> int:
    from scenarios.step_screen import StepScreen  # noqa: PLC0415  textual is an extra

    if not colored(sys.stdout):
        os.environ["NO_COLOR"] = "1"  # which is where textual looks
    screen = StepScreen(stepper, actor)
    screen.run()
    return 70 if screen.return_code else 0  # it has shown its own traceback
