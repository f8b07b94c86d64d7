"""What an agent has used: what its model reports, and an estimate until it does.

Most servers report the tokens at the end of a stream. An agent that is stopped before must not
count as free, so until then a prompt counts a token for every four bytes, and an answer one for
every piece that came.
"""

from __future__ import annotations

from math import isfinite

import msgspec

BYTES_PER_TOKEN = 4  # of English text in common vocabularies
TOKENS_LIMIT = 1 << 40  # what a server reports beyond that is a mistake
COST_LIMIT = 1e9


class Prices(msgspec.Struct, frozen=True):
    """The price of a million tokens, in the user's money; where a server reports no cost."""

    input: float = 0.0
    output: float = 0.0


class Spent:
    """What one question has used so far, kept up to date while its answer comes."""

    def __init__(self) -> None:
        self.guessed_input = self.pieces = 0
        self.reported_input: int | None = None
        self.reported_output = 0
        self.reported_cost: float | None = None
        self.final = False

    def ask(self, prompt_bytes: int) -> None:
        """Note that a prompt is on its way."""
        self.guessed_input = max(1, prompt_bytes // BYTES_PER_TOKEN)

    def nothing(self) -> None:
        """Note that the prompt was not taken."""
        self.guessed_input = 0

    def piece(self) -> None:
        """Note that a piece of the answer came."""
        self.pieces += 1

    def wrote(self, size_bytes: int) -> None:
        """Note how long an answer is that comes in no pieces."""
        self.pieces = size_bytes // BYTES_PER_TOKEN

    def report(
        self, input_tokens: int | None, output_tokens: int | None, *, final: bool = False
    ) -> None:
        """Note what the model says; None for what it doesn't."""
        if input_tokens is not None:
            self.reported_input = _within(input_tokens)
        if output_tokens is not None:
            self.reported_output = _within(output_tokens)
            self.final = self.final or final

    def costs(self, cost: float | None) -> None:
        """Note what the model says that it costs."""
        if cost is not None and isfinite(cost) and 0 <= cost <= COST_LIMIT:
            self.reported_cost = cost

    @property
    def input_tokens(self) -> int:
        """What was read."""
        return self.guessed_input if self.reported_input is None else self.reported_input

    @property
    def output_tokens(self) -> int:
        """What was written."""
        return self.reported_output if self.final else max(self.reported_output, self.pieces)

    @property
    def tokens(self) -> int:
        """What was used in all."""
        return self.input_tokens + self.output_tokens

    def cost(self, prices: Prices) -> float:
        """Return what it costs: as reported, else by the prices."""
        if self.reported_cost is not None:
            return self.reported_cost
        return (self.input_tokens * prices.input + self.output_tokens * prices.output) / 1e6


def _within(tokens: int) -> int:
    return min(max(0, tokens), TOKENS_LIMIT)
