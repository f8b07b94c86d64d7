"""`pullcord tour`: the whole system on this machine in half a minute, killed twice, and narrated.

What is shown as a command is run as one, and times are those that it took.
"""

from __future__ import annotations

import json as json_text
import os
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, Final

from scenarios.graph_backends import EXTRA
from scenarios.graph_check import scripts_can_run
from scenarios.graph_files import SHIPPED, refusal
from scenarios.grid import painted
from scenarios.problems import printable
from scenarios.service.files import write_secret
from scenarios.service.stage import LIMIT_S, LOOK_S, Player, Stage, TourError
from scenarios.terminal import colored

WIDTH_COLUMNS: Final = 79
SHOWN_S: Final = 0.1  # what took less needs no word
BOLD, DIM = "1", "2"
RUNS: Final = 4  # more than a desktop runs here before it is started anew
PROJECT: Final = "tour"
GRAPH: Final = "@graphs/minutes"
# As `pullcord graph run @graphs/minutes` has them; and quick polls, so that nobody waits.
DESKTOP: Final = """\
backend = "recorded"
answers = {answers}
tools = {tools}
[relay]
poll = "500ms"
control = "200ms"
timeout = "2s"
[engine]
report = "300ms"
"""


class Tour:
    """One tour, told on stdout."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.begun_s = time.monotonic()
        self.listen = "127.0.0.1:0"
        self.chapter = 0

    def go(self) -> None:
        """Tell all of it. TourError where something did not happen."""
        self.say(
            "A server queues work for machines that nobody can connect to; a desktop dials it, "
            "runs its shared Graphs and posts the results; an agent has a ticket. All of it runs "
            f"here now, in {self.stage.folder}, which is gone at the end. What stands after $ are "
            "real commands, and every time is the one it took."
        )
        self.head("A server, and an agent that may call it")
        server = self.serve()
        token = self.run("agents", "add", "bot", shown="pc_agt_... (its token, this once)")
        self.stage.know(server=self.listen, token=token)
        self.head("A desktop is paired by a code, and dials the server")
        code = self.run("devices", "pair")
        self.run("desktop", "pair", code, "--name", "laptop")
        desktop = self.run_desktop()
        self.head("Its owner shares a Graph; an agent finds it")
        session = self.run("desktop", "share", GRAPH, "--project", PROJECT)
        self.until(lambda: self.quietly("agent", "list", PROJECT), "the server knew the session")
        self.run("agent", "list", PROJECT)
        desktop, first = self.desktop_is_killed(desktop, session)
        server, second = self.server_is_killed(server, session)
        self.count(first, second)
        self.end(desktop, server)

    def desktop_is_killed(self, desktop: Player, session: str) -> tuple[Player, str]:
        """A run that waits for its owner goes on on a desktop that was killed."""
        self.head("A run, and the desktop is killed in the middle of it")
        ticket = self.run("agent", "run", session).split()[0]
        call = self.until_asked(ticket)
        self.say(
            "The Graph runs. Its first agent has read files; its second wants to run a command, "
            "and the owner's settings let it do that only if the owner says so."
        )
        self.run("desktop", "approvals")
        self.kill(desktop)
        killed_s = time.monotonic()
        self.run("agent", "get", ticket)
        self.say("The ticket is good as long as the server keeps it. The desktop starts again:")
        desktop = self.run_desktop()
        again = self.until_asked(ticket)
        self.say(
            f"{time.monotonic() - killed_s:.1f} s after the kill the same call of the same run "
            "waits again: no agent was asked and no tool used a second time to get there."
        )
        self.check(again == call, "another call waits now")
        self.run("desktop", "approvals", "allow", ticket, str(call))
        self.run("agent", "wait", ticket)
        return desktop, ticket

    def server_is_killed(self, server: Player, session: str) -> tuple[Player, str]:
        """A result waits in the desktop's outbox while there is no server."""
        self.head("Another run, and the server is killed while it goes on")
        ticket = self.run("agent", "run", session).split()[0]
        call = self.until_asked(ticket)
        waiting = self.stage.start("agent", "agent", "wait", ticket)
        self.command(f"agent wait {ticket} &")
        self.show(waiting.wait_for("waiting for"))
        self.kill(server)
        killed_s = time.monotonic()
        self.run("desktop", "approvals", "allow", ticket, str(call))
        self.until(lambda: self.quietly("desktop", "outbox"), "the result came to the outbox")
        self.say("There is no server, but the Graph has gone on and ended. Its result is on disk:")
        self.run("desktop", "outbox")
        server = self.serve()
        self.check(waiting.end() == 0, "the agent did not get the result")
        self.say(
            f"{time.monotonic() - killed_s:.1f} s after the kill the agent, which waited all the "
            "time, has its result:"
        )
        self.show(waiting.out)
        return server, ticket

    def count(self, *tickets: str) -> None:
        """Say what became of every run, as the desktop and the logs have it."""
        self.head("What is left of it")
        self.run("desktop", "history")
        ran = json_text.loads(self.quietly("desktop", "history", "--json"))
        ended = sorted((one["command_id"], one["status"]) for one in ran)
        wanted = sorted((ticket, "completed") for ticket in tickets)
        self.check(ended == wanted, f"the history should have each run once, and has {ended}")
        for part in ("server", "desktop"):
            code, told, _ = self.stage.run("log", "check", str(self.stage.folder / part / "logs"))
            self.command(f"log check {part}/logs")
            self.show(told.splitlines()[-1] if told else "")
            self.check(code == 0, told)

    def end(self, desktop: Player, server: Player) -> None:
        """Stop both as a service manager would, and part."""
        self.check((desktop.stop(), server.stop()) == (0, 0), "they did not end as they should")
        took_s = time.monotonic() - self.begun_s
        self.say(
            f"Two runs, two kills, nothing lost, nothing run twice: {took_s:.0f} s. On machines of "
            "your own it is the same commands; docs/deploy.md has the rest."
        )

    # Processes

    def serve(self) -> Player:
        """Start the server, at its first address again."""
        words = ("server", "--listen", self.listen)
        self.command(" ".join(words))
        since_s = time.monotonic()
        server = self.stage.start("server", *words)
        line = server.wait_for("server listens on")
        self.listen = line.split(" on ")[1].split()[0]
        self.show(line.partition(";")[0], since_s)
        return server

    def run_desktop(self) -> Player:
        """Start the desktop."""
        self.command("desktop run")
        since_s = time.monotonic()
        desktop = self.stage.start("desktop", "desktop", "run")
        self.show(desktop.wait_for("connected to"), since_s)
        return desktop

    def kill(self, player: Player) -> None:
        """Kill a process as a power cut would."""
        self.command(f"kill -9 {player.group}", what="")
        player.kill()
        self.show(f"the {player.name} is gone")

    # Commands

    def run(self, *words: str, shown: str | None = None) -> str:
        """Run a command, and show it and what it prints; return its stdout. TourError."""
        self.command(" ".join(words))
        since_s = time.monotonic()
        code, out, err = self.stage.run(*words)
        self.show((out or err) if shown is None else shown, since_s)
        self.check(code == 0, err)
        return out.strip()

    def quietly(self, *words: str) -> str:
        """Run a command that is not shown; return its stdout."""
        return self.stage.run(*words)[1]

    def until_asked(self, ticket: str) -> int:
        """Wait until a call of a run waits for the owner; return its number."""

        def waiting() -> list[Any]:
            found = json_text.loads(self.quietly("desktop", "approvals", "--json"))
            return [one["call"] for one in found if one["run"] == ticket]

        return int(self.until(waiting, "the run came to ask its owner")[0])

    def until(self, look: Any, what: str) -> Any:
        """Look until there is something, and return it; TourError if there never is."""
        end_s = time.monotonic() + LIMIT_S
        while not (found := look()):
            if time.monotonic() > end_s:
                raise TourError(f"within {LIMIT_S:g} s it never was that {what}")
            time.sleep(LOOK_S)
        return found

    def check(self, holds: bool, otherwise: str) -> None:
        """Go on if something is as it must be; else TourError."""
        if not holds:
            raise TourError(otherwise)

    # Words

    def head(self, text: str) -> None:
        """Begin a chapter."""
        self.chapter += 1
        self.write(f"\n{self.chapter}. {text}", BOLD)

    def say(self, text: str) -> None:
        """Tell something."""
        self.write("\n" + textwrap.fill(text, WIDTH_COLUMNS, break_on_hyphens=False))

    def command(self, text: str, what: str = "pullcord ") -> None:
        """Show a command."""
        self.write(f"\n$ {what}{text}", DIM)

    def show(self, text: str, since_s: float | None = None) -> None:
        """Show what a command printed, and how long that took if it is worth a word."""
        lines = [f"  {line.removeprefix('pullcord: ')}" for line in text.splitlines()]
        took_s = 0.0 if since_s is None else time.monotonic() - since_s
        took = f"  ({took_s:.1f} s)"
        if took_s >= SHOWN_S and lines and len(lines[-1]) + len(took) <= WIDTH_COLUMNS:
            lines[-1] += took
        elif took_s >= SHOWN_S:
            lines.append(took)
        for line in lines:
            self.write(line)

    def write(self, text: str, style: str = "") -> None:
        """Write lines to stdout, whatever is in them."""
        for line in text.split("\n"):
            sys.stdout.write(painted(printable(line), style, colored(sys.stdout)) + "\n")
        sys.stdout.flush()


def run_tour() -> int:
    """Give a tour; return the exit code. ScenarioError if what it needs is missing."""
    if not scripts_can_run():
        raise refusal("pullcord tour", "Graphs need a JavaScript engine", EXTRA)
    with Stage() as stage:
        furnish(stage.folder)
        try:
            Tour(stage).go()
        except TourError as error:
            sys.stdout.flush()
            sys.stderr.write(f"pullcord: the tour ends here: {printable(str(error))}\n")
            return 1
    return 0


def furnish(folder: Path) -> None:
    """Write the desktop's settings."""
    desktop = folder / "desktop"
    desktop.mkdir(mode=0o700)
    answers, tools = folder / "answers.jsonl", SHIPPED / "minutes" / "tools.toml"
    # Each run uses its prompts' answers up.
    answers.write_text((SHIPPED / "minutes.answers.jsonl").read_text(encoding="utf-8") * RUNS)
    quoted = [json_text.dumps(os.fspath(path)) for path in (answers, tools)]
    text = DESKTOP.format(answers=quoted[0], tools=quoted[1])
    write_secret(desktop / "config.toml", text)
