"""Durations, offsets and sizes: exact in both directions, and errors that carry the cure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.units import (
    DURATION_LIMIT_US,
    SIZE_LIMIT_BYTES,
    Duration,
    Offset,
    Size,
    parse_duration,
    parse_offset,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("20s", 20_000_000),
        ("1.5s", 1_500_000),
        ("500ms", 500_000),
        ("250us", 250),
        ("2m", 120_000_000),
        ("1h30m", 5_400_000_000),
        ("7d", 604_800_000_000),
        ("0s", 0),
        ("1m30.25s", 90_250_000),
        ("0.000001s", 1),
        ("  20s ", 20_000_000),
        ("36500d", DURATION_LIMIT_US),
    ],
)
def test_a_duration_is_read_exactly(text: str, us: int) -> None:
    duration = parse_duration(text)
    assert duration == us
    assert type(duration) is Duration


@pytest.mark.parametrize(
    "text", ["20s", "1m30s", "500ms", "1.5s", "1.5ms", "250us", "0s", "1h", "7d", "1d0.5s", "1m"]
)
def test_canonical_durations_stay_as_they_are(text: str) -> None:
    assert str(parse_duration(text)) == text


@pytest.mark.parametrize(("text", "canonical"), [("90s", "1m30s"), ("60m", "1h"), ("1000ms", "1s")])
def test_other_durations_become_canonical(text: str, canonical: str) -> None:
    assert str(parse_duration(text)) == canonical


@given(st.integers(0, DURATION_LIMIT_US))
def test_every_duration_survives_its_text(us: int) -> None:
    assert parse_duration(str(Duration(us))) == us


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("20", '20 has no unit: write "20s"'),
        ("1.5", 'write "1.5s"'),
        ("20 s", 'write it without spaces, "20s"'),
        ("20sec", 'unknown unit sec: write "20s"'),
        ("5min", 'write "5m"'),
        ("5S", 'write "5s"'),
        ("30m1h", "out of order"),
        ("1s1s", "out of order"),
        ("1.5h30m", "fraction before its last unit"),
        ("0.1us", "not a whole number of microseconds"),
        ("-5s", "can't be negative"),
        ("36501d", "too long"),
        ("1e3s", "not a duration"),
        (".5s", "not a duration"),
        ("", "not a duration"),
        ("s", "not a duration"),
        ("twenty", 'as in "20s"'),
        ("٣s", "not a duration"),
        ("9" * 5000 + "s", "not a duration"),
    ],
)
def test_a_wrong_duration_says_the_cure(text: str, cure: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_duration(text)
    assert cure in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("us", [-1, DURATION_LIMIT_US + 1])
def test_a_duration_has_limits(us: int) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Duration(us)


def test_a_duration_is_an_int_that_prints_as_text() -> None:
    duration = Duration(20_000_000)
    assert f"{duration}" == "20s"
    assert repr(duration) == "Duration(20000000)"
    assert duration + 1 == 20_000_001


@pytest.mark.parametrize(
    ("text", "us", "canonical"),
    [
        ("-1h", -3_600_000_000, "-1h"),
        ("+1d", 86_400_000_000, "+1d"),
        ("90s", 90_000_000, "+1m30s"),
        (" -1h30m ", -5_400_000_000, "-1h30m"),
        ("0s", 0, "+0s"),
        ("-0s", 0, "+0s"),
        ("-36500d", -DURATION_LIMIT_US, "-36500d"),
    ],
)
def test_an_offset_is_a_duration_with_a_sign(text: str, us: int, canonical: str) -> None:
    offset = parse_offset(text)
    assert (offset, str(offset)) == (us, canonical)
    assert type(offset) is Offset
    assert repr(offset) == f"Offset({us})"


@given(st.integers(-DURATION_LIMIT_US, DURATION_LIMIT_US))
def test_every_offset_survives_its_text(us: int) -> None:
    assert parse_offset(str(Offset(us))) == us


@pytest.mark.parametrize("text", ["--1h", "+-1h", "-", "1h-", "-36501d", "", "-1x"])
def test_a_wrong_offset_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|too long|unknown unit"):
        parse_offset(text)


@pytest.mark.parametrize("text", ["-5", "+1.5", "20"])
def test_an_offset_without_a_unit_is_refused_with_the_cure(text: str) -> None:
    with pytest.raises(ValueError, match="has no unit") as caught:
        parse_offset(text)
    assert f'write "{text}s"' in str(caught.value)


@pytest.mark.parametrize("us", [-DURATION_LIMIT_US - 1, DURATION_LIMIT_US + 1])
def test_an_offset_has_limits(us: int) -> None:
    with pytest.raises(ValueError, match="is not an offset"):
        Offset(us)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("100KiB", 102_400),
        ("1MiB", 1_048_576),
        ("64KB", 64_000),
        ("512B", 512),
        ("1.5GiB", 1_610_612_736),
        ("2MB", 2_000_000),
        ("3GB", 3_000_000_000),
        ("0B", 0),
    ],
)
def test_a_size_is_read_exactly(text: str, size_bytes: int) -> None:
    size = parse_size(text)
    assert size == size_bytes
    assert type(size) is Size


@pytest.mark.parametrize(
    "text", ["100KiB", "1MiB", "64KB", "512B", "0B", "1GiB", "1024KB", "1000001B"]
)
def test_canonical_sizes_stay_as_they_are(text: str) -> None:
    assert str(parse_size(text)) == text


@given(st.integers(0, SIZE_LIMIT_BYTES) | st.integers(0, 2**23).map(lambda n: n * 1024))
def test_every_size_survives_its_text(size_bytes: int) -> None:
    assert parse_size(str(Size(size_bytes))) == size_bytes


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("100", 'write "100B"'),
        ("100kib", 'write "100KiB"'),
        ("100K", "unknown unit K"),
        ("100 KiB", 'as in "100KiB"'),
        ("0.5B", "not a whole number of bytes"),
        ("9000000GiB", "too large"),
        ("1MiB1KiB", "not a size"),
        ("", "not a size"),
    ],
)
def test_a_wrong_size_says_the_cure(text: str, cure: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_size(text)
    assert cure in str(caught.value)


def test_a_size_has_limits_and_prints_as_text() -> None:
    with pytest.raises(ValueError, match="is not a size"):
        Size(-1)
    assert repr(Size(1024)) == "Size(1024)"
    assert f"{Size(1024)}" == "1KiB"
