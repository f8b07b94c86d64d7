"""A store's errors say where, and what; one of them stands for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.stores.failures import (
    DamagedStoreError,
    StoreError,
    StoreFailedError,
    UnreadableRowError,
    UnusableStoreError,
)


@pytest.mark.parametrize("kind", [StoreFailedError, UnreadableRowError, UnusableStoreError])
def test_the_place_comes_first_and_each_is_a_store_error(kind: type[StoreError]) -> None:
    error = kind(Path("relay.db"), "the disk is full")
    assert str(error) == "relay.db: the disk is full"
    assert (error.path, error.sentence) == (Path("relay.db"), "the disk is full")
    assert isinstance(error, StoreError)


def test_damage_comes_with_its_cure() -> None:
    error = DamagedStoreError(Path("relay.db"), "the file is damaged")
    assert isinstance(error, StoreError)
    assert str(error) == (
        "relay.db: the file is damaged; restore a backup, or set it aside and begin anew"
    )
