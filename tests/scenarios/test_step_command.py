"""`replay --step`: which section, from where, on a screen or by lines; and the page about it."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from logs.read import LogError
from scenarios import step_command, step_screen
from scenarios.problems import ScenarioError
from scenarios.step_command import refuse_others, step
from scenarios.stepper import Stepper
from tests.scenarios.commandline import ROOT, command
from tests.scenarios.stepping import data_of, stepper

PAGE = (ROOT / "docs" / "stepping.md").read_text(encoding="utf-8")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "first.jsonl"
    path.write_bytes(data_of("examples/first") + data_of("examples/first", 1))
    return path


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is typed; it is no terminal."""
    typed = io.StringIO()
    monkeypatch.setattr(sys, "stdin", typed)
    return typed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Shown = list[tuple[Stepper, str | None]]


def terminal(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Make everything a terminal; return what a screen will have been opened with."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())
    monkeypatch.setenv("TERM", "xterm")
    found: Shown = []

    def screen(stepper: Stepper, actor: str | None) -> int:
        found.append((stepper, actor))
        return 0

    monkeypatch.setattr(step_command, "_screen", screen)
    return found


@pytest.mark.usefixtures("typed")
def test_without_a_terminal_it_reads_lines(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert step(log, replication=1) == 0
    head, first = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"first.*, replication 1, seed \d+: \d+ records; help says what to type", head
    )
    assert first == "1  0s  server  starts, boot 0"


@pytest.mark.usefixtures("typed")
def test_it_begins_where_one_says(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert step(log, replication=0, first="5", actor="relay") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("5  0s  server")
    assert step(log, replication=0, first="12.6s") == 0
    assert "  12.5" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.usefixtures("typed")
def test_a_log_that_was_cut_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(data_of("examples/first")[:5000])
    assert step(path) == 0
    assert "records, cut before its end; " in capsys.readouterr().out


@pytest.mark.usefixtures("typed")
def test_what_is_not_there_is_told_with_its_cure(log: Path) -> None:
    with pytest.raises(LogError, match="2 sections") as raised:
        step(log)
    assert raised.value.cure == "say which one: --replication"
    with pytest.raises(LogError, match="no actor is called rely") as raised:
        step(log, replication=0, actor="rely")
    assert raised.value.cure == "did you mean relay?"
    with pytest.raises(LogError, match="there is no record 99999") as raised:
        step(log, replication=0, first="99999")
    assert raised.value.cure.startswith("give 1 to ")


def test_in_a_terminal_a_screen_opens(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    assert step(log, replication=0, first="7", actor="relay") == 0
    [(made, actor)] = shown
    assert (made.record.n, actor) == (7, "relay")


@pytest.mark.parametrize("why", ["plain", "dumb", "stdin", "stdout", "stderr"])
def test_there_is_none_where_none_is_wanted_or_can_be(
    log: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    shown = terminal(monkeypatch)
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    elif why != "plain":
        monkeypatch.setattr(sys, why, io.StringIO())
    out = sys.stdout
    assert step(log, replication=0, plain=why == "plain") == 0
    assert shown == []
    assert isinstance(out, io.StringIO)
    assert out.getvalue().splitlines()[1].startswith("1  0s  server  starts, boot 0")


@pytest.mark.parametrize(("code", "exit_code"), [(0, 0), (None, 0), (1, 70)])
def test_a_screen_that_breaks_is_our_bug(
    monkeypatch: pytest.MonkeyPatch, code: int | None, exit_code: int
) -> None:
    opened: list[Any] = []

    class Screen:
        return_code = code

        def __init__(self, *given: Any) -> None:
            opened.append((given, os.environ.get("NO_COLOR")))

        def run(self) -> None: ...

    monkeypatch.setattr(step_screen, "StepScreen", Screen)
    monkeypatch.setattr(step_command, "colored", lambda _stream: False)
    monkeypatch.setenv("NO_COLOR", "0")
    made = stepper()
    assert step_command._screen(made, "relay") == exit_code
    assert opened == [((made, "relay"), "1")]


def test_without_textual_there_is_a_cure(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    monkeypatch.setattr(step_command, "find_spec", lambda _name: None)
    with pytest.raises(LogError, match="the screen needs textual") as raised:
        step(log, replication=0)
    assert raised.value.cure == "pip install 'pullcord[step]', or add --plain"
    assert step(log, replication=0, plain=True) == 0


def test_flags_that_mean_nothing_here_are_refused() -> None:
    refuse_others({"--until": None, "--format": "text"})
    for name, given in (("--until", "5"), ("--format", "json"), ("--to-scenario", Path("x"))):
        with pytest.raises(ScenarioError, match=f"{name}: means nothing with --step"):
            refuse_others({"--other": None, name: given})


@pytest.mark.parametrize("flags", [("--step",), ("--plain",), ("--step", "--plain")])
def test_from_the_command_line(log: Path, flags: tuple[str, ...]) -> None:
    done = command(log.parent, "replay", log.name, "--replication", "1", "--from", "7", *flags)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1].startswith("7  ")
    wrong = command(log.parent, "replay", log.name, "--replication", "1", "--from", "0", *flags)
    assert wrong.code == 2
    assert "there is no record 0" in wrong.err
    assert "help: give 1 to " in wrong.err


def test_the_page_s_transcript_is_what_comes_out(
    tmp_path: Path, typed: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    block = PAGE.split("```\n")[1]
    lines = [line for line in block.splitlines(keepends=True) if not line.startswith("$ ")]
    commands = [line.removeprefix("> ") for line in lines if line.startswith("> ")]
    assert len(commands) > 5
    path = tmp_path / "killed_after_go.jsonl"
    path.write_bytes(data_of("chaos/killed_after_go"))
    typed.write("".join(commands))
    typed.seek(0)
    assert step(path, cell="100ms", replication=0, plain=True) == 0
    assert capsys.readouterr().out == "".join(lines)
