"""What a relay keeps: rows that come back from bytes, and indexes that find what is open."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from actors.journal import ATTEMPTED, CONSENTS, JOURNAL, OUTBOX, PROJECTS, Attempt, Posting
from actors.messages import Complete, Completion
from tests.actors.drawing import drawn
from tests.actors.relaying import command
from tests.actors.stores.opened import OpenedMemory

TABLES = pytest.mark.parametrize(
    "spec", [CONSENTS, JOURNAL, OUTBOX, PROJECTS], ids=lambda spec: spec.name
)


@TABLES
def test_a_row_comes_back_from_bytes(spec: Any) -> None:
    @settings(max_examples=20, deadline=None)
    @given(drawn(spec.row))
    def check(row: Any) -> None:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=spec.row) == row

    check()


@TABLES
def test_an_index_names_fields_of_its_row(spec: Any) -> None:
    for fields in spec.indexes.values():
        assert set(fields) <= set(spec.row.__struct_fields__)
    assert spec.row.__struct_config__.frozen


def test_an_attempt_is_open_until_its_end_is_written_and_found_for_ever() -> None:
    table = OpenedMemory().store.table(JOURNAL)
    for run in ("r1", "r2"):
        table.put(run, Attempt(command=command(run)))
    table.put("r1", Attempt(command=command("r1"), open=None))
    assert [attempt.command.command_id for attempt in table.scan("open", limit=9)] == ["r2"]
    assert table.get("r1") is not None


def test_the_outbox_is_in_the_order_of_posting() -> None:
    table = OpenedMemory().store.table(OUTBOX)
    for order, run in ((12, "a"), (3, "b"), (7, "c")):
        done = Completion(execution_id=None, status="completed")
        complete = Complete(command_id=run, boot="b", delivery=1, completion=done)
        table.put(run, Posting(complete=complete, order=order))
    posted = [posting.complete.command_id for posting in table.scan("order", limit=9)]
    assert posted == ["b", "c", "a"]


def test_a_run_that_was_attempted_before_may_have_had_effects() -> None:
    assert (ATTEMPTED.status, ATTEMPTED.execution_id) == ("interrupted", None)
    assert ATTEMPTED.error
