"""What a run leaves on disk: rows that come back as they went, their bounds, and a turn's mark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.graphs import trail
from actors.graphs.approvals import Waiting
from actors.graphs.messages import AgentAnswer, ToolAnswer, ToolCall
from actors.graphs.seam import Request, VmTurn
from actors.graphs.trail import (
    BEGINNINGS,
    TURNS,
    Beginning,
    Decision,
    Noted,
    Trail,
    Turn,
    Witness,
    seed_of,
)
from actors.messages import Completion
from actors.stores.rows import RowCodec
from tests.actors.harness import FakeContext

ANSWER = AgentAnswer(
    run="r", agent=1, outcome="tools", calls=(ToolCall(id="c", tool="t", arguments={"a": [1]}),)
)
TURN = Turn(
    execution_id="e",
    number=3,
    now_us=1,
    stamp_us=2,
    free=4,
    noted=(
        Noted(operation=1),
        Noted(operation=1, answer=ANSWER),
        Noted(operation=1, call=2, told=ToolAnswer(run="r", call=2, ok=True, text="x")),
        Noted(operation=1, call=3, decision=Decision(allow=False, by="timeout")),
    ),
    stopped=Completion(execution_id="e", status="cancelled"),
    resumed=True,
    seeds=((1, 2, 3, 2**32 - 1),),
    mark="00",
)
BEGINNING = Beginning(
    execution_id="e", graph="main", args={"a": 1}, settings="s", begun_us=1, now_us=2
)
WAITING = Waiting(
    run="r", graph="main", agent=1, label=None, call=1, tool="t", arguments={"a": [None]},
    asked_us=1, due_us=2, open=None, decision=Decision(allow=True, by="owner"),
)  # fmt: skip


@pytest.mark.parametrize("row", [TURN, BEGINNING, WAITING], ids=lambda row: type(row).__name__)
def test_rows_come_back_from_disk_as_they_went(row: Any) -> None:
    codec = RowCodec(type(row))
    assert codec.decode(codec.encode(row)) == row


def started() -> tuple[FakeContext, Trail]:
    context, one = FakeContext("engine"), Trail("graph:external:r", "e")
    one.begin(context, BEGINNING)
    return context, one


def test_turns_come_back_in_their_order_and_no_others() -> None:
    context, one = started()
    for number in (2, 10, 0, 1):
        one.write(context, Turn(execution_id="e", number=number, now_us=0, stamp_us=0, free=1))
    other = Trail("graph:external:r2", "f")
    other.write(context, Turn(execution_id="f", number=0, now_us=0, stamp_us=0, free=1))
    again = Trail("graph:external:r", "e")
    assert [turn.number for turn in again.read(context)] == [0, 1, 2, 10]
    assert (again.rows, again.size) == (4, one.size - len(b"".join([_json(BEGINNING)])))
    one.forget(context)
    assert again.read(context) == []
    assert len(other.read(context)) == 1
    assert context.store.table(BEGINNINGS).get("graph:external:r") is None


def _json(row: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(row)


def test_a_cancel_is_written_where_there_is_a_beginning() -> None:
    context, one = started()
    one.cancel(context)
    found = context.store.table(BEGINNINGS).get("graph:external:r")
    assert found is not None
    assert found.cancelled
    Trail("other", "x").cancel(context)
    assert context.store.table(BEGINNINGS).get("other") is None


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [("ROWS_LIMIT", 1, "more than 1 turns"), ("BYTES_LIMIT", 1 << 9, "more than 0 MiB")],
)
def test_past_its_bounds_everything_is_forgotten_and_told_once(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, why: str
) -> None:
    monkeypatch.setattr(trail, limit, value)
    context, one = started()
    for _ in range(5):
        one.write(context, TURN)
    assert why in one.broken
    assert context.store.snapshot() == {}
    assert context.events == [("fleet.unresumable", {"run": "r", "why": one.broken})]


def test_what_can_not_be_written_down_breaks_the_trail_and_nothing_else() -> None:
    context, one = started()
    answer = AgentAnswer(run="r", agent=1, outcome="ok", value="\ud800")
    noted = (Noted(operation=1, answer=answer),)
    one.write(context, Turn(execution_id="e", number=0, now_us=0, stamp_us=0, free=1, noted=noted))
    assert one.broken == "an answer can't be written down"
    context, one = FakeContext("engine"), Trail("graph:external:r", "e")
    one.begin(context, Beginning(**{**_fields(BEGINNING), "args": "\ud800"}))
    assert len(context.events) == 1
    assert context.store.table(TURNS).count("run") == 0


def _fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def test_a_witness_draws_as_ever_and_then_the_same_again() -> None:
    context = FakeContext("engine")
    first = Witness()
    drawn = [first.seed(context), first.seed(context)]
    assert drawn == first.seeds
    assert drawn[0] != drawn[1] != seed_of(context)
    again = Witness(tuple(drawn))
    assert [again.seed(context), again.seed(context)] == drawn
    assert again.again == []


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_equal_marks_are_of_equal_turns(one: list[str], two: list[str]) -> None:
    def mark(prompts: list[str]) -> str:
        witness = Witness()
        for number, prompt in enumerate(prompts):
            witness.saw(VmTurn(requests=(Request(id=number, op="agent", prompt=prompt),)))
        return witness.mark

    assert (mark(one) == mark(two)) == (one == two)


def test_half_a_character_can_be_marked() -> None:
    witness = Witness()
    witness.saw(VmTurn(requests=(Request(id=1, op="agent", prompt="\ud800"),)))
    assert len(witness.mark) == 16
