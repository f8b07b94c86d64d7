"""What a server keeps: rows that come back from bytes, and indexes that find what is due."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.ledger import DEVICES, NOTHING, RUNS, SESSIONS, TICKETS, Shared, Ticket
from actors.messages import SessionListing, SessionMeta
from tests.actors.drawing import drawn
from tests.actors.stores.opened import OpenedMemory

TABLES = [RUNS, TICKETS, DEVICES, SESSIONS]


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_a_row_comes_back_from_bytes(spec: Any) -> None:
    rows = drawn(spec.row) if spec is not TICKETS else st.builds(Ticket, meaning=st.binary())

    @settings(max_examples=20, deadline=None)
    @given(rows)
    def check(row: Any) -> None:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=spec.row) == row

    check()


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_an_index_names_fields_of_its_row(spec: Any) -> None:
    for fields in spec.indexes.values():
        assert set(fields) <= set(spec.row.__struct_fields__)
    assert spec.row.__struct_config__.frozen


@settings(max_examples=30, deadline=None)
@given(st.lists(drawn(RUNS.row), max_size=8))
def test_the_due_index_has_every_run_the_first_due_first(runs: list[Any]) -> None:
    table = OpenedMemory().store.table(RUNS)
    for number, run in enumerate(runs):
        table.put(str(number), run)
    due = [run.due_us for run in table.scan("due", limit=99)]
    assert due == sorted(run.due_us for run in runs), "no run is without a watch"
    opened = table.scan("open", limit=99)
    assert len(opened) == sum(run.open_on is not None for run in runs)


def test_a_listing_is_the_session_without_its_generation() -> None:
    meta = SessionMeta(
        id="gs_1", project="p", name="N", slug="n", description="D", version=3, status="s"
    )
    assert Shared(device="relay", project="p", meta=meta).listing() == SessionListing(
        graph_session_id="gs_1", name="N", description="D", slug="n", version=3, status="s"
    )


def test_nothing_is_no_result() -> None:
    assert (NOTHING.result, NOTHING.execution_id, NOTHING.error) == (None, None, None)
    assert (NOTHING.total_tokens, NOTHING.reported_cost) == (0, 0.0)
