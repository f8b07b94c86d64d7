"""A deployed desktop on SQLite whose disk fills while a result is written: it is kept and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.desktop.messages import GetHistory, HistoryOf
from actors.messages import Commands, Completion, FleetRun, Start, StartAnswer, Sync
from actors.stores.sqlite import SqliteStore
from tests.actors.desktop.owned import Owned
from tests.actors.harness import only
from tests.actors.stores.sqlite.opened import Disk

RESULT = "日" * 30_000  # 90 KB: far more than a page that happens to be free


def on_disk(path: Path) -> tuple[Owned, SqliteStore]:
    """A desktop with one shared session, whose turns commit to a file."""
    desk = Owned()
    store = SqliteStore(path)
    context: Any = desk.context
    context.store = store
    take = desk.take

    def committed() -> list[Any]:
        store.commit()
        return take()

    desk.take = committed  # type: ignore[method-assign]  # a turn ends with its commit here
    desk.start()
    desk.share(desk.add())
    return desk, store


def test_the_result_is_kept_and_posted_new_work_is_refused_and_it_heals_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, store = on_disk(tmp_path / "relay.db")
    (session,) = desk.actor.own.all()
    desk.executing(desk.command_for(session.meta.id), desk.command_for(session.meta.id, "r2"))
    disk = Disk(store, monkeypatch)
    disk.fill()
    done = Completion(execution_id="x-1", status="completed", result=RESULT)
    post = desk.finished(done=done)
    assert post.body.completion == done
    assert not store.writable
    status = desk.status()
    assert (status.outbox, status.writable, status.waiting) == (1, False, 1)
    assert status.refuses is not None
    assert desk.accept(post) == [], "r2 does not begin"
    sync = only(desk.poll(), Sync)
    assert (sync.body.capacity, sync.body.open) == (0, ("r2",))
    told = desk.told(HistoryOf, GetHistory(id="x-1"))
    assert (told.result, told.run.kept) == (RESULT, True)
    disk.free()
    assert desk.answer(sync, Commands(commands=())) == [], "this turn's commit finds the room"
    start = only(desk.answer(desk.sync(), Commands(commands=())), Start)
    assert start.body.command_id == "r2"
    assert only(desk.answer(start, StartAnswer(go=True)), FleetRun)
    assert desk.status().refuses is None
    store.close()


def test_all_of_it_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    desk, store = on_disk(tmp_path / "relay.db")
    (session,) = desk.actor.own.all()
    desk.executing(desk.command_for(session.meta.id))
    desk.finished()
    store.close()
    again = Owned()
    context: Any = again.context
    context.store = store = SqliteStore(tmp_path / "relay.db")
    again.start()
    assert [meta.slug for meta in again.actor.own.shared()] == ["demo"]
    (run,) = again.history().runs
    assert (run.command_id, run.status, run.kept) == ("r1", "completed", True)
    assert again.status().outbox == 1
    store.commit()
    store.close()
