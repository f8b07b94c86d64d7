"""What a database must add to the store's contract: its order and its values are Python's.

A database's own test subclasses `DatabaseContract`, with a fixture `store` that is rolled back.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.actor import TableSpec
from actors.stores.memory import MemoryStore
from tests.actors.stores.rows import COLOURS, FIELDS, FOUND, KINDS, TEXTS, Colour, Found
from tests.contracts.store import ITEMS, item


class DatabaseContract:
    """The suite."""

    @given(rows=st.dictionaries(st.tuples(TEXTS, TEXTS) | st.tuples(TEXTS), FOUND, max_size=8))
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    def test_the_order_of_every_kind_of_field_and_key_is_pythons(
        self, store: Any, rows: dict[tuple[str, ...], Found]
    ) -> None:
        store.roll_back()  # what the last example wrote
        ours, theirs = store.table(KINDS), MemoryStore([]).table(KINDS)
        for key, row in rows.items():
            ours.put(key, row)
            theirs.put(key, row)
        for field in FIELDS:
            assert ours.scan(field, limit=99) == theirs.scan(field, limit=99)
            for row in rows.values():
                value = getattr(row, field)
                if value is None:
                    assert ours.count(field, (None,)) == 0
                    continue
                assert ours.count(field, (value,)) == theirs.count(field, (value,))
                assert ours.scan(field, (value,), limit=2) == theirs.scan(field, (value,), limit=2)
                bounded = ours.scan(field, limit=99, up_to=value)
                assert bounded == theirs.scan(field, limit=99, up_to=value)

    def test_an_enumeration_is_found_by_its_value(self, store: Any) -> None:
        table = store.table(COLOURS)
        red, blue = Found(colour=Colour.RED), Found(colour=Colour.BLUE)
        for key, row in {"1": red, "2": blue, "3": Found()}.items():
            table.put(key, row)
        assert table.scan("colour", limit=9) == [blue, red]
        assert table.count("colour", (Colour.RED,)) == 1
        assert table.scan("colour", limit=9, up_to=Colour.BLUE) == [blue]

    def test_a_later_field_may_be_none_and_is_found_so(self, store: Any) -> None:
        table = store.table(TableSpec("pairs", Found, pair=("order", "text")))
        table.put("1", Found(order=1))
        table.put("2", Found(order=1, text="x"))
        assert table.scan("pair", (1, None), limit=9) == [Found(order=1)]
        assert table.count("pair", (1, None)) == 1
        assert table.scan("pair", (1,), limit=9) == [Found(order=1), Found(order=1, text="x")]

    def test_behind_its_fields_an_index_goes_on_with_the_key(self, store: Any) -> None:
        store.roll_back()
        memory = MemoryStore([]).table(ITEMS)
        table = store.table(ITEMS)
        for key in "abc":
            table.put(key, item("left", 1, key))
            memory.put(key, item("left", 1, key))
        for prefix, up_to in [(("left", 1), "b"), (("left", 1, "b"), None)]:
            found = table.scan("shelf", prefix, limit=9, up_to=up_to)
            assert found == memory.scan("shelf", prefix, limit=9, up_to=up_to) != []
