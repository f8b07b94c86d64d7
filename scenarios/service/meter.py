"""How long turns and commits of a process take: counted in buckets, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

# Seconds. A turn takes some 0.1 ms, a commit on a good disk 1 ms, on a bad one 50.
BOUNDS_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class Spread:
    """How many spans lie within each bound; those beyond the last have a bucket of their own."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, span_s: float) -> None:
        """Count a span."""
        self._counts[bisect_left(BOUNDS_S, span_s)] += 1
        self.sum_s += span_s

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count how long what is within takes, however it ends."""
        since_s = perf_counter()
        try:
            yield
        finally:
            self.add(perf_counter() - since_s)

    def cumulated(self) -> list[tuple[str, int]]:
        """Return for each bound how many spans are at most that long, "+Inf" the last."""
        told, total = [], 0
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self._counts, strict=True):
            total += count
            told.append((bound, total))
        return told


class Meter:
    """What a world measures of itself: its turns, and its commits, which several may share."""

    def __init__(self) -> None:
        self.turns = Spread()
        self.commits = Spread()
