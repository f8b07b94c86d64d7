"""The commands: each turns its flags into a call, prints what came of it, returns the exit code.

What a command does is imported when it runs: its --help needs none of it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from scenarios.choices import Color, Format
from scenarios.flags import CellFlags, RunFlags, flag, switch

if TYPE_CHECKING:
    from scenarios.load import Plan
    from scenarios.render import Text
    from scenarios.results import Exit, Results
    from scenarios.runner import Options

Flat = Parameter(name="*")  # a class's fields are flags of their own
Files = flag("Scenario files, folders of them, or shipped ones: @published, @published/cancel.")
PLAN_HELP = (
    "Run a few replications; say how long all would take, and how sharp each figure would be."
)
NO_FLAGS = RunFlags()
NO_CELL_FLAGS = CellFlags()


def run(
    targets: Annotated[list[str] | None, Files] = None,
    /,
    *,
    flags: Annotated[RunFlags, Flat] = NO_FLAGS,
) -> int:
    """Run scenarios and judge them: results on stdout and in a folder, all else on stderr."""
    from scenarios.request import options_of, refuse_with_resume
    from scenarios.terminal import set_color

    set_color(flags.color)
    if flags.resume is not None:
        refuse_with_resume([*(["a scenario"] if targets else []), *flags.fixed_by_a_run()])
    results = execute(targets or [], options_of(targets, flags), flags)
    code = show(results, flags.format, verbose=flags.verbose, quiet=flags.quiet)
    if flags.report and results.interrupted is None and results.folder is not None:
        from scenarios.report.command import write_report

        stream = sys.stdout if flags.format == "text" else sys.stderr
        stream.write(f"report in {write_report(results.folder, None, None)}\n")
    return 0 if code == 3 and flags.inconclusive == "warn" else code


def execute(targets: list[str], options: Options, flags: RunFlags) -> Results:
    """Run the targets, or go on with what is in a results folder."""
    from scenarios.folder import Folder
    from scenarios.run import default_base, default_name, head_of, load_plans, resume
    from scenarios.runner import Runner
    from scenarios.terminal import progress

    with progress(not (flags.no_progress or flags.quiet)) as report:
        if flags.resume is not None:
            return resume(flags.resume, report, options.jobs, options.executor)
        plans = load_plans(targets, options)
        head = head_of(plans, options)
        if flags.out is not None:
            folder = Folder.create(flags.out, head)
        else:
            folder = Folder.create_numbered(default_base(), default_name(plans, targets), head)
        return Runner(plans, options, folder, report).run()


def show(results: Results, format: Format, *, verbose: bool, quiet: bool) -> int:
    """Print results on stdout, or why there are none on stderr; return the exit code."""
    if results.interrupted is not None:
        from scenarios.folder import resuming

        assert results.folder is not None, "a command writes into a folder"
        sys.stderr.write(
            f"pullcord: {results.interrupted}; {results.replications:,} replications are kept\n"
            f"help: go on with it: {resuming(results.folder)}\n"
        )
    elif format != "text":
        from scenarios.formats import FORMATS

        sys.stdout.write(FORMATS[format](results))
    else:
        out = printer(verbose=verbose, quiet=quiet)
        out.show(results)
        if verbose:
            from scenarios.report.bars import levels
            from scenarios.report.command import show_bars

            show_bars(results, out, levels(sys.stdout.encoding))
    return int(results.exit)


def printer(*, verbose: bool = False, quiet: bool = False) -> Text:
    """Return what prints for people on stdout."""
    from scenarios.render import Text
    from scenarios.terminal import colored, width_columns

    return Text(
        sys.stdout,
        width_columns(sys.stdout),
        colored=colored(sys.stdout),
        verbose=verbose,
        quiet=quiet,
    )


def report(
    results: Annotated[Path, flag("A results folder, or the results.json in it.")],
    /,
    *,
    out: Annotated[
        Path | None, flag("The file to write; by default report.html in the folder.")
    ] = None,
    svg: Annotated[Path | None, flag("A folder that gets each plot as an SVG file.")] = None,
    text: Annotated[
        bool, switch("Print the results with each metric's distribution instead.")
    ] = False,
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:
    """Write one HTML file about a run, for people without pullcord; print where it is."""
    from scenarios.report.command import show_text, write_report
    from scenarios.terminal import set_color

    set_color(color)
    if text:
        from scenarios.problems import Problem, ScenarioError
        from scenarios.report.bars import levels

        if out is not None or svg is not None:
            message = "prints on the terminal, so --out and --svg can't be given"
            raise ScenarioError([Problem(path="--text", message=message)])
        show_text(results, printer(), levels(sys.stdout.encoding))
        return 0
    sys.stdout.write(f"{write_report(results, out, svg)}\n")
    return 0


def check(
    targets: Annotated[list[str], Files],
    /,
    *,
    plan: Annotated[bool, switch(PLAN_HELP)] = False,
    flags: Annotated[CellFlags, Flat] = NO_CELL_FLAGS,
) -> int:
    """Check scenario files without running them."""
    from scenarios.request import options_of
    from scenarios.results import worst
    from scenarios.run import load_plans
    from scenarios.terminal import set_color

    set_color(flags.color)
    options = options_of(targets, flags)
    plans = load_plans(targets, options, to_run=plan)
    return int(worst([_check(one, options, plan) for one in plans]))


def _check(one: Plan, options: Options, plan: bool) -> Exit:
    """Print that a file is valid, and what running it would do."""
    from scenarios.render import plural
    from scenarios.results import Exit, Results
    from scenarios.runner import chosen_cells

    chosen = chosen_cells(one, options)
    size = sum(one.scenarios[index].run.replications for index in chosen)
    out = printer()
    out.line(
        f"{one.path}: {one.name} is valid: {plural(len(chosen), 'cell')}, "
        f"{plural(size, 'replication')}, {plural(len(one.expects), 'expectation')}"
    )
    if not (plan and chosen):
        return Exit.OK
    from scenarios.preview import preview

    seen = preview(one, options)
    out.preview(seen)
    if seen.pilot.troubles:
        out.failures(Results([seen.pilot], None))
    return seen.pilot.exit if seen.pilot.troubles else Exit.OK


def explore(
    targets: Annotated[list[str], Files],
    /,
    *,
    budget: Annotated[str, flag("The real time for each scenario.")] = "60s",
    plans: Annotated[
        int | None, flag("So many plans for each scenario, instead of a time.", "--plans", "-n")
    ] = None,
    seed: Annotated[int, flag("The seed of the plans.")] = 1,
    jobs: Annotated[
        int | None, flag("How many processes; by default one a core.", "--jobs", "-j")
    ] = None,
    out: Annotated[
        Path | None,
        flag("The folder for the files that show what was found; by default beside the results."),
    ] = None,
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:
    """Try random fault plans, one a replication, until a check does not hold: exit 1 if one did."""
    from scenarios.explore_report import explore_all
    from scenarios.request import explore_limits
    from scenarios.run import default_base
    from scenarios.terminal import set_color

    set_color(color)
    limits = explore_limits(targets, budget, plans, seed, jobs)
    return explore_all(targets, limits, out or default_base() / "explored", printer())


def shrink(
    target: Annotated[str, flag("A log, a results folder, a scenario file, or a shipped one.")],
    /,
    *,
    seed: Annotated[int | None, flag("The seed of all chance, of a scenario file.")] = None,
    cell: Annotated[
        str | None, flag("This cell alone, named by its label, part of it, or its value.")
    ] = None,
    replication: Annotated[
        int | None,
        flag("This replication alone, counted from 0; by default the first that fails."),
    ] = None,
    check: Annotated[
        str | None, flag("The check that must still fail; by default the first that does.")
    ] = None,
    budget: Annotated[
        str, flag("The real time for finding what fails, and again for making it smaller.")
    ] = "60s",
    jobs: Annotated[int | None, flag("How many processes; by default one.", "--jobs", "-j")] = None,
    out: Annotated[
        Path | None, flag("The file to write; by default NAME-min.toml in this folder.")
    ] = None,
    force: Annotated[bool, switch("Write over a file that is there already.")] = False,
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:
    """Find the smallest scenario in which the same check fails: exit 0 written, 3 nothing fails."""
    from scenarios.log_sections import at_least
    from scenarios.shrink_report import limits_of, shrink_target
    from scenarios.shrink_start import Wanted
    from scenarios.terminal import set_color

    set_color(color)
    at_least("--seed", seed, 0)
    at_least("--replication", replication, 0)
    wanted = Wanted(seed=seed, cell=cell, replication=replication, check=check)
    return shrink_target(target, wanted, limits_of(budget, jobs, out, force=force), printer())


def replay(
    log: Annotated[Path, flag("A log file, or a results folder.")],
    /,
    *,
    actor: Annotated[str | None, flag("Compare this actor's turns alone.")] = None,
    from_: Annotated[
        str | None, flag("Compare from this record on, or from a time as 12.5s.", "--from")
    ] = None,
    until: Annotated[str | None, flag("Stop behind this record, or at a time.")] = None,
    cell: Annotated[
        str | None, flag("This cell alone, named by its label, part of it, or its value.")
    ] = None,
    replication: Annotated[int | None, flag("This replication alone, counted from 0.")] = None,
    folder: Annotated[
        Path | None, flag("Where the scenario's own actors lie; by default where they lay.")
    ] = None,
    step: Annotated[
        bool, switch("Step through one replication, forwards and backwards, instead.")
    ] = False,
    plain: Annotated[bool, switch("Step line by line, and not on a whole screen.")] = False,
    to_scenario: Annotated[
        Path | None,
        flag("Write a scenario for the simulator, whose messages come in the log's order."),
    ] = None,
    format: Annotated[Literal["text", "json"], flag("What is printed on stdout.")] = "text",
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:
    """Run what a log recorded again, and show where it first differs: exit 4 if it does."""
    from scenarios.log_commands import lines
    from scenarios.log_sections import chosen, clash, the_one
    from scenarios.replay import window_of
    from scenarios.replay_report import report, write_scenario

    if step or plain:
        from scenarios.step_command import refuse_others
        from scenarios.step_command import step as step_through
        from scenarios.terminal import set_color

        set_color(color)
        refuse_others({"--until": until, "--to-scenario": to_scenario, "--format": format})
        return step_through(
            log,
            cell=cell,
            replication=replication,
            actor=actor,
            first=from_,
            folder=folder,
            plain=plain,
        )
    if to_scenario is not None:
        given = {"--actor": actor, "--from": from_, "--until": until}
        given["--format json"] = format if format != "text" else None
        clash("--to-scenario", "makes a scenario of the whole section", given)
        entry = the_one(log, cell, replication)
        return write_scenario(entry, folder, to_scenario, lines(color))
    window = window_of(actor, from_, until)
    return report(chosen(log, cell, replication), window, folder, lines(color), format)


def proxy(
    file: Annotated[Path | None, flag("Faults, as scenario files have them; may be one.")] = None,
    /,
    *,
    listen: Annotated[str | None, flag("Where clients connect, HOST:PORT.")] = None,
    upstream: Annotated[str | None, flag("The service behind it, HOST:PORT.")] = None,
    control: Annotated[str | None, flag("Where the HTTP API listens, HOST:PORT.")] = None,
    seed: Annotated[int | None, flag("The number that all chance comes from.")] = None,
) -> int:
    """Stand in front of a TCP service and break its connections, until Ctrl-C."""
    from scenarios.proxy import load_proxy, run_proxy

    return run_proxy(load_proxy(file, listen=listen, upstream=upstream, control=control, seed=seed))


def names(
    topic: str | None = None,
    /,
    *,
    format: Literal["text", "json"] = "text",
) -> int:
    """Print what scenario files may refer to.

    Parameters
    ----------
    topic
        A word that narrows: a table, an event, a message, a fault.
    format
        What is printed on stdout.
    """
    from scenarios.names import render

    sys.stdout.write(render(topic, format))
    return 0


def schema() -> int:
    """Print the JSON Schema of scenario files, for editors."""
    from scenarios.json_text import indented
    from scenarios.schema import json_schema

    sys.stdout.write(indented(json_schema()))
    return 0


def new(
    what: str = "scenario",
    name: str | None = None,
    /,
    *,
    kind: str = "relay",
) -> int:
    """Write a starter; nothing is overwritten.

    Parameters
    ----------
    what
        scenario, actor, graph, or the file to write: my-first.toml, my_relay.py, my_graph.js.
    name
        The name of what is written.
    kind
        Which actor: relay, agent, engine, server.
    """
    from scenarios.starter import starter

    for line in starter(what, name, Path(), kind):
        sys.stdout.write(f"{line}\n")
    return 0
