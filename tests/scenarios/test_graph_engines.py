"""Graphs in scenario files: their files, their models, what can be wrong, and whole runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.actor import Commit
from actors.errors import SimulationError
from actors.graph_engine import GraphEngine
from actors.graphs.scripted import ScriptedModel
from actors.graphs.synthetic import SyntheticModel
from actors.host import HostContext
from actors.messages import FleetFinished
from actors.world import TrioWorld
from scenarios import contract, graph_engines
from scenarios.build import CellRun, places_of
from scenarios.graph_engines import name_for
from scenarios.run import run
from scenarios.work import check_determinism, trouble_of
from tests.actors.harness import Trace
from tests.scenarios.commandline import command, records
from tests.scenarios.loading import load, rows, told

pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")

GRAPH = """
const found = await parallel([1, 2, 3].map(n => () => agent(`number ${n}`)));
return { found: found.length, more: await graph("part", { word: "x" }) };
"""
PART = "return await agent(args.word)"
ENGINE = """[engine]
use = "graph"
graph = "graphs/main.js"
"""
TEXT = (
    ENGINE
    + """latency = "uniform(1s, 9s)"
tokens = "uniform(10, 90)"
[agent]
poll = "every 10s"
[[session]]
name = "demo"
[metrics.tokens]
value = "run.terminal.tokens"
[metrics.agents]
count = "agent.finished[status=completed]"
[metrics.ended]
count = "run.terminal[status=completed]"
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "main.js").write_text(GRAPH)
    (tmp_path / "graphs" / "part.js").write_text(PART)
    return tmp_path


def test_a_run_of_a_graph_goes_all_the_way(folder: Path) -> None:
    found = rows(folder, TEXT)
    assert (found["agents"], found["ended"]) == ([4], [1])
    assert 40 <= found["tokens"][0] <= 360


def test_each_engine_has_a_model_that_the_file_knows_by_name(folder: Path) -> None:
    text = TEXT.replace("[agent]", '[relay]\ncount = 2\n[agent]\nlatency = "1s"\n', 1)
    text = text.replace('[agent]\nlatency = "1s"\n', "[agent]\n")
    plan = load(folder, text + '[[link]]\nfrom = "model-2"\nlatency = "1s"\n')
    names = [one.name for one in plan.scenarios[0].cast]
    assert names[-2:] == ["model-1", "model-2"]
    places = places_of(plan.scenarios[0])
    assert [places[f"engine-{n}"].model for n in (1, 2)] == ["model-1", "model-2"]
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    assert isinstance(cell.simulator.contexts["model-2"].actor, SyntheticModel)
    assert isinstance(cell.simulator.contexts["engine-2"].actor, GraphEngine)


@pytest.mark.parametrize(
    ("engine", "model"),
    [("engine", "model"), ("engine-3", "model-3"), ("mine", "mine-model")],
)
def test_a_model_is_called_by_its_engine(engine: str, model: str) -> None:
    assert name_for(engine, "model") == model


def test_in_a_folder_each_session_has_its_own_graph(folder: Path) -> None:
    text = TEXT.replace("graphs/main.js", "graphs").replace('name = "demo"', 'name = "Part"')
    text = text.replace("[agent]\n", '[agent]\narguments = { word = "hello" }\n')
    assert rows(folder, text)["agents"] == [1]
    text += '[[session]]\nname = "Main"\n'
    assert rows(folder, text.replace("[agent]\n", "[agent]\nruns = 2\n"))["agents"] == [1, 4]
    assert told(folder, text + '[[session]]\nname = "Mian"\n') == [
        '3 "graphs": session "Mian" has no Graph: there is no mian.js / did you mean "main.js"?'
    ]


def test_one_desktop_may_run_graphs_and_another_not(folder: Path) -> None:
    text = """
[[relay]]
name = "old"
[[relay]]
name = "new"
[[engine]]
name = "plain"
[[engine]]
name = "modern"
use = "graph"
graph = "graphs"
[agent]
runs = 2
[[session]]
name = "anything"
relay = "old"
[[session]]
name = "part"
relay = "new"
[metrics.agents]
count = "agent.finished"
"""
    assert [one.name for one in load(folder, text).scenarios[0].cast][-1] == "modern-model"
    (folder / "graphs" / "part.js").write_text("return await agent('x')")
    assert sorted(rows(folder, text)["agents"]) == [0, 1]


def test_a_session_that_was_renamed_has_no_graph(folder: Path) -> None:
    text = TEXT.replace("graphs/main.js", "graphs").replace('name = "demo"', 'name = "part"')
    cell = CellRun(load(folder, text).scenarios[0], 1, "", folder)
    cell.simulator.contexts["engine"].actor.library.pop("part")  # type: ignore[attr-defined]  # it is a GraphEngine
    trace = Trace()
    cell.simulator.run(0, trace)
    (end,) = trace.bodies(FleetFinished)
    assert end.completion.status == "failed"
    assert end.completion.error == "there is no Graph 'part': there is main"


def test_a_scenario_without_graphs_has_no_model(tmp_path: Path) -> None:
    plan = load(tmp_path, '[[session]]\nname = "demo"\n')
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    assert "model" not in cell.simulator.contexts
    assert cell.simulator.vm is None


def test_the_digest_changes_with_the_graph_and_what_it_may_call(folder: Path) -> None:
    first = load(folder, TEXT).digest
    assert load(folder, TEXT).digest == first
    (folder / "graphs" / "part.js").write_text(PART + " ")
    assert load(folder, TEXT).digest != first
    (folder / "graphs" / "part.js").write_text(PART)
    assert load(folder, TEXT).digest == first
    (folder / "graphs" / "new.js").write_text("")
    assert load(folder, TEXT).digest != first


# Mistakes


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            'graph = "graphs/mian.js"',
            '5 "graphs/mian.js": there is no file "graphs/mian.js" / did you mean "main.js"?',
        ),
        (
            'graph = "graphs/main.ts"',
            '5 "graphs/main.ts": "graphs/main.ts" is no Graph / a Graph\'s name ends in ".js"',
        ),
        (
            'graph = "graphs/bad.js"',
            '5 "graphs/bad.js": bad.js is no text in UTF-8',
        ),
    ],
)
def test_a_file_that_can_not_be_used_is_told_at_its_key(
    folder: Path, line: str, problem: str
) -> None:
    if "bad" in line:
        (folder / "graphs" / "bad.js").write_bytes(b"\xff")
    text = "\n\n" + TEXT.replace('graph = "graphs/main.js"', line)
    assert problem in told(folder, text)
    assert len(set(told(folder, text))) == 1


def test_a_meta_that_can_not_be_read_is_told_with_its_place(folder: Path) -> None:
    (folder / "graphs" / "main.js").write_text("// x\nexport const meta = { name: 1 + 1 };")
    (problem,) = told(folder, TEXT)
    assert problem.startswith('3 "graphs/main.js": main.js, line 2, column ')


def test_a_graph_that_can_not_be_compiled_is_told_with_its_place(folder: Path) -> None:
    (folder / "graphs" / "main.js").write_text("const a = 1;\n  const a = 2;\n")
    (problem,) = told(folder, TEXT)
    assert problem == (
        '3 "graphs/main.js": main.js, line 2, column 11: '
        "SyntaxError: invalid redefinition of lexical identifier"
    )


def test_a_called_graph_that_can_not_be_compiled_is_told_by_its_file(folder: Path) -> None:
    (folder / "graphs" / "part.js").write_text("return 1;\nreturn 2 +;\n")
    (problem,) = told(folder, TEXT)
    assert problem.startswith('3 "graphs/main.js": part.js, line 2, column ')
    assert "SyntaxError" in problem
    (folder / "graphs" / "main.js").write_text("return 1")
    assert told(folder, TEXT) == []


def test_a_graph_that_is_too_large_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_engines, "FILE_LIMIT_BYTES", 100)
    assert told(folder, TEXT) == ['3 "graphs/main.js": main.js is larger than 100 bytes']
    monkeypatch.setattr(graph_engines, "LIBRARY_LIMIT", 1)
    assert told(folder, TEXT) == [
        f'3 "graphs/main.js": {folder / "graphs"} has 2 Graphs / give the Graph a folder of its own'
    ]


def test_the_graph_must_be_named(folder: Path) -> None:
    (problem,) = told(folder, '[engine]\nuse = "graph"\n[[session]]\nname = "demo"\n')
    assert problem.endswith('[engine] needs the key "graph" / it takes a text, as in "demo"')


def test_without_a_javascript_engine_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_engines, "ENGINE_MODULE", "no_such_engine")
    assert told(folder, TEXT) == [
        "2 \"graph\": a Graph needs a JavaScript engine / pip install 'pullcord[graphs]'"
    ]


def test_a_users_mistake_is_exit_2_on_the_command_line(folder: Path) -> None:
    text = 'schema = 1\nname = "x"\n' + TEXT.replace("main.js", "nothing.js")
    (folder / "x.toml").write_text(text)
    done = command(folder, "run", "x.toml")
    assert done.code == 2
    assert 'there is no file "graphs/nothing.js"' in done.err
    assert "Traceback" not in done.err


# Recorded answers

RECORDED = ENGINE + 'model = "scripted"\nanswers = "answers.jsonl"\n[[session]]\nname = "demo"\n'
ANSWERS = "\n".join(
    json.dumps({"prompt": prompt, "value": prompt.upper(), "tokens": 5, "latency": "2s"})
    for prompt in ("number 1", "number 2", "number 3", "x")
)


def test_recorded_answers_are_given_and_count_for_the_digest(folder: Path) -> None:
    (folder / "answers.jsonl").write_text(ANSWERS)
    plan = load(folder, RECORDED)
    digest = plan.digest
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    assert isinstance(cell.simulator.contexts["model"].actor, ScriptedModel)
    text = RECORDED + '[metrics.tokens]\nvalue = "run.terminal.tokens"\n'
    assert rows(folder, text) == {"tokens": [20]}
    (folder / "answers.jsonl").write_text(ANSWERS + "\n")
    assert load(folder, RECORDED).digest != digest


def test_a_mistake_in_recorded_answers_has_its_line(folder: Path) -> None:
    assert told(folder, RECORDED)[0].startswith(
        '5 "answers.jsonl": there is no file "answers.jsonl" / it is looked for in'
    )
    (folder / "answers.jsonl").write_text(ANSWERS + "\n{}")
    assert told(folder, RECORDED) == [
        '5 "answers.jsonl": answers.jsonl, line 5: an answer has either "prompt" or "hash"'
    ]


# A model and an engine of one's own

MODEL = """
from pullcord import AgentAnswer, Model, Planned
class Mine(Model):
    def plan(self, context, ask):
        tokens = int(100 * context.random("tokens").random())
        answer = AgentAnswer(run=ask.run, agent=ask.agent, outcome="ok", tokens=tokens)
        return Planned(answer, 1000)
"""
MINE = TEXT.replace('use = "graph"', 'use = "graph"\nmodel = "mine.py:Mine"')


def test_a_model_of_ones_own_answers(folder: Path) -> None:
    (folder / "mine.py").write_text(MODEL)
    plan = load(folder, MINE)
    digest = plan.digest
    assert plan.foreign == ("mine.py:Mine",)
    found = rows(folder, MINE)
    assert found["ended"] == [1]
    assert 0 < found["tokens"][0] < 400
    check_determinism(CellRun(plan.scenarios[0], 1, "", plan.folder), 0)
    (folder / "mine.py").write_text(MODEL + "\n")
    assert load(folder, MINE).digest != digest


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "mine.py has no class Mine"),
        ("class Mine: pass", "Mine has no method on_start"),
        ("from pullcord import Model\nclass Mine(Model): pass", "Mine is abstract: it lacks plan"),
        ("from pullcord import Relay as Mine", "Mine plays relay, not model"),
        ("1 / 0", "mine.py can't be imported: ZeroDivisionError: division by zero (line 1)"),
    ],
)
def test_a_model_that_can_not_be_used_is_told_at_its_key(
    folder: Path, source: str, problem: str
) -> None:
    (folder / "mine.py").write_text(source)
    (found,) = told(folder, MINE)
    assert found.startswith(f'3 "mine.py:Mine": {problem}')


def test_another_word_is_no_model(folder: Path) -> None:
    (found,) = told(folder, TEXT.replace('use = "graph"', 'use = "graph"\nmodel = "syntetic"'))
    assert 'model must be "synthetic", "scripted", or "my_model.py:MyModel"' in found


def test_an_engine_of_ones_own_may_build_on_it(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import msgspec\n"
        "from pullcord import GraphEngine\n"
        "class Mine(GraphEngine):\n"
        "    def launch(self, context, execution, run):\n"
        "        run = msgspec.structs.replace(run, arguments={'word': 'mine'})\n"
        "        super().launch(context, execution, run)\n"
    )
    (folder / "graphs" / "main.js").write_text("return [args.word, await agent('x')]")
    text = TEXT.replace('use = "graph"', 'use = "mine.py:Mine"')
    cell = CellRun((plan := load(folder, text)).scenarios[0], 1, "", plan.folder)
    trace = Trace()
    cell.simulator.run(0, trace)
    assert plan.foreign == ("mine.py:Mine",)
    assert [one["agents"] for one in trace.events("fleet.finished")] == [1]
    check_determinism(cell, 0)


@pytest.mark.parametrize("keys", [{}, {"failure": 0.3, "token_ceiling": 300, "max_concurrency": 1}])
def test_it_bears_a_crash_at_any_turn_and_lost_messages(folder: Path, keys: dict[str, Any]) -> None:
    """The worlds in which `check_actor` tries an engine: each run ends, and starts once."""
    (folder / "mine.py").write_text(
        "from pullcord import GraphEngine\nclass Mine(GraphEngine):\n    pass\n"
    )
    config = {"graph": "graphs/main.js", "tokens": 100, **keys}
    scenario = contract._scenario("mine.py:Mine", "engine", config, folder, {})
    for verdict in (Commit.CRASHED, Commit.FAILED):
        contract._check_turns(scenario, folder, "engine", verdict)
    more = {"fault": contract._faults("engine")}
    lossy = contract._scenario("mine.py:Mine", "engine", config, folder, more)
    for replication in range(5):
        contract._World(lossy, folder, "engine").run(replication, "with lost messages")


# Whole runs


def test_one_log_for_any_number_of_jobs_and_any_hash_seed(folder: Path) -> None:
    head = 'schema = 1\nname = "x"\n[run]\nreplications = 6\n'
    (folder / "x.toml").write_text(head + TEXT + '[sweep.product]\n"relay.poll" = ["5s", "9s"]\n')
    logs = []
    for jobs, seed in (("1", "0"), ("2", "4711")):
        done = command(
            folder, "run", "x.toml", "-j", jobs, "--out", jobs, "--logs", "all",
            env={"PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert (done.code, done.err) == (0, "")
        logs.append([records(path) for path in sorted((folder / jobs / "logs").iterdir())])
    assert logs[0] == logs[1]
    assert sum(b"agent.finished" in line for log in logs[0] for line in log) == 2 * 6 * 4


def test_its_log_can_be_replayed(folder: Path) -> None:
    (folder / "x.toml").write_text('schema = 1\nname = "x"\n' + TEXT)
    assert command(folder, "run", "x.toml", "--out", "o", "--logs", "all").code == 0
    done = command(folder, "replay", "o/logs")
    assert (done.code, done.out[:9]) == (0, "the same:"), done
    (folder / "graphs" / "part.js").write_text("return await agent('another word')")
    done = command(folder, "replay", "o/logs")
    assert done.code == 4
    assert '"x" → "another word"' in done.out


def test_the_trio_host_has_the_same_outcome(folder: Path) -> None:
    plan = load(folder, TEXT)
    found: list[list[Any]] = []
    for world in (None, TrioWorld):
        cell = CellRun(plan.scenarios[0], 1, "", plan.folder, world=world)
        found.append([])
        for replication in range(3):
            cell.simulator.run(replication)
            values = {name: metric.rows() for name, metric in cell.metrics.items()}
            found[-1].append((values, cell.simulator.now_us))
    assert found[0] == found[1]
    on_trio = CellRun(plan.scenarios[0], 1, "", plan.folder, world=TrioWorld).simulator
    context = on_trio.contexts["engine"]
    assert isinstance(context, HostContext)
    assert context.blocking  # so that on a real clock a script holds nobody else up


def test_it_runs_over_sockets_in_processes_and_threads(folder: Path) -> None:
    """On a real clock the engine's turns are taken in a worker thread, its scripts in a child."""
    (folder / "x.toml").write_text(f'schema = 1\nname = "x"\n{TEXT}')
    results = run(folder / "x.toml", driver="trio", transport="tcp", speed=300)
    samples = results.scenarios[0].cells[0].samples
    assert (samples["agents"].values.tolist(), samples["ended"].values.tolist()) == ([4], [1])


def test_what_goes_wrong_in_a_built_in_engine_is_no_users_fault(folder: Path) -> None:
    plan = load(folder, TEXT)
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    assert plan.foreign == ()
    assert not trouble_of(SimulationError("it did not end"), 0, cell).foreign


def test_the_codec_changes_nothing(folder: Path) -> None:
    plan = load(folder, TEXT)
    check_determinism(CellRun(plan.scenarios[0], 1, "", plan.folder), 0)


KILL = '[[fault]]\nkind = "kill"\non = "engine.started"\n'
LATE = 'kind = "delay"\nprobability = 0.5\ndelay = "uniform(0s, 99s)"\n'
FAULTS: dict[str, tuple[str, set[str]]] = {
    "the engine dies": (
        KILL + 'actor = "engine"\nat = "3s"\nfor = "1m"\n',
        {"interrupted", "completed"},
    ),
    "the model dies": (
        KILL + 'actor = "model"\nat = "500ms"\nfor = "1s"\n',
        {"failed", "completed"},
    ),
    "questions are lost": (
        '[[fault]]\nkind = "drop"\nmessage = "AgentAsk"\nprobability = 0.3\n',
        {"completed", "failed"},
    ),
    "answers come twice": (
        '[[fault]]\nkind = "duplicate"\nfrom = "model"\nprobability = 0.5\n',
        {"completed"},
    ),
    "answers come late": ('[[fault]]\nfrom = "model"\n' + LATE, {"completed"}),
    "cancel": ("", {"cancelled", "completed"}),
}


@pytest.mark.parametrize("what", FAULTS)
def test_whatever_happens_every_run_ends_and_every_check_holds(folder: Path, what: str) -> None:
    faults, statuses = FAULTS[what]
    text = TEXT.replace("[agent]\n", '[agent]\nruns = 3\nevery = "10s"\n')
    if what == "cancel":
        text = text.replace("[agent]\n", '[agent]\ncancel = "uniform(1s, 60s)"\n')
    text += '[metrics.seen]\ncount = "run.terminal"\n'
    (folder / "x.toml").write_text(
        f'schema = 1\nname = "x"\n[run]\nreplications = 4\ncheck = "all"\n{text}{faults}'
    )
    trace: list[Any] = []
    plan = load(folder, text + faults)
    for replication in range(4):
        cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
        recorder = Trace()
        cell.simulator.run(replication, recorder)
        trace += recorder.events("run.terminal")
    assert {one["status"] for one in trace} <= statuses
    assert statuses - {"completed"} <= {one["status"] for one in trace}
    results = run(folder / "x.toml")
    assert results.scenarios[0].found == []
    assert results.scenarios[0].cells[0].samples["seen"].values.tolist() == [1] * 12
