"""`pullcord log stats`: what a log has much of, for people, as JSON or as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from logs.seek import Entry, raw_section
from logs.stats import MessageStats, Stats, Tally
from logs.words import seconds
from scenarios.grid import Row, grid
from scenarios.json_text import indented
from scenarios.problems import printable
from scenarios.render import number, plural

Format = Literal["text", "json", "csv"]

FATES: Final = ("message", "delivered", "late", "lost", "median", "p95", "max")
HEAD: Final = ("section", "group", "name", "count", "median_s", "p95_s", "max_s")


class Part(msgspec.Struct, frozen=True):
    """The figures of one section, or of all together (`section` is "total")."""

    section: str
    stats: Stats


def figures(entries: Sequence[Entry], *, each: bool) -> Iterator[Part]:
    """Add the sections up; with `each` give every one by itself before the total."""
    total = Tally()
    for entry in entries:
        raw = raw_section(entry)
        section, size_bytes = raw.section(), sum(map(len, raw.lines))
        total.add(section, size_bytes)
        if each:
            alone = Tally()
            alone.add(section, size_bytes)
            yield Part(entry.words, alone.stats())
    yield Part("total", total.stats())


def text(parts: Sequence[Part], width_columns: int, *, colored: bool) -> Iterator[str]:
    """Return the lines for people: the total's tables, before them a line a section."""
    total = parts[-1].stats
    if len(parts) > 1:
        head = ("section", "records", "turns", "messages", "lost", "late", "runs", "ended", "span")
        rows = [_row(part) for part in parts[:-1]]
        yield from grid(head, rows, width_columns, colored=colored)
        yield ""
    cut = f", {total.truncated:,} truncated" if total.truncated else ""
    sections, records = plural(total.sections, "section"), plural(total.records, "record")
    yield f"{sections}{cut}, {records}, {total.size_bytes:,} bytes"
    yield (
        f"{plural(total.turns, 'turn')} in {seconds(total.span_us)} of scenario time: "
        f"{number(total.turns_per_s)} a second"
    )
    runs = total.runs
    yield (
        f"{plural(runs.queued, 'run')} queued, {runs.started:,} started, {runs.ended:,} ended; "
        f"at most {runs.most_waiting:,} waited and {runs.most_open:,} were open at a time"
    )
    for title, counts in (
        ("kind", total.kinds),
        ("turns of", total.actors),
        ("event", total.events),
        ("dropped by", total.dropped_by),
        ("fault", total.faults),
    ):
        if counts:
            rows = [Row((printable(name), f"{count:,}")) for name, count in counts.items()]
            yield ""
            yield from grid((title, "count"), rows, width_columns, colored=colored)
    if total.messages:
        rows = [Row((printable(name), *_fates(one))) for name, one in total.messages.items()]
        yield ""
        yield from grid(FATES, rows, width_columns, colored=colored)


def _row(part: Part) -> Row:
    stats = part.stats
    messages = stats.messages.values()
    sums = (sum(getattr(one, fate) for one in messages) for fate in ("delivered", "lost", "late"))
    return Row(
        (
            printable(part.section),
            f"{stats.records:,}",
            f"{stats.turns:,}",
            *(f"{count:,}" for count in sums),
            f"{stats.runs.queued:,}",
            f"{stats.runs.ended:,}",
            seconds(stats.span_us),
        )
    )


def _fates(one: MessageStats) -> tuple[str, ...]:
    counts = (f"{one.delivered:,}", f"{one.late:,}", f"{one.lost:,}")
    if one.latency is None:
        return (*counts, "-", "-", "-")
    times = (one.latency.median_us, one.latency.p95_us, one.latency.max_us)
    return (*counts, *map(seconds, times))


def as_json(parts: Sequence[Part]) -> str:
    """Return the figures as JSON: a list with the sections, if they were wanted, and the total."""
    return indented(parts)


def as_csv(parts: Sequence[Part]) -> str:
    """Return the figures as CSV: a line a figure, times in seconds."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(HEAD)
    for part in parts:
        for row in _rows(part.stats):
            table.writerow((part.section, *row))
    return out.getvalue()


def _rows(stats: Stats) -> Iterator[tuple[object, ...]]:
    for name in ("sections", "truncated", "records", "size_bytes", "turns"):
        yield "log", name, getattr(stats, name)
    yield "log", "span_s", stats.span_us / 1e6
    yield "log", "turns_per_s", stats.turns_per_s
    for name, count in msgspec.structs.asdict(stats.runs).items():
        yield "runs", name, count
    for group, counts in (
        ("kind", stats.kinds),
        ("actor", stats.actors),
        ("event", stats.events),
        ("dropped_by", stats.dropped_by),
        ("fault", stats.faults),
    ):
        for name, count in counts.items():
            yield group, name, count
    for name, one in stats.messages.items():
        yield "lost", name, one.lost
        yield "late", name, one.late
        latency = one.latency
        if latency is None:
            yield "delivered", name, one.delivered
        else:
            times = (latency.median_us, latency.p95_us, latency.max_us)
            yield "delivered", name, one.delivered, *(time / 1e6 for time in times)
