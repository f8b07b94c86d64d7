"""Who may start: the limiter, the token ceiling and the agent limit of one run, and its accounts.

All of it is looked at where an agent stands at the head of the one queue, never before: what was
queued before the ceiling was reached does not pass it afterwards. Agents that come back from their
owner to be asked again stand before those that have not begun.
"""

from __future__ import annotations

from collections import deque
from math import fsum
from typing import Any

import msgspec

from actors.graphs.messages import AgentAnswer
from actors.graphs.operations import Limits, Operation
from actors.graphs.seam import Request, Settlement
from actors.text import clean_text, units

# Of one engine, whatever its runs may have: on a host with sockets each waits for the model in a
# mailbox of 256, and what doesn't fit there is lost.
FLYING_LIMIT = 200
PROMPT_LIMIT_CHARS = 100_000  # six bytes each at worst, and a frame has 1 MiB
OPTIONS_LIMIT_BYTES = 200_000  # of schema, tools and names together, for the same reason
_encode = msgspec.json.Encoder().encode


class Slots:
    """How many agents an engine may still give to its model, over all its runs."""

    def __init__(self, free: int = FLYING_LIMIT) -> None:
        self.free = free


class Admission:
    """See the module's docstring. `flying` has the agents that hold a slot, by number.

    `starved` says that the queue's head waits for a slot of the engine's.
    """

    def __init__(self, limits: Limits, slots: Slots) -> None:
        self.limits = limits
        self.slots = slots
        self.starved = False
        self.queue: deque[Operation] = deque()
        self.back: deque[Operation] = deque()  # who had a slot before
        self.flying: dict[int, Operation] = {}
        self.agents = self.refusals = 0
        self.spent = self.reserved = 0
        self.costs: list[float] = []

    @property
    def cost(self) -> float:
        """What the run has cost so far."""
        return fsum(self.costs)

    @property
    def is_queued(self) -> bool:
        """Whether an agent waits for its turn."""
        return any(one.state != "over" for line in (self.back, self.queue) for one in line)

    def head(self) -> tuple[Operation, Settlement | None] | None:
        """Take the agent at the head of the queue, and why it is refused if it is.

        None if there is none, or it has to wait for a slot or for tokens reserved for others.
        """
        for line in (self.back, self.queue):
            while line and line[0].state == "over":
                line.popleft()
        line = self.back or self.queue
        self.starved = False
        if not line or len(self.flying) >= self.limits.max_concurrency:
            return None
        first = line[0]
        refusal = self.refusal(first)
        if refusal is None and self.must_wait(first):
            return None
        if refusal is None and not self.slots.free:
            self.starved = True
            return None
        line.popleft()
        if refusal is None:
            self.slots.free -= 1
            self.agents += not first.rounds
            self.flying[first.number] = first
            self.reserve(first)
        else:
            self.refusals += 1
        return first, refusal

    def refusal(self, operation: Operation) -> Settlement | None:
        """Return why an agent is not asked now nor later, None if it may be."""
        ceiling = self.limits.token_ceiling
        if ceiling is not None and self.spent + (needs := needs_of(operation)) > ceiling:
            message = f"the token ceiling is reached: {self.spent:,} of {ceiling:,} are used"
            if needs > 1:
                message += f", and the agent asks for up to {needs:,}"
            return operation.fail(
                "budget", "token_ceiling", message, retryable=False, **self.account()
            )
        if operation.rounds:
            return None  # it is one of those that were started
        if self.agents >= self.limits.max_agents:
            message = f"a run may start {self.limits.max_agents:,} agents"
            return operation.fail("agent", "agent_limit", message, retryable=False)
        message = misfit(operation.request)
        if message:
            return operation.fail("agent", "agent_failed", message, retryable=False)
        return None

    def must_wait(self, operation: Operation) -> bool:
        """Whether an agent's tokens are reserved for others, who may not use them all."""
        ceiling = self.limits.token_ceiling
        return ceiling is not None and self.spent + self.reserved + needs_of(operation) > ceiling

    def may_repair(self) -> bool:
        """Whether there are tokens left to have an answer repaired."""
        return self.limits.token_ceiling is None or self.spent < self.limits.token_ceiling

    def reserve(self, operation: Operation) -> None:
        """Keep for an agent what it may still use, and no more."""
        if operation.request.options.max_tokens is None:
            return
        self.reserved -= operation.reserved
        operation.reserved = operation.tokens_left or 0
        self.reserved += operation.reserved

    def account(self) -> dict[str, Any]:
        """Return what an error says of the token ceiling."""
        return {"spent": self.spent, "ceiling": self.limits.token_ceiling}

    def count(self, operation: Operation, answer: AgentAnswer) -> None:
        """Count what an answer used, whatever it says."""
        self.spent += answer.tokens
        self.costs.append(operation.use(answer))

    def release(self, operation: Operation) -> None:
        """Free an agent's slot, and what was reserved for it."""
        del self.flying[operation.number]
        self.slots.free += 1
        self.reserved -= operation.reserved
        operation.reserved = 0


def needs_of(operation: Operation) -> int:
    """Return how many tokens must be left for an agent: what it may use at most, at least one."""
    return max(1, operation.tokens_left or 0)


def misfit(request: Request) -> str:
    """Return why a request does not fit into a message, empty if it does."""
    chars = units(clean_text(request.prompt))
    if chars > PROMPT_LIMIT_CHARS:
        return f"a prompt has at most {PROMPT_LIMIT_CHARS:,} characters, and this one {chars:,}"
    size = len(_encode(request.options))
    if size > OPTIONS_LIMIT_BYTES:
        return f"an agent's options have at most {OPTIONS_LIMIT_BYTES:,} bytes, and these {size:,}"
    return ""
