"""The live model: every question is answered once, and what was used counts whatever happens."""

from pathlib import Path
from typing import Any

import pytest
import trio

from actors.edges.models.failures import BackendError
from actors.edges.models.live import STOPPED, LiveModel
from actors.edges.models.recording import Recording
from actors.edges.models.usage import Prices, Spent
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel
from actors.graphs.scripted import prompt_hash, read_answers
from tests.actors.edges.models.stub_server import ask
from transports.envelope import Envelope


class FakeBackend:
    """Answers what a prompt says: a value, a failure, or never; it counts 7 tokens in, 3 out."""

    def __init__(self) -> None:
        self.closed = False

    async def answer(self, asked: AgentAsk, spent: Spent) -> Any:
        spent.report(7, 3)
        if asked.prompt == "fail":
            raise BackendError("rate_limited", "busy", retryable=True)
        if asked.prompt == "never":
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        return asked.prompt

    async def close(self) -> None:
        self.closed = True


class Context:
    """What the model needs of a context."""

    name = "model"

    def __init__(self) -> None:
        self.replies: list[tuple[int, AgentAnswer]] = []

    def reply(self, envelope: Envelope[Any], body: AgentAnswer) -> None:
        self.replies.append((envelope.id, body))


class Bench:
    """A model with its nursery; `told` is what its tasks put into its mailbox."""

    def __init__(self, nursery: trio.Nursery, **how: Any) -> None:
        self.backend = FakeBackend()
        self.model = LiveModel(self.backend, **how)
        self.context: Any = Context()
        self.told: list[Any] = []
        self.nursery = nursery
        boot: Any = self.context
        self.model.on_start(boot)

    async def ask(self, number: int, prompt: str, **fields: Any) -> None:
        await self.model.open(self.nursery, self.told.append)
        asked = ask(prompt, agent=number, **fields)
        self.model.on_ask(self.context, Envelope(number, "engine", "model", 0, 0, asked))
        await trio.testing.wait_all_tasks_blocked()

    def cancel(self, number: int) -> AgentAnswer:
        body = AgentCancel(run="r", agent=number)
        return self.model.on_cancel(
            self.context, Envelope(100 + number, "engine", "model", 0, 0, body)
        )

    def deliver(self) -> None:
        for body in self.told:
            self.model.on_answered(self.context, Envelope(0, "model", "model", 0, 0, body))
        self.told.clear()


async def test_an_answer_goes_to_the_question_with_its_usage(nursery: trio.Nursery) -> None:
    bench = Bench(nursery, prices=Prices(1_000_000, 0))
    await bench.ask(4, "hello")
    assert bench.context.replies == []
    bench.deliver()
    [(question, answer)] = bench.context.replies
    assert question == 4
    assert (answer.outcome, answer.value, answer.tokens, answer.cost) == ("ok", "hello", 10, 7)
    assert (answer.run, answer.agent) == ("r", 4)


async def test_a_failure_says_whether_to_ask_again_and_counts(nursery: trio.Nursery) -> None:
    bench = Bench(nursery)
    await bench.ask(1, "fail")
    bench.deliver()
    [(_, answer)] = bench.context.replies
    assert (answer.outcome, answer.error) == ("failed", "rate_limited: busy")
    assert (answer.retryable, answer.tokens) == (True, 10)


async def test_a_cancelled_agent_says_what_it_used(nursery: trio.Nursery) -> None:
    bench = Bench(nursery)
    await bench.ask(1, "never")
    await bench.ask(2, "never")
    answer = bench.cancel(1)
    assert (answer.outcome, answer.tokens) == ("cancelled", 10)
    assert bench.context.replies == [(1, answer)]
    await trio.testing.wait_all_tasks_blocked()
    assert bench.told == []
    assert list(bench.model.working) == [("r", 2)]
    await bench.model.close()
    assert bench.backend.closed


async def test_an_agent_that_nobody_knows_used_nothing(nursery: trio.Nursery) -> None:
    bench = Bench(nursery)
    assert bench.cancel(9).tokens == 0
    assert bench.context.replies == []


async def test_an_answer_that_comes_with_the_cancel_is_given_once(nursery: trio.Nursery) -> None:
    bench = Bench(nursery)
    await bench.ask(1, "hello")
    assert bench.told
    assert bench.cancel(1).tokens == 10
    bench.deliver()
    assert [question for question, _ in bench.context.replies] == [1]


async def test_a_message_from_another_actor_is_no_answer(nursery: trio.Nursery) -> None:
    bench = Bench(nursery)
    await bench.ask(1, "hello")
    bench.model.on_answered(bench.context, Envelope(0, "other", "model", 0, 0, bench.told[0]))
    assert bench.context.replies == []


async def test_an_engine_that_is_gone_leaves_no_agent_for_ever(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    bench = Bench(nursery)
    assert autojump_clock.autojump_threshold == 0
    await bench.ask(1, "never", timeout_us=1_000_000)
    await trio.sleep(12)
    bench.deliver()
    [(_, answer)] = bench.context.replies
    assert (answer.outcome, answer.error) == ("failed", "timeout: the agent's time is up")
    assert answer.tokens == 10


async def test_all_that_is_said_is_recorded(nursery: trio.Nursery, tmp_path: Path) -> None:
    recording = Recording(tmp_path / "a")
    bench = Bench(nursery, recording=recording)
    for number, prompt in enumerate(("hello", "fail", "never", "never"), 1):
        await bench.ask(number, prompt)
    bench.deliver()
    bench.cancel(3)
    await bench.model.close()
    recording.close()
    found = read_answers((tmp_path / "a").read_text())
    assert [one.value for one in found[prompt_hash("hello")]] == ["hello"]
    assert [one.error for one in found[prompt_hash("fail")]] == ["rate_limited: busy"]
    assert [one.error for one in found[prompt_hash("never")]] == [STOPPED, STOPPED]
    assert all(one.tokens == 10 for answers in found.values() for one in answers)


async def test_a_mistake_of_the_backend_is_not_hidden() -> None:
    with pytest.RaisesGroup(ZeroDivisionError):
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            bench.model.backend = Broken()
            await bench.ask(1, "hello")


class Broken(FakeBackend):
    """Has a mistake."""

    async def answer(self, asked: AgentAsk, spent: Spent) -> Any:
        return 1 // 0
