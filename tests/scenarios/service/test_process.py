"""What every process that stays says of itself in its log."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scenarios.service.config import ServerSettings
from scenarios.service.process import open_log
from scenarios.service.recorded import RecordedActor
from scenarios.service.world import ServiceWorld

ACTORS = {"server": RecordedActor(kind="K", store="PostgreSQL")}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("--listen=h:1", "--listen=h:1"),
        ("postgresql://me@host:5/db", "postgresql://me@host:5/db"),
        ("postgresql://me:hush@host:5/db", "postgresql://me:...@host:5/db"),
        ("--store=postgres://:hush@/db", "--store=postgres://:...@/db"),
        ("postgresql://h/db?user=me&password=hush", "'postgresql://h/db?user=me&password=...'"),
    ],
)
def test_its_command_is_in_the_header_without_a_password(
    said: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["pullcord", "server", said])
    header = header_of(tmp_path, record=False)
    assert header["command"] == f"pullcord server {written}"
    assert header["actors"] == {}


def test_a_log_that_can_not_be_replayed_says_so_when_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = header_of(tmp_path, record=True)
    assert header["actors"] == {"server": {"kind": "K", "config": {}, "store": "PostgreSQL"}}
    assert "other servers may write to PostgreSQL too" in capsys.readouterr().err


def header_of(folder: Path, *, record: bool) -> dict[str, object]:
    world = ServiceWorld("server", lambda _: None)
    open_log("server", folder, ServerSettings(record=record), world, ACTORS).close("stopped")
    [path] = (folder / "logs").iterdir()
    found: dict[str, object] = json.loads(path.read_text().splitlines()[0])
    return found
