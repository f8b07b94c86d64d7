"""The search by itself: with predicates that run nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.shrink import OutOfTimeError, Search, ddmin, shrink

ITEMS = st.integers(1, 14).flatmap(lambda size: st.just(list(range(size))))


class Asked:
    """A predicate on lists that counts what it is asked."""

    def __init__(self, holds: Any) -> None:
        self.holds = holds
        self.count = 0

    def first(self, lists: Iterable[list[int]]) -> list[int] | None:
        for one in lists:
            self.count += 1
            if self.holds(one):
                return one
        return None


@given(ITEMS, st.sets(st.integers(0, 13)))
def test_what_is_needed_is_found_exactly_if_it_is_needed_for_certain(
    items: list[int], needed: set[int]
) -> None:
    needed &= set(items)
    asked = Asked(lambda one: needed <= set(one))
    assert ddmin(items, asked.first) == sorted(needed)
    assert asked.count <= len(items) ** 2 + 4 * len(items)


@given(ITEMS, st.data())
def test_of_any_predicate_no_single_item_of_the_result_can_be_spared(
    items: list[int], data: st.DataObject
) -> None:
    whims: dict[tuple[int, ...], bool] = {tuple(items): True}

    def holds(one: list[int]) -> bool:
        key = tuple(one)
        if key not in whims:
            whims[key] = data.draw(st.booleans(), label=str(key))
        return whims[key]

    asked = Asked(holds)
    left = ddmin(items, asked.first)
    assert holds(left)
    assert left == sorted(left)
    assert asked.count <= len(items) ** 2 + 4 * len(items)
    if left:
        assert not whims[()]
        for index in range(len(left)):
            assert not whims[(*left[:index], *left[index + 1 :])]


def test_a_few_of_many_are_found_quickly() -> None:
    asked = Asked(lambda one: {3, 900} <= set(one))
    assert ddmin(range(1000), asked.first) == [3, 900]
    assert asked.count < 160


def test_nothing_is_asked_about_nothing() -> None:
    asked = Asked(lambda _: False)
    assert ddmin([], asked.first) == []
    assert asked.count < 1
    assert ddmin([7], asked.first) == [7]
    assert asked.count == 1


# The search


def candidates(*numbers: int) -> list[dict[str, Any]]:
    return [{"x": number} for number in numbers]


def test_the_first_that_holds_is_taken_and_nothing_is_tried_twice() -> None:
    seen: list[int] = []

    def holds(data: dict[str, Any]) -> bool:
        seen.append(data["x"])
        return int(data["x"]) % 3 == 0

    said: list[int] = []
    search = Search({"x": 9}, holds, say=lambda one: said.append(one.best["x"]))
    assert search.improve(candidates(9, 1, 2, 6, 3))
    assert search.best == {"x": 6}
    assert not search.improve([*candidates(1, 6, 2), None])
    assert search.improve(candidates(2, 3))
    assert seen == [1, 2, 6, 3]
    assert (search.tries, said) == (4, [6, 3])
    assert search.pick("ab", lambda one: {"x": 0 if one == "b" else 1}) == "b"


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(2, 5))
def test_any_number_side_by_side_finds_the_same_in_as_many_tries(
    numbers: list[int], width: int
) -> None:
    def found(width: int) -> tuple[dict[str, Any], int]:
        search = Search({"x": 31}, lambda data: data["x"] % 7 == 0, width=width)
        for start in (0, 1, 0):
            search.improve(candidates(*numbers[start:]))
        return search.best, search.tries

    assert found(1) == found(width)


def test_a_search_ends_when_nothing_helps_any_more_or_the_time_is_up() -> None:
    def halve(search: Search) -> None:
        search.improve(candidates(search.best["x"] // 2))

    def less(search: Search) -> None:
        search.improve(candidates(search.best["x"] - 1))

    passes = [("halves", halve), ("less", less)]
    search = Search({"x": 100}, lambda data: data["x"] >= 11)
    assert shrink(search, passes) == []
    assert search.best == {"x": 11}
    search = Search({"x": 100}, lambda data: data["x"] >= 11, late=lambda: search.tries >= 3)
    assert shrink(search, passes) == ["less"]
    assert search.best == {"x": 24}
    assert shrink(search, passes) == ["halves", "less"]
    with pytest.raises(OutOfTimeError):
        search.improve(candidates(1))
