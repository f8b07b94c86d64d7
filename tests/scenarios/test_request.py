"""What a user asks for, checked."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.flags import CellFlags, RunFlags
from scenarios.overrides import Override
from scenarios.problems import ScenarioError
from scenarios.request import options_of, refuse_with_resume


def refused(targets: list[str] | None, **flags: Any) -> dict[str, str]:
    with pytest.raises(ScenarioError) as error:
        options_of(targets, RunFlags(**flags))
    return {problem.path: problem.message for problem in error.value.problems}


def test_flags_become_options() -> None:
    options = options_of(["a"], CellFlags(set=["relay.poll=5s", "agent.runs=3"], seed=3, jobs=2))
    assert options.overrides == (Override("relay.poll", "5s"), Override("agent.runs", 3))
    assert (options.seed, options.jobs) == (3, 2)
    assert options_of(["a"], CellFlags()).jobs == 0
    assert options_of(None, RunFlags(resume=Path("out"))).patience_s == 10.0


def test_every_mistake_is_told_at_once() -> None:
    found = refused(
        None, replications=0, replication=-1, seed=-2, jobs=0, set=["poll", "=3"], cell="a",
        contains="b",
    )  # fmt: skip
    assert found == {
        "--replications": "must be at least 1, not 0",
        "--replication": "must be at least 0, not -1",
        "--seed": "must be at least 0, not -2",
        "--jobs": "must be at least 1, not 0",
        "pullcord run": "which scenario?",
        "--cell": "names one cell, so -k can't choose others",
        "--set": '"poll" sets nothing: write --set relay.poll=5s',
    }


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10.0), ("500ms", 0.5), ("2m", 120.0)])
def test_patience_is_a_duration(text: str, seconds: float) -> None:
    assert options_of(["a"], RunFlags(patience=text)).patience_s == seconds


@pytest.mark.parametrize(("text", "words"), [("10", "has no unit"), ("0s", "must be above 0s")])
def test_patience_that_is_none(text: str, words: str) -> None:
    assert words in refused(["a"], patience=text)["--patience"]


def test_a_transport_brings_its_driver() -> None:
    assert options_of(["a"], RunFlags()).driver == "sim"
    options = options_of(["a"], RunFlags(transport="tcp", speed=5.0))
    assert (options.driver, options.transport, options.speed) == ("trio", "tcp", 5.0)
    assert options_of(["a"], RunFlags(driver="trio")).transport == "memory"
    assert "no sockets" in refused(["a"], driver="sim", transport="tcp")["--driver"]
    assert refused(["a"], speed=0.0) == {"--speed": "must be above 0, not 0"}


def test_a_resumed_run_has_its_flags_already() -> None:
    refuse_with_resume([])
    with pytest.raises(ScenarioError, match="so --seed and -k can't be given"):
        refuse_with_resume(["--seed", "-k"])


def test_separate_processes_are_an_option() -> None:
    options = options_of(["a"], RunFlags(transport="unix", processes="separate"))
    assert (options.driver, options.processes) == ("trio", "separate")
    assert options_of(["a"], RunFlags()).processes == "one"
