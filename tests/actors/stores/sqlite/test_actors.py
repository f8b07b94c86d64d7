"""The actors of whole scenarios do the same on this store as on the one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from actors.stores.memory import Undo
from actors.stores.sqlite import SqliteStore
from actors.stores.sqlite.reserve import Reserve
from scenarios.run import run


class Emptied(SqliteStore):
    """A store that a simulator may empty before each replication."""

    paths: Iterator[Path]
    made: list[Emptied]
    writes = 0

    def __init__(self, journal: list[Undo] | None) -> None:
        assert journal is None, "no turn fails in these scenarios"
        super().__init__(next(self.paths), synchronous=False)
        self.made.append(self)

    def reset(self) -> None:
        Emptied.writes += len(self._transaction._written)
        self._transaction.roll_back()


def results(name: str, out: Path) -> dict[str, list[str]]:
    """The records of every log of a scenario, without the headers."""
    logged = partial(run, f"@{name}", out=out, jobs=1, replications=2, logs="all")
    with ThreadPoolExecutor(1) as fresh:  # a thread builds its own actors, once for many runs
        fresh.submit(logged).result()
    return {
        log.name: [line for line in log.read_text().splitlines() if '"kind":"header"' not in line]
        for log in sorted((out / "logs").iterdir())
    }


@pytest.mark.parametrize("name", ["published/cancel", "published/consent", "published/outbox"])
def test_every_record_of_a_scenario_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    memory = results(name, tmp_path / "memory")
    Emptied.paths, Emptied.made = (tmp_path / f"{number}.db" for number in count()), []
    monkeypatch.setattr("actors.simulator.MemoryStore", Emptied)
    monkeypatch.setattr(Reserve, "take", lambda _: True)  # a MiB for each of them is slow
    assert results(name, tmp_path / "sqlite") == memory
    assert memory
    assert Emptied.writes > 0
    for store in Emptied.made:
        store.close()
