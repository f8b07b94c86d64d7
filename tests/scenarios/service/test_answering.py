"""Who answers a desktop's agents, and with which tools: what its settings say, and mistakes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from actors.desktop.engine import DesktopEngine
from actors.graphs.scripted import ScriptedModel
from scenarios.problems import ScenarioError
from scenarios.service.answering import model_of, tools_of
from scenarios.service.config import DesktopSettings, Resolved, resolve
from scenarios.toolbox import Toolbox

TOOLS = """\
[read_file]
folders = { here = "." }
[approvals]
timeout = "1m"
[graphs.notes]
read_file = "ask"
"""


def told(folder: Path, text: str, **variables: str) -> Resolved[DesktopSettings]:
    file = folder / "config.toml"
    file.write_text(text)
    environ = {f"PULLCORD_{key.upper()}": value for key, value in variables.items()}
    return resolve(DesktopSettings, {}, file, tables=("relay", "engine"), environ=environ)


def test_a_file_of_tools_says_which_there_are_and_who_may_use_them(tmp_path: Path) -> None:
    (tmp_path / "tools.toml").write_text(TOOLS)
    resolved = told(tmp_path, "", tools=str(tmp_path / "tools.toml"))
    toolbox, fields = tools_of(resolved)
    assert sorted(toolbox.catalogue) == ["list_files", "read_file"]
    config = resolved.table("engine", DesktopEngine.Config, fields)
    assert config.permissions == {"notes": {"read_file": "ask"}}
    assert config.approval_timeout_us == 60_000_000


def test_without_a_file_nobody_has_a_tool_and_a_command_has_its_own(tmp_path: Path) -> None:
    assert tools_of(told(tmp_path, "")) == (Toolbox(), {})
    _, fields = tools_of(told(tmp_path, 'backend = "command"\ncommand = "cat"\n'))
    assert fields == {"permissions": {"*": {"*": "allow"}}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tools = "none.toml"\n', "none.toml: there is no such file"),
        (
            'backend = "command"\ncommand = "cat"\ntools = "t.toml"\n',
            r"config.toml:3: a command has tools of its own",
        ),
        (
            '[engine]\npermissions = { "*" = { read_file = "allow" } }\n',
            r"(?s)config.toml:2: a desktop's permissions stand beside.*file that --tools names",
        ),
    ],
)
def test_mistakes_with_tools(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        tools_of(told(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('backend = "openia"\n', r'config.toml:1: "openia" is no backend\nhelp: there is'),
        ('backend = "recorded"\n', "config.toml:1: which answers were recorded"),
        (
            'backend = "recorded"\nanswers = "none.jsonl"\n',
            "none.jsonl: there are no recorded answers here",
        ),
    ],
)
def test_mistakes_with_who_answers(tmp_path: Path, text: str, words: str) -> None:
    resolved = told(tmp_path, text)
    config = resolved.table("engine", DesktopEngine.Config, {})
    with ExitStack() as stack, pytest.raises(ScenarioError, match=words):
        model_of(resolved, config, Toolbox(), stack)


def test_recorded_answers(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "Hello.", "value": "hi", "latency": "0s"}\n')
    resolved = told(tmp_path, f'backend = "recorded"\nanswers = "{tmp_path}/a.jsonl"\n')
    config = resolved.table("engine", DesktopEngine.Config, {})
    with ExitStack() as stack:
        assert isinstance(model_of(resolved, config, Toolbox(), stack), ScriptedModel)
