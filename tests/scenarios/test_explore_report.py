"""What `pullcord explore` prints and writes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scenarios.explore_report import explore_all
from scenarios.folder import FolderError
from scenarios.problems import ScenarioError
from scenarios.render import Text
from scenarios.request import ExploreLimits, explore_limits
from scenarios.run import run


def explored(target: str, out: Path, plans: int) -> tuple[int, list[str]]:
    stream = io.StringIO()
    code = explore_all([target], ExploreLimits(1.0, plans, 1, 1), out, Text(stream))
    return code, stream.getvalue().splitlines()


def test_a_discovery_is_told_with_a_file_that_shows_it(tmp_path: Path) -> None:
    code, lines = explored("@ablation/unique_start", tmp_path / "found", 100)
    assert code == 1
    assert lines[0].startswith("violated executed_at_most_once no-unique-start, plan ")
    (file,) = (tmp_path / "found").iterdir()
    assert str(file) in lines[2]
    assert lines[3].startswith(f"  make it smaller: pullcord shrink {file} --replication ")
    number = int(lines[0].rpartition(" ")[2].rstrip(":"))
    results = run(file, replication=number, jobs=1)
    assert [found.check for _, found in results.scenarios[0].found] == ["executed_at_most_once"]
    assert any(line.startswith("no-unique-start") for line in lines)
    assert any(line.startswith("faults fired: ") for line in lines)


def test_nothing_found_is_a_row_too(tmp_path: Path) -> None:
    code, lines = explored("@ablation/delivery_number", tmp_path / "found", 10)
    assert code == 0
    assert list((tmp_path / "found").iterdir()) == []
    assert any("nothing" in line for line in lines)


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_tried(tmp_path: Path) -> None:
    (tmp_path / "found").touch()
    with pytest.raises(FolderError, match="a file is in its way"):
        explored("@ablation/delivery_number", tmp_path / "found", 10)


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    _, lines = explored("@ablation/delivery_number", tmp_path / "found", 60)
    (begin,) = (at for at, line in enumerate(lines) if line.startswith("faults fired: "))
    assert len(lines) > begin + 1
    assert max(map(len, lines)) <= 80
    counts = " ".join(map(str.strip, lines[begin:])).removeprefix("faults fired: ").split(", ")
    for line in lines[begin:-1]:
        assert line.endswith(",")
    assert counts == sorted(counts)


def test_every_mistake_in_the_flags_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as raised:
        explore_limits([], "soon", 0, -1, 0)
    assert len(raised.value.problems) == 5
    with pytest.raises(ScenarioError, match="above 0s"):
        explore_limits(["x"], "0s", None, 1, None)
    assert explore_limits(["x"], "90s", None, 1, None) == ExploreLimits(90.0, None, 1, 0)
