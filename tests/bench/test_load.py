"""The benchmark of a deployed server loads one, and prints what came of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench.deployment import seconds_of, usage_of
from bench.load import SAMPLES, main, quantile, slope
from tests.postgresql import connect, server

SMALL = ["--desktops", "5", "--agents", "3"]


def told(out: str) -> dict[str, list[str]]:
    """What is printed of a load, by the first word of its line."""
    lines = [line.replace(",", "").partition(" ") for line in out.splitlines()]
    return {word: rest.split() for word, _, rest in lines}


@pytest.fixture
def one_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The database of the other tests, since a server of its own takes many seconds."""
    monkeypatch.setattr("bench.load.running_server", lambda _: nullcontext(server()))
    yield
    if server.cache_info().currsize:
        with connect() as connection:
            connection.execute("DROP SCHEMA IF EXISTS server_1 CASCADE")


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
@pytest.mark.usefixtures("one_database")
def test_desktops_and_agents_load_a_server_that_makes_no_mistake(
    store: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    main([*SMALL, "--runs", "20", "--store", store, "--folder", str(tmp_path)])
    out = capsys.readouterr().out
    heading, connected, _ = out.split("\n", 2)
    assert heading.startswith("5 desktops that poll every 0.5 s and 3 agents, one server")
    assert heading.endswith(store)
    assert connected.startswith("all were connected and had synced once after ")
    lines = told(out)
    assert lines["errors"] == ["none"]
    assert int(lines["runs"][0]) >= 20
    assert len(lines["memory"]) > 10
    assert ("commits" in lines) is (store == "sqlite"), "PostgreSQL's are in no file of ours"
    for kind in ("start", "complete", "submit", "get"):
        count, *figures = map(float, lines[kind])
        assert count >= 15, "some were before the measurement began"
        assert sorted(figures) == figures
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
    if mine:
        assert sorted(os.sched_getaffinity(0)) == mine


@pytest.mark.soak
def test_a_hundred_thousand_runs_leave_a_server_as_large_as_the_first_thirty_thousand(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--desktops", "100", "--agents", "100", "--runs", "100000"]
    main([*given, "--folder", str(tmp_path)])
    lines = told(capsys.readouterr().out)
    assert lines["errors"] == ["none"]
    # A file keeps the size of its fullest minute: what is over is deleted once a minute.
    for what, factor in (("memory", 1.1), ("files", 1.5)):
        sizes = [int(size) for size in lines[what][: SAMPLES + 1]]
        assert max(sizes[4:]) <= factor * max(sizes[:4]), what


def test_a_load_lasts_as_long_as_it_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main([*SMALL, "--poll", "0.2", "--duration", "2", "--folder", str(tmp_path)])
    heading, *_ = out = capsys.readouterr().out.splitlines()
    assert heading.startswith("5 desktops that poll every 0.2 s and 3 agents, one server")
    assert told("\n".join(out))["errors"] == ["none"]


def test_agents_that_only_submit_are_counted_with_one_turn_a_commit_and_with_many(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main([*SMALL, "--submit", "--duration", "0.5", "--folder", str(tmp_path)])
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["submissions", "a", "second"]
    kind, alone, grouped, ratio, alone_ms, grouped_ms = line.split()
    assert kind == "sqlite"
    assert int(alone.replace(",", "")) > 0
    assert float(ratio[:-1]) == pytest.approx(
        int(grouped.replace(",", "")) / int(alone.replace(",", "")), abs=0.1
    )
    assert float(alone_ms) > 0 < float(grouped_ms)


def test_what_is_told_of_many_figures() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [quantile(values, share) for share in (0.5, 0.95, 0.99)] == [51, 96, 100]
    assert quantile([7.0], 0.99) == 7
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx(2)
    assert slope([(1.0, 4.0)]) == 0


def test_what_a_process_uses_is_told_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = usage_of(os.getpid())
    assert mine.cpu_s > 0
    assert 10 << 20 < mine.rss_bytes < 10 << 30
    monkeypatch.setattr("bench.deployment.Path.exists", lambda _: False)
    ps = subprocess.CompletedProcess([], 0, stdout="  1:02.50  2048\n")
    monkeypatch.setattr("bench.deployment.subprocess.run", lambda *_, **__: ps)
    assert usage_of(os.getpid())[1:] == (62.5, 2 << 20)
    assert [seconds_of(clock) for clock in ("00:07", "1:00:01", "1-00:00:00")] == [7, 3601, 86400]
