"""Files that earlier versions wrote open in this one, and mean what they meant.

`tests/golden/stores-N` has a server's, a relay's and an engine's file as version N of the form was
first written, in the middle of a story, and their rows as JSON. They are never written again: a
version that changes the form or a row adds a folder, by `python -m` with this module and its name.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.actor import TableSpec
from actors.engine import EXECUTIONS
from actors.journal import JOURNAL, OUTBOX
from actors.ledger import DEVICES, RUNS, SESSIONS, TICKETS
from actors.stores.rows import write_key
from actors.stores.sqlite import SqliteStore, backup
from tests.actors.harness import S
from tests.actors.test_durable_crashes import Play
from transports.codec import as_json

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
TABLES: dict[str, tuple[TableSpec[Any], ...]] = {
    "server": (DEVICES, RUNS, SESSIONS, TICKETS),
    "relay": (JOURNAL, OUTBOX),
    "engine": (EXECUTIONS,),
}
FOLDERS = sorted(GOLDEN.glob("stores-*"))


def rows_of(path: Path, tables: tuple[TableSpec[Any], ...]) -> Any:
    """Every row of a store, as JSON has it."""
    with closing(SqliteStore(path)) as store:
        for spec in tables:
            store.table(spec)
        found = store.snapshot()
    return {
        name: {write_key(key): as_json(row) for key, row in rows.items()}
        for name, rows in found.items()
    }


def within(old: Any, new: Any) -> bool:
    """Whether all that was said is still said; a new field may say more."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and within(value, new[key]) for key, value in old.items())
    return bool(old == new)


def test_there_is_one_of_each_form() -> None:
    assert [folder.name for folder in FOLDERS] == ["stores-1"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("actor", TABLES)
def test_every_row_means_what_it_meant(tmp_path: Path, folder: Path, actor: str) -> None:
    shutil.copy(folder / f"{actor}.db", tmp_path)
    want = msgspec.json.decode((folder / f"{actor}.json").read_bytes())
    assert set(want) == {spec.name for spec in TABLES[actor]}, "each table has rows"
    for _ in range(2):  # brought up to date, and then as this version has it
        found = rows_of(tmp_path / f"{actor}.db", TABLES[actor])
        assert {name: set(rows) for name, rows in found.items()} == {
            name: set(rows) for name, rows in want.items()
        }
        assert within(want, found)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_story_goes_on_from_there(folder: Path) -> None:
    play = Play("sqlite", "run")
    for actor, store in play.stores.items():
        subject: Any = store._subject
        subject.store.close()
        shutil.copy(folder / f"{actor}.db", subject.folder / "0.db")
        for end in ("-wal", "-shm"):
            (subject.folder / f"0.db{end}").unlink(missing_ok=True)
        subject.store = subject.opened()
    play.unheard = 1  # its end was told before
    assert play.wrong() == []
    assert play.trace.events("engine.started") == [], "it had ended when the files were written"


def write(folder: Path) -> None:
    """Write the files of a story whose result is in the outbox: its acceptance was lost."""
    folder.mkdir()
    play = Play("sqlite", "a lost reply to the result", until_us=14 * S)
    play.sim.run(0, play.trace)
    for actor, store in play.stores.items():
        subject: Any = store._subject
        path = subject.folder / "0.db"
        backup(path, folder / f"{actor}.db")
        subject.close()
        rows = rows_of(folder / f"{actor}.db", TABLES[actor])
        (folder / f"{actor}.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(rows, order="sorted")) + b"\n"
        )
    for place in (*folder.glob("*.lock"), *folder.glob("*.reserve")):
        place.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
