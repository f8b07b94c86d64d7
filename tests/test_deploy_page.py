"""The page on deploying: its commands are there, its files are what their programs take."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path
from typing import get_args

import pytest

from actors.accounts.messages import Reason
from scenarios.cli import COMMANDS, GROUPS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "deploy.md").read_text(encoding="utf-8")
UNITS = DOCS / "units"


def known(words: list[str]) -> bool:
    """Whether these are a command of ours, and one of its group if it is one."""
    if words[0] not in GROUPS:
        return words[0] in COMMANDS
    names = {one.rpartition(":")[2].rstrip("_") for one in GROUPS[words[0]]}
    return len(words) < 2 or not {words[1], f"{words[0]}_{words[1]}"}.isdisjoint(names)


def test_its_commands_are_there() -> None:
    said = re.findall(r"pullcord ([a-z]+)(?: ([a-z|]+))?", PAGE)
    assert len(said) > 40
    ours = [(one, more) for one, more in said if one in COMMANDS]
    for one, more in ours:
        for each in more.split("|"):
            assert known([one, each] if each and one in GROUPS else [one]), (one, each)
    others = {one for one, _ in said} - set(COMMANDS)
    assert others <= {"pullcord", "on"}, "words that are no command"


def test_every_reason_of_a_queued_run_is_told() -> None:
    assert all(f"`{reason}`" in PAGE for reason in get_args(Reason) if reason != "ended")


def test_every_file_is_named() -> None:
    assert set(re.findall(r"\(units/([^)]+)\)", PAGE)) == {one.name for one in UNITS.iterdir()}


@pytest.mark.parametrize("path", sorted(UNITS.glob("*.service")), ids=lambda path: path.name)
def test_a_unit_is_one(path: Path, tmp_path: Path) -> None:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys as they are written
    parser.read_string(path.read_text())
    service = parser["Service"]
    program, *words = service["ExecStart"].split()
    assert program.endswith("/pullcord")
    assert known(words)
    assert service["RestartPreventExitStatus"] == "2"
    assert float(service["TimeoutStopSec"]) > 10
    verify = shutil.which("systemd-analyze")
    if verify is not None:
        there = tmp_path / path.name
        there.write_text(path.read_text().replace(program, shutil.which("true") or "/bin/true"))
        done = subprocess.run(
            [verify, "verify", "--man=no", there], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("path", sorted(UNITS.glob("*.plist")), ids=lambda path: path.name)
def test_a_launch_agent_is_one(path: Path) -> None:
    agent = plistlib.loads(path.read_bytes())
    assert agent["Label"] == path.stem
    program, *words = agent["ProgramArguments"]
    assert program.endswith("/pullcord")
    assert known(words)
    assert agent["KeepAlive"]
    assert agent["ExitTimeOut"] > 10
