"""The synthetic model: each part of an agent's end is drawn from its own stream."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Place
from actors.graphs.messages import AgentAnswer
from actors.graphs.schemas import problem_of
from actors.graphs.synthetic import SyntheticModel
from tests.actors.graphs.graph_world import config_of
from tests.actors.graphs.test_model import ask
from tests.actors.harness import Bench, S

LEVEL = {
    "type": "object",
    "properties": {"level": {"enum": ["low", "high"]}},
    "required": ["level"],
}


def answers(count: int, fields: dict[str, Any] | None = None, **keys: Any) -> list[AgentAnswer]:
    """The model's answers to so many agents, and what its timers were."""
    model = Bench(SyntheticModel(config_of(**keys), Place(name="model")), "model")
    found = []
    for agent in range(count):
        model.deliver("engine", ask(agent, **fields or {}))
        (sent,) = model.fire(f"r:{agent}")
        assert isinstance(sent.body, AgentAnswer)
        found.append(sent.body)
    return found


def test_constants_take_no_chance() -> None:
    model = Bench(SyntheticModel(config_of(), Place(name="model")), "model")
    model.deliver("engine", ask())
    assert model.context.timers == {"r:1": S}
    (sent,) = model.fire("r:1")
    assert (sent.body.tokens, sent.body.cost, sent.body.value) == (100, 0.5, "answer to: p")
    assert model.context.streams == {}


def test_tokens_are_never_more_than_was_allowed() -> None:
    assert [one.tokens for one in answers(2, {"max_tokens": 30})] == [30, 30]
    assert [one.tokens for one in answers(2, {"max_tokens": 300})] == [100, 100]


@pytest.mark.parametrize("rate", [0.1, 0.5, 1])
def test_agents_fail_as_often_as_they_should(rate: float) -> None:
    found = answers(400, failure=rate)
    failed = [one for one in found if one.outcome == "failed"]
    assert abs(len(failed) / 400 - rate) < 0.07
    assert {(one.error, one.retryable, one.tokens) for one in failed} == {
        ("the agent failed", True, 100)
    }


def test_answers_fit_their_schema_but_for_mistakes() -> None:
    found = answers(300, {"schema": LEVEL})
    assert {one.value["level"] for one in found} == {"low", "high"}
    wrong = [
        one
        for one in answers(400, {"schema": LEVEL}, malformed=0.25)
        if problem_of(LEVEL, one.value)
    ]
    assert 70 < len(wrong) < 130
    strings = answers(20, {"schema": {"type": "string"}}, malformed=1)
    assert all(problem_of({"type": "string"}, one.value) for one in strings)
    assert len(answers(20, {"schema": {}}, malformed=1)) == 20  # where everything fits


def test_failures_and_mistakes_leave_the_other_draws_alone() -> None:
    keys: dict[str, Any] = {
        "latency": "uniform(1s, 9s)",
        "tokens": "uniform(1, 1000)",
        "cost": "uniform(0, 1)",
    }
    plain = answers(50, **keys)
    failing = answers(50, failure=0.5, **keys)
    assert [(one.tokens, one.cost) for one in plain] == [(one.tokens, one.cost) for one in failing]


def test_a_schema_that_is_none_is_left_to_the_engine() -> None:
    (one,) = answers(1, {"schema": {"type": "wonder"}})
    assert (one.outcome, one.value) == ("ok", None)
