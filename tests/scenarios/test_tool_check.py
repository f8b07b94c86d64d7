"""Tools that a Graph asks for and would not get."""

from pathlib import Path

import pytest

from scenarios.graph_files import Graph
from scenarios.tool_check import tool_problems
from scenarios.tool_settings import ToolSettings, load_tools

LIBRARY = {
    "other.js": 'await agent("a", { tools: ["mcp__docs__find", "shell__show"] });',
    "middle.js": "await graph('other'); await graph(`it`);",
}


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
    library = {**LIBRARY, f"{name}.js": text}
    return [one.render() for one in tool_problems(graph, library, settings)]


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


def test_a_graph_that_is_called_must_have_its_tools_of_its_callers_too(
    settings: ToolSettings,
) -> None:
    assert problems(settings, LIBRARY["other.js"], "other") == []
    (one,) = problems(settings, 'await graph("middle"); await graph("nowhere");')
    assert one.startswith("other.js:1:28: ")
    assert 'does not give "mcp__docs__find" to middle, so other does not have it when' in one
    assert '[graphs."middle"] with mcp__docs__find = "ask"' in one
    twice = [problems(settings, 'await graph("other")', name) for name in ("it", "middle")]
    assert ["to it, so other" in told[0] for told in twice] == [True, False]
