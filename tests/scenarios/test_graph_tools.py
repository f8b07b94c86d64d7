"""Agents' tools in scenarios: who stands beside the engine, mistakes, and runs under faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.graphs.tools import Approver, SyntheticTools
from actors.messages import GraphRun
from scenarios.build import CellRun, places_of
from scenarios.run import run
from tests.actors.harness import Trace
from tests.scenarios.commandline import command, records
from tests.scenarios.loading import load, rows, told

pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")

MAIN = """
const errand = () => agent("do it", { tools: ["shell", "read_file"] });
return await parallel([errand, errand, () => graph("part")], { settle: true });
"""
PART = 'return await agent("a part", { tools: ["shell"] })'
TEXT = """[engine]
use = "graph"
graph = "graphs/main.js"
latency = "uniform(1s, 9s)"
permissions = { "*" = { "*" = "ask" }, main = { read_file = "allow" } }
tool_calls = "choice(0, 1, 3)"
approval_delay = "exponential(mean=1m)"
approves = 0.7
approval_timeout = "2m"
[agent]
poll = "every 10s"
[[session]]
name = "demo"
[metrics.seen]
count = "run.terminal"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "main.js").write_text(MAIN)
    (tmp_path / "graphs" / "part.js").write_text(PART)
    return tmp_path


def test_tools_and_approvers_stand_beside_their_engines(folder: Path) -> None:
    plan = load(folder, TEXT.replace("[agent]", "[relay]\ncount = 2\n[agent]", 1))
    names = [one.name for one in plan.scenarios[0].cast]
    assert names[-6:] == ["model-1", "tools-1", "approver-1", "model-2", "tools-2", "approver-2"]
    places = places_of(plan.scenarios[0])
    for number in ("1", "2"):
        engine = places[f"engine-{number}"]
        assert (engine.tools, engine.approver) == (f"tools-{number}", f"approver-{number}")
        assert places[f"approver-{number}"].engine == f"engine-{number}"
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    assert isinstance(cell.simulator.contexts["tools-2"].actor, SyntheticTools)
    assert isinstance(cell.simulator.contexts["approver-2"].actor, Approver)


def test_without_permissions_nobody_is_there_for_them(folder: Path) -> None:
    lines = [
        line for line in TEXT.split("\n") if not line.startswith(("permissions", "approval_d"))
    ]
    plan = load(folder, "\n".join(lines))
    assert [one.kind for one in plan.scenarios[0].cast][-1] == "model"
    assert places_of(plan.scenarios[0])["engine"].approver == ""
    assert rows(folder, "\n".join(lines))["seen"] == [1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('permissions = { main = { shell = "perhaps" } }', '"perhaps"'),
        ('permissions = { main = "ask" }', "a table"),
        ('permissions = { main = { "a*b" = "ask" } }', 'a tool\'s name may end in "*"'),
        ('approval_timeout = "0s"', "approval_timeout must be longer than 0s"),
        ("approves = 2", "approves must be a probability"),
    ],
)
def test_mistakes_are_told_with_their_place(folder: Path, line: str, words: str) -> None:
    key = line.partition(" ")[0]
    lines = [one for one in TEXT.split("\n") if not one.startswith(f"{key} ")]
    (problem,) = told(folder, "\n".join(lines).replace("latency", f"{line}\nlatency", 1))
    assert words in problem


def test_an_agent_sees_that_its_run_waits(folder: Path) -> None:
    plan = load(folder, TEXT)
    trace = Trace()
    CellRun(plan.scenarios[0], 1, "", plan.folder).simulator.run(1, trace)
    seen = [body.awaiting_approval for body in trace.bodies(GraphRun)]
    assert any(isinstance(one, int) and one > 0 for one in seen)
    assert not isinstance(seen[-1], int), "it has ended"


def test_a_log_of_runs_that_outlived_their_engine_can_be_replayed(folder: Path) -> None:
    fault = f'{KILL}"engine"\n'
    (folder / "x.toml").write_text(
        f'schema = 1\nname = "x"\n[run]\nreplications = 5\n{TEXT}{fault}'
    )
    done = command(folder, "run", "x.toml", "--out", "o", "--logs", "all")
    assert done.code == 0
    text = b"".join(b"\n".join(records(log)) for log in (folder / "o" / "logs").iterdir())
    assert text.count(b'"fleet.resumed"') >= 5
    done = command(folder, "replay", "o/logs")
    assert (done.code, done.out[:9]) == (0, "the same:"), done


def test_a_process_that_is_killed_goes_on_from_its_disk(folder: Path) -> None:
    """The engine is a process of its own and gets SIGKILL while a call waits."""
    lines = [line for line in TEXT.split("\n") if not line.startswith(("approv", "tool_c", "perm"))]
    text = "\n".join(lines).replace(
        "latency",
        'tool_calls = 1\napproval_delay = "10m"\napproval_timeout = "2h"\n'
        'permissions = { "*" = { shell = "ask" } }\nlatency',
        1,
    )
    kill = '[[fault]]\nkind = "kill"\nactor = "engine"\non = "approval.waiting"\ndown = "10s"\n'
    (folder / "graphs" / "main.js").write_text(PART)
    (folder / "x.toml").write_text(f'schema = 1\nname = "x"\n{text}{kill}')
    flags = ("--transport", "tcp", "--processes", "separate", "--speed", "200", "--logs", "all")
    done = command(folder, "run", "x.toml", "--out", "o", *flags)
    assert done.code == 0, done
    said = b"".join(b"\n".join(records(log)) for log in (folder / "o" / "logs").iterdir())
    assert said.count(b'"fleet.resumed"') == 1
    assert said.count(b'"type":"ToolAsk"') == 2, "sent once, and received"
    assert b'"status":"completed"' in said


KILL = '[[fault]]\nkind = "kill"\nat = "30s"\nevery = "45s"\ndown = "10s"\nactor = '
FAULTS: dict[str, tuple[str, set[str]]] = {
    "the engine dies": (f'{KILL}"engine"\n', {"interrupted", "completed"}),
    "the engine's disk is full": (
        '[[fault]]\nkind = "disk_full"\nactor = "engine"\nat = "15s"\nfor = "2m"\n',
        {"interrupted", "completed"},
    ),
    "the engine's writes fail": (
        '[[fault]]\nkind = "failed_write"\nactor = "engine"\nevery = 4\n',
        {"interrupted", "completed"},
    ),
    "the tools die": (f'{KILL}"tools"\n', {"completed"}),
    "the owner dies": (f'{KILL}"approver"\n', {"completed"}),
    "words are lost": (
        "".join(
            f'[[fault]]\nkind = "drop"\nmessage = "{message}"\nprobability = 0.3\n'
            for message in ("Decide", "Decided", "Approvals", "ToolAsk", "ToolAnswer")
        ),
        {"completed"},
    ),
    "words come twice": (
        "".join(
            f'[[fault]]\nkind = "duplicate"\nmessage = "{message}"\nprobability = 0.5\n'
            for message in ("Decide", "ToolAnswer", "FleetStarted")
        ),
        {"completed"},
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_whatever_happens_every_run_ends_and_every_check_holds(folder: Path, what: str) -> None:
    faults, statuses = FAULTS[what]
    head = 'schema = 1\nname = "x"\n[run]\nreplications = 6\ncheck = "all"\n'
    (folder / "x.toml").write_text(head + TEXT + faults)
    plan = load(folder, TEXT + faults)
    ends: list[dict[str, Any]] = []
    for replication in range(6):
        trace = Trace()
        CellRun(plan.scenarios[0], 1, "", plan.folder).simulator.run(replication, trace)
        ends += trace.events("run.terminal")
        made = [(one["run"], one["call"]) for one in trace.events("tool.started")]
        assert len(made) == len(set(made))
    assert {one["status"] for one in ends} <= statuses
    assert "completed" in {one["status"] for one in ends}
    results = run(folder / "x.toml")
    assert results.scenarios[0].found == []
    assert results.scenarios[0].cells[0].samples["seen"].values.tolist() == [1] * 6
