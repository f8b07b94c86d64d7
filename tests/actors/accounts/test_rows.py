"""What a deployed server keeps comes back from a disk as it was, in the order of its listings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.accounts.rows import (
    AUDIT,
    CODES,
    OWNED_RUNS,
    OWNED_SESSIONS,
    PRINCIPALS,
    TOKENS,
    TRIES,
    newest_first,
)
from actors.actor import TableSpec
from actors.ledger import RUNS, SESSIONS
from actors.stores.sqlite import SqliteStore
from tests.actors.accounts.deployed import Deployed
from tests.actors.accounts.test_desk import Place

ALL: tuple[TableSpec[Any], ...] = (
    AUDIT,
    CODES,
    OWNED_RUNS,
    OWNED_SESSIONS,
    PRINCIPALS,
    TOKENS,
    TRIES,
)


@given(st.lists(st.tuples(st.integers(0, 10**18), st.text(max_size=9)), max_size=9))
def test_what_is_newer_sorts_before(moments: list[tuple[int, str]]) -> None:
    listed = sorted(moments, key=lambda each: newest_first(*each))
    assert [at_us for at_us, _ in listed] == sorted((at for at, _ in moments), reverse=True)


def test_an_owned_run_is_found_as_a_run_is() -> None:
    assert set(RUNS.indexes.items()) <= set(OWNED_RUNS.indexes.items())
    assert (OWNED_RUNS.name, OWNED_SESSIONS.name) == (RUNS.name, SESSIONS.name)


def test_a_server_on_a_disk_does_the_same_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    place = Place()
    place.completed()
    place.server.pair("wrong", address="10.0.0.1")
    place.server.code()
    place.running()
    place.queued()
    store = SqliteStore(tmp_path / "server.db", synchronous=False)
    for spec in ALL:
        table = store.table(spec)
        for key, row in place.server.context.store.snapshot()[spec.name].items():
            assert isinstance(row, spec.row)
            table.put(key, row)
    store.commit()
    for spec in ALL:
        kept = place.server.context.store.table(spec)
        for index in spec.indexes:
            assert store.table(spec).scan(index, limit=99) == kept.scan(index, limit=99)
    moved = Deployed()
    moved.context.store = store  # type: ignore[assignment]  # a store, in the place of another
    moved.serial = place.server.serial
    moved.context.now_us = place.server.context.now_us
    moved.start()
    place.server.start()
    here = Place.__new__(Place)
    here.__dict__.update(place.__dict__, server=moved)
    for each in (here, place):
        each.server.context.ids = 10**6
        run = each.completed()
        assert each.server.acts(each.owner)[-1] == (each.device, "run.completed", run, "ok")
    assert here.server.acts(here.owner) == place.server.acts(place.owner)
    store.close()
