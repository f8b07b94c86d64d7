"""docs/tools.md says what is so: its settings are valid, and its mistake is told like that."""

import os
import re
from pathlib import Path

import pytest

from scenarios.problems import ScenarioError
from scenarios.tool_settings import load_tools

PAGE = (Path(__file__).parent.parent / "docs" / "tools.md").read_text()
[SETTINGS] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where the settings of the page may lie, and the programs that it names."""
    here = tmp_path / "here"
    for name in ("here/docs", "src", "programs"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    for name in ("git", "tracker-mcp"):
        program = tmp_path / "programs" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    return here


def test_the_settings_turn_on_what_their_comments_say(folder: Path) -> None:
    (folder / "tools.toml").write_text(SETTINGS)
    settings = load_tools(folder / "tools.toml")
    assert settings.names() == [
        "read_file", "list_files", "http_get", "shell__show_log", "mcp__tracker__find_issue",
    ]  # fmt: skip
    for name in settings.names():
        assert f"{name}\n" in SETTINGS or name in PAGE


def test_the_mistake_is_told_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("tools.toml").write_text(
        '[read_file]\nfolders = { docs = "docs" }\n\n\n\n[graphs."*"]\nreed_file = "allow"\n'
    )
    with pytest.raises(ScenarioError) as error:
        load_tools(Path("tools.toml"))
    assert str(error.value) in PAGE


def test_the_example_is_the_one_that_is_shipped() -> None:
    assert "pullcord graph run @graphs/minutes --tools @graphs/minutes/tools.toml" in PAGE
    assert load_tools(Path("@graphs/minutes/tools.toml")).permissions["minutes"]
