"""The types of indexed fields: PostgreSQL compares them as Python does, whatever a row may hold.

A column has one type, so it is read from what the row's struct declares. Texts compare by code
points (collation "C" of a database in UTF-8), numbers as numbers, bytes by bytes; whole numbers and
fractions side by side are `numeric`, which holds both without loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NewType, Union, get_args, get_origin
from typing import get_type_hints as hints_of

import msgspec
from psycopg.types.numeric import Int8

from actors.stores.rows import write_text, write_value

_INT8 = (-(1 << 63), (1 << 63) - 1)
_BASIC = (bool, int, float, str, bytes)


class Column(NamedTuple):
    """One field's column: its SQL type, and what makes a value one of it."""

    sql: str
    write: Callable[[Any], Any]


def columns_of(row: type[msgspec.Struct], fields: list[str]) -> dict[str, Column]:
    """Return the columns of a row's indexed fields; TypeError for one that has no order."""
    hints = hints_of(row)
    found = {}
    for field in fields:
        kinds = frozenset(_kinds(hints[field]))
        column = _COLUMNS.get(kinds)
        if column is None:
            names = " or ".join(sorted(getattr(kind, "__name__", str(kind)) for kind in kinds))
            raise TypeError(
                f"the indexed field {field} of {row.__name__} is declared {names}; PostgreSQL"
                " needs a text, a number or bytes"
            )
        found[field] = column
    return found


def _kinds(hint: Any) -> Iterator[type]:
    """Yield the basic types that a hint allows, but for None."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        for one in get_args(hint):
            yield from _kinds(one)
    elif origin is Annotated:
        yield from _kinds(get_args(hint)[0])
    elif origin is Literal:
        yield from (type(value) for value in get_args(hint))
    elif isinstance(hint, NewType):
        yield from _kinds(hint.__supertype__)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield from (type(member.value) for member in hint)
    elif hint is not NoneType:
        is_class = isinstance(hint, type)
        yield next((one for one in _BASIC if is_class and issubclass(hint, one)), hint)


def _text(value: Any) -> str | None:
    value = write_value(value)
    return None if value is None else write_text(_of(str, value))


def _whole(value: Any) -> Int8 | None:
    value = write_value(value)
    if value is None:
        return None
    number = int(_of(int, value))
    if not _INT8[0] <= number <= _INT8[1]:
        raise OverflowError(f"an indexed field holds {number}; it may have 64 bits")
    return Int8(number)


def _number(value: Any) -> Decimal | None:
    value = write_value(value)
    return None if value is None else Decimal(_of((int, float), value))


def _bytes(value: Any) -> bytes | None:
    value = write_value(value)
    return None if value is None else bytes(_of(bytes, value))


def _of(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(
            f"an indexed field holds a {type(value).__name__}, which it does not declare"
        )
    return value


_TEXT = Column('text COLLATE "C"', _text)
_WHOLE = Column("bigint", _whole)
_NUMBER = Column("numeric", _number)
_COLUMNS: dict[frozenset[type], Column] = {
    frozenset({str}): _TEXT,
    frozenset({bytes}): Column("bytea", _bytes),
    frozenset({bool}): _WHOLE,
    frozenset({int}): _WHOLE,
    frozenset({bool, int}): _WHOLE,
    frozenset({float}): _NUMBER,
    frozenset({int, float}): _NUMBER,
    frozenset({bool, float}): _NUMBER,
    frozenset({bool, int, float}): _NUMBER,
}
