"""A column's type is that of all that a row's field may hold."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType

import msgspec
import pytest

from actors.ledger import DEVICES, RUNS, SESSIONS, TICKETS
from actors.stores.postgres.columns import columns_of
from transports.units import Duration


class Level(IntEnum):
    LOW = 1


class Colour(Enum):
    RED = "red"


class Mixed(Enum):
    RED = "red"
    ONE = 1


Name = NewType("Name", str)


class Every(msgspec.Struct):
    text: str | None
    name: Name
    said: Literal["a", "b"]
    colour: Colour
    limited: Annotated[str, msgspec.Meta(max_length=3)]
    whole: int
    truth: bool | None
    level: Level
    wait_us: Duration
    part: float
    number: int | float | None
    data: bytes
    mixed: Mixed
    either: str | int
    anything: Any
    listed: list[str]


@pytest.mark.parametrize(
    ("field", "sql", "value", "written"),
    [
        ("text", 'text COLLATE "C"', "a\x00", "a\x02\x02"),
        ("text", 'text COLLATE "C"', None, None),
        ("name", 'text COLLATE "C"', "é", "é"),
        ("said", 'text COLLATE "C"', "a", "a"),
        ("colour", 'text COLLATE "C"', Colour.RED, "red"),
        ("limited", 'text COLLATE "C"', "x", "x"),
        ("whole", "bigint", -5, -5),
        ("truth", "bigint", True, 1),
        ("level", "bigint", Level.LOW, 1),
        ("wait_us", "bigint", Duration(7), 7),
        ("part", "numeric", 0.25, Decimal("0.25")),
        ("number", "numeric", 3, Decimal(3)),
        ("data", "bytea", b"\x00", b"\x00"),
    ],
)
def test_each_kind(field: str, sql: str, value: Any, written: Any) -> None:
    column = columns_of(Every, [field])[field]
    assert column.sql == sql
    assert column.write(value) == written


@pytest.mark.parametrize(
    ("field", "said"),
    [("mixed", "int or str"), ("either", "int or str"), ("anything", "Any"), ("listed", "list")],
)
def test_what_has_no_one_type_is_refused(field: str, said: str) -> None:
    with pytest.raises(TypeError, match=f"the indexed field {field} of Every is declared {said};"):
        columns_of(Every, [field])


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_a_number_of_more_than_64_bits_is_refused(number: int) -> None:
    with pytest.raises(OverflowError, match=f"an indexed field holds {number}; it may have 64"):
        columns_of(Every, ["whole"])["whole"].write(number)


def test_the_rows_of_a_server_have_columns() -> None:
    for spec in (RUNS, TICKETS, DEVICES, SESSIONS):
        fields = sorted({field for fields in spec.indexes.values() for field in fields})
        assert list(columns_of(spec.row, fields)) == fields
