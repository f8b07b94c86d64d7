"""Where two logs of one replication part: the first record that differs, and why.

Headers may differ without the records doing so: they say what was run, so their differences are
what explains the others. Records are compared as they were read, from the first on; the closing
records last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from logs.causes import Causes
from logs.read import Section
from logs.record import EndRecord, HeaderRecord, Record
from logs.seek import Entry

BEFORE = 3  # equal records that are told before the first that differs
# What explains a difference, the plainest first; where a log lies and how it was asked for doesn't.
EXPLAINS = (
    "scenario",
    "seed",
    "cell",
    "replication",
    "digest",
    "pullcord",
    "python",
    "driver",
    "transport",
    "speed",
    "format",
)

Pairs = tuple[list[tuple[Entry, Entry]], list[Entry], list[Entry]]  # and what is over of each side
_ID = re.compile(
    rb"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[a-z]+_[0-9a-f]{32}\b"
)

Difference = tuple[str, Any, Any]  # a field's path, and its value on either side


class Missing(msgspec.Struct, frozen=True):
    """Stands for a field that one side has not."""


MISSING = Missing()


class Side(msgspec.Struct, frozen=True):
    """One log where the two part: its record there, None behind its last, and what led to it."""

    record: Record | EndRecord | None
    causes: list[Record]


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """Where two sections part: what is equal until there, and what differs in the next record."""

    equal: int
    before: list[Record]
    left: Side
    right: Side
    fields: list[Difference]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sections compared: how their headers differ, and where they part, None if nowhere."""

    header: list[Difference]
    parting: Parting | None


def pairs_of(left: Sequence[Entry], right: Sequence[Entry]) -> Pairs:
    """Pair the sections of two logs by scenario, cell and replication; also return what is over.

    One with one is a pair whatever it is. Where no two are of the same cell, and each log has only
    one cell, their replications are paired.
    """
    if len(left) == len(right) == 1:
        return [(left[0], right[0])], [], []
    found = _paired(left, right, lambda entry: entry.key)
    if not found[0] and len({e.cell for e in left}) == len({e.cell for e in right}) == 1:
        found = _paired(left, right, lambda entry: ("", "", entry.replication))
    return found


def _paired(
    left: Sequence[Entry], right: Sequence[Entry], key: Callable[[Entry], Hashable]
) -> Pairs:
    waiting: dict[Hashable, list[Entry]] = {}
    for entry in right:
        waiting.setdefault(key(entry), []).append(entry)
    pairs: list[tuple[Entry, Entry]] = []
    alone: list[Entry] = []
    for entry in left:
        others = waiting.get(key(entry))
        if others:
            pairs.append((entry, others.pop(0)))
        else:
            alone.append(entry)
    return pairs, alone, [entry for others in waiting.values() for entry in others]


def compare(left: Section, right: Section, *, ignore_ids: bool = False) -> Comparison:
    """Compare two sections; with `ignore_ids` ids count by where they first appear."""
    return Comparison(
        header=list(headers(left.header, right.header)),
        parting=parting(left, right, ignore_ids=ignore_ids),
    )


def headers(left: HeaderRecord, right: HeaderRecord) -> Iterator[Difference]:
    """Yield what two headers differ in and what that explains, the scenario key by key."""
    for name in EXPLAINS:
        mine, other = getattr(left, name), getattr(right, name)
        if mine != other:
            yield name, mine, other
    yield from differences(left.resolved, right.resolved)


def parting(left: Section, right: Section, *, ignore_ids: bool = False) -> Parting | None:
    """Return where the records of two sections part, None if they are equal to the end.

    Ids depend on seed and cell, so those of two cells differ from the first message on. With
    `ignore_ids` two ids are the same if they first appear at the same place.
    """
    equal, fields = 0, list[Difference]()
    pairs = zip(_compared(left, ignore_ids), _compared(right, ignore_ids), strict=False)
    for one, theirs in pairs:
        if one != theirs:
            fields = list(differences(_plain(one), _plain(theirs)))
            break
        equal += 1
    mine = _at(left, equal)
    other = _at(right, equal)
    if ignore_ids and isinstance(mine, EndRecord) and isinstance(other, EndRecord):
        mine = msgspec.structs.replace(mine, digest=other.digest)  # which is of the ids too
    if not fields and mine == other:
        return None
    if isinstance(mine, EndRecord) and isinstance(other, EndRecord):
        fields = list(differences(_plain(mine), _plain(other)))
    return Parting(
        equal=equal,
        before=left.records[max(equal - BEFORE, 0) : equal],
        left=Side(mine, _causes(left, mine)),
        right=Side(other, _causes(right, other)),
        fields=fields,
    )


def _compared(section: Section, ignore_ids: bool) -> Iterator[Record | bytes]:
    """Yield what is compared of each record: itself, or its line with its ids numbered."""
    if not ignore_ids:
        yield from section.records
        return
    names: dict[bytes, bytes] = {}
    for record in section.records:
        line = msgspec.json.encode(record)
        yield _ID.sub(lambda found: names.setdefault(found[0], b"id %d" % (len(names) + 1)), line)


def _plain(record: Record | EndRecord | bytes) -> Any:
    if isinstance(record, bytes):
        return msgspec.json.decode(record)
    return msgspec.to_builtins(record)


def _at(section: Section, index: int) -> Record | EndRecord | None:
    return section.records[index] if index < len(section.records) else section.end


def _causes(section: Section, record: Record | EndRecord | None) -> list[Record]:
    """Return what led to a record, the first cause first, itself left out."""
    if not isinstance(record, Record):
        return []
    return Causes(section.records).chain(record.n)[:-1]


def differences(left: Any, right: Any, path: str = "") -> Iterator[Difference]:
    """Yield the fields that differ, each by its path; tables and lists are looked into."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys([*left, *right]):
            mine, other = left.get(key, MISSING), right.get(key, MISSING)
            yield from differences(mine, other, f"{path}.{key}" if path else str(key))
    elif isinstance(left, list) and isinstance(right, list):
        for index, (mine, other) in enumerate(zip_longest(left, right, fillvalue=MISSING)):
            yield from differences(mine, other, f"{path}[{index}]")
    elif left != right or type(left) is not type(right):
        yield path, left, right
