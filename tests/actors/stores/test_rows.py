"""Keys keep their order and rows their value, in a form that people can read."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.engine import Execution
from actors.ledger import RUNS, Run
from actors.messages import Completion
from actors.stores.failures import UnreadableRowError
from actors.stores.rows import RowCodec, TableCodec, read_key, write_key
from transports.units import Duration

RUN = Run(
    command_id="c", agent="a", key="k", device="d", session="s", slug="g", generation=1,
    arguments={"q": "日本"}, status="queued", queued_us=1, open_on="d", open_for="a", due_us=2,
    completion=Completion(execution_id=None, status="failed"),
)  # fmt: skip
TEXTS = st.text(
    st.sampled_from("\x00\x01\x02\x03ab\x7f\xff\U0001f642") | st.characters(codec="utf-8")
)
TUPLES = st.lists(TEXTS, min_size=1, max_size=3).map(tuple)


@given(TEXTS | TUPLES)
def test_a_key_comes_back(key: str | tuple[str, ...]) -> None:
    text = write_key(key)
    assert read_key(text) == key
    assert "\x00" not in text, "at which the sqlite3 command would stop"


@given(TEXTS | TUPLES, TEXTS | TUPLES)
def test_keys_that_differ_stay_apart(one: Any, other: Any) -> None:
    assert (write_key(one) == write_key(other)) is (one == other)


@given(TUPLES, TUPLES)
def test_tuples_keep_their_order(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (write_key(one) < write_key(other)) is (one < other)


@given(TEXTS, TEXTS)
def test_texts_keep_their_order(one: str, other: str) -> None:
    assert (write_key(one) < write_key(other)) is (one < other)


def test_an_ordinary_key_is_itself() -> None:
    assert write_key("gs_0123") == "gs_0123"
    assert write_key(("agent", "key-1")) == "agent\x01key-1\x01"


class Anything(msgspec.Struct, frozen=True):
    """A row that may hold what JSON has no form for."""

    value: Any
    cost: float = 0.0
    wait_us: Duration = Duration(0)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | TEXTS
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS | st.integers(-9, 9), inner),
    max_leaves=8,
)


@given(PLAIN, st.floats())
def test_a_row_comes_back_whatever_is_in_it(value: Any, cost: float) -> None:
    codec = RowCodec(Anything)
    row = codec.decode(codec.encode(Anything(value, cost)))
    assert repr(row) == repr(Anything(value, cost)), "NaN is not equal to itself, but reads so"


def test_rows_of_the_actors_are_json() -> None:
    text = RowCodec(Run).encode(RUN)
    assert isinstance(text, str)
    assert json.loads(text)["arguments"] == {"q": "日本"}
    assert RowCodec(Run).decode(text) == RUN


def test_what_json_can_t_say_is_msgpack() -> None:
    codec = RowCodec(Anything)
    for value in (math.nan, b"\xff", {1: "a"}):
        data = codec.encode(Anything(value))
        assert isinstance(data, bytes)
        assert msgspec.msgpack.decode(data)["value"] is not None
    assert (
        codec.encode(Anything([1.5, "a", None]))
        == '{"value":[1.5,"a",null],"cost":0.0,"wait_us":0}'
    )


def test_a_duration_comes_back_as_one() -> None:
    codec = RowCodec(Anything)
    row = codec.decode(codec.encode(Anything(None, wait_us=Duration(20))))
    assert row.wait_us == 20
    assert isinstance(row.wait_us, Duration)


@pytest.mark.parametrize("data", ["", "{", "[]", '{"channel":1}', b"", b"\xc1", b"\x80"])
def test_what_is_no_row_is_a_value_error(data: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        RowCodec(Execution).decode(data)


def test_what_a_table_can_not_keep_or_read_is_told_with_its_name_and_key() -> None:
    codec = TableCodec(RUNS, "here")
    with pytest.raises(ValueError, match=r"the row 'r1' of runs can't be kept: Expected `str`"):
        codec.encode("r1", msgspec.structs.replace(RUN, agent=7))
    with pytest.raises(UnreadableRowError, match=r"here: the row \('a', 'b'\) of runs is of anoth"):
        codec.decode(write_key(("a", "b")), "{}")
    assert codec.decode("r1", codec.encode("r1", RUN)) == RUN
