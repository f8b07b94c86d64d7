"""Whatever bytes of a file change by themselves, a store says so in its own words, or reads on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.stores.sqlite import DamagedStoreError, SqliteStore, StoreError
from actors.stores.sqlite.reserve import Reserve
from tests.contracts.store import ITEMS, item

PAGE_BYTES = 4096


def written(path: Path) -> bytes:
    with closing(SqliteStore(path, synchronous=False)) as store:
        table = store.table(ITEMS)
        for number in range(120):
            table.put(str(number), item("left" if number % 3 else None, number, "n" * number))
        store.commit()
    return path.read_bytes()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("sound") / "store.db")


def everything(store: SqliteStore) -> list[Callable[[], Any]]:
    """Each kind of call that a turn and its host make."""
    table = store.table(ITEMS)
    return [
        lambda: table.scan("order", limit=-1),
        lambda: table.count("shelf"),
        lambda: table.get("7"),
        lambda: table.put("7", item("left", 1, "x" * 5_000)),
        lambda: table.delete("9"),
        store.commit,
        lambda: [table.insert_unique(f"new {n}", item("new", n)) for n in range(150)],
        store.commit,
        store.snapshot,
    ]


def use(data: bytes) -> list[type[Exception]]:
    """Do everything with a file of these bytes; return what it raised, StoreErrors all."""
    raised: list[type[Exception]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        path.write_bytes(data)
        try:
            with closing(SqliteStore(path, synchronous=False)) as store:
                for call in everything(store):
                    try:
                        call()
                    except StoreError as error:
                        raised.append(type(error))
                        store.roll_back()
        except StoreError as error:
            raised.append(type(error))
    return raised


def test_a_sound_file_raises_nothing(sound: bytes) -> None:
    assert use(sound) == []


# A page's head has its structure: half of the changes are there.
PLACES = st.integers(0, 1 << 20) | st.builds(
    lambda page, at: page * PAGE_BYTES + at, st.integers(0, 20), st.integers(0, 120)
)


@given(changes=st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_damage_is_told_in_our_words(sound: bytes, changes: list[tuple[int, int]]) -> None:
    data = bytearray(sound)
    for place, byte in changes:
        data[place % len(data)] = byte
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reserve, "take", lambda _: True)  # a MiB for each of them is slow
        use(bytes(data))


@pytest.mark.parametrize(
    ("text", "spoilt"),
    [
        (b'"order":7,', b'"ord\xffr":7,'),  # a row
        (b"items.shelf", b"items.\xffhelf"),  # the schema, which SQLite's own message cites
    ],
)
def test_bytes_that_are_no_text_are_damage(sound: bytes, text: bytes, spoilt: bytes) -> None:
    assert text in sound
    assert DamagedStoreError in use(sound.replace(text, spoilt))
