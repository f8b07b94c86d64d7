"""Words of the owner's pages: spans of time, moments, and texts that others wrote."""

from __future__ import annotations

import time

from scenarios.problems import printable

NAME_LIMIT_CHARS = 80  # of a name on a page: two lines of a phone
S = 1_000_000

_UNITS = (("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span(us: int) -> str:
    """Return a span of time in its two largest units: "3 min 20 s", "2 days 4 h", "under 1 s"."""
    left_s = max(us, 0) // S
    if not left_s:
        return "under 1 s"
    parts: list[str] = []
    for unit, size_s in _UNITS:
        count, left_s = divmod(left_s, size_s)
        if count:
            plural = "s" if unit == "day" and count > 1 else ""
            parts.append(f"{count} {unit}{plural}")
        if len(parts) == 2 or (parts and not count):
            break
    return " ".join(parts)


def ago(us: int | None) -> str:
    """Return how long ago something was, "never" for None."""
    if us is None:
        return "never"
    return "just now" if us < S else f"{span(us)} ago"


def moment(at_us: int) -> str:
    """Return a time since 1970 to the second, in UTC: "2026-03-01 12:00:05 UTC"."""
    # What no calendar reaches is from a clock that was far off, or from a damaged row.
    if not 0 <= at_us < 253_402_300_800 * S:
        return "not a date"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_us // S))


def machine_moment(at_us: int) -> str:
    """Return a time since 1970 as HTML's `datetime` has it; empty for what is no date."""
    text = moment(at_us)
    return text.removesuffix(" UTC").replace(" ", "T") + "Z" if text.endswith("UTC") else ""


def plain(text: str, limit_chars: int = NAME_LIMIT_CHARS) -> str:
    """Return a text that others wrote as one line that is harmless to show, cut with its length.

    What would turn the direction of writing, or move a cursor, is replaced by a visible sign.
    """
    return _cut(printable(text), limit_chars)


def plain_lines(text: str, limit_chars: int) -> str:
    """Return a text of several lines likewise; it keeps its lines."""
    lines = (printable(line.replace("\t", "    ")) for line in text.split("\n"))
    return _cut("\n".join(lines), limit_chars)


def _cut(text: str, limit_chars: int) -> str:
    rest = len(text) - limit_chars
    return text if rest <= 0 else f"{text[:limit_chars]}… ({rest:,} more characters)"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 run", "2,000 runs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
