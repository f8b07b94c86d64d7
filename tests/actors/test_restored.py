"""A server whose database was restored from an older backup never has finished work done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.stores.sqlite import backup, restore, set_aside
from tests.actors.harness import S, rows
from tests.actors.test_durable_crashes import Play

LOST_AT_US = 40 * S  # the story is over by then


class Restored(Play):
    """A story on real files whose server goes back, long after its end, to an earlier moment."""

    def __init__(self, backup_at_us: int, copy: Path) -> None:
        super().__init__("sqlite", "run", until_us=200 * S)
        self.copy = copy
        self.then: list[Any] = []
        self.found: list[Any] = []
        self.last: list[Any] = []
        subject: Any = self.stores["server"]._subject

        def keep() -> None:
            backup(subject.folder / "0.db", copy)
            self.then += rows(self.sim, "server", "runs")

        def lose() -> None:
            self.found += rows(self.sim, "server", "runs")
            self.sim.kill("server", "lost disk")
            subject.store.close()
            set_aside(subject.folder / "0.db")
            restore(copy, subject.folder / "0.db")
            subject.store = subject.opened()
            self.sim.at(LOST_AT_US + S, lambda: self.sim.revive("server", "lost disk"))

        def end() -> None:
            self.last += rows(self.sim, "server", "runs")

        self.sim.on_begin.append(lambda: self.sim.at(199 * S, end))
        self.sim.on_begin.append(lambda: self.sim.at(backup_at_us, keep))
        self.sim.on_begin.append(lambda: self.sim.at(LOST_AT_US, lose))


@pytest.mark.parametrize(("backup_at_us", "status"), [(S, "queued"), (4 * S, "running")])
def test_a_run_that_had_ended_is_not_run_again(
    tmp_path: Path, backup_at_us: int, status: str
) -> None:
    play = Restored(backup_at_us, tmp_path / "copy.db")
    wrong = play.wrong()
    assert [run.status for run in play.then] == [status]
    assert [run.status for run in play.found] == ["completed"]
    assert len(play.trace.events("engine.started")) == 1
    # Its result went with the database; that it was attempted is all that the desktop knows.
    assert [run.status for run in play.last] == ["interrupted"]
    assert wrong == ["2 ends for 1 runs", "a result was lost"]
