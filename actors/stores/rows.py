"""Keys, rows and indexed values as databases hold them, in the order that Python gives them.

A row is JSON, so that people can look at it and query it. What JSON can't say (NaN, bytes of
unknown meaning) comes back as something else: such a row is written as msgpack, a blob.
"""

from __future__ import annotations

import re
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, Generic

import msgspec

from actors.actor import Key, Row, TableSpec
from actors.stores.failures import UnreadableRowError
from transports.codec import plain

Value = str | int | float | bytes | None

# A tuple of texts is one text: each ends in 01, which is below every character of a text, since
# the three lowest are written as two. So tuples compare as their texts do, no text has a NUL, at
# which the sqlite3 command would stop, and no text is equal to any tuple.
_END = "\x01"
_ESCAPES = {"\x00": "\x02\x02", "\x01": "\x02\x03", "\x02": "\x02\x04"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}
_LOW = re.compile("[\x00-\x02]")
_ESCAPED = re.compile("\x02[\x02-\x04]")

_PLAIN = frozenset((str, int, float, bytes, bool, type(None)))


def write_key(key: Key) -> str:
    """Return a key as the text that stands for it."""
    if isinstance(key, str):
        return write_text(key)
    assert key, "a key of no texts"
    return "".join([write_text(text) + _END for text in key])


def read_key(text: str) -> Key:
    """Return the key that a text stands for."""
    *texts, rest = text.split(_END)
    return tuple(map(_unescape, texts)) if texts else _unescape(rest)


def write_text(text: str) -> str:
    """Return a text without NUL, in the same order among others; almost all are themselves."""
    return _LOW.sub(lambda found: _ESCAPES[found[0]], text) if _LOW.search(text) else text


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _CHARACTERS[found[0]], text)


def write_value(value: Any) -> Value:
    """Return an indexed field as databases compare it; TypeError for what has no place in an order.

    NaN is one: SQLite takes it for None.
    """
    if isinstance(value, Enum):
        value = value.value
    ordered = type(value) in _PLAIN or isinstance(value, str | int | float | bytes)
    if ordered and value == value:  # noqa: PLR0124  what NaN alone is not
        return value  # type: ignore[no-any-return]  # one of these, as it was just seen to be
    held = f"a {type(value).__name__}" if not ordered else "NaN"
    raise TypeError(f"an indexed field holds {held}; it may be a text, a number, bytes or None")


class RowCodec(Generic[Row]):
    """Encodes rows of one type; what is decoded is equal to what was encoded."""

    def __init__(self, row: type[Row]) -> None:
        self._json = msgspec.json.Encoder(enc_hook=plain)
        self._msgpack = msgspec.msgpack.Encoder(enc_hook=plain)
        self._from_json = msgspec.json.Decoder(row, dec_hook=_named)
        self._from_msgpack = msgspec.msgpack.Decoder(row, dec_hook=_named)

    def encode(self, row: Row) -> str | bytes:
        """Return a row's JSON, or its msgpack where JSON would lose something of it.

        Raises ValueError for a row that could never be read: a field is not of its type.
        """
        text = self._json.encode(row)
        with suppress(msgspec.DecodeError):
            if self._from_json.decode(text) == row:
                return text.decode()
        data = self._msgpack.encode(row)
        self._from_msgpack.decode(data)
        return data

    def decode(self, data: str | bytes) -> Row:
        """Return the row. Raises ValueError with the cause in words."""
        try:
            if isinstance(data, str):
                return self._from_json.decode(data)
            return self._from_msgpack.decode(data)
        except (msgspec.DecodeError, RecursionError, TypeError) as error:
            raise ValueError(str(error)) from error


class TableCodec(Generic[Row]):
    """Encodes the rows of a table of the store at `place`; failures name the table and the key."""

    def __init__(self, spec: TableSpec[Row], place: Path | str) -> None:
        self._rows = RowCodec(spec.row)
        self._name = spec.name
        self._place = place

    def encode(self, key: Key, row: Row) -> str | bytes:
        """Return a row as it is kept.

        Raises ValueError for one that could never be read, which is an actor's bug: it is told now,
        and not when the row is wanted.
        """
        try:
            return self._rows.encode(row)
        except ValueError as error:
            raise ValueError(f"the row {key!r} of {self._name} can't be kept: {error}") from error

    def decode(self, key: str, data: str | bytes) -> Row:
        """Return the row under a key, which is as it is written. Raises UnreadableRowError."""
        try:
            return self._rows.decode(data)
        except ValueError as error:
            row = f"the row {read_key(key)!r} of {self._name}"
            sentence = f"{row} is of another version of the program, or damaged: {error}"
            raise UnreadableRowError(self._place, sentence) from error


def _named(kind: type[Any], value: Any) -> Any:
    """Return a number as the kind of number that the row names, a Duration say."""
    return kind(value)
