"""Graphs are found by path, by the name they were saved under, and among the shipped ones."""

import os
from pathlib import Path

import pytest

from scenarios.graph_files import (
    FILE_LIMIT_BYTES,
    find_graph,
    library_of,
    listing,
    save,
    saved_folder,
)
from scenarios.problems import ScenarioError


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of saved Graphs, empty; the working directory is beside it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PULLCORD_GRAPHS", str(tmp_path / "saved"))
    return tmp_path / "saved"


def refused(target: str) -> str:
    with pytest.raises(ScenarioError) as error:
        find_graph(target)
    return error.value.render()


@pytest.mark.usefixtures("saved")
def test_a_file_by_its_path() -> None:
    Path("a.js").write_text("return 1")
    graph = find_graph("a.js")
    assert (graph.name, graph.text, graph.answers.name) == ("a", "return 1", "a.answers.jsonl")
    assert find_graph("./a.js").name == "a"


@pytest.mark.usefixtures("saved")
def test_a_shipped_one_by_its_name() -> None:
    assert find_graph("@graphs/triage").shown == "@graphs/triage"
    assert find_graph("@triage").answers.is_file()
    assert 'did you mean "@graphs/triage"?' in refused("@graphs/triag")
    assert "there is @graphs/fan" in refused("@graphs/zzzzz")


@pytest.mark.usefixtures("saved")
def test_what_is_not_there_is_told_with_a_cure() -> None:
    Path("triage.js").write_text("")
    Path("notes.txt").write_text("")
    Path("folder.js").mkdir()
    assert 'did you mean the file "triage.js"?' in refused("triage")
    assert "see: pullcord graph list" in refused("zzzzz")
    assert 'did you mean "triage.js"?' in refused("triag.js")
    assert "no such file" in refused("sub/zzz.js")
    assert "a Graph is a file that ends in .js" in refused("notes.txt")
    assert "this is a folder" in refused("folder.js")


@pytest.mark.usefixtures("saved")
def test_what_can_not_be_read_is_told() -> None:
    Path("big.js").write_bytes(b" " * (FILE_LIMIT_BYTES + 1))
    Path("latin.js").write_bytes(b"\xff")
    assert "more than 1,048,576 bytes" in refused("big.js")
    assert "no text in UTF-8" in refused("latin.js")
    os.mkfifo("pipe.js")
    assert "a pipe or a socket, and no file" in refused("pipe.js")
    Path("a.js").write_text("return 1")
    library = library_of(find_graph("a.js"))
    assert dict(library) == {"a.js": "return 1"}


def test_saved_with_its_answers_and_found_from_anywhere(saved: Path) -> None:
    Path("a.js").write_text("return 1")
    Path("a.answers.jsonl").write_text('{"prompt": "x"}')
    path = save(find_graph("a.js"), "nightly-review", replace=False)
    assert path == saved / "nightly-review.js"
    graph = find_graph("nightly-review")
    assert graph.text == "return 1"
    assert graph.answers.read_text() == '{"prompt": "x"}'
    assert sorted(one.name for one in saved.iterdir()) == [
        "nightly-review.answers.jsonl", "nightly-review.js",
    ]  # fmt: skip


def test_none_is_replaced_by_chance(saved: Path) -> None:
    Path("a.js").write_text("return 1")
    save(find_graph("a.js"), "a", replace=False)
    Path("a.js").write_text("return 2")
    with pytest.raises(ScenarioError, match="saved under this name already"):
        save(find_graph("a.js"), "a", replace=False)
    save(find_graph("./a.js"), "a", replace=True)
    assert (saved / "a.js").read_text() == "return 2"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".a", "a b", "a" * 61, "-a", "ä"])
def test_a_name_is_no_path(saved: Path, name: str) -> None:
    Path("a.js").write_text("return 1")
    with pytest.raises(ScenarioError, match="can't be the name of a Graph"):
        save(find_graph("a.js"), name, replace=False)
    assert not saved.exists()


@pytest.mark.usefixtures("saved")
def test_saved_ones_may_be_called_and_those_beside_come_first() -> None:
    for name, text in (("a", "1"), ("b", "2")):
        Path(f"{name}.js").write_text(text)
        save(find_graph(f"{name}.js"), name, replace=False)
    Path("b.js").write_text("3")
    Path("a.js").unlink()
    Path("c.js").write_text("4")
    library = dict(library_of(find_graph("c.js")))
    assert library == {"a.js": "1", "b.js": "3", "c.js": "4"}


def test_the_list_has_saved_ones_and_then_shipped_ones(saved: Path) -> None:
    Path("a.js").write_text('export const meta = { description: "Does it." };\nreturn 1')
    save(find_graph("a.js"), "a", replace=False)
    (saved / "broken.js").write_bytes(b"\xff")
    found = list(listing())
    assert [(name, text) for name, text, _ in found[:2]] == [
        ("a", "Does it."),
        ("broken", "(it is no text in UTF-8)"),
    ]
    assert found[2][0].startswith("@graphs/")
    assert all(description for _, description, _ in found)


def test_the_folder_is_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PULLCORD_GRAPHS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert saved_folder() == tmp_path / "pullcord" / "graphs"
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert saved_folder() == tmp_path / ".local" / "share" / "pullcord" / "graphs"


def test_a_folder_that_can_not_be_written_is_told(saved: Path) -> None:
    Path("a.js").write_text("return 1")
    saved.write_text("a file")
    with pytest.raises(ScenarioError, match="it can't be written"):
        save(find_graph("a.js"), "a", replace=False)
