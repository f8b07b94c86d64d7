"""`pullcord log diff`: where two logs part, printed with what led to it on either side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from logs.diff import MISSING, Comparison, Difference, Parting, Side, compare, pairs_of
from logs.record import EndRecord, Record
from logs.seek import Entry, raw_section
from logs.words import Narrator
from scenarios.log_show import Lines, ending
from scenarios.render import plural

CAUSES_LIMIT: Final = 6  # of each side's chain, the nearest
FIELDS_LIMIT: Final = 20  # of what differs; a scenario of another kind has hundreds
VALUE_LIMIT_CHARS: Final = 60


def diff(
    left: tuple[Path, Sequence[Entry]],
    right: tuple[Path, Sequence[Entry]],
    out: Lines,
    *,
    ignore_ids: bool = False,
) -> int:
    """Compare the sections of two logs; print the first difference; return the exit code.

    0 is for equal records, 1 for others. LogError if one can't be read.
    """
    pairs, ours, theirs = pairs_of(left[1], right[1])
    equal = parted = 0
    for one, other in pairs:
        mine = raw_section(one).section()  # also of equal bytes: they may be no log
        if _same_lines(one, other):
            equal += 1
            continue
        its = raw_section(other).section()
        found = compare(mine, its, ignore_ids=ignore_ids)
        if found.parting is None:
            equal += 1
            continue
        parted += 1
        if parted == 1:
            out.head(f"{one.words} differs")
            names = str(left[0]), str(right[0])
            _show(found, found.parting, (mine.records, its.records), names, out)
    for side, alone in ((left[0], ours), (right[0], theirs)):
        if alone:
            more = f" and {len(alone) - 1:,} more" if len(alone) > 1 else ""
            out.head(f"only in {side}: {alone[0].words}{more}")
    if not pairs:
        out.head("no two sections are of the same cell and replication")
    out.plain(
        f"{plural(equal, 'section')} equal, {parted:,} different, {len(ours) + len(theirs):,} alone"
    )
    return 0 if pairs and not (parted or ours or theirs) else 1


def _same_lines(left: Entry, right: Entry) -> bool:
    """Whether two sections are the same bytes behind their headers, as most equal ones are."""
    return raw_section(left).lines[1:] == raw_section(right).lines[1:]


def _show(
    found: Comparison,
    parting: Parting,
    records: tuple[Sequence[Record], Sequence[Record]],
    names: tuple[str, str],
    out: Lines,
) -> None:
    if found.header:
        out.plain("what the headers explain:")
        fields(found.header, out)
    out.fit([*records[0][: parting.equal + 1], *records[1][parting.equal : parting.equal + 1]])
    out.plain(f"equal until here: {plural(parting.equal, 'record')}")
    _records(parting.before, records[0], out)
    sides = zip("-+", names, (parting.left, parting.right), records, strict=True)
    for sign, name, side, whole in sides:
        out.head(f"{sign} {name}")
        _side(side, whole, out)
    if parting.fields:
        out.plain("field by field:")
        fields(parting.fields, out)


def _side(side: Side, whole: Sequence[Record], out: Lines) -> None:
    if side.record is None or isinstance(side.record, EndRecord):
        out.plain(f"here it ends: {ending(side.record)}")
        return
    causes = side.causes[-CAUSES_LIMIT:]
    if len(causes) < len(side.causes):
        out.plain(f"{plural(len(side.causes) - len(causes), 'cause')} before these")
    _records([*causes, side.record], whole, out, strong=side.record.n)


def _records(
    wanted: Iterable[Record], whole: Sequence[Record], out: Lines, strong: int = 0
) -> None:
    """Write some records of a section; what was asked before tells what was not answered."""
    wanted = list(wanted)
    last = wanted[-1].n if wanted else 0
    narrator = Narrator()
    words = {}
    for record in whole:
        if record.n > last:
            break
        words[record.n] = narrator.words(record)
    for record in wanted:
        out.line(record, words[record.n], strong=record.n == strong)


def fields(differences: Sequence[Difference], out: Lines) -> None:
    """Write what differs, a field a line: its path, and both values."""
    for text in _texts(differences[:FIELDS_LIMIT]):
        out.text(f"  {text}")
    if len(differences) > FIELDS_LIMIT:
        out.plain(f"  and {len(differences) - FIELDS_LIMIT:,} more")


def _texts(differences: Sequence[Difference]) -> Iterator[str]:
    width = max(len(path) for path, _, _ in differences)
    for path, left, right in differences:
        yield f"{path:<{width}}  {_value(left)} → {_value(right)}"


def _value(value: Any) -> str:
    if value is MISSING:
        return "(nothing)"
    text = msgspec.json.encode(value).decode()
    if len(text) <= VALUE_LIMIT_CHARS:
        return text
    half = VALUE_LIMIT_CHARS // 2
    return f"{text[:half]}…{text[-half:]}"
