"""Which logs are kept of what failed."""

import errno
from pathlib import Path

import pytest

from scenarios.folder import Folder, Head
from scenarios.log_files import LogFiles, extremes, failed
from scenarios.results import CellResult
from tests.scenarios.commandline import SMALL, plan_of, result_of
from tests.scenarios.test_results import rows_of

HEAD = Head(code="c", cwd="/", paths=(), digests=(), options={})
TABLE: list[list[float]] = [[5.0], [1.0, 9.0], [], [4.0, 4.0, 4.0], [8.0], [0.5]]


@pytest.mark.parametrize(
    ("statistic", "high", "kept"),
    [
        ("mean", True, [1, 4, 0]),
        ("mean", False, [5, 1, 3]),
        ("p95", True, [1, 4, 0]),
        ("max", True, [1, 4, 0]),
        ("min", False, [5, 1, 3]),
        ("sum", True, [3, 1, 4]),
        ("sum", False, [2, 5, 0]),
        ("count", True, [3, 1, 0]),
        ("count", False, [2, 0, 4]),
        ("sd", True, [1, 5, 4]),
        ("sd", False, [3, 0, 4]),
    ],
)
def test_the_three_that_pull_most_to_the_wrong_side(
    tmp_path: Path, statistic: str, high: bool, kept: list[int]
) -> None:
    cell = CellResult(plan_of(tmp_path), 0)
    cell.add(rows_of(TABLE, 0, len(TABLE)))
    assert extremes(cell, "wait", statistic, high) == kept


def kept_of(folder: Path, *expectations: str) -> dict[str, list[int]]:
    text = SMALL + "".join(f"[[expect]]\nthat = {that!r}\n" for that in expectations)
    one = result_of(folder, text)
    kept = dict(failed(one))
    for label, numbers in kept.items():
        assert numbers == sorted(numbers)
        assert len(numbers) >= 1, label
    return kept


def worst_of(folder: Path, poll: str, high: bool) -> list[int]:
    one = result_of(folder)
    cell = next(cell for cell in one.cells if poll in cell.cell.label)
    return sorted(extremes(cell, "wait", "mean", high))


def test_nothing_is_kept_of_what_passes(tmp_path: Path) -> None:
    assert kept_of(tmp_path) == {}


def test_what_is_too_high_keeps_the_highest(tmp_path: Path) -> None:
    kept = kept_of(tmp_path, "wait.mean[5s] < 0.01s")
    assert kept == {"relay.poll=5s": worst_of(tmp_path, "5s", True)}
    assert kept_of(tmp_path, "wait.mean[5s] equals 0.01s") == kept
    assert kept_of(tmp_path, "wait.mean[5s] within 0.01s +/- 0.001s") == kept


def test_what_is_too_low_keeps_the_lowest(tmp_path: Path) -> None:
    kept = kept_of(tmp_path, "wait.mean[20s] > 1000s")
    assert kept == {"relay.poll=20s": worst_of(tmp_path, "20s", False)}
    assert kept_of(tmp_path, "wait.mean[20s] agrees with 1000s") == kept


def test_of_two_cells_both_sides_are_kept(tmp_path: Path) -> None:
    assert kept_of(tmp_path, "wait.mean[20s] < 0.01 * wait.mean[5s]") == {
        "relay.poll=20s": worst_of(tmp_path, "20s", True),
        "relay.poll=5s": worst_of(tmp_path, "5s", False),
    }


def test_trouble_is_kept(tmp_path: Path) -> None:
    text = SMALL.replace("[run]", '[run]\nlimit = "3s"')
    assert failed(result_of(tmp_path, text)) == {"relay.poll=5s": [0]}


def test_a_log_is_named_by_its_cell_and_fits_every_file_system(tmp_path: Path) -> None:
    names = ["é" * 200, "a/b: *?", "../../etc"]
    folder = Folder.create(tmp_path / "r", HEAD)
    logs = LogFiles(folder)
    one = result_of(tmp_path)
    assert logs.path(one, 1) == folder.path / "logs" / "small-2-relay.poll=20s.jsonl"
    plan = plan_of(tmp_path)
    cells = tuple(type(plan.cells[0])((("relay.name", name),)) for name in names)
    plan.cells = cells
    one.plan = plan
    found = {logs.path(one, index) for index in range(3)}
    assert len(found) == 3
    assert all(path.parent == folder.path / "logs" for path in found)
    assert all(len(path.name.encode()) < 120 for path in found)
    folder.close()


def refuses(*_: object) -> int:
    raise OSError(errno.EXDEV, "not between these file systems")


@pytest.mark.parametrize("kernel", [True, False, refuses], ids=["kernel", "none", "refuses"])
def test_parts_are_joined_in_order_and_removed_at_the_end(
    kernel: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel is not True:
        monkeypatch.setattr("os.copy_file_range", kernel or None, raising=False)
    folder = Folder.create(tmp_path / "r", HEAD)
    logs = LogFiles(folder)
    for first in (10, 2, 0):
        logs.part((0, 0), first).write_text(f"{first}\n")
    target = folder.path / "logs" / "a.jsonl"
    logs.join(target, (0, 0), [10, 0, 2])
    assert target.read_text() == "0\n2\n10\n"
    assert logs.part((0, 0), 2).exists()
    logs.clear()
    assert not (folder.path / "parts").exists()
    assert list(target.parent.iterdir()) == [target]
    folder.close()
