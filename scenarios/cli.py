"""The command line: which commands there are, and what every one does with an error."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

HELP = """Test a queue-ticket-poll job system before you ship it.

Simulate it in seconds, break it, replay the failure.
Begin with: pullcord run @published

Exit codes: 0 passed, 1 failed, 2 bad file or flag, 3 inconclusive, 4 diverged,
130 interrupted, 143 terminated."""

# In the order of the help; each is imported only when it is called.
COMMANDS = {
    "run": "Run scenario files, folders of them, or shipped ones: FILE, DIR, @NAME.",
    "check": "Check a scenario file; --plan shows what it would do.",
    "report": "Write one HTML file about a run, for people without pullcord.",
    "new": "Write a starter scenario, actor or Graph.",
    "proxy": "Break TCP connections: a fault proxy in front of any service.",
    "explore": "Try random fault plans until a check does not hold.",
    "shrink": "Find the smallest scenario that still fails: LOG, FILE.",
    "replay": "Run a log again, and show the first difference: LOG.",
    "log": "Look at logs: show, diff, stats, story, check, export.",
    "graph": "Check, run and keep Graphs, JavaScript programs that run agents.",
    "server": "Serve desktops and agents: queue runs, hand out tickets, keep results.",
    "desktop": "Run shared Graphs on this machine for the agents of a server.",
    "devices": "As a server's owner: pair desktops, list and remove them.",
    "agents": "As a server's owner: add agents, list and remove them.",
    "owners": "As a server's owner: add owners with agents and desktops of their own.",
    "runs": "As a server's owner: see every run and what it waits for; cancel, forget.",
    "audit": "As a server's owner: who did what, denied reads too.",
    "link": "As a server's owner: print a link that signs you in to its pages.",
    "agent": "Call a server as an agent: list, run, get, cancel, wait.",
    "config": "Show what a server, desktop or agent is told, and where that was said.",
    "tour": "See all of it on this machine in half a minute, killed twice, and narrated.",
    "names": "Print what scenario files may refer to: keys, events, messages, faults, statistics.",
    "schema": "Print the JSON Schema of scenario files, for editors.",
}
# Those of `pullcord log`, likewise.
LOG_COMMANDS = {
    f"{__package__}.log_commands:show": "Show records, one a line; --causes follows one back.",
    f"{__package__}.log_commands:diff": "Find where two logs part, and what led to it.",
    f"{__package__}.log_commands:stats": "Count what a log has, and how long its messages took.",
    f"{__package__}.log_commands:story": "Tell one run's story: RUN LOG; of a LOG alone, its runs.",
    f"{__package__}.log_commands:check": "Judge again on a log what must hold.",
    f"{__package__}.log_commands:export": "Write a log for Perfetto, OpenTelemetry or lnav.",
}

# Those of `pullcord graph`, likewise.
GRAPH_COMMANDS = {
    f"{__package__}.graph_commands:run": "Run a Graph: FILE.js, a saved NAME, or @graphs/NAME.",
    f"{__package__}.graph_commands:check": "Look for mistakes in Graphs without running them.",
    f"{__package__}.graph_commands:list_": "List the saved and the shipped Graphs.",
    f"{__package__}.graph_commands:save": "Save a Graph under a name.",
    f"{__package__}.graph_commands:show": "Print a Graph's source.",
}

# Those of a deployment, likewise.
SERVICE = f"{__package__}.service.commands"
DESKS = f"{__package__}.service.desk_commands"
OWNERS = f"{__package__}.service.owner_commands"
RUNS = f"{__package__}.service.run_commands"
AGENTS = f"{__package__}.service.agent_commands"
DESKTOP_COMMANDS = {
    f"{SERVICE}:desktop_run": "Stay connected to a server, and run what it queues.",
    f"{SERVICE}:desktop_pair": "Make this desktop a device of a server's owner, by a code.",
    f"{DESKS}:desktop_share": "Let agents run a session, or a Graph as a new one.",
    f"{DESKS}:desktop_unshare": "Let agents run a session no more.",
    f"{DESKS}:desktop_sessions": "List the sessions.",
    f"{DESKS}:desktop_rename": "Give a session another name.",
    f"{DESKS}:desktop_remove": "Remove a session and its Graph.",
    f"{DESKS}:desktop_enable": "Let a project's shared sessions be run here again.",
    f"{DESKS}:desktop_disable": "Let no session of a project be run here.",
    f"{DESKS}:desktop_history": "List what ran here.",
    f"{DESKS}:desktop_outbox": "List the results that the server has not accepted yet.",
    f"{DESKS}:desktop_approvals": "List tool calls that wait for you; allow or deny one.",
    f"{DESKS}:desktop_status": "Print how this desktop stands; --watch again and again.",
}
DEVICES_COMMANDS = {
    f"{OWNERS}:devices_pair": "Print a code that pairs one desktop.",
    f"{OWNERS}:devices_list": "List the paired desktops.",
    f"{OWNERS}:devices_limit": "Say how many runs for a desktop may be open.",
    f"{OWNERS}:devices_revoke": "Remove a desktop.",
}
AGENTS_COMMANDS = {
    f"{OWNERS}:agents_add": "Add an agent, and print its token.",
    f"{OWNERS}:agents_list": "List the agents.",
    f"{OWNERS}:agents_renew": "Give an agent a new token.",
    f"{OWNERS}:agents_limit": "Say how many runs of an agent may be open.",
    f"{OWNERS}:agents_revoke": "Remove an agent.",
}
OWNERS_COMMANDS = {
    f"{OWNERS}:owners_add": "Add an owner, and print its token.",
    f"{OWNERS}:owners_list": "List the owners.",
    f"{OWNERS}:owners_renew": "Give yourself a new token, to ask from another machine.",
    f"{OWNERS}:owners_revoke": "Remove an owner.",
}
RUNS_COMMANDS = {
    f"{RUNS}:runs_list": "List the runs of your agents.",
    f"{RUNS}:runs_show": "Print all of a run, and what it waits for.",
    f"{RUNS}:runs_cancel": "Cancel a run.",
    f"{RUNS}:runs_forget": "Delete an ended run, before its time.",
}
AGENT_COMMANDS = {
    f"{AGENTS}:agent_list": "List the sessions that a project shares.",
    f"{AGENTS}:agent_run": "Queue a run of a session; --wait waits for its end.",
    f"{AGENTS}:agent_get": "Print how a run stands.",
    f"{AGENTS}:agent_cancel": "Cancel a run.",
    f"{AGENTS}:agent_wait": "Wait for a run's end, and print its result.",
}
CONFIG_COMMANDS = {
    f"{SERVICE}:config_show": "Print every setting of a server, desktop or agent, with its origin."
}
GROUPS = {
    "log": LOG_COMMANDS,
    "graph": GRAPH_COMMANDS,
    "desktop": DESKTOP_COMMANDS,
    "devices": DEVICES_COMMANDS,
    "agents": AGENTS_COMMANDS,
    "owners": OWNERS_COMMANDS,
    "runs": RUNS_COMMANDS,
    "agent": AGENT_COMMANDS,
    "config": CONFIG_COMMANDS,
}
# Commands whose functions are not in `commands`.
ELSEWHERE = {
    "server": f"{SERVICE}:server",
    "audit": f"{RUNS}:audit",
    "link": f"{OWNERS}:link",
    "tour": f"{SERVICE}:tour",
}


def application() -> App:
    """Return the command line as cyclopts knows it."""
    from cyclopts import App

    from transports.version import VERSION

    app = App(
        name="pullcord",
        help=HELP,
        version=VERSION,
        help_format="plaintext",
        result_action="return_value",
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
    )
    app["--help"].group = app["--version"].group = "Options"
    for order, (name, text) in enumerate(COMMANDS.items()):
        if name in GROUPS:
            app.command(_group(name, text, order, GROUPS[name]))
            continue
        module = ELSEWHERE.get(name, f"{__package__}.commands:{name}")
        app.command(module, name=name, help=text, sort_key=order)
    return app


def _group(name: str, text: str, order: int, commands: Mapping[str, str]) -> App:
    """Return a command that has commands of its own, each named as the function it calls."""
    from cyclopts import App

    group = App(name=name, help=text, version_flags=[], help_format="plaintext", sort_key=order)
    group["--help"].group = "Options"
    for place, (function, words) in enumerate(commands.items()):
        one = _name(function, name)
        group.command(function, name=one, help=words, sort_key=place)
    return group


def _name(function: str, group: str) -> str:
    """Return what a command is called: as its function, without the group's name before it.

    A function may not have a built-in's name.
    """
    return function.rpartition(":")[2].rstrip("_").removeprefix(f"{group}_")


def main() -> None:
    """Run the command line and exit with the code that its command returned."""
    _mend_streams()
    # A file's name may hold what the terminal's encoding has not: show it in escapes.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    from scenarios.signals import TERMINATED, term_as_interrupt

    with term_as_interrupt() as was_terminated:
        code = _guarded_call()
    sys.exit(TERMINATED if was_terminated() else code)


def _guarded_call() -> int:
    """Call the command and return its exit code; whatever it raises is told."""
    try:
        code = _call()
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("pullcord: interrupted")
        code = 130
    except BrokenPipeError:
        # Whoever read our output has left; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:  # noqa: BLE001  the last line of defence: nothing may pass it
        code = explain(error)
    return code


def _mend_streams() -> None:
    """Give what was closed by whoever started us (`>&-`) a place to write to."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  to the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  to the end


def _call() -> int:
    from cyclopts import CycloptsError, UnusedCliTokensError

    try:
        result = application()(sys.argv[1:], print_error=False)
    except CycloptsError as error:
        known = [word for word in sys.argv[1:2] if word in COMMANDS]
        if known and known[0] in GROUPS:
            commands = {_name(function, known[0]) for function in GROUPS[known[0]]}
            known += [word for word in sys.argv[2:3] if word in commands]
        message = str(error)
        if isinstance(error, UnusedCliTokensError):
            message = f"too many arguments: {shlex.join(error.unused_tokens or [])}"
        say(f"pullcord: {message}\nhelp: {' '.join(['pullcord', *known])} --help")
        return 2
    return result if isinstance(result, int) else 0


def say(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{text}\n")


def explain(error: Exception) -> int:
    """Say what went wrong, on stderr; return the exit code."""
    from logs.read import LogError
    from scenarios.folder import FolderError
    from scenarios.problems import ANSI, PLAIN, WIDTH_COLUMNS, ScenarioError, help_lines
    from scenarios.terminal import colored

    style = ANSI if colored(sys.stderr) else PLAIN
    if isinstance(error, ScenarioError):
        say(error.render(style=style))
        return 2
    if isinstance(error, FolderError):
        say(f"pullcord: {error}\nhelp: {error.cure}")
        return 2
    if isinstance(error, LogError):
        say(
            f"pullcord: {error}"
            + (f"\n{help_lines(error.cure, WIDTH_COLUMNS)}" if error.cure else "")
        )
        return 2
    if isinstance(error, OSError) and (error.filename or error.errno in _FULL):
        where = f"{error.filename}: " if error.filename else ""
        cure = _CURES.get(error.errno or 0)
        say(f"pullcord: {where}{error.strerror}" + (f"\nhelp: {cure}" if cure else ""))
        return 2
    import traceback

    traceback.print_exception(error)
    say("pullcord: this is a bug in pullcord; please report it with the lines above")
    return 70


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PLACE = "give another place, or change who may use this one"
_CURES = {
    **dict.fromkeys(_FULL, "free some space, then run it again"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _PLACE),
}
