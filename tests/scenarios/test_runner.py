"""Running plans: the same results for any executor, journals, logs, interruptions."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path

import msgspec
import pytest

from scenarios import runner as module
from scenarios.folder import Folder, read_journal
from scenarios.load import Plan, load_plan
from scenarios.problems import ScenarioError
from scenarios.results import Exit, Results, encoded
from scenarios.run import head_of, load_plans, resume
from scenarios.runner import Options, Runner
from scenarios.schedule import Schedule
from scenarios.work import Rows
from tests.scenarios.commandline import (
    SMALL,
    environment,
    plan_of,
    records,
    write,
    write_foreign,
)

POOLS = """
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
def threads(): return ThreadPoolExecutor(3)
def processes(): return ProcessPoolExecutor(2)
"""


def run_plan(folder: Path, name: str, plans: list[Plan], options: Options) -> Results:
    out = Folder.create(folder / name, head_of(plans, options))
    return Runner(plans, options, out).run()


def logs_of(folder: Path) -> dict[str, list[bytes]]:
    return {path.name: records(path) for path in sorted((folder / "logs").iterdir())}


# Determinism


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pools.py").write_text(POOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "pools", raising=False)


def shorter_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every range one replication long, or two."""
    monkeypatch.setattr(Schedule, "_count", lambda _self, pending, _length_s: 1 + pending.left % 2)


@pytest.mark.usefixtures("pools")
def test_every_executor_gives_the_same_results_and_log_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path)
    chosen = {
        "one": Options(jobs=1, logs="all"),
        "two": Options(jobs=2, logs="all"),
        "three": Options(jobs=3, logs="all"),
        "threads": Options(jobs=3, logs="all", executor="pools:threads"),
        "processes": Options(jobs=2, logs="all", executor="pools:processes"),
    }
    monkeypatch.setattr(module, "SURE_REPLICATIONS", 0)
    found = {}
    for name, options in chosen.items():
        results = run_plan(tmp_path, name, [plan], options)
        found[name] = (results.scenarios[0].digest, logs_of(tmp_path / name))
    shorter_ranges(monkeypatch)
    results = run_plan(tmp_path, "short", [plan], chosen["two"])
    found["short"] = (results.scenarios[0].digest, logs_of(tmp_path / "short"))
    assert len(found["one"][1]) == 2
    assert all(one == found["one"] for one in found.values())


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_trouble_is_the_same_for_any_number_of_jobs(
    tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "if context._world.replication in (11, 5, 23): 1 / 0"
    more = '[sweep.product]\n"relay.poll" = ["7s", "20s"]\n'
    path = write_foreign(tmp_path, body, more)
    path.write_text(path.read_text().replace("replications = 6", "replications = 30"))
    shorter_ranges(monkeypatch)
    monkeypatch.setattr(module, "SURE_REPLICATIONS", 0)
    options = Options(jobs=jobs, logs="all")
    results = run_plan(tmp_path, "out", [load_plan(path)], options)
    one = results.scenarios[0]
    ((cell, trouble),) = one.troubles
    assert (cell.index, trouble.replication) == (0, 5)
    assert [cell.replications for cell in one.cells] == [5, 0]
    assert results.exit is Exit.FAILED
    (log,) = (tmp_path / "out" / "logs").iterdir()
    outcomes = [
        msgspec.json.decode(line)["outcome"]
        for line in log.read_bytes().splitlines()
        if line.startswith(b'{"kind":"end"')
    ]
    assert outcomes == ["ended"] * 5 + ["failed"]
    _, entries, _ = read_journal(tmp_path / "out" / "journal.jsonl")
    assert any(entry.rows.trouble is not None for entry in entries)
    looked = Runner([load_plan(path)], Options(), None).look(entries)
    assert encoded(looked) == encoded(results)
    for cell, ran in zip(looked.scenarios[0].cells, one.cells, strict=True):
        assert cell.digest() == ran.digest()


def test_what_was_in_trouble_is_run_again_when_resumed(tmp_path: Path) -> None:
    path = write_foreign(tmp_path, "if context._world.replication == 3: 1 / 0")
    whole = run_plan(tmp_path, "out", [load_plan(path)], Options(jobs=1))
    (tmp_path / "out" / "results.json").unlink()
    again = resume(tmp_path / "out", jobs=1)
    assert encoded(again) == encoded(whole)
    assert [cell.replications for cell in again.scenarios[0].cells] == [3]


def test_cells_that_were_done_before_an_earlier_one_failed_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Schedule.begin

    def backwards(schedule: Schedule) -> None:
        begin(schedule)
        schedule._order.reverse()

    monkeypatch.setattr(Schedule, "begin", backwards)
    body = "if context._world._cell.startswith('1/relay.poll=7s'): 1 / 0"
    path = write_foreign(tmp_path, body, '[sweep.product]\n"relay.poll" = ["7s", "20s"]\n')
    results = run_plan(tmp_path, "out", [load_plan(path)], Options(jobs=1, logs="all"))
    one = results.scenarios[0]
    assert [cell.index for cell, _ in one.troubles] == [0]
    assert [cell.replications for cell in one.cells] == [0, 0]
    assert [path.name for path in (tmp_path / "out" / "logs").iterdir()] == [
        "mine-1-relay.poll=7s.jsonl"
    ]


def test_another_scenario_is_finished_in_spite_of_trouble(tmp_path: Path) -> None:
    bad = load_plan(write_foreign(tmp_path, "1 / 0"))
    results = run_plan(tmp_path, "out", [bad, plan_of(tmp_path)], Options(jobs=1))
    assert not results.scenarios[0].complete
    assert results.scenarios[1].exit is Exit.OK
    assert results.scenarios[1].cells[1].replications == 40


# Journal and resume


def cut(folder: Path, lines: int, torn: bytes = b"") -> None:
    """Make a folder look as an interruption leaves it."""
    journal = folder / "journal.jsonl"
    kept = journal.read_bytes().splitlines(keepends=True)[: 1 + lines]
    journal.write_bytes(b"".join(kept) + torn)
    (folder / "results.json").unlink()


@pytest.mark.parametrize("logs", ["none", "failed", "all"])
@pytest.mark.parametrize("lines", [0, 1, 3])
def test_a_resumed_run_is_the_same_as_an_uninterrupted_one(
    tmp_path: Path, logs: str, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter_ranges(monkeypatch)
    text = SMALL + "[[expect]]\nthat = 'wait.mean[5s] < 0.01s'\n"
    path = str(write(tmp_path, text))
    options = Options(jobs=1, logs=logs)  # type: ignore[arg-type]  # one of its words
    plans = load_plans([path], options)
    whole = run_plan(tmp_path, "whole", plans, options)
    run_plan(tmp_path, "cut", plans, options)
    folder = tmp_path / "cut"
    cut(folder, lines, b'{"scenario":0,"ce')
    if logs == "all":  # the parts are there until everything is done
        monkeypatch.setattr("scenarios.log_files.LogFiles.clear", lambda _self: None)
        run_plan(tmp_path, "kept", plans, options)
        (tmp_path / "kept" / "parts").rename(folder / "parts")
    again = resume(folder, jobs=1)
    assert again.scenarios[0].digest == whole.scenarios[0].digest
    assert again.replications == whole.replications
    one, other = (
        msgspec.json.decode((place / "results.json").read_bytes())
        for place in (tmp_path / "whole", folder)
    )
    assert one == other
    if logs != "none":
        assert logs_of(folder) == logs_of(tmp_path / "whole")


def test_a_range_whose_log_was_lost_is_run_again(tmp_path: Path) -> None:
    options = Options(jobs=1, logs="all")
    plans = load_plans([str(write(tmp_path))], options)
    run_plan(tmp_path, "whole", plans, options)
    run_plan(tmp_path, "cut", plans, options)
    cut(tmp_path / "cut", 1)
    resume(tmp_path / "cut", jobs=1)
    assert logs_of(tmp_path / "cut") == logs_of(tmp_path / "whole")


def interrupting(after: int) -> Callable[[int, int], None]:
    """A progress report that is Ctrl-C."""

    def report(done: int, _total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    return report


def test_an_interrupted_run_judges_nothing_and_can_be_resumed(tmp_path: Path) -> None:
    options = Options(jobs=1, logs="all")
    plans = load_plans([str(write(tmp_path))], options)
    out = Folder.create(tmp_path / "cut", head_of(plans, options))
    results = Runner(plans, options, out, interrupting(1)).run()
    assert results.exit is Exit.INTERRUPTED
    assert results.interrupted == "interrupted"
    assert results.scenarios[0].judgements == []
    assert sorted(path.name for path in out.path.iterdir()) == ["journal.jsonl", "parts"]
    again = resume(out.path, jobs=1)
    assert again.exit is Exit.OK
    assert not (out.path / "parts").exists()
    whole = run_plan(tmp_path, "whole", plans, options)
    assert again.scenarios[0].digest == whole.scenarios[0].digest


def test_a_finished_run_can_be_shown_again(tmp_path: Path) -> None:
    plans = load_plans([str(write(tmp_path))], Options())
    whole = run_plan(tmp_path, "out", plans, Options())
    again = resume(tmp_path / "out")
    assert again.scenarios[0].digest == whole.scenarios[0].digest
    assert again.exit is Exit.OK


class Broken(Executor):
    """A pool whose workers die."""

    def submit(self, *_args: object) -> "Future[Rows]":  # type: ignore[override]  # any call
        future: Future[Rows] = Future()
        future.set_exception(BrokenExecutor("a worker died"))
        return future


def test_a_dead_worker_is_told_with_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.executors._made", lambda _name: Broken())
    options = Options(jobs=1, executor="any:thing")
    results = run_plan(tmp_path, "out", [plan_of(tmp_path)], options)
    assert results.exit is Exit.INTERRUPTED
    assert results.interrupted is not None
    assert results.interrupted.startswith(
        "a worker process was killed while it ran replications 0 to "
    )
    assert "of small [relay.poll=5s]" in results.interrupted


def test_a_short_run_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_jobs: int) -> None:
        raise AssertionError("no process is worth it")

    monkeypatch.setattr(module, "PROBE_S", 60.0)
    monkeypatch.setattr(module, "processes", forbidden)
    assert Runner([plan_of(tmp_path)], Options(jobs=2), None).run().passed


def test_progress_counts_up_to_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    Runner([plan_of(tmp_path)], Options(jobs=1), None, lambda *at: seen.append(at)).run()
    assert seen[0] == (0, 80)
    assert seen[-1] == (80, 80)
    assert seen == sorted(seen)


def test_a_pilot_runs_a_few_of_each_cell(tmp_path: Path) -> None:
    results = Runner([plan_of(tmp_path)], Options(jobs=1, pilot=3), None).run()
    assert [cell.replications for cell in results.scenarios[0].cells] == [3, 3]


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        (Options(cell="5s"), ["relay.poll=5s"]),
        (Options(cell="relay.poll=20s"), ["relay.poll=20s"]),
        (Options(contains="poll"), ["relay.poll=5s", "relay.poll=20s"]),
        (Options(contains="=2"), ["relay.poll=20s"]),
    ],
)
def test_cells_are_chosen(tmp_path: Path, options: Options, labels: list[str]) -> None:
    cells = Runner([plan_of(tmp_path)], options, None).results.scenarios[0].cells
    assert [cell.cell.label for cell in cells] == labels


def test_one_replication_is_the_same_alone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    whole = run_plan(tmp_path, "whole", [plan], Options(jobs=1)).scenarios[0].cells[0]
    alone = run_plan(tmp_path, "alone", [plan], Options(jobs=1, replication=7)).scenarios[0]
    (found,) = alone.cells[0].rows("wait")
    assert found in list(whole.rows("wait"))
    assert found[0] == 7


def test_a_bad_executor_writes_nothing_but_the_journal(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="--executor"):
        run_plan(tmp_path, "out", [plan_of(tmp_path)], Options(executor="nowhere:make"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["journal.jsonl"]


PEAK = """
import resource, sys
from scenarios.run import run
results = run("@published/pickup_wait", replications=int(sys.argv[1]), jobs=2, out=sys.argv[2])
assert results.replications == int(sys.argv[1])
for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
    print(resource.getrusage(who).ru_maxrss * 1024)
"""


@pytest.mark.soak
def test_memory_does_not_grow_with_replications(tmp_path: Path) -> None:
    peaks = {}
    for count in (2_000, 100_000):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(count), str(tmp_path / str(count))],
            env=environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks[count] = [int(line) for line in done.stdout.split()]
    assert max(peaks[100_000]) < 200_000_000, peaks
    # Of one metric's value: 8 bytes are kept, and as much again while it is judged, three times.
    assert peaks[100_000][0] - peaks[2_000][0] < 98_000 * 8 * 5 + 4_000_000, peaks
    assert peaks[100_000][1] - peaks[2_000][1] < 4_000_000, peaks
