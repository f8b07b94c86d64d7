"""Shrinking: the search for a smaller scenario that still shows what the first one shows.

The search is pure: it is given a file's data and asks a function whether a candidate still shows
it. What is tried, and in which order, is said by passes (`shrink_steps`). Candidates may be tried
side by side; the first in order that holds is taken, so any number of processes finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec

Data = dict[str, Any]
Pass = Callable[["Search"], None]
Mapper = Callable[[Callable[[Data], bool], list[Data]], Iterable[bool]]
T = TypeVar("T")

ROUNDS_LIMIT = 8  # each pass may make room for another; three rounds are usual


class OutOfTimeError(Exception):
    """The budget is used up; what was found so far is good."""


class Search:
    """The smallest data so far in `best`, and how many candidates were tried in `tries`.

    `holds` tells whether data still shows what it should. With `width` above 1 so many candidates
    are handed to `mapper` at a time. `late` is asked before each trial, `say` told of each success.
    """

    def __init__(
        self,
        data: Data,
        holds: Callable[[Data], bool],
        *,
        mapper: Mapper = map,
        width: int = 1,
        late: Callable[[], bool] = bool,
        say: Callable[[Search], object] = bool,
    ) -> None:
        self.best = data
        self.tries = 0
        self._holds = holds
        self._mapper = mapper
        self._width = width
        self._late = late
        self._say = say
        self._failed: set[bytes] = set()  # only asked for membership

    def pick(self, options: Iterable[T], made: Callable[[T], Data | None]) -> T | None:
        """Return the first option whose data holds, which becomes the best; None if none does.

        Whatever is equal to the best, or None, is passed over. OutOfTimeError.
        """
        there = encoded(self.best)
        rest = iter(options)
        while chunk := list(islice(rest, self._width)):
            tried: list[tuple[T, Data, bytes]] = []
            for option in chunk:
                data = made(option)
                key = b"" if data is None else encoded(data)
                known = key == there or key in self._failed or any(key == one[2] for one in tried)
                if data is not None and not known:
                    tried.append((option, data, key))
            if not tried:
                continue
            if self._late():
                raise OutOfTimeError
            outcomes = self._mapper(self._holds, [data for _, data, _ in tried])
            # What lies behind the first that holds is not remembered: alone nobody had tried it.
            for (option, data, key), holds in zip(tried, outcomes, strict=True):
                self.tries += 1
                if holds:
                    self.best = data
                    self._say(self)
                    return option
                self._failed.add(key)
        return None

    def improve(self, candidates: Iterable[Data | None]) -> bool:
        """Take the first candidate that holds; return whether there was one. OutOfTimeError."""
        return self.pick(candidates, lambda data: data) is not None


def encoded(data: Data) -> bytes:
    """Return what tells data apart; the order of faults and of an array's tables counts."""
    return msgspec.json.encode(data, order="sorted")


def ddmin(items: Sequence[T], first: Callable[[Iterable[list[T]]], list[T] | None]) -> list[T]:
    """Return a part of the items that holds, in their order, of which no single one can be spared.

    `first` returns the first list that holds, None if none does; `items` themselves hold. For n
    items it is asked about n * n + 4 * n lists at most, and about few times log n if few matter
    (delta debugging: Zeller and Hildebrandt, TSE 2002).
    """
    left = list(items)
    if not left or first([[]]) is not None:
        return []
    parts = 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        starts = range(0, len(left), size)
        alone = (left[start : start + size] for start in starts)
        without = ([*left[:start], *left[start + size :]] for start in starts)
        found = first(chain(alone, without))
        if found is not None:
            parts = 2 if len(found) <= size else max(parts - 1, 2)
            left = found
        elif size == 1:
            break
        else:
            parts = min(2 * parts, len(left))
    return left


def shrink(search: Search, passes: Sequence[tuple[str, Pass]]) -> list[str]:
    """Do the passes again and again until none helps; return the names of those not finished."""
    for _ in range(ROUNDS_LIMIT):
        before = search.best
        for index, (_, one) in enumerate(passes):
            try:
                one(search)
            except OutOfTimeError:
                return [name for name, _ in passes[index:]]
        if search.best is before:
            break
    return []
