"""The store of an actor in a process of its own: it can tell all that it holds."""

from __future__ import annotations

from pathlib import Path

import msgspec

from actors.actor import TableSpec
from scenarios.separate.store import DurableStore


class Row(msgspec.Struct, frozen=True):
    """A row."""

    value: int


ROWS = TableSpec("rows", Row, value=("value",))
OTHERS = TableSpec("others", Row)


def test_a_snapshot_has_every_committed_row_of_the_tables_that_were_asked_for(
    tmp_path: Path,
) -> None:
    store = DurableStore(tmp_path / "one.sqlite")
    rows, others = store.table(ROWS), store.table(OTHERS)
    assert store.snapshot() == {}
    rows.put("a", Row(1))
    rows.put(("b", "c"), Row(2))
    assert store.snapshot() == {}
    store.commit()
    others.put("x", Row(3))
    want = {"rows": {"a": Row(1), ("b", "c"): Row(2)}}
    assert store.snapshot() == want
    store.reset()
    store.roll_back()
    assert store.snapshot() == want
    store.close()
    again = DurableStore(tmp_path / "one.sqlite")
    assert again.snapshot() == {}  # nothing says of which type the rows are
    again.table(ROWS)
    assert again.snapshot() == want
    again.close()


def test_how_many_ids_were_made_is_committed_with_the_turn_that_made_them(tmp_path: Path) -> None:
    store = DurableStore(tmp_path / "one.sqlite")
    assert store.ids == 0
    store.commit_with(3)
    store.table(ROWS).put("a", Row(1))
    wrote = [store.wrote]
    store.roll_back()
    assert [*wrote, store.wrote] == [True, False]
    store.commit_with(3)
    store.close()
    again = DurableStore(tmp_path / "one.sqlite")
    assert again.ids == 3
    again.close()
