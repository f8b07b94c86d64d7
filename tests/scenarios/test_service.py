"""The whole system as processes: killed in the middle, started again, and nothing lost or twice.

One server, one desktop that answers agents by a command which waits for a gate, and calls as an
agent makes them. What is waited for is a change that the server itself tells, or a line that a
process prints.
"""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any, Final, Self

import pytest
import trio

from actors.accounts.messages import AddAgent, NewPairingCode
from actors.messages import (
    CancelGraphRun,
    GetGraphRun,
    GraphRun,
    ListGraphSessions,
    RunGraphSession,
)
from scenarios.log_check import check_log
from scenarios.log_sections import chosen
from scenarios.service.agent import Agent
from scenarios.service.config import AgentSettings, ReachSettings, resolve
from scenarios.service.owner import Owner
from scenarios.service.pairing import pair
from tests.postgresql import address
from tests.scenarios.commandline import MAIN, Done, environment

LINE_S: Final = 20.0  # for a process to say something; a busy machine takes some seconds
PROJECT: Final = "shop"
GRAPH = """
export const meta = { name: "greet", description: "Greets one person." };
const words = await agent(`Greet ${args.who}`);
return { words, who: args.who };
"""
ANSWER = """#!/bin/sh
# Answers once the gate is open, and notes that it was asked.
read -r prompt
echo "$prompt" >> "{folder}/asked"
while [ ! -e "{folder}/gate" ]; do sleep 0.02; done
echo "Good day"
"""


class Process:
    """A process that stays, and the lines that it prints on stderr."""

    def __init__(self, folder: Path, told: dict[str, str], *command: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment(**told),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.out = ""
        self.ended = False
        self._coming: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self._coming.put(line.rstrip())
        self._coming.put(None)

    def wait_for(self, words: str) -> str:
        """The next line that has these words."""
        while True:
            line = self._coming.get(timeout=LINE_S)
            assert line is not None, f"it ended without {words!r}: {self.lines}"
            self.lines.append(line)
            if words in line:
                return line

    def kill(self) -> None:
        if not self.ended:
            self.popen.kill()
            self.end()

    def stop(self) -> int:
        self.popen.terminate()
        return self.end()

    def end(self) -> int:
        """Wait for its end; its exit code."""
        code = self.popen.wait(timeout=LINE_S)
        self._reader.join()
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self.out = self.popen.stdout.read()
        self.popen.stdout.close()
        self.popen.stderr.close()
        self.ended = True
        return code


class Deployment:
    """A server, a desktop that is paired with it, and an agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gate = folder / "gate"
        self.listen = "127.0.0.1:0"
        self.processes: list[Process] = []
        self.environment = {"PULLCORD_HOME": str(folder)}
        answer = folder / "answer"
        answer.write_text(ANSWER.format(folder=folder))
        answer.chmod(answer.stat().st_mode | stat.S_IXUSR)
        (folder / "desktop").mkdir()
        (folder / "desktop" / "config.toml").write_text(
            f'backend = "command"\ncommand = "{answer}"\n[relay]\npoll = "300ms"\n'
            'control = "100ms"\ntimeout = "1s"\n[engine]\nreport = "300ms"\n'
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind: what waits for the gate goes on, and every process is killed."""
        self.gate.touch()
        for process in self.processes:
            process.kill()

    def start(self, *command: str) -> Process:
        process = Process(self.folder, self.environment, *command)
        self.processes.append(process)
        return process

    def serve(self) -> Process:
        """Start the server, at its first address again."""
        server = self.start("-c", MAIN, "server", "--listen", self.listen)
        line = server.wait_for("server listens on")
        self.listen = line.split(" on ")[1].split()[0]
        return server

    def run_desktop(self) -> Process:
        desktop = self.start("-c", MAIN, "desktop", "run")
        desktop.wait_for("connected to")
        return desktop

    def introduce(self) -> None:
        """Add an agent, and pair the desktop."""
        nothing = resolve(AgentSettings, {}, None, environ={})
        owner = Owner(nothing, self.folder / "server" / "owner.sock")
        self.token = owner.ask(AddAgent(name="bot")).token
        reach = resolve(ReachSettings, {"server": self.listen}, None, environ={})
        code = owner.ask(NewPairingCode()).code
        assert pair(code, "laptop", reach.settings, reach.origins, self.folder / "desktop") == 0
        told = {"PULLCORD_SERVER": self.listen, "PULLCORD_TOKEN": self.token}
        self.agent = Agent(resolve(AgentSettings, {}, None, environ=told))
        self.environment |= told

    def share(self) -> None:
        """Share a Graph; then its file is gone, since it was saved as it was."""
        path = self.folder / "greet.js"
        path.write_text(GRAPH)
        done = self.command("desktop", "share", "greet.js", "--project", PROJECT)
        assert done.code == 0, done.err
        self.session = done.out.strip()
        path.unlink()

    def command(self, *args: str) -> Done:
        """Run a command to its end."""
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *args],
            cwd=self.folder,
            env=environment(**self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    # As an agent

    def ask(self, body: Any) -> Any:
        return trio.run(self.agent.call, body)

    def queue(self, who: str) -> str:
        """Queue a run; its ticket."""
        key = f"key of {who}"
        run: GraphRun = self.ask(
            RunGraphSession(
                graph_session_id=self.session, arguments={"who": who}, idempotency_key=key
            )
        )
        return run.command_id

    def until(self, ticket: str, *statuses: str) -> GraphRun:
        """The run once it has one of these statuses, which the server tells as it changes."""
        while True:
            run: GraphRun = self.ask(GetGraphRun(command_id=ticket, wait_us=20_000_000))
            if run.status in statuses:
                return run
            assert run.status in ("queued", "running"), run

    def names_asked(self) -> list[str]:
        """For whom the command was asked, each as often as it was."""
        lines = (self.folder / "asked").read_text().splitlines()
        return sorted(line.removeprefix("Greet ") for line in lines if line)

    def until_listed(self) -> None:
        """Wait for the desktop's first sync, before which nobody can know its session."""
        while not self.ask(ListGraphSessions(project_id=PROJECT)).sessions:
            threading.Event().wait(0.02)

    def until_asked(self, who: str) -> None:
        """Wait until the command that answers agents was asked for somebody."""
        while who not in self.names_asked():
            threading.Event().wait(0.02)


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path) as made:
        yield made


def test_a_run_goes_from_ticket_to_result_and_survives_every_kill(deployed: Deployment) -> None:
    everything_is_killed(deployed)


@pytest.mark.soak
def test_the_same_with_the_servers_runs_in_postgresql(deployed: Deployment) -> None:
    deployed.environment["PULLCORD_STORE"] = address()
    everything_is_killed(deployed)
    assert not (deployed.folder / "server" / "server.db").exists()


def test_what_was_recorded_is_done_again_and_has_no_secret(deployed: Deployment) -> None:
    """A server is killed while a run executes; both logs are replayed, that of the scripts too."""
    it = deployed
    it.environment["PULLCORD_RECORD"] = "1"
    (it.folder / "asked").touch()
    server = it.serve()
    it.introduce()
    desktop = it.run_desktop()
    it.share()
    it.until_listed()
    ticket = it.queue("Ada")
    it.until(ticket, "running")
    it.until_asked("Ada")
    server.kill()
    server = it.serve()
    it.gate.touch()
    assert it.until(ticket, "completed").result == {"words": "Good day", "who": "Ada"}
    assert (desktop.stop(), server.stop()) == (0, 0)
    for part, starts in (("server", 2), ("desktop", 1)):
        done = it.command("replay", str(it.folder / part), "--format", "json")
        assert done.code == 0, done
        told = json.loads(done.out)
        assert (told["equal"], told["replications"], told["left_out"]) == (True, starts, [])
        assert told["records"] > 50
    device = tomllib.loads((it.folder / "desktop" / "credentials.toml").read_text())["token"]
    key = (it.folder / "server" / "pairing.key").read_text().strip()
    for path in it.folder.glob("*/logs/*"):
        text = path.read_text()
        assert [secret for secret in (it.token, device, key) if secret in text] == []


def everything_is_killed(deployed: Deployment) -> None:
    server = deployed.serve()
    deployed.introduce()
    desktop = deployed.run_desktop()
    deployed.share()
    a_run_is_called_and_waited_for(deployed)
    server = the_server_is_killed_while_a_run_executes(deployed, server)
    desktop = the_desktop_is_killed_while_a_run_executes(deployed, desktop)
    server, desktop = both_are_killed_while_a_run_waits(deployed, server, desktop)
    what_ran_is_in_the_desktops_history(deployed)
    assert deployed.names_asked() == ["Ada", "Bob", "Cid", "Dan", "Eve", "Fay"], "each one once"
    assert (desktop.stop(), server.stop()) == (0, 0)
    the_logs_agree_and_have_no_payload(deployed)


def a_run_is_called_and_waited_for(it: Deployment) -> None:
    it.until_listed()
    it.gate.touch()
    it.until(it.queue("Ada"), "completed")
    done = it.command("agent", "run", it.session, "--args", '{"who": "Bob"}', "--wait")
    assert done.code == 0, done.err
    assert json.loads(done.out) == {"words": "Good day", "who": "Bob"}
    assert list((it.folder / "agent").iterdir()) == [], "its key is not needed any more"


def the_server_is_killed_while_a_run_executes(it: Deployment, server: Process) -> Process:
    """Who waits goes on waiting, and the result arrives."""
    it.gate.unlink()
    ticket = it.queue("Cid")
    it.until(ticket, "running")
    it.until_asked("Cid")
    waiting = it.start("-c", MAIN, "agent", "wait", ticket)
    waiting.wait_for("waiting for")
    server.kill()
    waiting.wait_for("waiting for it to come back")
    server = it.serve()
    assert it.ask(GetGraphRun(command_id=ticket)).status == "running"
    it.gate.touch()
    assert it.until(ticket, "completed").result == {"words": "Good day", "who": "Cid"}
    assert waiting.end() == 0
    assert json.loads(waiting.out)["who"] == "Cid"
    return server


def the_desktop_is_killed_while_a_run_executes(it: Deployment, desktop: Process) -> Process:
    """That run is interrupted, since it may have done anything, and the one behind it runs."""
    it.gate.unlink()
    ticket, behind = it.queue("Dan"), it.queue("Eve")
    it.until_asked("Dan")
    desktop.kill()
    it.gate.touch()
    desktop = it.run_desktop()
    assert it.until(ticket, "interrupted", "completed").status == "interrupted"
    assert it.until(behind, "completed").result["who"] == "Eve"
    told = it.command("agent", "get", ticket)
    assert (told.code, told.out) == (1, "")
    assert f"{ticket} is interrupted" in told.err
    return desktop


def both_are_killed_while_a_run_waits(
    it: Deployment, server: Process, desktop: Process
) -> tuple[Process, Process]:
    """It runs once both are there again; what was cancelled never starts."""
    desktop.kill()
    ticket, cancelled = it.queue("Fay"), it.queue("Gus")
    assert it.ask(CancelGraphRun(command_id=cancelled)).status == "cancelled"
    server.kill()
    server, desktop = it.serve(), it.run_desktop()
    assert it.until(ticket, "completed").result["who"] == "Fay"
    return server, desktop


def what_ran_is_in_the_desktops_history(it: Deployment) -> None:
    done = it.command("desktop", "history", "--json")
    assert done.code == 0, done.err
    ran = [(run["slug"], run["status"]) for run in json.loads(done.out)]
    assert sorted(ran) == [("greet", "completed")] * 5 + [("greet", "interrupted")]


def the_logs_agree_and_have_no_payload(it: Deployment) -> None:
    for part in ("server", "desktop"):
        logs = it.folder / part / "logs"
        report = check_log(chosen(logs))
        assert report.exit == 0, report
        text = "".join(path.read_text() for path in logs.iterdir())
        assert "Good day" not in text
        assert it.token not in text
