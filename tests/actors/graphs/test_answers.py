"""What a run makes of its agents' answers: schemas, one repair, failures, bounds."""

from __future__ import annotations

from typing import Any

from actors.actor import Place
from actors.graph_engine import GraphEngine
from actors.graphs.messages import AgentAnswer, AgentAsk
from actors.messages import CHANNEL, FleetFinished, FleetRun, FleetStarted
from tests.actors.graphs.fake_vm import Api, FakeVmPort, RejectedError
from tests.actors.graphs.graph_world import config_of, play
from tests.actors.graphs.models import Fixed
from tests.actors.graphs.test_fleet import one
from tests.actors.harness import Bench, S, body_of, only

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def asks_for_a_number(api: Api, _: Any) -> Any:
    try:
        return await api.agent("how many?", schema=SCHEMA)
    except RejectedError as error:
        return [error.code, str(error), error.failure.info]


def test_an_answer_that_does_not_fit_is_repaired_once() -> None:
    model = Fixed(lambda ask: (1, {"value": {"n": 5} if ask.problem else "five"}))
    world = play(asks_for_a_number, model=model)
    assert world.end.result == {"n": 5}
    assert [ask.problem for ask in model.asks] == [None, '"five" is not of type "object"']
    assert world.end.total_tokens == 200
    assert world.ended_s == 2
    assert len(world.events("agent.started")) == len(world.events("agent.finished")) == 1
    assert world.events("agent.finished")[0]["tokens"] == 200


def test_an_answer_that_does_not_fit_twice_fails_with_what_is_wrong() -> None:
    model = Fixed(lambda _: (1, {"value": {"n": "five"}}))
    world = play(asks_for_a_number, model=model)
    code, message, info = world.end.result
    assert code == "agent_failed"
    assert message == ('the answer does not fit: [\'n\']: "five" is not of type "integer"')
    assert info == {"retryable": True}
    assert len(model.asks) == 2


def test_an_answer_as_json_text_is_read() -> None:
    model = Fixed(lambda _: (1, {"value": ' {"n": 7}\n'}))
    assert play(asks_for_a_number, model=model).end.result == {"n": 7}


def test_no_repair_beyond_the_ceiling_or_the_agents_time() -> None:
    wrong = Fixed(lambda _: (1, {"value": "five"}))
    world = play(asks_for_a_number, model=wrong, token_ceiling=100)
    assert world.end.total_tokens == 100
    assert len(wrong.asks) == 1
    slow = Fixed(lambda _: (7, {"value": "five"}))
    world = play(asks_for_a_number, model=slow, agent_timeout="10s")
    assert world.end.result[0] == "agent_timeout"
    assert world.ended_s == 10
    assert [ask.timeout_us for ask in slow.asks] == [10 * S, 3 * S]
    assert world.end.total_tokens == 100 + 43  # three of seven seconds


def test_a_schema_that_is_none_fails_and_is_not_repaired() -> None:
    async def main(api: Api, _: Any) -> Any:
        try:
            await api.agent("x", schema={"type": "wonder"})
        except RejectedError as error:
            return [error.code, error.failure.info["retryable"], str(error)[:26]]

    world = play(main)
    assert world.end.result == ["agent_failed", False, "the schema can't be used: "]


def test_a_failed_agent_counts_too() -> None:
    async def main(api: Api, _: Any) -> Any:
        try:
            await api.agent("x")
        except RejectedError as error:
            return [error.code, str(error), error.failure.info]

    world = play(
        main,
        model=Fixed(
            lambda _: (
                2,
                {"outcome": "failed", "error": "overloaded", "cost": 0.25, "retryable": False},
            )
        ),
    )
    assert world.end.result == ["agent_failed", "overloaded", {"retryable": False}]
    assert (world.end.total_tokens, world.end.reported_cost) == (100, 0.25)
    assert world.statuses() == ["failed"]


def test_no_model_earns_anything() -> None:
    for cost in (-5.0, float("inf"), float("nan")):
        world = play(one, model=Fixed(lambda _, cost=cost: (1, {"value": 1, "cost": cost})))
        assert world.end.reported_cost == 0


def test_a_prompt_that_fits_into_no_message_is_refused() -> None:
    async def main(api: Api, _: Any) -> Any:
        found = await api.settled(
            [
                api.agent("あ" * 100_001),
                api.agent("x", schema={"description": "y" * 200_000}),
                api.agent("lone \ud800 surrogate"),
            ]
        )
        return [one if isinstance(one, str) else str(one) for one in found]

    world = play(main)
    assert world.end.result == [
        "a prompt has at most 100,000 characters, and this one 100,001",
        "an agent's options have at most 200,000 bytes, and these 200,029",
        "answer to: lone \ufffd surrogate",
    ]


def test_a_model_may_say_what_is_no_text_and_too_deep() -> None:
    async def main(api: Api, _: Any) -> Any:
        found = await api.settled([api.agent("lone \ud800"), api.agent("deep")])
        return [one if isinstance(one, str) else [one.code, str(one)] for one in found]

    deep: Any = "x"
    for _level in range(70):
        deep = [deep]
    model = Fixed(lambda ask: (1, {"value": deep if ask.prompt == "deep" else "half \udc00"}))
    world = play(main, model=model)
    assert [ask.prompt for ask in model.asks] == ["lone \ufffd", "deep", "deep"]
    assert world.end.result == [
        "half \ufffd",
        ["agent_failed", "the answer does not fit: a result may be nested 64 levels deep"],
    ]


def test_an_answer_that_comes_when_the_time_is_up_is_not_repaired() -> None:
    port = FakeVmPort(main=asks_for_a_number)
    place = Place(name="engine", files=port.files)
    machine = Bench(GraphEngine(config_of(agent_timeout="10s"), place), "engine")
    machine.context.vm = port
    run = FleetRun(channel=CHANNEL + "r", session="s", slug="s", arguments={})
    turn = "turn:" + body_of(machine.deliver("relay", run), FleetStarted).execution_id
    question = only(machine.fire(turn), AgentAsk, "model")
    machine.context.now_us = 10 * S  # it was on its way, and nobody has said that it is late
    machine.answer(question, AgentAnswer(run="r", agent=1, outcome="ok", value="five"))
    report = body_of(machine.fire(turn), FleetFinished)
    assert report.completion.result[0] == "agent_failed"
