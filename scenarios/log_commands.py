"""The commands of `pullcord log`: looking at logs that runs and deployments have written.

As in `commands`, each turns its flags into a call, and what it does is imported when it runs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from scenarios.choices import Color
from scenarios.flags import flag, switch

if TYPE_CHECKING:
    from scenarios.log_show import Lines

LogArgument = flag("A log file, or a results folder; may be a pipe, as /dev/stdin.")
CellFlag = flag("This cell alone, named by its label, part of it, or its value.")
ReplicationFlag = flag("This replication alone, counted from 0.")
ColorFlag = flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
FormatFlag = flag("What is printed on stdout.")
WHERE_HELP = (
    "What is wanted: actor=relay*, kind=drop, run=ID, event=run.*, t>=30s, "
    "message=GraphRun[status=completed], or any field=value; all given must hold."
)


def lines(color: Color) -> Lines:
    """Return what writes records on stdout."""
    from scenarios.log_show import Lines
    from scenarios.terminal import colored, set_color, width_columns

    set_color(color)
    return Lines(sys.stdout, width_columns(sys.stdout), colored=colored(sys.stdout))


def show(
    log: Annotated[Path, LogArgument],
    /,
    *,
    where: Annotated[list[str] | None, flag(WHERE_HELP, "--where", "-w")] = None,
    from_: Annotated[str | None, flag("Records from this time on, as in 30s.", "--from")] = None,
    to: Annotated[str | None, flag("Records up to this time.", "--to")] = None,
    cell: Annotated[str | None, CellFlag] = None,
    replication: Annotated[int | None, ReplicationFlag] = None,
    limit: Annotated[int | None, flag("So many records at most.", "--limit", "-n")] = None,
    causes: Annotated[
        int | None,
        flag("The record of this number, with what led to it and what it brought about."),
    ] = None,
    follow: Annotated[
        bool, switch("Go on with what is written to the file, until Ctrl-C.", "--follow", "-f")
    ] = False,
    json: Annotated[bool, switch("Print the lines as the file has them.")] = False,
    color: Annotated[Color, ColorFlag] = "auto",
) -> int:
    """Show a log's records, one a line: number, time, actor, and what happened."""
    from scenarios.log_sections import at_least, chosen, clash, the_one
    from scenarios.log_show import Choice, Following, show_causes
    from scenarios.log_show import show as show_sections
    from scenarios.log_where import parse_where

    wanted = parse_where(where or (), begin=from_, end=to)
    at_least("--limit", limit, 1)
    if causes is not None:
        given = {"--follow": follow or None, "--where": where, "--from": from_, "--to": to}
        clash("--causes", "shows one record's chain whole", given)
    choice = Choice(where=wanted, limit=limit, json=json)
    out = lines(color)
    if follow:
        Following(log, choice, out).run(cell, replication)
    elif causes is not None:
        show_causes(the_one(log, cell, replication), causes, choice, out)
    elif not show_sections(chosen(log, cell, replication), choice, out):
        sys.stderr.write("pullcord: no record is like that\n")
    return 0


def diff(
    left: Annotated[Path, LogArgument],
    right: Annotated[Path, LogArgument],
    /,
    *,
    cell: Annotated[str | None, CellFlag] = None,
    replication: Annotated[int | None, ReplicationFlag] = None,
    ignore_ids: Annotated[
        bool,
        switch(
            "Take ids that first appear at the same place for the same: for two cells or seeds."
        ),
    ] = False,
    color: Annotated[Color, ColorFlag] = "auto",
) -> int:
    """Find where two logs part, and what led to it: exit 0 if their records are equal, 1 if not."""
    from scenarios.log_diff import diff as compare
    from scenarios.log_sections import chosen

    one, other = ((path, chosen(path, cell, replication)) for path in (left, right))
    return compare(one, other, lines(color), ignore_ids=ignore_ids)


def stats(
    log: Annotated[Path, LogArgument],
    /,
    *,
    each: Annotated[bool, switch("Every section by itself too, not only the total.")] = False,
    cell: Annotated[str | None, CellFlag] = None,
    replication: Annotated[int | None, ReplicationFlag] = None,
    format: Annotated[Literal["text", "json", "csv"], FormatFlag] = "text",
    color: Annotated[Color, ColorFlag] = "auto",
) -> int:
    """Count a log's records by kind, actor and message, and say how long messages took."""
    from scenarios.log_sections import chosen
    from scenarios.log_stats import as_csv, as_json, figures, text
    from scenarios.terminal import colored, set_color, width_columns

    parts = list(figures(chosen(log, cell, replication), each=each))
    if format == "text":
        set_color(color)
        table = text(parts, width_columns(sys.stdout), colored=colored(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in table)
    else:
        sys.stdout.write(as_json(parts) if format == "json" else as_csv(parts))
    return 0


def story(
    run: Annotated[
        str, flag("The run, by its id or the beginning or end of it; or the log, to list its runs.")
    ],
    log: Annotated[Path | None, LogArgument] = None,
    /,
    *,
    cell: Annotated[str | None, CellFlag] = None,
    replication: Annotated[int | None, ReplicationFlag] = None,
    format: Annotated[Literal["text", "json"], FormatFlag] = "text",
    color: Annotated[Color, ColorFlag] = "auto",
) -> int:
    """Tell one run's story across the actors; of a log alone, list its runs."""
    from scenarios.json_text import indented
    from scenarios.log_story import list_runs, runs_of, show_story, tell
    from scenarios.terminal import colored, set_color, width_columns

    set_color(color)
    if log is not None:
        head, told = tell(log, run, cell, replication)
        if format == "json":
            sys.stdout.write(indented(told))
        else:
            show_story(head, told, lines(color))
        return 0
    found = list(runs_of(Path(run), cell, replication))
    if format == "json":
        sys.stdout.write(indented(found))
    else:
        table = list_runs(found, width_columns(sys.stdout), colored=colored(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in table)
    return 0


def check(
    log: Annotated[Path, LogArgument],
    /,
    *,
    check: Annotated[
        list[str] | None,
        flag("A check by its name, or file.py:function; by default all, and the scenario's own."),
    ] = None,
    cell: Annotated[str | None, CellFlag] = None,
    replication: Annotated[int | None, ReplicationFlag] = None,
    format: Annotated[Literal["text", "json"], FormatFlag] = "text",
    color: Annotated[Color, ColorFlag] = "auto",
) -> int:
    """Judge what must hold on a log: exit 0 held, 1 violated, 3 if nothing could be judged."""
    from scenarios.log_check import as_json, check_log, lines_of
    from scenarios.log_sections import chosen
    from scenarios.terminal import colored, set_color, width_columns

    set_color(color)
    report = check_log(chosen(log, cell, replication), check or ())
    if format == "json":
        sys.stdout.write(as_json(report))
    else:
        found = lines_of(report, width_columns(sys.stdout), colored=colored(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in found)
    return report.exit


def export(
    log: Annotated[Path | None, LogArgument] = None,
    /,
    *,
    to: Annotated[
        Literal["perfetto", "csv", "otlp-json", "lnav-format"],
        flag("For what: a trace for ui.perfetto.dev; a table; OpenTelemetry; the definition by "
             "which lnav reads our logs, which needs no log."),
    ],
    out: Annotated[Path | None, flag("The file that is written; by default stdout.")] = None,
    cell: Annotated[str | None, CellFlag] = None,
    replication: Annotated[int | None, ReplicationFlag] = None,
) -> int:  # fmt: skip
    """Write a log in the format of another tool."""
    from scenarios.log_export import export as write
    from scenarios.log_sections import chosen, refuse

    if log is None and to != "lnav-format":
        refuse("pullcord log export", "which log?", f"pullcord log export LOG --to {to}")
    entries = [] if log is None else chosen(log, cell, replication)
    write(entries, to, out)
    return 0
