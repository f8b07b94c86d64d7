"""A server's process: what it is told, and what whoever starts the first one is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scenarios.cli import GROUPS
from scenarios.service.config import ServerSettings, resolve
from scenarios.service.server import first_steps, server_config
from scenarios.service.stage import Stage
from transports.listening import Address


def test_the_first_steps_are_commands_that_there_are_and_fit_a_screen() -> None:
    lines = list(first_steps(Address("pull.example.org", 8700)))
    assert len(lines) < 20
    assert max(len(f"pullcord: {line}") for line in lines) < 80
    said = re.findall(r"  pullcord (\w+) (\w+)", "\n".join(lines))
    assert len(said) == 5
    for group, command in said:
        assert any(one.endswith(f":{group}_{command}") for one in GROUPS[group])
    assert any("--server pull.example.org:8700" in line for line in lines)
    anywhere = first_steps(Address("0.0.0.0", 8700))  # noqa: S104  nobody listens
    assert any("--server HOST:8700" in line for line in anywhere)


def test_they_are_told_once() -> None:
    with Stage() as stage:
        first = stage.start("server", "server", "--listen", "127.0.0.1:0")
        first.wait_for("pullcord devices pair")
        assert first.stop() == 0
        again = stage.start("server", "server", "--listen", "127.0.0.1:0")
        again.wait_for("server listens on")
        assert again.stop() == 0
        assert "pullcord devices pair" not in again.err


@pytest.mark.parametrize(
    ("store", "shared"),
    [
        ("", False),
        ("sqlite:server.db", False),
        ("postgresql://me@host/runs", True),
        ("postgres://me@host/runs", True),
    ],
)
def test_others_are_looked_after_where_there_may_be_some(store: str, shared: bool) -> None:
    told = resolve(ServerSettings, {"store": store}, None, environ={})
    assert server_config(told).shared is shared


def test_a_file_has_the_last_word(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[server]\nshared = false\n")
    flags = {"store": "postgresql://me@host/runs"}
    told = resolve(ServerSettings, flags, path, tables=("server",), environ={})
    assert not server_config(told).shared
