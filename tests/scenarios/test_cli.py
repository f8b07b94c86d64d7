"""The command line: help, errors, a reader who leaves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logs.read import LogError
from scenarios import cli
from scenarios.cli import COMMANDS
from scenarios.folder import FolderError
from scenarios.problems import Problem, ScenarioError
from tests.scenarios.commandline import MAIN, command, environment, write
from tests.scenarios.conftest import Call
from transports.version import VERSION

HELP_CPU_S = 0.2
HEAVY = ("trio", "rich.progress", "scenarios.run", "scenarios.load", "actors.simulator", "jinja2")


def test_help_names_every_command_in_order(call: Call) -> None:
    done = call("--help")
    assert (done.code, done.err) == (0, "")
    places = [done.out.index(f"│ {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert call().out == done.out


def test_every_command_has_help(call: Call) -> None:
    for name in COMMANDS:
        done = call(name, "--help")
        assert (done.code, done.err) == (0, "")
        assert "pullcord " + name in done.out
    text = call("run", "--help").out
    flags = (
        "--seed --replications -n --replication --cell -k --set --jobs -j --executor --driver",
        "--transport --out --logs --format -q -v --color --no-progress --resume --inconclusive",
    )
    for flag in " ".join(flags).split():
        assert flag in text, flag


def test_the_version(call: Call) -> None:
    assert call("--version").out == f"{VERSION}\n"


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_is_quick_and_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        f"import atexit, os, sys, time\n"
        f"sys.argv = ['pullcord', *{words!r}]\n"
        f"loaded = lambda: sorted(m for m in {HEAVY!r} if m in sys.modules)\n"
        f"atexit.register(lambda: print(time.process_time(), *loaded(), file=sys.stderr))\n{MAIN}"
    )
    fastest = 9.0
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        seconds, *modules = done.stderr.split()
        assert modules == []
        fastest = min(fastest, float(seconds))
    assert fastest < HELP_CPU_S


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ScenarioError([Problem(path="a.toml", message="wrong", cure="mend it")]), 2,
         "a.toml: wrong\nhelp: mend it\n"),
        (FolderError("out is in use", "wait"), 2, "pullcord: out is in use\nhelp: wait\n"),
        (OSError(28, "No space left on device", "x.jsonl"), 2,
         "pullcord: x.jsonl: No space left on device\nhelp: free some space, then run it again\n"),
        (OSError(28, "No space left on device"), 2,
         "pullcord: No space left on device\nhelp: free some space, then run it again\n"),
        (PermissionError(13, "Permission denied", "x"), 2,
         f"pullcord: x: Permission denied\nhelp: {cli._PLACE}\n"),
        (IsADirectoryError(21, "Is a directory", "x"), 2, "pullcord: x: Is a directory\n"),
        (LogError("a.jsonl", "no", "word " * 20), 2,
         f"pullcord: a.jsonl: no\nhelp:{' word' * 15}\n     {' word' * 5}\n"),
    ],
)  # fmt: skip
def test_errors_are_told_in_a_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, text: str
) -> None:
    def fail() -> int:
        raise error

    monkeypatch.setattr(cli, "_call", fail)
    done = call()
    assert (done.code, done.out, done.err) == (code, "", text)


def test_a_bug_is_told_with_its_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_call", lambda: 1 // 0)
    done = call()
    assert done.code == 70
    assert "ZeroDivisionError" in done.err
    assert done.err.endswith("this is a bug in pullcord; please report it with the lines above\n")


def test_an_interrupt_before_there_is_anything_to_keep(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_call", interrupted)
    assert call() == (130, "", "pullcord: interrupted\n")


def test_a_reader_who_leaves_is_no_error(tmp_path: Path) -> None:
    read, end = os.pipe()
    os.close(read)
    with os.fdopen(end, "w") as out:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "names"],
            cwd=tmp_path, env=environment(), stdout=out, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_has_not_the_letters(tmp_path: Path) -> None:
    folder = tmp_path / "ö日"
    folder.mkdir()
    write(folder)
    done = command(tmp_path, "check", "ö日/small.toml", env={"PYTHONIOENCODING": "ascii"})
    assert (done.code, done.err) == (0, "")
    assert "\\xf6\\u65e5/small.toml: small is valid" in done.out


def test_a_wrong_flag_is_told_in_a_line(call: Call) -> None:
    done = call("run", "--nonsense")
    assert done.code == 2
    assert (done.out, done.err) == (
        "",
        "pullcord: Unknown option: --nonsense. Did you mean --seed?\nhelp: pullcord run --help\n",
    )


def test_an_argument_too_many_is_named_as_it_was_written(call: Call) -> None:
    done = call("report", "out", "extra", "b c")
    assert (done.code, done.out) == (2, "")
    assert done.err == "pullcord: too many arguments: extra 'b c'\nhelp: pullcord report --help\n"


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [
        ("--help", ">&-", 0),
        ("check small.toml", ">&-", 0),
        ("names", ">&-", 0),
        ("check nothing.toml", "2>&-", 2),
        ("check nothing.toml", ">&- 2>&-", 2),
    ],
)
def test_streams_that_were_closed_before_we_began(
    tmp_path: Path, words: str, closed: str, code: int
) -> None:
    write(tmp_path)
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -c "$1" {words} {closed}', sys.executable, MAIN],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
