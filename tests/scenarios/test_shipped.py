"""Which files a target means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scenarios.load import load_plan
from scenarios.problems import ScenarioError
from scenarios.shipped import find, shipped, shown


def message(target: str) -> str:
    with pytest.raises(ScenarioError) as error:
        find([target])
    [problem] = error.value.problems
    assert problem.path == target
    return f"{problem.message} / {problem.cure}"


def test_shipped_scenarios_can_be_loaded() -> None:
    known = shipped()
    folders = {"ablation", "chaos", "examples", "foreign", "graph_runs", "published"}
    folders |= {"recommended", "regressions"}
    assert {name.split("/")[0] for name in known} == folders
    for name, path in known.items():
        assert load_plan(path).cells, name


@pytest.mark.parametrize(
    "target",
    [
        "@published/poll_strategies",
        "@published/poll_strategies.toml",
        "@poll_strategies",
        "@poll-strategies",
        "@published/poll-strategies",
    ],
)
def test_a_shipped_file_by_its_name(target: str) -> None:
    assert find([target]) == [str(shipped()["published/poll_strategies"])]


def test_a_shipped_folder() -> None:
    files = [str(path) for name, path in shipped().items() if name.startswith("published/")]
    assert len(files) > 5
    assert find(["@published"]) == find(["@published/"]) == files
    assert find(["@published", "@published/cancel"]) == files, "each once"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("@publishd", 'no shipped scenario has this name / did you mean "@published"?'),
        ("@cancl", 'no shipped scenario has this name / did you mean "@published/cancel"?'),
        (
            "@published/cancl",
            'no shipped scenario has this name / did you mean "@published/cancel"?',
        ),
    ],
)
def test_no_shipped_file(target: str, expected: str) -> None:
    assert message(target) == expected


@pytest.mark.parametrize("target", ["@xyzzy", "@"])
def test_what_there_is(target: str) -> None:
    folders = sorted({name.split("/")[0] for name in shipped()})
    *others, last = (f"@{folder}" for folder in folders)
    assert message(target) == (
        f"no shipped scenario has this name / there is {', '.join(others)} and {last}"
    )


def test_how_a_file_is_named() -> None:
    path = str(shipped()["published/cancel"])
    assert shown(path) == "@published/cancel"
    assert find([shown(path)]) == [path]
    assert shown("mine.toml") == "mine.toml"


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    """Whether it is there is the reader's matter."""
    assert find([str(tmp_path / "none.toml"), "b.txt"]) == [str(tmp_path / "none.toml"), "b.txt"]


def test_a_folder_is_searched_for_scenarios_alone(tmp_path: Path) -> None:
    for name, text in {
        "b.toml": "",
        "a/a.toml": "",
        "a/c.json": '{"schema": 1}',
        "a/package.json": '{"name": "x"}',
        "a/note.txt": "",
        "pyproject.toml": "",
        "tools.toml": "",
        ".venv/x.toml": "",
        ".hidden.toml": "",
        "results/journal.jsonl": "",
        "results/results.json": '{"schema": 1}',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [os.path.relpath(path, tmp_path) for path in find([str(tmp_path)])]
    assert found == ["a/a.toml", "a/c.json", "b.toml"]


def test_a_folder_without_scenarios(tmp_path: Path) -> None:
    assert message(str(tmp_path)) == ("this folder has no scenario file / a scenario ends in .toml")
