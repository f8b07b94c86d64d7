"""Starters run at once and pass; nothing is overwritten, nothing half-written."""

import tomllib
from pathlib import Path

import pytest

from scenarios.load import load_plan
from scenarios.problems import ScenarioError
from scenarios.run import run
from scenarios.starter import KINDS, TEMPLATES, starter


def write(
    folder: Path, what: str = "scenario", name: str | None = None, kind: str = "relay"
) -> list[str]:
    """Call it as the command line does."""
    return starter(what, name, folder, kind)


def refusal(folder: Path, *words: str) -> list[str]:
    """The lines of a refusal, after which the folder is as it was."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(ScenarioError) as caught:
        write(folder, *words)
    assert sorted(folder.rglob("*")) == before
    return str(caught.value).splitlines()


def test_a_scenario_runs_at_once_and_passes(tmp_path: Path) -> None:
    told = starter("scenario", "first_try", tmp_path)
    path = tmp_path / "first_try.toml"
    assert told[0] == f"wrote {path}"
    assert f"Next: pullcord run {path}" in told
    assert load_plan(path).name == "first-try"
    assert run(path, jobs=1).passed


@pytest.mark.parametrize("kind", KINDS)
def test_an_actor_is_compared_with_the_built_in_one(kind: str, tmp_path: Path) -> None:
    starter("actor", "quick_one", tmp_path, kind)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quick_one.py", "quick_one.toml"]
    results = run(tmp_path / "quick_one.toml", jobs=1)
    assert results.passed
    labels = [cell.label for cell in results["quick-one"].plan.cells]
    assert labels == [f"{kind}.use=built-in", f"{kind}.use=quick_one.py:QuickOne"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_actor_overrides_one_method(kind: str) -> None:
    source = (TEMPLATES / f"my_{kind}.py").read_text(encoding="utf-8")
    assert source.count("    def ") == 1


def test_nothing_of_a_template_is_left_in_a_starter(tmp_path: Path) -> None:
    starter("actor", "other", tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    assert not any(word in text for text in texts for word in ("my_relay", "MyRelay", "my-relay"))


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ((), {"my_scenario.toml"}),
        (("scenario",), {"my_scenario.toml"}),
        (("actor",), {"my_relay.py", "my_relay.toml"}),
        (("my-first.toml",), {"my-first.toml"}),
        (("own.py",), {"own.py", "own.toml"}),
        (("scenario", "x.toml"), {"x.toml"}),
        (("actor", "fast-relay"), {"fast_relay.py", "fast_relay.toml"}),
        (("actor", "a1.py"), {"a1.py", "a1.toml"}),
    ],
)
def test_what_is_written_where(words: tuple[str, ...], files: set[str], tmp_path: Path) -> None:
    write(tmp_path, *words)
    assert {path.name for path in tmp_path.iterdir()} == files


def test_paths_are_told_as_one_types_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    assert starter("scenario", "sub/x", Path.cwd())[0] == "wrote sub/x.toml"


def test_a_name_becomes_a_scenarios_name(tmp_path: Path) -> None:
    starter("scenario", "My_Try-2", tmp_path)
    assert tomllib.loads((tmp_path / "My_Try-2.toml").read_text())["name"] == "my-try-2"


@pytest.mark.parametrize("there", ["own.py", "own.toml"])
def test_a_file_that_is_there_is_left_alone(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("mine")
    told = refusal(tmp_path, "actor", "own")
    assert told == [
        f"{tmp_path / there}: this file exists",
        "help: choose another name, or remove it",
    ]
    assert (tmp_path / there).read_text() == "mine"


@pytest.mark.parametrize("name", ["", "b@d", "-x", "a..b", "ä", "x" * 61, "a b", "2nd", ".hidden"])
def test_a_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    assert "can't be the name" in refusal(tmp_path, "scenario", f"{name}.toml")[0]


@pytest.mark.parametrize("name", ["pullcord", "msgspec", "relay", "Relay", "class", "context.py"])
def test_a_name_that_the_actor_needs_is_refused(name: str, tmp_path: Path) -> None:
    told = refusal(tmp_path, "actor", name)
    assert "is the name of something that the actor needs" in told[0]
    assert told[1] == "help: take another, as in my_relay"


def test_a_missing_folder_is_refused_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = refusal(Path.cwd(), "scenario", "nowhere/x")
    assert told == ["nowhere/x: its folder doesn't exist", "help: mkdir -p nowhere"]


def test_another_kind_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "actor", "x", "rely")[1] == 'help: did you mean "relay"?'
    assert refusal(tmp_path, "scenarios")[1] == 'help: did you mean "scenario"?'
    assert "relay, agent, engine or server" in refusal(tmp_path, "actor", "x", "owner")[1]


@pytest.mark.parametrize("failing", ["write_text", "rename"])
def test_nothing_is_left_when_the_second_file_fails(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(Path, failing)

    def full(self: Path, *arguments: object, **options: object) -> object:
        if ".toml" in self.name:
            raise OSError(28, "No space left on device")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, failing, full)
    assert "No space left on device" in refusal(tmp_path, "actor", "own")[0]
