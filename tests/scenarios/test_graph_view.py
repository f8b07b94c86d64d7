"""What a terminal, a pipe and a program are shown of a run."""

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from scenarios.graph_progress import Progress
from scenarios.graph_view import JsonLines, Lines, LiveTree, tree_of
from tests.scenarios.test_graph_progress import EVENTS, RUN, played


def drawn(progress: Progress, height_lines: int = 40, now_us: int = 3_000_000) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, color_system=None)
    console.print(tree_of(progress, "g.js", now_us, height_lines))
    return out.getvalue()


def test_a_tree_has_phases_agents_sub_graphs_and_the_account() -> None:
    assert drawn(played(1000)).split("\n") == [
        "g.js  failed  3.0 s",
        "├── 1 of 2 agents done; 1 too late; 1 refused; 120 of 1,000 tokens, 880 left; cost 0.3000",
        "├── sort",
        "│   ├── ✓ one  1.5 s  100 tokens  0.1000",
        "│   ├── ⌛ agent 2  2.0 s  20 tokens  0.2000  agent_timeout",
        "│   └── ! 1 refused",
        "├── h (failed)",
        "└── busy",
        "",
    ]


def test_of_many_agents_those_that_need_eyes_are_shown() -> None:
    progress = Progress(None)
    for number in range(1, 1001):
        started = {**RUN, "agent": number, "label": None, "phase": None}
        progress.take(0, "agent.started", started)
    for number in range(1, 999):
        status = "failed" if number == 7 else "completed"
        ended = {"status": status, "code": None, "tokens": 1, "cost": 0.0, "spent": number}
        progress.take(5, "agent.finished", {**RUN, "agent": number, **ended})
    lines = drawn(progress, height_lines=20)
    assert lines.count("\n") < 20
    for shown in ("✗ agent 7 ", "… agent 999 ", "… agent 1000 ", "and 990 more"):
        assert shown in lines


def test_working_agents_get_older() -> None:
    assert "… agent 2  2.5 s" in drawn(played(until=5), now_us=2_500_000)


def test_lines_for_a_pipe_and_none_when_quiet() -> None:
    loud, quiet = io.StringIO(), io.StringIO()
    for view in (Lines(loud, Progress(None)), Lines(quiet, Progress(None), quiet=True)):
        with view:
            for event in EVENTS:
                view.told(*event)
                view.look(0)
        assert view.progress.tokens == 120
    assert loud.getvalue().count("\n") == 11
    assert "\x1b" not in loud.getvalue()
    assert quiet.getvalue() == ""


def test_json_for_programs() -> None:
    out = io.StringIO()
    view = JsonLines(out, Progress(None))
    for event in EVENTS:
        view.told(*event)
    rows: list[dict[str, Any]] = [msgspec.json.decode(line) for line in out.getvalue().splitlines()]
    assert [(row.pop("at_us"), row.pop("event"), row) for row in rows] == EVENTS


def test_the_live_tree_leaves_its_last_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]  # as a terminal says
    with LiveTree(out, Progress(None), "g.js") as view:
        for event in EVENTS:
            view.told(*event)
        view.look(9_000_000)
    shown = out.getvalue()
    assert shown.rindex("failed") > shown.rindex("g.js")
    assert "agent 2" in shown
    assert shown.endswith("\x1b[?25h")  # the cursor is back


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("agent.started", {"label": "sort", "phase": None}),
    ("tool.withheld", {"tool": "rm"}),
    ("tool.started", {"tool": "read_file", "call": 1}),
    ("tool.finished", {"tool": "read_file", "call": 1, "status": "ok", "chars": 7}),
    ("approval.waiting", {"tool": "shell__a\x1b", "call": 2}),
    ("approval.decided", {"tool": "shell__a", "call": 2, "allow": True, "by": "owner"}),
]


def test_calls_and_their_owner_are_shown() -> None:
    out, progress = io.StringIO(), Progress(None)
    view = Lines(out, progress)
    pictures = []
    for event, fields in CALLS:
        view.told(0, event, {**RUN, "agent": 1, **fields})
        pictures.append(drawn(progress))
    assert [line.split("s  ")[1] for line in out.getvalue().splitlines()] == [
        "… sort",
        "! sort does not get rm: no permission",
        "· sort calls read_file",
        "· sort has read_file: ok, 7 characters",
        "? sort waits for you: shell__a␛",
        "? sort: shell__a allowed (by owner)",
    ]
    assert "1 × tools, read_file" in pictures[3]
    assert "? sort  3.0 s  waiting for you: shell__a␛" in pictures[4]
    assert "… sort" in pictures[5]
    assert "1 tool call;" in progress.totals()


def test_a_question_has_the_terminal_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    with LiveTree(out, Progress(None), "g.js") as view:
        view.pause()
        before = out.getvalue()
        view.draw()
        view.look(1)
        assert out.getvalue() == before
        view.resume()
    assert out.getvalue().count("0 of 0 agents") == 2
