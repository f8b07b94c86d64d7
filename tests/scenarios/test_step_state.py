"""Trees of what an actor is: everything is shown, in bounds, and only what differs differs."""

from __future__ import annotations

import itertools
from collections import deque
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.actor import TableSpec
from actors.polls import parse_polls
from actors.stores.memory import MemoryStore
from actors.streams import HashedStream
from scenarios.step_state import Change, Opaque, Shape, changes, state_of, text, tree


class Colour(Enum):
    RED = 1


class Row(msgspec.Struct, frozen=True):
    name: str
    number: int = 0
    data: Any = None


class Loose(msgspec.Struct):
    number: int
    items: list[int]


class Plain:
    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)


def told(value: Any, limit_chars: int = 200) -> str:
    return text(tree(value), limit_chars)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ("a\nb", '"a\\nb"'),
        ("5c5dec5e-1234-4123-8123-000000000001", '"5c5d…000000000001"'),
        ("\ud800", '"?"'),
        (b"abc", "<3 bytes>"),
        (Colour.RED, "Colour.RED"),
        (int, "int"),
        ([1, [2], (3,)], "[1, [2], [3]]"),
        (deque([1, 2]), "[1, 2]"),
        ({"b", "a"}, '["a", "b"]'),
        ({"a": 1, ("b", "c"): 2, 3: {}}, "{a: 1, b/c: 2, 3: {}}"),
        (Row("a"), 'Row(name="a", number=0)'),
        (Row("a", data=[1]), 'Row(name="a", number=0, data=[1])'),
        (Row("a", data=Loose(1, [2])), 'Row(name="a", number=0, data=Loose(number=1, items=[2]))'),
        (Loose(1, [2]), "Loose(number=1, items=[2])"),
        (Plain(a=1, b=Plain()), "Plain(a=1, b=Plain())"),
        (itertools.repeat(1), "<a repeat>"),
        (len, "<len()>"),
        (parse_polls("every 5s"), "<every 5s>"),
        (HashedStream(b"k", "x"), "<the HashedStream>"),
        (MemoryStore(None).table(TableSpec("rows", Row)), "<a table of its store>"),
    ],
)
def test_a_value_in_words(value: Any, words: str) -> None:
    assert told(value) == words


def test_no_line_is_longer_than_its_limit_and_none_is_made_in_vain() -> None:
    many = dict.fromkeys(range(1_000_000), "x")
    assert text(many, 40) == '{0: "x", 1: "x", 2: "x", 3: "x", 4: "x"…'
    assert len(text(many, 40)) == 40


def test_of_a_very_long_text_only_the_beginning_is_looked_at() -> None:
    assert told("a" * 1_000_000, 1 << 30) == f'"{"a" * 10_000}"'


@given(st.recursive(st.integers() | st.text(), st.lists, max_leaves=20), st.integers(1, 50))
def test_a_cut_text_is_the_beginning_of_the_whole(value: Any, limit_chars: int) -> None:
    whole, cut = told(value, 10_000), told(value, limit_chars)
    assert len(cut) <= limit_chars
    assert cut == whole if len(whole) <= limit_chars else whole.startswith(cut[:-1])


def test_a_value_that_holds_itself_ends() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert told(ring).count("[") == 12


def test_a_tree_is_what_the_value_was() -> None:
    loose, rows = Loose(1, [2]), {"a": Row("a")}
    before = state_of({"handlers": 1, "loose": loose, "rows": rows, "n": 1})
    loose.items.append(3)
    rows["b"] = Row("b")
    assert before == {
        "loose": Shape("Loose", {"number": 1, "items": [2]}),
        "rows": {"a": Row("a")},
        "n": 1,
    }


def differing(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    return changes(state_of(before), state_of(after))


def test_changes_say_where() -> None:
    before = {
        "same": [1],
        "number": 1,
        "gone": "x",
        "table": {"a": Row("a"), "b": Row("b"), "c": Row("c")},
        "loose": Loose(1, [1]),
        "kind": None,
    }
    after = {
        "same": [1],
        "number": 2,
        "table": {"a": Row("a", 1), "c": Row("c"), "d": Row("d")},
        "loose": Loose(1, [1, 2]),
        "kind": Row("e"),
        "new": [],
    }
    assert differing(before, after) == [
        Change("number", 1, 2),
        Change("table.a.number", 0, 1),
        Change("table.d", None, Row("d"), is_new=True),
        Change("table.b", Row("b"), None, is_gone=True),
        Change("loose.items", [1], [1, 2]),
        Change("kind", None, Row("e")),
        Change("new", None, [], is_new=True),
        Change("gone", "x", None, is_gone=True),
    ]


def test_what_has_nothing_to_show_never_changes() -> None:
    assert differing({"a": iter([1])}, {"a": iter([2])}) == []
    assert differing({"a": iter([1])}, {"a": iter(())}) != []
    assert tree(iter([1])) == Opaque("a list_iterator")


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.integers())))
def test_nothing_differs_from_itself(state: dict[str, Any]) -> None:
    assert differing(state, {key: state[key] for key in reversed(state)}) == []


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]  # as arrays have it


def test_what_cant_be_compared_is_taken_for_changed() -> None:
    before, after = Row("a", data={"x": Incomparable()}), Row("a", data={"x": Incomparable()})
    assert [one.path for one in differing({"row": before}, {"row": after})] == ["row.data.x"]


def test_of_very_many_changes_the_first_are_told() -> None:
    assert len(differing({"a": {}}, {"a": dict.fromkeys(range(1000))})) == 200
