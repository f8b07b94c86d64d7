"""A Graph on the trio host: its end, its events, and what a signal does to it."""

import signal
from typing import Any

import pytest
import trio

from actors.actor import Actor, Place
from actors.edges.models.failures import BackendError
from actors.edges.models.live import LiveModel
from actors.edges.models.usage import Spent
from actors.graph_engine import GraphEngine
from actors.graphs.messages import AgentAsk
from actors.graphs.synthetic import SyntheticModel
from scenarios.graph_run import Ended, Plan, run_graph

TWO = """
phase("ask");
const two = await parallel([1, 2].map((n) => () => agent(`number ${n}`)));
await sleep(args.ms ?? 0);
return two;
"""


class Echo:
    """Answers with the prompt; `fail` fails and `never` waits for ever. 5 tokens each."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.stopped: list[str] = []
        self.closed = False

    async def answer(self, ask: AgentAsk, spent: Spent) -> Any:
        self.asked.append(ask.prompt)
        spent.report(3, 2)
        if ask.prompt.startswith("fail"):
            raise BackendError("refused", "no", retryable=False)
        if ask.prompt.startswith("never"):
            try:
                await trio.sleep_forever()
            finally:
                self.stopped.append(ask.prompt)
        return ask.prompt

    async def close(self) -> None:
        self.closed = True


def config(**fields: Any) -> GraphEngine.Config:
    return GraphEngine.Config(graph="g.js", **fields)


def synthetic(**fields: Any) -> Actor:
    return SyntheticModel(config(**fields), Place(name="model"))


def run(script: str, model: Actor, look: Any = None, **fields: Any) -> tuple[Ended, list[str]]:
    """How a script ends, and the names of its events."""
    events: list[str] = []
    plan: dict[str, Any] = {"config": config(), "files": {"g.js": script}}
    ended = run_graph(
        Plan(**{**plan, **fields}),
        model,
        lambda _now_us, event, _fields: events.append(event),
        look or (lambda _now_us: None),
    )
    return ended, events


def test_in_virtual_time_nothing_is_waited_for() -> None:
    ended, events = run(TWO, synthetic(), arguments={"ms": 86_000_000})
    assert ended.completion is not None
    assert ended.completion.status == "completed"
    assert ended.completion.result == ["answer to: number 1", "answer to: number 2"]
    assert (ended.completion.total_tokens, ended.interrupted) == (2400, False)
    assert events == [
        "fleet.started", "fleet.phase", "agent.started", "agent.started",
        "agent.finished", "agent.finished", "fleet.finished",
    ]  # fmt: skip


def test_one_seed_has_one_run() -> None:
    script = "return [Math.random(), await agent('x', { schema: { type: 'number' } })]"
    one, again, other = (run(script, synthetic(), seed=seed)[0] for seed in (1, 1, 2))
    assert one == again != other


def test_agents_outside_answer_and_are_closed() -> None:
    backend = Echo()
    ended, _ = run(TWO, LiveModel(backend), speed=1.0)
    assert ended.completion is not None
    assert ended.completion.result == ["number 1", "number 2"]
    assert ended.completion.total_tokens == 10
    assert sorted(backend.asked) == ["number 1", "number 2"]
    assert backend.closed


class Burst(Echo):
    """Answers 200 agents at one instant."""

    def __init__(self) -> None:
        super().__init__()
        self.all_asked = trio.Event()

    async def answer(self, ask: AgentAsk, spent: Spent) -> Any:
        if len(self.asked) % 200 == 199:
            self.all_asked.set()
            self.all_asked = trio.Event()
            return await super().answer(ask, spent)
        waiting = self.all_asked
        answer = await super().answer(ask, spent)
        await waiting.wait()
        return answer


def test_agents_that_end_at_one_instant_are_all_heard() -> None:
    script = "return parallel(Array.from({ length: 600 }, (_, n) => () => agent(`${n}`)))"
    ended, events = run(
        script,
        LiveModel(Burst()),
        speed=1.0,
        config=config(max_concurrency=200, deadline_us=60_000_000),
    )
    assert ended.completion is not None
    assert ended.completion.result == [f"{number}" for number in range(600)]
    assert ended.completion.total_tokens == 3000
    assert events.count("agent.finished") == 600


def test_a_failure_is_the_scripts_to_handle() -> None:
    script = """
    const found = await agent("fail").catch((error) => [error.code, error.retryable]);
    await agent("fail again");
    """
    ended, _ = run(script, LiveModel(Echo()), speed=1.0)
    assert ended.completion is not None
    assert ended.completion.status == "failed"
    assert "refused: no (line 3, column" in (ended.completion.error or "")


def test_an_agent_that_takes_too_long_is_stopped_and_counts() -> None:
    backend = Echo()
    script = "return agent('never', { timeoutMs: 20 }).catch((error) => error.code)"
    ended, _ = run(script, LiveModel(backend), speed=1.0)
    assert ended.completion is not None
    assert (ended.completion.result, ended.completion.total_tokens) == ("agent_timeout", 5)
    assert backend.stopped == ["never"]


def interrupt_when(ready: Any, times: int = 1) -> Any:
    """What looks on, and interrupts once something is so."""
    left = [times]

    def look(_now_us: int) -> None:
        while left[0] and ready():
            left[0] -= 1
            signal.raise_signal(signal.SIGINT)

    return look


def test_ctrl_c_stops_the_agents_and_counts_what_they_used() -> None:
    backend = Echo()
    script = "await parallel([1, 2, 3].map((n) => () => agent(`never ${n}`)))"
    look = interrupt_when(lambda: len(backend.asked) == 3)
    ended, events = run(script, LiveModel(backend), look, speed=1.0)
    assert ended.interrupted
    assert ended.completion is not None
    assert (ended.completion.status, ended.completion.total_tokens) == ("cancelled", 15)
    assert sorted(backend.stopped) == ["never 1", "never 2", "never 3"]
    assert events.count("agent.finished") == 3
    assert backend.closed


@pytest.mark.parametrize("caught", ["", "try { await graph('graph', {deep: true}) } catch {}"])
def test_ctrl_c_stops_a_script_that_computes_for_ever(caught: str) -> None:
    """Else it would fail by its limit, long after, or go on in the Graph around it."""
    backend = Echo()
    ticks = iter(range(3))
    look = interrupt_when(lambda: backend.asked and next(ticks, None) is None)
    script = f"if (args.deep) for (;;); await agent('a'); {caught}; for (;;);"
    ended, _ = run(script, LiveModel(backend), look, speed=1.0)
    assert ended.interrupted
    assert ended.completion is not None
    assert (ended.completion.status, ended.completion.error) == ("cancelled", None)
    assert ended.completion.total_tokens == 5


def test_a_second_ctrl_c_ends_it_as_it_stands() -> None:
    backend = Echo()
    look = interrupt_when(lambda: backend.asked, times=2)
    ended, _ = run("return agent('never')", LiveModel(backend), look, speed=1.0)
    assert ended.interrupted
    assert backend.stopped == ["never"]
    assert backend.closed


def test_signals_are_as_before_when_it_has_ended() -> None:
    before = signal.getsignal(signal.SIGINT)
    run("return 1", synthetic())
    assert signal.getsignal(signal.SIGINT) is before


def test_a_mistake_of_ours_is_raised_and_nothing_is_left() -> None:
    backend = Echo()

    async def broken(_ask: AgentAsk, _spent: Spent) -> Any:
        raise ZeroDivisionError

    backend.answer = broken  # type: ignore[method-assign,assignment]  # a mistake
    with pytest.raises(ZeroDivisionError):
        run("return agent('x')", LiveModel(backend), speed=1.0)
    assert backend.closed


def test_the_ceiling_holds() -> None:
    script = "return parallel(Array.from({length: 20}, (_, n) => () => agent(`${n}`)))"
    ended, events = run(
        script,
        LiveModel(Echo()),
        speed=1.0,
        config=config(token_ceiling=20, max_concurrency=2),
    )
    assert ended.completion is not None
    assert ended.completion.status == "failed"
    assert ended.completion.total_tokens < 30
    assert events.count("agent.refused") >= 14
