"""Rows on which databases are tried: of every kind of indexed field, and of other versions."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import msgspec
from hypothesis import strategies as st

from actors.actor import TableSpec


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 20


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A row whose fields are of every type that an index may have."""

    text: str | None = None
    number: int | float | None = None
    truth: bool | None = None
    data: bytes | None = None
    level: Level | None = None
    colour: Colour | None = None
    order: int = 0


FIELDS = ("text", "number", "truth", "data", "level")
KINDS = TableSpec("kinds", Found, **{field: (field, "order") for field in FIELDS})
COLOURS = TableSpec("colours", Found, colour=("colour",))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
FOUND = st.builds(
    Found,
    text=st.none() | TEXTS,
    number=st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    truth=st.none() | st.booleans(),
    data=st.none() | st.binary(max_size=3),
    level=st.none() | st.sampled_from(Level),
    order=st.integers(0, 1),
)


class Short(msgspec.Struct, frozen=True):
    """An item as a later version of the program has it: less, more, and found by other fields."""

    order: int
    shelf: str | None = None
    colour: str = "grey"


class Strict(msgspec.Struct, frozen=True):
    """An item as a version has it that wants a shelf: not every row can be read."""

    shelf: str
    order: int
    note: str = ""


class Anything(msgspec.Struct, frozen=True):
    """A row that may hold what JSON has no form for."""

    value: Any
