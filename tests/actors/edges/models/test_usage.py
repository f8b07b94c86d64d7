"""Tokens: what is reported counts, and until then an estimate that is never nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.models.usage import TOKENS_LIMIT, Prices, Spent


def test_before_anything_is_reported_a_prompt_and_each_piece_count() -> None:
    spent = Spent()
    spent.ask(400)
    spent.piece()
    spent.piece()
    assert (spent.input_tokens, spent.output_tokens, spent.tokens) == (100, 2, 102)


def test_a_report_on_the_way_is_a_lower_bound_and_the_last_is_exact() -> None:
    spent = Spent()
    spent.ask(400)
    spent.report(25, 1)
    for _ in range(10):
        spent.piece()
    assert (spent.input_tokens, spent.output_tokens) == (25, 10)
    spent.report(None, 7, final=True)
    assert spent.tokens == 32


def test_a_prompt_that_was_not_taken_costs_nothing() -> None:
    spent = Spent()
    spent.ask(4000)
    spent.nothing()
    assert spent.tokens == 0


def test_an_empty_prompt_counts_and_a_whole_answer_by_its_length() -> None:
    spent = Spent()
    spent.ask(0)
    spent.wrote(41)
    assert (spent.input_tokens, spent.output_tokens) == (1, 10)


def test_a_cost_is_reported_or_by_the_prices() -> None:
    spent = Spent()
    spent.report(1_000_000, 500_000, final=True)
    assert spent.cost(Prices(3, 15)) == pytest.approx(10.5)
    spent.costs(0.25)
    assert spent.cost(Prices(3, 15)) == 0.25


@given(st.integers(), st.integers())
def test_no_report_makes_tokens_negative_or_endless(one: int, other: int) -> None:
    spent = Spent()
    spent.report(one, other, final=True)
    assert 0 <= spent.tokens <= 2 * TOKENS_LIMIT


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf"), 1e300, None])
def test_a_cost_that_is_none_is_not_believed(cost: float | None) -> None:
    spent = Spent()
    spent.costs(cost)
    assert spent.cost(Prices()) == 0
