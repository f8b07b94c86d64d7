"""Graphs whose agents use tools, from the command line to the tool, with a terminal and without."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.actors.edges.leftovers import gone
from tests.actors.edges.tools import mcp_program

TOOLS = "@graphs/minutes/tools.toml"
MAIN = "from pullcord import main; sys.exit(main())"
RUN = (sys.executable, "-c", f"import sys; {MAIN}", "graph", "run")
# With a terminal of its own, whose keys are signals.
OWN = f"import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {MAIN}"
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A run without a terminal."""
    return subprocess.run(
        [*RUN, *words],
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )  # fmt: skip


def at_terminal(answer: Callable[[str], bytes], *words: str) -> tuple[int, str]:
    """A run at a terminal: `answer` is given what it shows, and says what is typed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", OWN, "graph", "run", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = ""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk.decode()
            if typed := answer(shown):
                os.write(ours, typed)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    return process.wait(60), shown


def once(question: str, typed: bytes) -> Callable[[str], bytes]:
    """Types something when a question is there, once."""
    open_ = [typed]

    def answer(shown: str) -> bytes:
        return open_.pop() if question in shown and open_ else b""

    return answer


def test_without_a_terminal_what_would_ask_is_denied() -> None:
    ended = run("@graphs/minutes", "--tools", TOOLS)
    assert ended.returncode == 0, ended.stderr
    assert "nobody can be asked here: tool calls that would wait are denied" in ended.stderr
    assert "reader has read_file: ok" in ended.stderr
    assert "counter: shell__count_words denied (by owner)" in ended.stderr
    assert "counter calls" not in ended.stderr
    assert msgspec.json.decode(ended.stdout)["words"] == 16


def test_without_settings_no_agent_has_a_tool() -> None:
    ended = run("@graphs/minutes")
    assert "reader does not get read_file: no permission" in ended.stderr
    assert "calls" not in ended.stderr


def test_for_programs_calls_and_approvals_are_events() -> None:
    ended = run("@graphs/minutes", "--tools", TOOLS, "--json")
    events = [msgspec.json.decode(line) for line in ended.stdout.splitlines()]
    kinds = [one["event"] for one in events]
    assert kinds.count("tool.started") == kinds.count("tool.finished") == 3
    [decided] = [one for one in events if one["event"] == "approval.decided"]
    assert decided["allow"] is False


def test_at_a_terminal_the_owner_is_asked() -> None:
    status, shown = at_terminal(once("allow it?", b"y\n"), "@graphs/minutes", "--tools", TOOLS)
    assert status == 0, shown
    assert 'file: "tuesday.md"' in shown
    assert "counter: shell__count_words allowed (by owner)" in shown
    assert "counter has shell__count_words: ok" in shown


def test_ctrl_c_at_the_question_cancels_the_run() -> None:
    status, shown = at_terminal(once("allow it?", b"\x03"), "@graphs/minutes", "--tools", TOOLS)
    assert status == 130, shown
    assert "shell__count_words denied (by cancelled)" in shown
    assert "it waits no more" in shown


GRAPH = 'return await agent("Add.", { tools: ["mcp__test__add", "mcp__test__number"] });\n'
ANSWERS = """\
{"prompt": "Add.", "calls": [{"id": "a", "tool": "mcp__test__add", "arguments": {"a": 1, "b": 2}},\
 {"id": "b", "tool": "mcp__test__number", "arguments": {}},\
 {"id": "c", "tool": "mcp__test__die", "arguments": {}},\
 {"id": "d", "tool": "mcp__test__add", "arguments": "{broken"}], "latency": "0s"}
{"prompt": "Add.", "round": 1, "value": "done", "latency": "0s"}
"""


def test_a_server_serves_a_run_and_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "add.js").write_text(GRAPH)
    (tmp_path / "add.answers.jsonl").write_text(ANSWERS)
    (tmp_path / "tools.toml").write_text(
        f"""
[mcp.test]
command = ["{sys.executable}", "{mcp_program.__file__}"]
tools = ["add", "number"]
env = ["PIDS"]
[graphs."*"]
"mcp__test__*" = "allow"
"""
    )
    monkeypatch.setitem(ENVIRONMENT, "PIDS", str(tmp_path / "pids"))
    ended = run(str(tmp_path / "add.js"), "--tools", str(tmp_path / "tools.toml"))
    assert ended.returncode == 0, ended.stderr
    assert "has mcp__test__add: ok, 1 characters" in ended.stderr
    assert "has mcp__test__add: failed" in ended.stderr  # its arguments were no JSON
    assert "calls mcp__test__die" not in ended.stderr  # nobody named it
    started = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert len(started) == 2  # once to say which tools there are, once for the calls
    deadline_s = time.monotonic() + 5
    while not all(map(gone, started)) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert all(map(gone, started))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_says_nothing_is_ended_with_the_command(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "add.js").write_text(GRAPH)
    script = f"echo $$ > {tmp_path}/pid; exec sleep 100"
    (tmp_path / "tools.toml").write_text(
        f"""[mcp.test]\ncommand = ["sh", "-c", "{script}"]\ntools = ["*"]\n"""
    )
    process = subprocess.Popen(
        [*RUN, str(tmp_path / "add.js"), "--tools", str(tmp_path / "tools.toml")],
        stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text().endswith("\n")):
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in errors
    assert gone(int(pid.read_text()))


def test_settings_that_are_wrong_are_told_before_anything_begins(tmp_path: Path) -> None:
    (tmp_path / "tools.toml").write_text('[read_file]\nfolders = { a = "none" }\n')
    ended = run("@graphs/minutes", "--tools", str(tmp_path / "tools.toml"))
    assert ended.returncode == 2
    assert "tools.toml:2:" in ended.stderr
    assert "started" not in ended.stderr
    missing = run("@graphs/minutes", "--tools", str(tmp_path / "none.toml"))
    assert missing.returncode == 2
    assert "no such file" in missing.stderr.lower()
    command = run("@graphs/minutes", "--tools", TOOLS, "--backend", "command", "--command", "cat")
    assert command.returncode == 2
    assert "a command has tools of its own" in command.stderr
    fast = run("@graphs/minutes", "--tools", TOOLS, "--speed", "5")
    assert fast.returncode == 2
    assert "a speed of its own" in fast.stderr
