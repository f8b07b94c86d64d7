"""What docs/stores.md tells people to type works on a real server's and a real relay's file."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from actors.journal import OUTBOX, Posting
from actors.ledger import NOTHING, RUNS, TICKETS, Ticket
from actors.messages import Complete
from actors.stores.sqlite import SqliteStore
from bench.run import ROOT
from bench.store import run

PAGE = (ROOT / "docs" / "stores.md").read_text()
COMMANDS = re.findall(r'^    sqlite3 -readonly -box (\w+\.db) "(.*)"$', PAGE, re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    with closing(SqliteStore(tmp_path / "server.db")) as server:
        server.table(RUNS).put("run-1", replace(run(1, ""), open_on="relay-1"))
        server.table(TICKETS).put(("agent", "key-1"), Ticket(meaning=b"x", command_id="run-1"))
        server.commit()
    complete = Complete(command_id="run-1", boot="b", delivery=1, completion=NOTHING)
    with closing(SqliteStore(tmp_path / "relay.db")) as relay:
        relay.table(OUTBOX).put("run-1", Posting(complete=complete, order=1))
        relay.commit()
    return tmp_path


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 5


@pytest.mark.parametrize(("file", "sql"), COMMANDS)
def test_a_command_finds_something(files: Path, file: str, sql: str) -> None:
    if sqlite3.sqlite_version_info < (3, 38):
        sql = re.sub(r"row ->> '(\w+)'", r"json_extract(row, '$.\1')", sql)
    with closing(sqlite3.connect(f"file:{files / file}?mode=ro", uri=True)) as connection:
        assert connection.execute(sql).fetchall()
