"""The command that shows a result again does so."""

import shlex
from pathlib import Path

import pytest

from scenarios.load import load_plan
from scenarios.overrides import Override
from scenarios.reproduce import again, command, flags_of
from scenarios.run import load_plans
from scenarios.runner import Options, Runner
from scenarios.shipped import HERE
from tests.scenarios.commandline import plan_of, write
from tests.scenarios.conftest import Call


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (Override("run.seed", 7), ["--seed", "7"]),
        (Override("run.replications", 9), ["--seed", "1", "-n", "9"]),
        (Override("agent.poll", "every 2s"), ["--seed", "1", "--set", "agent.poll=every 2s"]),
        (Override("engine.result", "5"), ["--seed", "1", "--set", 'engine.result="5"']),
        (Override("relay.presence", True), ["--seed", "1", "--set", "relay.presence=true"]),
    ],
)
def test_flags_are_repeated(tmp_path: Path, override: Override, words: list[str]) -> None:
    plan = plan_of(tmp_path)
    plan.overrides = {override.key: override.value}
    if override.key == "run.seed":
        plan = load_plan(tmp_path / "small.toml", (override,))
    assert list(flags_of(plan)) == words


def test_words_are_quoted_for_a_shell() -> None:
    line = command("my files/a.toml", ("--set", "a=b c"), "agent.poll=every 2s", 3)
    assert shlex.split(line) == [
        "pullcord", "run", "my files/a.toml", "--set", "a=b c", "--cell", "agent.poll=every 2s",
        "--replication", "3", "--logs", "all",
    ]  # fmt: skip


def test_a_shipped_file_is_named_as_it_was_and_two_cells_are_none() -> None:
    plan = load_plan(HERE / "published" / "fan_out.toml")
    assert again(plan) == "pullcord run @published/fan_out --seed 1"
    assert again(plan, "workload.runs=3") == (
        "pullcord run @published/fan_out --seed 1 --cell workload.runs=3"
    )
    assert "--cell" not in again(plan, "workload.runs=3 : workload.runs=5")


def test_the_command_gives_the_same_rows(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    options = Options(
        jobs=1, seed=4, overrides=(Override("agent.runs", 3), Override("relay.jitter", "window"))
    )
    (plan,) = load_plans(["small.toml"], options)
    cell = Runner([plan], options, None).run().scenarios[0].cells[1]
    rows = list(dict(cell.rows("wait"))[5])
    line = shlex.split(again(plan, cell.cell.label, 5))
    done = call(*line[1:], "--out", "out", "--format", "json", "--no-progress")
    assert done.code == 0
    assert (tmp_path / "out" / "logs" / "small-2-relay.poll=20s.jsonl").is_file()
    assert f'"max": {max(rows)}' in done.out
    assert f'"sum": {sum(rows)}' in done.out
