"""The work of one process: ranges to rows, and what is told of trouble."""

import io
import json
import sys
import threading
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scenarios import work
from scenarios.load import load_plan
from scenarios.matchers import MetricError
from scenarios.runner import Options, Runner
from scenarios.work import CellJob, Range, Rows, log_one, run_range, unpacked
from tests.scenarios.commandline import plan_of, write_foreign


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    yield
    work.known.clear()


def job_of(folder: Path, index: int = 0) -> CellJob:
    return Runner([plan_of(folder)], Options(), None).cell_jobs[0, index]


def foreign_job(folder: Path, body: str, more: str = "") -> CellJob:
    plan = load_plan(write_foreign(folder, body, more))
    return Runner([plan], Options(), None).cell_jobs[0, 0]


def whole(first: int = 0, last: int = 6, **more: Any) -> Range:
    return Range(first=first, last=last, **more)


def floats(rows: Rows, metric: str = "wait") -> "array[float]":
    return unpacked("d", rows.values[metric])


def test_ranges_join_to_the_same_rows(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    all_rows = run_range(job, whole())
    parts = [run_range(job, whole(first, last)) for first, last in ((4, 6), (0, 1), (1, 4))]
    joined = b"".join(one.values["wait"] for one in sorted(parts, key=lambda one: one.first))
    assert joined == all_rows.values["wait"]
    assert len(floats(all_rows)) == 12
    assert all_rows.counts["wait"] == array("I", [2] * 6).tobytes()
    assert all_rows.counts["late"] is None


def test_a_worker_that_knows_nothing_decodes_the_cell_itself(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    rows = run_range(job, whole())
    work.known.clear()
    with ThreadPoolExecutor(1) as other:  # another thread has built nothing yet
        again = other.submit(run_range, job, whole()).result()
    assert again.values == rows.values


def test_threads_do_not_share_a_simulator(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    expected = run_range(job, whole(0, 40)).values
    start = threading.Barrier(4)

    def together() -> Rows:
        start.wait()
        return run_range(job, whole(0, 40))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = [future.result() for future in [pool.submit(together) for _ in range(4)]]
    finally:
        sys.setswitchinterval(before)
    assert all(rows.values == expected for rows in found)


def test_a_range_ends_when_its_time_is_up(tmp_path: Path) -> None:
    rows = run_range(job_of(tmp_path), whole(3, 40, budget_s=0.0))
    assert (rows.first, rows.last) == (3, 4)


def test_rows_travel_through_json(tmp_path: Path) -> None:
    rows = run_range(job_of(tmp_path), whole())
    assert msgspec.json.decode(msgspec.json.encode(rows), type=Rows) == rows


def test_numbers_are_packed_little_endian(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = array("I", [1, 256])
    assert work.packed(numbers) == b"\1\0\0\0\0\1\0\0"
    assert unpacked("I", b"\1\0\0\0\0\1\0\0") == numbers
    monkeypatch.setattr("sys.byteorder", "big")
    assert work.packed(numbers) == b"\0\0\0\1\0\0\1\0"
    assert unpacked("I", b"\0\0\0\1\0\0\1\0") == numbers
    assert numbers == array("I", [1, 256])


# Logs


def test_a_log_has_a_section_a_replication(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    run_range(job_of(tmp_path, 1), whole(2, 4, log=str(log)))
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    heads = [line for line in lines if line["kind"] == "header"]
    assert [head["replication"] for head in heads] == [2, 3]
    assert heads[0]["command"] == (
        f"pullcord run {tmp_path}/small.toml --seed 1 --cell relay.poll=20s "
        "--replication 2 --logs all"
    )
    assert heads[0]["resolved"]["relay"] == {"poll": "20s"}
    assert "sweep" not in heads[0]["resolved"]
    ends = [line for line in lines if line["kind"] == "end"]
    assert [end["outcome"] for end in ends] == ["ended", "ended"]


def test_one_log_made_again_is_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    job = job_of(tmp_path)
    run_range(job, whole(3, 4, log=str(log)))
    out = io.BytesIO()
    log_one(job, 3, out, 10.0)
    assert out.getvalue() == log.read_bytes()


def test_a_log_that_cannot_be_written_is_not_the_actors_fault(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="/dev/full"):
        run_range(job_of(tmp_path), whole(log="/dev/full"))


# Trouble


def trouble(folder: Path, body: str, **more: Any) -> work.Trouble:
    rows = run_range(foreign_job(folder, body), whole(**more))
    assert rows.trouble is not None
    return rows.trouble


def test_what_an_actor_raises_is_told_with_its_own_lines(tmp_path: Path) -> None:
    found = trouble(tmp_path, "{}[timer]")
    assert (found.kind, found.replication, found.foreign) == ("failed", 0, True)
    assert found.sentence.startswith("relay failed on timer 'poll' at ")
    assert found.sentence.endswith(" s: KeyError: 'poll'")
    assert found.trace.startswith(f'  File "{tmp_path}/mine.py", line 8, in on_timer\n    {{}}[')
    assert "simulator.py" not in found.trace


def test_a_cause_is_told_too(tmp_path: Path) -> None:
    body = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError(3) from error"
    found = trouble(tmp_path, body)
    assert "ZeroDivisionError: division by zero" in found.trace
    assert "direct cause" in found.trace
    assert "simulator.py" not in found.trace


def test_rows_before_the_trouble_are_kept_and_none_behind_it(tmp_path: Path) -> None:
    body = (
        "if messages.__dict__.setdefault('told', 0) or context._world.replication == 3:\n    1 / 0"
    )
    rows = run_range(foreign_job(tmp_path, body), whole())
    assert rows.trouble is not None
    assert (rows.first, rows.last, rows.trouble.replication) == (0, 3, 3)
    assert len(floats(rows)) == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("context.log('x', at=time.perf_counter())", "x of relay at"),
        ("self.n = getattr(self, 'n', 0) + 1; context.log('x', n=self.n)", "other contents"),
        (
            "self.n = getattr(self, 'n', 0) + 1; context.set_timer(f't{self.n}', 60_000_000)",
            "of relay at",
        ),
    ],
)
def test_an_actor_that_is_not_deterministic_is_refused(
    tmp_path: Path, body: str, words: str
) -> None:
    found = trouble(tmp_path, body, check=True)
    assert found.kind == "not deterministic"
    assert words in found.sentence
    assert "from record" in found.sentence


def test_one_that_fails_the_second_time_only_is_refused_too(tmp_path: Path) -> None:
    body = "self.n = getattr(self, 'n', 0) + 1\nif self.n == 2: 1 / 0\nself.n = 1"
    found = trouble(tmp_path, body, check=True)
    assert found.kind in ("not deterministic", "failed")


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("raise SystemExit(3)", "failed", "relay on timer 'poll' called sys.exit(3)"),
        ("context.send('bob', messages.Ok())", "failed", "sent to 'bob'"),
        ("while True: pass", "stuck", "an endless loop ("),
        ("context.set_timer('x', 0); return", "stuck", "relay on timer 'x'"),
    ],
)
def test_other_ways_to_go_wrong(tmp_path: Path, body: str, kind: str, words: str) -> None:
    if "Ok()" in body:
        body = body.replace("messages.Ok()", "messages.GetGraphRun(command_id='x')")
    found = trouble(tmp_path, body, patience_s=0.3)
    assert found.kind == kind
    assert words in found.sentence


def test_a_message_that_cannot_be_logged_is_told(tmp_path: Path) -> None:
    body = "context.send('server', messages.GetGraphRun(command_id=object()))"
    rows = run_range(foreign_job(tmp_path, body), whole(log=str(tmp_path / "log.jsonl")))
    assert rows.trouble is not None
    assert "object is nothing that JSON has" in rows.trouble.sentence


def test_a_stuck_replications_log_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    run_range(foreign_job(tmp_path, "while True: pass"), whole(log=str(log), patience_s=0.2))
    end = json.loads(log.read_bytes().splitlines()[-1])
    assert (end["kind"], end["outcome"]) == ("end", "stuck")


def test_a_value_that_is_no_number_is_the_files_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_number(_self: object) -> list[float]:
        raise MetricError("run.terminal.cost is None", "filter it")

    monkeypatch.setattr("scenarios.metrics.CountByReplication.rows", no_number)
    rows = run_range(job_of(tmp_path), whole())
    assert rows.trouble is not None
    assert (rows.trouble.kind, rows.first, rows.last) == ("no number", 0, 0)
    assert rows.trouble.sentence == "run.terminal.cost is None; filter it"
    assert rows.values["wait"] == b""


def test_an_actor_that_cannot_be_made(tmp_path: Path) -> None:
    job = foreign_job(tmp_path, "pass")
    path = tmp_path / "mine.py"
    path.write_text(path.read_text() + "    def __init__(self, config, place):\n        1 / 0\n")
    rows = run_range(job, whole())
    assert rows.trouble is not None
    assert rows.trouble.kind == "no actor"
    assert "Mine can't be made: ZeroDivisionError" in rows.trouble.sentence


def test_what_an_actor_prints_stands_not_among_the_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = foreign_job(tmp_path, "print('hello')")
    run_range(job, whole(0, 1))
    printed = capsys.readouterr()
    assert "hello" in printed.err
    assert printed.out == ""
