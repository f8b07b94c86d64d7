"""The reserve takes room on the disk, and gives it back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from actors.stores.sqlite.reserve import RESERVE_BYTES, Reserve


def unable(*_given: int) -> None:
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


@pytest.mark.parametrize("way", ["set aside", "no such call", "not on this disk"])
def test_the_room_is_taken_and_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "no such call":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    elif way == "not on this disk":
        monkeypatch.setattr(os, "posix_fallocate", unable, raising=False)
    reserve = Reserve(tmp_path / "store.db")
    place = tmp_path / "store.db.reserve"
    assert reserve.take()
    assert place.stat().st_size == RESERVE_BYTES
    assert place.stat().st_blocks * 512 >= RESERVE_BYTES, "it is no hole"
    assert reserve.release()
    assert not place.exists()
    assert not reserve.held
    assert not reserve.release(), "there is nothing more to give back"
    assert reserve.take()


@pytest.mark.parametrize("call", ["posix_fallocate", "fsync"])
def test_where_there_is_no_room_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_given: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(os, call, full, raising=False)
    reserve = Reserve(tmp_path / "store.db")
    assert not reserve.take()
    assert not reserve.held
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_the_room_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", unable, raising=False)
    monkeypatch.setattr(os, "pwrite", lambda *_: RESERVE_BYTES - 1)
    assert not Reserve(tmp_path / "store.db").take()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_had_taken_is_released(tmp_path: Path) -> None:
    Reserve(tmp_path / "store.db").take()
    assert Reserve(tmp_path / "store.db").release()
