"""Who may start: slots, ceiling and reservations, looked at where the queue's head stands."""

from __future__ import annotations

import pytest

from actors.graphs.admission import Admission, Slots, misfit, needs_of
from actors.graphs.messages import AgentAnswer, Round
from actors.graphs.operations import Limits, Operation, Script
from actors.graphs.seam import AgentOptions, Request

SCRIPT = Script(1, "main", "", {}, None)


def admission(**limits: int | None) -> Admission:
    fields = {
        "max_concurrency": 2, "token_ceiling": None, "max_agents": 10, "agent_timeout_us": 1,
        "deadline_us": 0, "stop_us": 1, "tool_timeout_us": 1, "approval_timeout_us": 1,
    }  # fmt: skip
    return Admission(Limits(**(fields | limits)), Slots(9))  # type: ignore[arg-type]  # numbers or None


def queued(accounts: Admission, count: int, max_tokens: int | None = None) -> list[Operation]:
    options = AgentOptions(max_tokens=max_tokens)
    made = [
        Operation(number, SCRIPT, Request(id=number, op="agent", prompt="p", options=options))
        for number in range(count)
    ]
    accounts.queue.extend(made)
    return made


def used(tokens: int) -> AgentAnswer:
    return AgentAnswer(run="r", agent=0, outcome="failed", tokens=tokens, cost=0.1)


def test_a_slot_is_held_until_it_is_released() -> None:
    accounts = admission()
    first, second, third = queued(accounts, 3)
    assert [accounts.head(), accounts.head(), accounts.head()] == [
        (first, None), (second, None), None,
    ]  # fmt: skip
    accounts.release(first)
    assert accounts.head() == (third, None)
    assert accounts.agents == 3


def test_an_engines_slots_are_those_of_all_its_runs() -> None:
    slots = Slots(3)
    one, other = admission(), admission()
    one.slots = other.slots = slots
    first, _second = queued(one, 2)
    queued(other, 2)
    assert all((one.head(), one.head(), other.head()))
    assert other.head() is None
    assert (slots.free, one.starved, other.starved) == (0, False, True)
    one.release(first)
    assert other.head() is not None
    assert (slots.free, other.starved) == (0, False)


def test_a_refusal_needs_no_slot() -> None:
    accounts = admission(token_ceiling=5)
    accounts.slots.free = 0
    (operation,) = queued(accounts, 1, max_tokens=6)
    head = accounts.head()
    assert head is not None
    assert (head[0], head[1] is None) == (operation, False)


def test_what_was_dropped_is_passed_over() -> None:
    accounts = admission()
    first, second = queued(accounts, 2)
    first.state = "over"
    assert accounts.head() == (second, None)
    assert (accounts.agents, accounts.head()) == (1, None)


def test_the_ceiling_refuses_the_head_and_says_where_it_stands() -> None:
    accounts = admission(token_ceiling=100)
    first, second = queued(accounts, 2)
    accounts.head()
    accounts.count(first, used(100))
    accounts.release(first)
    head = accounts.head()
    assert head is not None
    assert head[0] is second
    assert head[1] is not None
    assert head[1].error is not None
    assert head[1].error.code == "token_ceiling"
    assert head[1].error.message == "the token ceiling is reached: 100 of 100 are used"
    assert head[1].error.info == {"retryable": False, "spent": 100, "ceiling": 100}
    assert (accounts.agents, accounts.refusals, accounts.cost) == (1, 1, 0.1)


def test_reserved_tokens_hold_the_head_back_until_they_are_given_back() -> None:
    accounts = admission(token_ceiling=100, max_concurrency=9)
    first, second = queued(accounts, 2, max_tokens=60)
    assert accounts.head() == (first, None)
    assert accounts.head() is None
    accounts.count(first, used(40))
    accounts.release(first)
    assert accounts.reserved == 0
    assert accounts.head() == (second, None)


def test_costs_are_added_without_rounding() -> None:
    accounts = admission()
    (operation,) = queued(accounts, 1)
    for _ in range(10):
        accounts.count(operation, used(1))
    assert accounts.cost == operation.cost == 1.0
    assert accounts.spent == operation.tokens == 10


@pytest.mark.parametrize(("cap", "needs"), [(None, 1), (1, 1), (500, 500)])
def test_an_agent_needs_what_it_may_use_and_at_least_one_token(cap: int | None, needs: int) -> None:
    (operation,) = queued(admission(), 1, max_tokens=cap)
    assert needs_of(operation) == needs


def test_only_what_fits_into_a_message_is_asked() -> None:
    assert misfit(Request(id=1, op="agent", prompt="x" * 100_000)) == ""
    assert misfit(Request(id=1, op="agent", prompt="🙂" * 50_000)) == ""
    assert misfit(Request(id=1, op="agent", prompt="🙂" * 50_001)).startswith(
        "a prompt has at most"
    )
    tools = AgentOptions(tools=("t" * 200_001,))
    assert misfit(Request(id=1, op="agent", options=tools)).startswith("an agent's options have")


def test_what_comes_back_stands_first_and_is_reserved_anew() -> None:
    accounts = admission(max_agents=1, token_ceiling=1_000)
    first, second = queued(accounts, 2, max_tokens=300)
    assert accounts.head() == (first, None)
    accounts.release(first)
    assert accounts.reserved == 0
    first.rounds = (Round(text="", calls=(), results=()),)
    first.tokens = 100
    accounts.back.append(first)
    assert accounts.head() == (first, None), "though no other agent may start"
    assert (accounts.reserved, accounts.agents) == (200, 1)
    accounts.release(first)
    assert accounts.reserved == 0
    refused, refusal = accounts.head() or (None, None)
    assert refused is second
    assert refusal is not None
