"""Copies: what changes is another's, what never changes is shared, what can't be copied is told."""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.copies import Copier, UncopyableError, doubtful_fields


class Pinned:
    pass


class Colour(Enum):
    RED = 1


class Value(msgspec.Struct, frozen=True):
    number: int = 1
    names: tuple[str, ...] = ()
    when: Annotated[float | None, "why"] = None
    word: Literal["a", "b"] = "a"
    colour: Colour = Colour.RED


class Holder(msgspec.Struct, frozen=True):
    value: Value
    data: Any = None
    things: list[int] = []


class Loose(msgspec.Struct):
    items: list[int]
    self: Any = None


class Plain:
    kept: Any

    def __init__(self) -> None:
        self.items = [1]

    def add(self, item: int) -> None:
        self.items.append(item)


class Slotted:
    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items = [1]


def copied(value: Any, *pinned: object) -> Any:
    return Copier((Pinned,), pinned).copy(value)


SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
TREES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner)
        | st.builds(deque, st.lists(inner))
        | st.builds(Holder, st.just(Value()), inner)
    ),
)


@given(TREES)
def test_a_copy_is_equal(value: Any) -> None:
    assert copied(value) == value


@given(TREES, st.lists(st.integers(), min_size=1))
def test_no_change_of_the_original_is_seen_in_the_copy(value: Any, more: list[int]) -> None:
    holder = [value, {"more": list(more)}, deque(more), set(more)]
    copy = copied(holder)
    holder[1]["more"].append(1)
    holder[2].clear()
    holder[3].clear()
    assert copy == [value, {"more": more}, deque(more), set(more)]


@pytest.mark.parametrize(
    "value",
    [1, "a", b"a", None, True, Colour.RED, int, Value(), (1, Value()), Holder(Value()).value],
)
def test_what_never_changes_is_shared(value: Any) -> None:
    assert copied(value) is value


def test_doubt_is_about_the_fields_that_may_change() -> None:
    assert doubtful_fields(Value) == ()
    assert doubtful_fields(Holder) == ("data", "things")


def test_a_frozen_struct_that_holds_a_list_is_another_s() -> None:
    value = Holder(Value(), things=[1])
    copy = copied(value)
    value.things.append(2)
    assert (copy.things, copy.value) == ([1], value.value)


def test_two_names_for_one_list_stay_two_names_for_one() -> None:
    shared = [1]
    copy = copied({"one": shared, "other": (shared,), "loose": Loose(shared)})
    copy["one"].append(2)
    assert copy["other"][0] == copy["loose"].items == [1, 2]
    assert shared == [1]


def test_what_holds_itself_is_copied() -> None:
    loose = Loose([1])
    loose.self = loose
    copy = copied(loose)
    assert copy.self is copy is not loose
    ring: list[Any] = []
    ring.append((ring,))
    again = copied(ring)
    assert again[0][0] is again is not ring


def test_what_is_pinned_stays_itself() -> None:
    one, actor = Pinned(), Plain()
    copy = copied([one, actor, actor.add, {"f": actor.add}], actor)
    assert copy[0] is one
    assert copy[1] is actor
    assert copy[2].__self__ is copy[3]["f"].__self__ is actor


@pytest.mark.parametrize("make", [Plain, Slotted])
def test_objects_of_users_are_copied_with_their_attributes(make: Callable[[], Any]) -> None:
    value = make()
    copy = copied(value)
    value.items.append(2)
    assert type(copy) is make
    assert copy.items == [1]


def test_methods_belong_to_the_copy() -> None:
    value = Plain()
    copy, add, append, later = copied([value, value.add, value.items.append, partial(value.add, 4)])
    add(2)
    append(3)
    later()
    assert (copy.items, value.items) == ([1, 2, 3, 4], [1])


def test_containers_of_the_library_keep_their_kind() -> None:
    values: list[Any] = [
        defaultdict(list, {"a": [1]}),
        Counter("abca"),
        OrderedDict(b=[1], a=[2]),
        deque([1, 2], maxlen=2),
        frozenset({1, 2}),
    ]
    copy = copied(values)
    assert copy == values
    assert [type(one) for one in copy] == [type(one) for one in values]
    assert copy[3].maxlen == 2
    copy[0]["new"].append(1)
    assert "new" not in values[0]


class Deck(list[Any]):
    """A list of a user's own."""

    owner = "nobody"


def test_what_a_user_derived_from_a_list_or_a_dictionary_is_copied_whole() -> None:
    deck = Deck([[1], [2]])
    deck.owner = "me"
    shelf = defaultdict(list, {"a": [deck]})
    copy = copied(shelf)
    deck[0].append(3)
    [mine] = copy["a"]
    assert (type(mine), mine, mine.owner) == (Deck, [[1], [2]], "me")


def test_a_generator_of_chance_goes_on_from_where_it_was() -> None:
    chance = random.Random(1)
    chance.random()
    copy = copied(chance)
    assert [chance.random() for _ in range(3)] == [copy.random() for _ in range(3)]


def test_iterators_of_the_library_are_copied_where_python_can() -> None:
    delays = itertools.chain((1, 2), itertools.repeat(3))
    next(delays)
    if sys.version_info >= (3, 14):
        with pytest.raises(UncopyableError, match="a chain"):
            copied(delays)
        return
    copy = copied(delays)
    assert [next(copy) for _ in range(3)] == [next(delays) for _ in range(3)] == [2, 3, 3]


def remembering(values: list[int]) -> Callable[[], list[int]]:
    return lambda: values


def counting() -> Iterator[int]:
    yield 1


class Refuses:
    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise RuntimeError("never")


DEEP: list[Any] = []
for _ in range(10_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (counting(), "a generator"),
        (remembering([1]), "a function that remembers a list"),
        (Refuses(), "never"),
        (DEEP, "too deep"),
        ([{"a": (counting(),)}], "a generator"),
    ],
)
def test_what_has_hidden_state_is_told(value: Any, words: str) -> None:
    with pytest.raises(UncopyableError, match=words):
        copied(value)


def test_functions_without_memory_are_shared() -> None:
    def twice(number: int) -> int:
        return twice(number) if number else 0

    number = 3
    for function in (len, twice, lambda: number, "a".join):
        assert copied(function) is function
