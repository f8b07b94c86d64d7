"""Drives a VM as an engine would: answers what a script asks for, in virtual time, to its end."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from actors.graphs.script import ScriptVmPort
from actors.graphs.seam import (
    Failure,
    Finished,
    Notice,
    Request,
    ScriptFailure,
    Seed,
    Settlement,
    Vm,
    VmLimits,
    VmState,
    VmTurn,
)

# The engine is an extra: without it these tests are left out, and nothing else is.
pytest.importorskip("_quickjs", reason="quickjs-ng has no wheel for this machine")

SEED: Seed = (1, 2, 3, 4)
STATE = VmState(1_000.0, 0, None, 0)
# Tests of limits wait for them.
LOW = VmLimits(cpu_us=200_000, wall_us=500_000, memory_bytes=16 << 20, jobs=50_000)
PORT = ScriptVmPort()

Answer = Callable[[Request], Any]


def echo(request: Request) -> Any:
    """An agent's answer is its prompt, a Graph's its arguments."""
    return request.prompt or request.args


class Driven:
    """What came of a script: its end, and all that it asked for and said."""

    def __init__(self, vm: Vm, answer: Answer, total: int | None) -> None:
        self.vm = vm
        self.answer = answer
        self.total = total
        self.now_ms = 1_000.0
        self.requests: list[Request] = []
        self.notices: list[Notice] = []
        self.turns: list[VmTurn] = []
        self.waiting: list[tuple[float, Request]] = []

    def run(self, source: str, args: Any) -> Finished:
        """Run a script to its end."""
        turn = self.vm.start(source, args, SEED, self.state())
        while True:
            self.turns.append(turn)
            self.requests += turn.requests
            self.notices += turn.notices
            if turn.finished is not None:
                self.vm.close()
                return turn.finished
            self.waiting += [(self.now_ms + each.ms, each) for each in turn.requests]
            assert turn.pending == len(self.waiting) > 0
            self.now_ms = min(due for due, _ in self.waiting)
            ready = [each for due, each in self.waiting if due == self.now_ms]
            self.waiting = [each for each in self.waiting if each[0] != self.now_ms]
            turn = self.vm.settle([self.settle(each) for each in ready], self.state())

    def state(self) -> VmState:
        """What the script sees of the host: each agent so far cost ten tokens."""
        agents = sum(each.op == "agent" for each in self.requests)
        return VmState(self.now_ms, 10 * agents, self.total, agents)

    def settle(self, request: Request) -> Settlement:
        """The answer to a request."""
        value = None if request.op == "sleep" else self.answer(request)
        if isinstance(value, Failure):
            return Settlement(id=request.id, ok=False, error=value)
        return Settlement(id=request.id, ok=True, value=value)


def drive(
    source: str,
    *,
    answer: Answer = echo,
    args: Any = None,
    total: int | None = None,
    limits: VmLimits = LOW,
    vm: Vm | None = None,
) -> tuple[Finished, Driven]:
    """Run a script to its end."""
    driven = Driven(PORT.open(limits) if vm is None else vm, answer, total)
    return driven.run(source, args), driven


def value_of(source: str, **options: Any) -> Any:
    """What a script returns; it must not fail."""
    finished, _ = drive(source, **options)
    assert finished.error is None, finished.error
    return finished.value


def error_of(source: str, **options: Any) -> ScriptFailure:
    """The error that a script ends with."""
    finished, _ = drive(source, **options)
    assert finished.error is not None, finished.value
    return finished.error


def answers(values: Sequence[Any]) -> Answer:
    """Answer agents one after the other with these."""
    left = iter(values)
    return lambda _: next(left)


CEILING = Failure(kind="budget", message="1,000 tokens are spent", code="token_ceiling")
FAILED = Failure(kind="agent", message="no answer", code="agent_failed")
