"""The deployment stands being struck; and the matrix sees what it is there to see."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import trio

from actors.accounts.messages import AuditEntry
from actors.messages import Failure, GraphRun
from tests.scenarios.service import struck, verdict
from tests.scenarios.service.calls import Wish
from tests.scenarios.service.kill_matrix import matrix
from tests.scenarios.service.strikes import COMMITS, STORES, commit_points
from tests.scenarios.service.tally import Tally

SEED = 1
FEW = {"sqlite": 10, "postgres": 4}  # of the ordinary test
MANY = {"sqlite": 500, "postgres": 200}  # of `make soak`

Say = Callable[[str], None]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Prints past pytest's capture: the figures are what this is for."""

    def printed(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="")  # noqa: T201  see above

    return printed


def stood(home: Path, cycles: int, store: str, say: Say) -> None:
    tally, complaints = trio.run(partial(matrix, home, cycles, store, SEED, say))
    say(f"kill matrix, {store}:\n{tally.table()}")
    assert not complaints, "\n".join(complaints)
    assert tally.cycles.total() == cycles


@pytest.mark.parametrize("store", FEW)
def test_some_strikes_lose_nothing_and_repeat_nothing(store: str, tmp_path: Path, say: Say) -> None:
    stood(tmp_path, FEW[store], store, say)


@pytest.mark.soak
@pytest.mark.parametrize("store", MANY)
def test_hundreds_of_strikes_lose_nothing_and_repeat_nothing(
    store: str, tmp_path: Path, say: Say
) -> None:
    stood(tmp_path, MANY[store], store, say)


def test_every_commit_point_has_its_turn() -> None:
    points = commit_points()
    found = {next(points) for _ in range(2 * COMMITS * len(STORES))}
    assert len(found) == 2 * COMMITS * len(STORES)
    assert next(points) == ("server", "before", 1), "and then all again"


# What kills a process at a commit


def committed(file: Path, deaths: list[int], *stores: str) -> list[str]:
    """Which commits are made, in the order of these stores, until the process would be dead."""
    orders = struck.Orders(file)
    made: list[str] = []
    for store in stores:
        orders(store, partial(made.append, store))
        if deaths:
            break
    return made


@pytest.mark.parametrize(("when", "last"), [("before", []), ("after", ["relay"])])
def test_the_chosen_commit_is_the_last_thing_done(
    when: str, last: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths: list[int] = []
    monkeypatch.setattr("os.kill", lambda _pid, number: deaths.append(number))
    file = tmp_path / "order"
    assert committed(file, deaths, "relay", "engine") == ["relay", "engine"], "without an order"
    file.write_text(f"relay {when} 2")
    made = committed(file, deaths, "relay", "engine", "relay", "engine")
    assert made == ["relay", "engine", *last]
    assert deaths == [signal.SIGKILL]


# What is seen


def wish(status: str = "completed", *, cancelled: bool = False) -> Wish:
    made = Wish("m1", 1, 0.0, 0.0, 0.0, cancel_s=0.1 if cancelled else None, ticket="t1")
    result = {"mark": "m1", "values": ["aa"]} if status == "completed" else None
    made.told.append(GraphRun(command_id="t1", status=status, result=result))
    return made


def complaints(made: Wish, *values: str, interrupts: bool = False) -> list[str]:
    marks = {"m1.1": list(values)}
    return [*verdict.ends([made], marks, interrupts=interrupts), *verdict.twice([made], marks)]


def test_what_may_be_is_no_complaint() -> None:
    assert not complaints(wish(), "aa")
    assert not complaints(wish("cancelled", cancelled=True))
    assert not complaints(wish("interrupted"), "aa", interrupts=True)


@pytest.mark.parametrize(
    ("made", "values", "words"),
    [
        (wish(), ["aa", "bb"], "did step 1 2 times"),
        (wish(), ["bb"], "its marks are"),
        (wish(), [], "its marks are"),
        (wish("queued"), [], "has not ended"),
        (wish("interrupted"), [], "is interrupted"),
        (wish("failed"), ["aa"], "is failed"),
        (wish("cancelled"), [], "nobody asked for it"),
    ],
)
def test_what_must_not_be_is_a_complaint(made: Wish, values: list[str], words: str) -> None:
    told = complaints(made, *values)
    assert len(told) == 1
    assert words in told[0]


def test_an_end_that_changes_is_a_complaint() -> None:
    made = wish()
    made.hear(GraphRun(command_id="t1", status="failed"))
    made.hear(Failure(code="not_found", error="gone"))
    assert made.complaints == ["t1 was completed and is failed", "t1: gone"]


def entry(act: str) -> AuditEntry:
    return AuditEntry(
        at_us=0, ago_us=0, who="", act=act, subject="t1", outcome="ok", address="", count=1
    )


@pytest.mark.parametrize(
    ("acts", "words"),
    [
        (["run.queue", "run.start", "run.completed"], None),
        (["run.queue", "run.start", "run.start", "run.completed"], "has started 2 times"),
        (["run.queue", "run.completed"], "the audit has no start"),
        (["run.queue", "run.start"], "its audit has"),
        (["run.queue", "run.start", "run.completed", "run.failed"], "its audit has"),
        (["run.queue", "run.queue", "run.start", "run.completed"], "its audit has"),
    ],
)
def test_the_audit_has_each_act_once(acts: list[str], words: str | None) -> None:
    told = list(verdict.audited([wish()], {"m1.1": ["aa"]}, map(entry, acts)))
    assert not told if words is None else any(words in one for one in told)


def test_a_damaged_database_and_one_set_aside_are_complaints(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE one (word)")
        database.executemany("INSERT INTO one VALUES (?)", [("x" * 500,)] * 100)
    assert list(verdict.sound([path])) == []
    (tmp_path / "server.db.1").touch()
    assert list(verdict.sound([path])) == [f"{path} was set aside"]
    data = bytearray(path.read_bytes())
    data[8192:12288] = b"\7" * 4096
    path.write_bytes(data)
    assert len(list(verdict.sound([path]))) == 2


def test_the_table_fits_a_terminal() -> None:
    tally = Tally(points={"server": {("before", 1)}}, starts={"server-1": 10, "desktop": 12})
    tally.add("kill while starting", [wish()] * 3000, 12.34)
    tally.add("kill both", [wish("interrupted")], 1.0)
    lines = tally.table().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[3].split() == ["all", "2", "3,001", "3,000", "0", "1", "12.3", "s"]
