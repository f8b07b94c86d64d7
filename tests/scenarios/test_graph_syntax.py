"""Whether a Graph can be compiled, and where it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios import graph_syntax
from scenarios.graph_syntax import reached_files, syntax_problem

pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "graphs"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "return await agent(args.x)",
        "// only a comment",
        "for (;;) {}",
        "nothing.at.all",
        "await parallel([1, 2].map(async (n) => n ** 2)); return { ...args };",
        "const text = `a\nb`; // and no line end",
        "}); for (;;) {} (function () {",
    ],
)
def test_what_can_be_compiled_is_not_run(source: str) -> None:
    assert syntax_problem(source) is None


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.js")), ids=lambda path: path.stem)
def test_shipped_graphs_can_be_compiled(path: Path) -> None:
    source = path.read_text(encoding="utf-8").replace("export const meta", "const meta", 1)
    assert syntax_problem(source) is None


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("let a; let a;", 1, 13),
        ("return 1;\n\n  with (args) {}\n", 3, 3),
        ("return (", 1, 1),
        ("import x from 'y'", 1, 8),
        ("await x; }); }", 1, 14),
        ("const x = `unterminated", 1, 11),
        ("a\n" * 5 + "0777", 6, 1),
    ],
)
def test_what_can_not_is_told_with_its_place(source: str, line: int, column: int) -> None:
    problem = syntax_problem(source)
    assert problem is not None
    assert problem.message.startswith("SyntaxError: ")
    assert "\n" not in str(problem)
    assert (problem.line, problem.column) == (line, column), problem


def test_without_an_engine_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_syntax, "ENGINE_MODULE", "no_such_engine")
    assert syntax_problem("let a; let a; // unheard of") is None


def test_the_files_that_are_reached_are_those_that_are_called_by_their_names() -> None:
    files = {
        "a.js": "await graph('b', 1); await graph(args.name); subgraph('e'); x.graph ( `c` )",
        "b.js": 'graph("a"); graph("none")',
        "c.js": "graph(`${x}`); return graph(\n  'd')",
        "d.js": "",
        "e.js": "a broken one that nobody calls {",
    }
    assert reached_files(["a.js"], files) == ["a.js", "b.js", "c.js", "d.js"]
    assert reached_files(["d.js", "e.js", "d.js"], files) == ["d.js", "e.js"]
