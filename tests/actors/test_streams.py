"""Streams of chance: uniform, independent, and the same on every machine."""

from __future__ import annotations

import math
from hashlib import blake2b
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.streams import HashedStream

KEY = bytes(range(32))
COUNT = 20_000
GOLDEN = [
    0.3433472896721992,
    0.6687316633571577,
    0.007421164512648071,
    0.24421046966604265,
    0.053992359948002555,
    0.6180332927670147,
    0.3189457255537559,
    0.865199182271385,
    0.49285378977475824,
    0.6566698451189315,
]


def numbers(purpose: str, count: int = COUNT, key: bytes = KEY) -> list[float]:
    stream = HashedStream(key, purpose)
    return [stream.random() for _ in range(count)]


def test_golden_values_never_change() -> None:
    assert numbers("agent/poll", 10) == GOLDEN


def test_a_number_is_53_bits_of_a_keyed_hash() -> None:
    """The same by a naive count: block n is the hash of purpose/n, read from its end."""
    found = []
    for block in range(3):
        digest = blake2b(b"relay/phase/%d" % block, key=KEY).digest()
        words = [int.from_bytes(digest[at : at + 8], "little") for at in range(0, 64, 8)]
        found += [(word >> 11) / 2**53 for word in reversed(words)]
    assert numbers("relay/phase", 24) == found


def test_numbers_are_uniform() -> None:
    drawn = numbers("x")
    assert all(0.0 <= number < 1.0 for number in drawn)
    # Chi-square of 100 equal bins: 99 degrees of freedom, mean 99, standard deviation 14.1.
    bins = [0] * 100
    for number in drawn:
        bins[int(number * 100)] += 1
    expected = COUNT / 100
    assert sum((count - expected) ** 2 / expected for count in bins) < 99 + 4 * 14.1
    assert abs(math.fsum(drawn) / COUNT - 0.5) < 4 / math.sqrt(12 * COUNT)


def correlation(left: list[float], right: list[float]) -> float:
    count = len(left)
    means = math.fsum(left) / count, math.fsum(right) / count
    products = math.fsum((a - means[0]) * (b - means[1]) for a, b in zip(left, right, strict=True))
    return 12 * products / count  # the variance of a uniform number is 1/12


@pytest.mark.parametrize(
    ("purpose", "key"),
    [("y", KEY), ("x/0", KEY), ("X", KEY), ("", KEY), ("x", KEY[::-1]), ("x", KEY[:31])],
)
def test_streams_of_another_purpose_or_key_are_independent(purpose: str, key: bytes) -> None:
    assert abs(correlation(numbers("x"), numbers(purpose, key=key))) < 4 / math.sqrt(COUNT)


@pytest.mark.parametrize("lag", [1, 7, 8])
def test_a_number_tells_nothing_of_the_next(lag: int) -> None:
    drawn = numbers("x", COUNT + lag)
    assert abs(correlation(drawn[:-lag], drawn[lag:])) < 4 / math.sqrt(COUNT)


def test_no_number_comes_again() -> None:
    drawn = numbers("x")
    assert len(set(drawn)) == COUNT
    assert all(left != right for left, right in pairwise(drawn))


@given(st.text(max_size=20), st.binary(min_size=1, max_size=64), st.integers(1, 40))
def test_a_stream_depends_on_key_and_purpose_alone(purpose: str, key: bytes, count: int) -> None:
    first, other, second = (HashedStream(key, name) for name in (purpose, purpose + "!", purpose))
    for _ in range(count):
        other.random()
        assert first.random() == second.random()
    assert list(islice(iter(first.random, None), 3)) != list(islice(iter(other.random, None), 3))


@given(st.integers(0, 40), st.integers(0, 40))
def test_what_is_skipped_is_drawn_by_nobody(first: int, second: int) -> None:
    one, other = HashedStream(b"key", "purpose"), HashedStream(b"key", "purpose")
    drawn = [one.random() for _ in range(first + second)]
    other.skip(first)
    assert other.drawn == first
    assert [other.random() for _ in range(second)] == drawn[first:]
    assert other.drawn == one.drawn == first + second
    other.restart(b"key")
    assert other.drawn == 0


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_a_stream_goes_to_where_it_was(first: int, other: int, more: int) -> None:
    drawn = numbers("x", 64)
    stream = HashedStream(KEY, "x")
    for where in (first, other):
        stream.go_to(where)
        assert stream.drawn == where
    assert [stream.random() for _ in range(more)] == drawn[other : other + more]
    assert stream.drawn == other + more
