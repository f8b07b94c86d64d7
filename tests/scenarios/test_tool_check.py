"""Tools that a Graph asks for and would not get."""

from pathlib import Path

import pytest

from scenarios.graph_files import Graph
from scenarios.tool_check import tool_problems
from scenarios.tool_settings import ToolSettings, load_tools


@pytest.fixture
def settings(tmp_path: Path) -> ToolSettings:
    path = tmp_path / "tools.toml"
    path.write_text(
        """
[shell.show]
command = ["cat"]
description = "Shows."
[mcp.docs]
command = ["cat"]
tools = ["*"]
[graphs."*"]
shell__show = "ask"
[graphs.other]
"mcp__docs__*" = "allow"
"""
    )
    return load_tools(path)


def problems(settings: ToolSettings, text: str, name: str = "it") -> list[str]:
    graph = Graph(path=Path(f"{name}.js"), shown=f"{name}.js", text=text)
    return [one.render() for one in tool_problems(graph, settings)]


def test_what_is_given_is_no_problem(settings: ToolSettings) -> None:
    text = 'await agent("a", { tools: ["shell__show", "mcp__docs__find"], label: "x" });'
    assert problems(settings, text, "other") == []
    assert problems(settings, 'await agent("a"); await agent("b", { tools: [] });') == []
    assert problems(settings, 'tools: ["rm"]; const x = { tools: ["rm"] };') == []


def test_what_is_not_given_is_told_at_its_place(settings: ToolSettings) -> None:
    text = 'await agent("a", {\n  "tools": ["shell__shw", "mcp__docs__find", ...more, `rm`] });'
    one, other = problems(settings, text)
    assert one.startswith("it.js:2:13: ")
    assert 'sets no tool "shell__shw" up' in one
    assert 'did you mean "shell__show"?' in one
    assert 'does not give "mcp__docs__find" to it' in other
    assert '[graphs."it"] with mcp__docs__find = "ask"' in other
