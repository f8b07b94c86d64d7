"""Mistakes that are seen without running a Graph, and none where there are none."""

import re
from pathlib import Path

import pytest

from actors.graphs.script import read_prelude
from scenarios import graph_check
from scenarios.graph_check import OPTIONS, problems_of
from scenarios.graph_files import SHIPPED, Graph, find_graph, graphs_in, library_of
from scenarios.starter import TEMPLATES

LIBRARY = {"here.js": "", "other.js": ""}


def found(text: str) -> list[tuple[str, int, int]]:
    """The first words of each mistake with its place."""
    graph = Graph(path=Path("here.js"), shown="here.js", text=text)
    return [(one.message, one.line, one.column) for one in problems_of(graph, LIBRARY)]


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("return 1 +;", "SyntaxError: unexpected token in expression: ';'", 1, 11),
        ("phase('a');\nconst x = = 2;", "SyntaxError: unexpected token in expression: '='", 2, 11),
        ("export const meta = { a: 1 + 1 };\nreturn", "a comma or } is missing", 1, 28),
        ("agent('x')", "nothing waits for this call of agent", 1, 1),
        ("const a = 1\nagent('x')\nreturn a", "nothing waits for this call of agent", 2, 1),
        ("if (args) agent('x');", "nothing waits for this call of agent", 1, 11),
        ("if (1) {} else graph('other')", "nothing waits for this call of graph", 1, 16),
        ("const f = () => { sleep(5) };", "nothing waits for this call of sleep", 1, 19),
        ("const a = [1]\nretry(() => 1)\nreturn a", "nothing waits for this call of retry", 2, 1),
        ("await agent('x', { lable: 'y' })", 'agent has no option "lable"', 1, 20),
        ("await agent('x', { 'lable': 1 })", 'agent has no option "lable"', 1, 20),
        ("await agent(`${1, 2}`, { ...args, foo })", 'agent has no option "foo"', 1, 35),
        ("await parallel([], { settled: 1 })", 'parallel has no option "settled"', 1, 22),
        ("await retry(async () => { return { attempt: 3 } }, { attempt: 3 })",
         'retry has no option "attempt"', 1, 54),
        ("return graph('othr', {})", 'there is no Graph "othr"', 1, 14),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place(text: str, message: str, line: int, column: int) -> None:
    assert found(text) == [(message, line, column)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "await agent('x', { label: 'a', phase: 'b', model: 'c', schema: { foo: { bar: 1 } } })",
        "return agent('x', { maxTokens: 1, timeoutMs: 2, tools: ['a'], ['la' + 'bel']: 'x' })",
        "const p = agent('x');\nreturn p",
        "const f = () => agent('x');\nreturn f()",
        "return parallel([1].map((n) => () => agent('x')))",
        "agent('x').then((a) => log(a)); await sleep(1)",
        "agent('x')\n  .then(log)\nawait sleep(1)",
        "const agent2 = 1; return agent2",
        "const agent = (x, y) => 1;\nagent('x', { foo: 1 })",
        "function retry() {}\nretry()",
        "const o = { agent(x) { return 1 } };\no.agent('x', { foo: 1 });\nreturn 1",
        "// agent('x')\nconst s = \"agent('x', { foo: 1 })\"; return s",
        "return /agent('x')/.test('')",
        "return graph(args.name)",
        "return graph('other')",
        "return graph(`${args.a}`)",
        "const x = await\nagent('x')\nreturn x",
        "return await (args.a ? agent('a') : agent('b'))",
        "return Promise.all([\nagent('x'),\nagent('y')\n])",
        "await agent('x', args.options)",
        "for (const a of [1]) await agent('x')",
    ],
)
def test_what_is_right_has_none(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("name", sorted(graphs_in(SHIPPED)))
def test_shipped_graphs_have_none(name: str) -> None:
    graph = find_graph(f"@graphs/{name}")
    assert problems_of(graph, library_of(graph)) == []


def test_the_starter_has_none() -> None:
    graph = find_graph(str(TEMPLATES / "my_graph.js"))
    assert problems_of(graph, library_of(graph)) == []


def test_nothing_of_a_script_is_run() -> None:
    assert found("for (;;) {}") == []
    assert found("throw new Error('it ran')") == []


def test_without_the_engine_the_rest_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_check, "ENGINE_MODULE", "no_such_module")
    assert found("return 1 +;") == []
    assert found("agent('x')")
    assert found("export const meta = 3\n")[0][0].startswith("meta must be an object")


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name, (_, options) in OPTIONS.items()]
)
def test_the_options_are_those_of_the_engine(name: str, options: tuple[str, ...]) -> None:
    prelude = read_prelude()
    if name == "agent":
        table = re.search(r"var OPTIONS = freeze\(\{(.*?)\n\}\)", prelude, re.DOTALL)
        found = re.findall(r"^  ([a-zA-Z]+):", table[1] if table else "", re.MULTILINE)
    else:
        signature = re.search(rf"const {name} = async \(\w+, \{{(.*?)\}} = ", prelude)
        found = re.findall(r"(\w+) = ", signature[1] if signature else "")
    assert sorted(found) == sorted(options)
