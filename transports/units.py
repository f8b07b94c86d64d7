"""Durations, offsets and sizes: numbers with their unit in text, and whole numbers inside.

A duration is a whole number of microseconds, a size a whole number of bytes. Their text is exact in
both directions: `parse_duration(str(d)) == d` for every duration, and the same for sizes. A number
without a unit is refused, because nobody can tell seconds from milliseconds by looking at it.
"""

import re
from fractions import Fraction
from typing import Final

# A century. Twice that, added to today's wall clock, still fits a signed 64-bit column, and every
# whole microsecond up to here is a float without rounding (it is below 2**53).
DURATION_LIMIT_US: Final = 36_500 * 86_400_000_000
SIZE_LIMIT_BYTES: Final = 2**53  # beyond it a JSON number in another language loses bytes
TEXT_LIMIT_CHARS: Final = 60  # the longest exact duration has 29; digits cost quadratic time

_DURATION_UNITS_US: Final = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_SIZE_UNITS_BYTES: Final = {
    "GiB": 2**30,
    "GB": 10**9,
    "MiB": 2**20,
    "MB": 10**6,
    "KiB": 2**10,
    "KB": 10**3,
    "B": 1,
}
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]+)")
_EXPONENT: Final = re.compile(r"[0-9][eE][0-9]")
_KNOWN_PARTS: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:us|ms|s|m|h|d))+")
_OTHER_NAMES: Final = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "min": "m",
    "mins": "m",
    "minute": "m",
    "minutes": "m",
    "hr": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "msec": "ms",
    "usec": "us",
}


class Duration(int):
    """A length of time in whole microseconds, 0 or more; a plain int wherever one is expected.

    `str()` is the exact text in the largest units that fit: "20s", "1m30s", "1.5s", "500ms", "0s".
    Raises ValueError when it is negative or longer than a century.
    """

    __slots__ = ()

    def __new__(cls, us: int = 0) -> "Duration":
        """Build one from whole microseconds."""
        if not 0 <= us <= DURATION_LIMIT_US:
            raise ValueError(f"{int(us)} microseconds is not a duration: write 0s to 36500d")
        return super().__new__(cls, us)

    def __str__(self) -> str:
        return _duration_text(int(self))

    def __repr__(self) -> str:
        return f"Duration({int(self)})"


class Offset(int):
    """A length of time in whole microseconds that has a direction: ahead, or behind if negative.

    `str()` is a duration's text with its sign: "+1d", "-1h30m". Raises ValueError when it is longer
    than a century.
    """

    __slots__ = ()

    def __new__(cls, us: int = 0) -> "Offset":
        """Build one from whole microseconds."""
        if abs(us) > DURATION_LIMIT_US:
            raise ValueError(f"{int(us)} microseconds is not an offset: write -36500d to +36500d")
        return super().__new__(cls, us)

    def __str__(self) -> str:
        return f"{'-' if self < 0 else '+'}{_duration_text(abs(int(self)))}"

    def __repr__(self) -> str:
        return f"Offset({int(self)})"


class Size(int):
    """A number of bytes, 0 or more; a plain int wherever one is expected.

    `str()` is the shortest exact text: "100KiB", "64KB", "512B". Raises ValueError when it is
    negative or over 2**53 bytes.
    """

    __slots__ = ()

    def __new__(cls, size_bytes: int = 0) -> "Size":
        """Build one from whole bytes."""
        if not 0 <= size_bytes <= SIZE_LIMIT_BYTES:
            raise ValueError(f"{int(size_bytes)} bytes is not a size: write 0B to 8388608GiB")
        return super().__new__(cls, size_bytes)

    def __str__(self) -> str:
        return _size_text(int(self))

    def __repr__(self) -> str:
        return f"Size({int(self)})"


def parse_duration(text: str) -> Duration:
    """Return the duration that `text` says: "20s", "1.5s", "500ms", "250us", "2m", "1h30m", "7d".

    Several units go from the largest to the smallest, each once; only the last may have a decimal
    fraction, and the whole must come to whole microseconds. Raises ValueError with the cure.
    """
    plain = text.strip()
    if _NUMBER.fullmatch(plain):
        raise ValueError(f'{_cut(plain)} has no unit: write "{_cut(plain)}s" for seconds')
    parts = _duration_parts(plain)
    total = Fraction(0)
    for number, unit in parts:
        total += Fraction(number) * _DURATION_UNITS_US[unit]
    if total.denominator != 1:
        raise ValueError(f'"{plain}" is not a whole number of microseconds: write at least 1us')
    if total > DURATION_LIMIT_US:
        raise ValueError(f'"{plain}" is too long: the longest duration is 36500d')
    return Duration(total.numerator)


def parse_offset(text: str) -> Offset:
    """Return the offset that `text` says: a duration that may have a sign, "-1h", "+1d", "20s".

    Raises ValueError with the cure.
    """
    plain = text.strip()
    size = plain[1:] if plain[:1] in ("+", "-") else plain
    if _NUMBER.fullmatch(size):
        raise ValueError(f'{_cut(plain)} has no unit: write "{_cut(plain)}s" for seconds')
    size_us = int(parse_duration(size))
    return Offset(-size_us if plain.startswith("-") else size_us)


def parse_size(text: str) -> Size:
    """Return the size that `text` says: "100KiB", "1MiB", "64KB", "1.5GiB", "512B".

    KiB, MiB and GiB count in 1024s; KB, MB and GB in 1000s. Raises ValueError with the cure.
    """
    plain = text.strip()
    if _NUMBER.fullmatch(plain):
        raise ValueError(f'{_cut(plain)} has no unit: write "{_cut(plain)}B" or "{_cut(plain)}KiB"')
    match = _PART.fullmatch(plain) if len(plain) <= TEXT_LIMIT_CHARS else None
    if match is None:
        raise ValueError(
            f'"{_cut(plain)}" is not a size: write a number and a unit, as in "100KiB"'
        )
    number, unit = match.groups()
    if unit not in _SIZE_UNITS_BYTES:
        near = next((known for known in _SIZE_UNITS_BYTES if known.lower() == unit.lower()), "KiB")
        raise ValueError(
            f'"{plain}" has the unknown unit {unit}: '
            f'write "{number}{near}" (units are B, KB, MB, GB, KiB, MiB, GiB)'
        )
    total = Fraction(number) * _SIZE_UNITS_BYTES[unit]
    if total.denominator != 1:
        raise ValueError(f'"{plain}" is not a whole number of bytes: write one, as in "512B"')
    if total > SIZE_LIMIT_BYTES:
        raise ValueError(f'"{plain}" is too large: the largest size is 8388608GiB')
    return Size(total.numerator)


def _duration_parts(plain: str) -> list[tuple[str, str]]:
    """Return the (number, unit) pairs of a duration's text, checked for order and fractions."""
    parts = _PART.findall(plain) if len(plain) <= TEXT_LIMIT_CHARS else []
    known = "".join(number + unit for number, unit in parts) == plain
    if not parts or not known or _EXPONENT.search(plain):
        raise ValueError(f'"{_cut(plain)}" is not a duration: {_duration_cure(plain)}')
    for number, unit in parts:
        if unit not in _DURATION_UNITS_US:
            raise ValueError(
                f'"{plain}" has the unknown unit {unit}: '
                f'write "{number}{_near_unit(unit)}" (units are us, ms, s, m, h, d)'
            )
    lengths = [_DURATION_UNITS_US[unit] for _, unit in parts]
    if lengths != sorted(set(lengths), reverse=True):
        raise ValueError(f'"{plain}" has its units out of order: write them as in "1h30m"')
    if any("." in number for number, _ in parts[:-1]):
        raise ValueError(f'"{plain}" has a fraction before its last unit: write it as in "1h1.5m"')
    return parts


def _duration_cure(plain: str) -> str:
    if plain.startswith("-"):
        return 'it can\'t be negative, write one as in "20s"'
    joined = "".join(plain.split())
    if joined != plain and _KNOWN_PARTS.fullmatch(joined):
        return f'write it without spaces, "{joined}"'
    return 'write a number and a unit (us, ms, s, m, h, d), as in "20s" or "1h30m"'


def _near_unit(unit: str) -> str:
    lower = unit.lower()
    return lower if lower in _DURATION_UNITS_US else _OTHER_NAMES.get(lower, "s")


def _cut(plain: str) -> str:
    return plain if len(plain) <= TEXT_LIMIT_CHARS else plain[:TEXT_LIMIT_CHARS] + "..."


def _duration_text(us: int) -> str:
    parts = []
    rest = us
    for unit in ("d", "h", "m"):
        whole, rest = divmod(rest, _DURATION_UNITS_US[unit])
        if whole:
            parts.append(f"{whole}{unit}")
    if rest or not parts:
        # A second and more, or what follows minutes, is told in seconds; less in ms, then in us.
        if rest >= 1_000_000 or rest == 0 or parts:
            unit, digits = "s", 6
        elif rest >= 1_000:
            unit, digits = "ms", 3
        else:
            unit, digits = "us", 0
        parts.append(f"{_decimal(rest, digits)}{unit}")
    return "".join(parts)


def _decimal(number: int, digits: int) -> str:
    """Return `number / 10**digits` exactly, without trailing zeros."""
    whole, fraction = divmod(number, 10**digits)
    tail = f"{fraction:0{digits}d}".rstrip("0") if fraction else ""
    return f"{whole}.{tail}" if tail else str(whole)


def _size_text(size_bytes: int) -> str:
    if size_bytes == 0:
        return "0B"
    texts = [
        f"{size_bytes // factor}{unit}"
        for unit, factor in _SIZE_UNITS_BYTES.items()
        if size_bytes % factor == 0
    ]
    return min(texts, key=len)
