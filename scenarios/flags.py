"""The flags of commands, with what --help says of them; apart from what they do, to be light."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from scenarios.choices import Color, Driver, Format, Logs, Processes, Transport


def flag(meaning: str, *names: str) -> Parameter:
    """Return how a flag is called, if not by its field's name, and what --help says of it."""
    return Parameter(name=list(names) or None, help=meaning, negative="")


def switch(meaning: str, *names: str) -> Parameter:
    """Return the same for a flag that takes no value."""
    return Parameter(name=list(names) or None, help=meaning, negative="", show_default=False)


@dataclass(frozen=True, kw_only=True)
class CellFlags:
    """What `run` and `check` share: which cells, how often, and what is set."""

    seed: Annotated[int | None, flag("The seed of all chance.")] = None
    replications: Annotated[
        int | None, flag("How many replications of each cell.", "--replications", "-n")
    ] = None
    cell: Annotated[
        str | None, flag("This cell alone, named by its label, part of it, or its value.")
    ] = None
    contains: Annotated[
        str | None, flag("The cells whose label contains this text.", "-k", "--contains")
    ] = None
    set: Annotated[
        list[str] | None, flag("Set a key, as in --set relay.poll=5s; may be given several times.")
    ] = None
    jobs: Annotated[
        int | None, flag("How many processes; by default one a core.", "--jobs", "-j")
    ] = None
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class RunFlags(CellFlags):
    """The flags of `run`."""

    replication: Annotated[
        int | None,
        flag("This one replication alone, counted from 0; expectations on many are not judged."),
    ] = None
    executor: Annotated[
        str | None, flag("module:factory of a concurrent.futures.Executor to run on instead.")
    ] = None
    driver: Annotated[
        Driver | None,
        flag("What drives the actors: sim, under a virtual clock; trio, as real tasks, as any "
             "--transport but memory asks for by itself."),
    ] = None  # fmt: skip
    transport: Annotated[
        Transport, flag("What carries the messages: memory; tcp and unix, real sockets here.")
    ] = "memory"
    processes: Annotated[
        Processes,
        flag("Over sockets, where actors live: in one process; or separate, each in its own, which "
             "kill, pause and suspend then do by signals."),
    ] = "one"  # fmt: skip
    speed: Annotated[
        float, flag("Over sockets, how many seconds of the scenario pass in one of the clock's.")
    ] = 20.0
    patience: Annotated[
        str,
        flag("The real time that one instant of scenario time may take before it is stuck."),
    ] = "10s"
    out: Annotated[
        Path | None, flag("The results folder; by default a new one, which the last line names.")
    ] = None
    logs: Annotated[
        Logs,
        flag("Whose logs are kept: none; failed, those in trouble and the extremes of what "
              "failed; all."),
    ] = "none"  # fmt: skip
    format: Annotated[Format, flag("What is printed on stdout.")] = "text"
    resume: Annotated[
        Path | None, flag("Go on with the interrupted run in this results folder.")
    ] = None
    inconclusive: Annotated[
        Literal["fail", "warn"],
        flag("Whether an inconclusive expectation makes the exit code 3, or is only said."),
    ] = "fail"
    quiet: Annotated[bool, switch("Print what failed, and the last line.", "--quiet", "-q")] = False
    verbose: Annotated[
        bool, switch("Print every expectation with its reason.", "--verbose", "-v")
    ] = False
    report: Annotated[
        bool, switch("Write report.html into the results folder, for people without pullcord.")
    ] = False
    no_progress: Annotated[bool, switch("Don't tell on stderr how far the run is.")] = False

    def fixed_by_a_run(self) -> list[str]:
        """Return the flags that were given although a resumed run has its own."""
        given = {
            "--seed": self.seed,
            "--replications": self.replications,
            "--replication": self.replication,
            "--cell": self.cell,
            "-k": self.contains,
            "--set": self.set,
            "--out": self.out,
            "--logs": None if self.logs == "none" else self.logs,
            "--driver": self.driver,
            "--transport": None if self.transport == "memory" else self.transport,
            "--processes": None if self.processes == "one" else self.processes,
        }
        return [name for name, value in given.items() if value is not None]
