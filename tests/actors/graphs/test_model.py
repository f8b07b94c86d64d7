"""What every model does alike: it answers in its time, and stops when it is told to."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Context, Place
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel
from actors.graphs.model import Model, ModelConfig, Planned
from tests.actors.graphs.graph_world import config_of
from tests.actors.harness import Bench, S, Sent, body_of


class Slow(Model):
    """Takes ten seconds and a hundred tokens."""

    def plan(self, context: Context, ask: AgentAsk) -> Planned:
        answer = AgentAnswer(
            run=ask.run, agent=ask.agent, outcome="ok", value=ask.prompt, tokens=100, cost=2.0
        )
        return Planned(answer, 10 * S)


def ask(agent: int = 1, **fields: Any) -> AgentAsk:
    given: dict[str, Any] = {"run": "r", "agent": agent, "prompt": "p", "timeout_us": 60 * S}
    return AgentAsk(**given | fields)


def bench() -> Bench:
    return Bench(Slow(ModelConfig(), Place(name="model")), "model")


def cancel(model: Bench, agent: int = 1) -> list[Sent]:
    return model.deliver("engine", AgentCancel(run="r", agent=agent))


def test_it_answers_the_question_after_its_time() -> None:
    model = bench()
    assert model.deliver("engine", ask()) == []
    assert model.context.timers == {"r:1": 10 * S}
    question = model.asked
    (sent,) = model.fire("r:1")
    assert (sent.target, sent.reply_to) == ("engine", question)
    assert (sent.body.outcome, sent.body.value, sent.body.tokens) == ("ok", "p", 100)


def test_a_stopped_agent_used_its_share_and_is_told_of_twice() -> None:
    model = bench()
    model.deliver("engine", ask())
    question = model.asked
    model.context.now_us = 4 * S
    first, second = cancel(model)
    assert (first.reply_to, second.reply_to) == (question, model.asked)
    assert (
        first.body
        == second.body
        == AgentAnswer(run="r", agent=1, outcome="cancelled", tokens=40, cost=0.8)
    )
    assert model.context.timers == {}


def test_what_it_does_not_know_used_nothing() -> None:
    model = bench()
    answer = body_of(cancel(model), AgentAnswer)
    assert (answer.outcome, answer.tokens) == ("cancelled", 0)
    model.deliver("engine", ask())
    model.fire("r:1")
    assert body_of(cancel(model), AgentAnswer).tokens == 0


def test_agents_of_different_runs_do_not_mix() -> None:
    model = bench()
    model.deliver("engine", ask())
    model.deliver("engine", ask(run="s"))
    cancel(model)
    assert model.context.timers == {"s:1": 10 * S}


def test_a_model_that_was_restarted_has_forgotten() -> None:
    model = bench()
    model.deliver("engine", ask())
    model.start()
    assert body_of(cancel(model), AgentAnswer).tokens == 0


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"failure": 1.5}, "failure must be a probability"),
        ({"malformed": "uniform(-1, 1)"}, "malformed must be a probability"),
        ({"model": "scripted"}, "go together"),
        ({"answers": "a.jsonl"}, "go together"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config_of(**keys)
