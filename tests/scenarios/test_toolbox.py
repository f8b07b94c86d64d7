"""The tools of a run, made from settings; with a real MCP server among them."""

import sys
from pathlib import Path

import pytest

from scenarios.problems import ScenarioError
from scenarios.tool_settings import load_tools
from scenarios.toolbox import engine_fields, make_tools
from tests.actors.edges.tools import mcp_program


def test_all_tools_are_made_and_known_to_models(tmp_path: Path) -> None:
    path = tmp_path / "tools.toml"
    path.write_text(
        f"""
[read_file]
folders = {{ here = "." }}
[http_get]
hosts = ["docs.example.org"]
[shell.show]
command = ["cat"]
description = "Shows."
timeout = "200s"
[mcp.test]
command = ["{sys.executable}", "{mcp_program.__file__}"]
tools = ["add"]
[graphs."*"]
"*" = "ask"
"""
    )
    settings = load_tools(path)
    toolbox = make_tools(settings)
    assert [*toolbox.catalogue] == [
        "read_file", "list_files", "http_get", "shell__show", "mcp__test__add",
    ]  # fmt: skip
    assert len(toolbox.connections) == 1
    assert engine_fields(settings, toolbox) == {
        "permissions": {"*": {"*": "ask"}},
        "approval_timeout": "900000000us",
        "tool_timeout": "205s",
    }


def test_a_server_that_is_none_is_told_with_its_table(tmp_path: Path) -> None:
    path = tmp_path / "tools.toml"
    path.write_text('[mcp.broken]\ncommand = ["false"]\ntools = ["*"]\n')
    with pytest.raises(ScenarioError, match=r"tools\.toml: \[mcp\.broken\]: it can't be asked"):
        make_tools(load_tools(path))
