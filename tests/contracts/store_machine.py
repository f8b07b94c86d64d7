"""A store beside dictionaries, driven at random: turns, commits, failures, kills; on each of them.

A store's own test subclasses `StoreMachine`, and says in its `Subject` how the store is opened, how
its process is killed, and, if it can be, how its disk or its database fails.
"""

from __future__ import annotations

from typing import Any, Protocol

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.actor import Store
from actors.stores.failures import StoreFailedError
from tests.contracts.store import ITEMS, Item, item, model_scan

KEYS = (("a",), ("a", "b"), ("a\x00",), ("ab",), ("", "b"), ("\U0001f642",))
LONG = "x" * 9_000  # several pages of a database
ROWS = st.builds(
    item,
    st.sampled_from(["left", "right", None]),
    st.integers(0, 3),
    st.sampled_from(["", "é", "\x00", LONG]),
)
INDEXES = st.sampled_from(sorted(ITEMS.indexes))
Rows = dict[Any, Item]


class Subject(Protocol):
    """A store in the hands of a host whose process may be killed."""

    groups: bool  # whether several turns may share a commit
    fails: bool  # whether `fail` does something

    @property
    def store(self) -> Store:
        """The store as it is opened now."""

    def begin_turn(self) -> None:
        """Begin a turn that shares a commit."""

    def end_turn(self) -> None:
        """End it."""

    def roll_back(self) -> None:
        """Undo the open turn, or all since the last commit."""

    @property
    def has_to_commit(self) -> bool:
        """Whether a commit has something to do."""

    def commit(self) -> None:
        """Commit."""

    def kill(self) -> None:
        """End the store's process as it is, and open the store again in another."""

    def fail(self) -> bool:
        """Let what follows fail until it is given up; False if there is nothing that could."""

    def close(self) -> None:
        """Remove what was made."""


class StoreMachine(RuleBasedStateMachine):
    """What is committed, what ended turns wrote, and what is now, as dictionaries say."""

    def make(self) -> Subject:
        """Return an empty store."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.subject = self.make()
        self.committed: Rows = {}
        self.ended: Rows = {}
        self.rows: Rows = {}
        self.in_turn = self.broken = False
        self.table = self.subject.store.table(ITEMS)

    def teardown(self) -> None:
        self.subject.close()

    def all_is(self, rows: Rows) -> None:
        self.rows, self.ended, self.committed = dict(rows), dict(rows), dict(rows)
        self.in_turn = self.broken = False

    def attempt(self, call: Any) -> Any:
        """Call, and be a host that gives all up if that fails; return whether it did not."""
        if not self.broken:
            return call()
        with pytest.raises(StoreFailedError):
            call()
        assert not self.subject.store.writable
        self.subject.roll_back()
        self.subject.roll_back()
        self.all_is(self.committed)
        return None

    @rule(key=st.sampled_from(KEYS), row=ROWS)
    def put(self, key: Any, row: Item) -> None:
        def put() -> None:
            self.table.put(key, row)
            self.rows[key] = row

        self.attempt(put)

    @rule(key=st.sampled_from(KEYS), row=ROWS)
    def insert_unique(self, key: Any, row: Item) -> None:
        def insert() -> None:
            assert self.table.insert_unique(key, row) is (key not in self.rows)
            self.rows.setdefault(key, row)

        self.attempt(insert)

    @rule(key=st.sampled_from(KEYS))
    def delete(self, key: Any) -> None:
        def delete() -> None:
            self.table.delete(key)
            self.rows.pop(key, None)

        self.attempt(delete)

    @precondition(lambda self: self.subject.groups and not self.in_turn)
    @rule()
    def begin_turn(self) -> None:
        self.subject.begin_turn()
        self.in_turn, self.ended = True, dict(self.rows)

    @precondition(lambda self: self.in_turn)
    @rule()
    def end_turn(self) -> None:
        self.subject.end_turn()
        self.in_turn, self.ended = False, dict(self.rows)

    @precondition(lambda self: not self.broken)
    @rule()
    def roll_back(self) -> None:
        self.subject.roll_back()
        if self.in_turn:
            self.rows, self.in_turn = dict(self.ended), False
        else:
            self.all_is(self.committed)

    @rule()
    def commit(self) -> None:
        def commit() -> None:
            self.subject.commit()
            self.all_is(self.rows)
            assert not self.subject.has_to_commit

        self.attempt(commit)

    @rule()
    def kill(self) -> None:
        self.subject.kill()
        self.table = self.subject.store.table(ITEMS)
        self.all_is(self.committed)

    @precondition(lambda self: self.subject.fails and not self.broken)
    @rule()
    def fail(self) -> None:
        self.broken = self.subject.fail()

    @invariant()
    def what_is_written_has_to_be_committed(self) -> None:
        assert self.subject.has_to_commit or self.rows == self.committed

    @rule(index=INDEXES, data=st.data(), limit=st.integers(0, 7))
    def scan(self, index: str, data: st.DataObject, limit: int) -> None:
        prefix, up_to = data.draw(prefixes(index))
        want = model_scan(self.rows, index, prefix, limit, up_to)

        def scan() -> None:
            assert self.table.scan(index, prefix, limit=limit, up_to=up_to) == want
            assert self.table.claim(index, prefix, limit=limit, up_to=up_to) == want
            assert self.table.count(index, prefix) == len(model_scan(self.rows, index, prefix))

        self.attempt(scan)

    @precondition(lambda self: not self.broken)
    @invariant()
    def rows_are_the_models(self) -> None:
        found = {key: row for key in KEYS if (row := self.table.get(key)) is not None}
        assert found == self.rows


@st.composite
def prefixes(draw: st.DrawFn, index: str) -> tuple[tuple[Any, ...], Any]:
    """A prefix of an index's fields, whole or not, and a bound on the field behind it."""
    values: dict[str, st.SearchStrategy[Any]] = {
        "shelf": st.sampled_from(["left", "right"]),
        "order": st.integers(0, 3),
        "note": st.sampled_from(["", "é", "\x00"]),
    }
    fields = ITEMS.indexes[index]
    length = draw(st.integers(0, len(fields)))
    prefix = tuple(draw(values[field]) for field in fields[:length])
    bound = draw(st.none() | values[fields[length]]) if length < len(fields) else None
    return prefix, bound
