"""A server's process: what it is told, and what follows from that."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.service.config import ServerSettings, resolve
from scenarios.service.server import server_config


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
