"""What a run makes of its agents' answers: schemas, one repair, failures, bounds."""

from __future__ import annotations

from typing import Any

from tests.actors.graphs.fake_vm import Api, RejectedError
from tests.actors.graphs.graph_world import play
from tests.actors.graphs.models import Fixed
from tests.actors.graphs.test_fleet import one
from tests.actors.harness import S

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
