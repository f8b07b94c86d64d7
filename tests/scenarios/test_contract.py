"""The contract suite for actors passes ours, and finds each kind of broken promise."""

from pathlib import Path

import pytest

from scenarios.contract import ContractError, check_actor
from scenarios.problems import ScenarioError
from scenarios.spec import KINDS, Kind

SHIPPED = Path(__file__).resolve().parents[2] / "scenarios"

# One actor a promise, each with the one line that breaks it.
PLAIN = """
import time
from pullcord import Agent, Engine, Owner, Relay, Server


class PlainServer(Server): ...
class PlainRelay(Relay): ...
class PlainEngine(Engine): ...
class PlainAgent(Agent): ...
class PlainOwner(Owner): ...


class ReadsTheClock(Agent):
    def begin(self, context):
        super().begin(context)
        context.set_timer("queue", 1 + time.perf_counter_ns() % 1000)


class KeepsAnAttribute(Relay):
    polls = 0

    def poll(self, context):
        KeepsAnAttribute.polls += 1
        context.log("own.polls", polls=self.polls)
        super().poll(context)


class PollsOnce(Relay):
    def poll(self, context):
        self.begin_pass(context)


class Raises(Engine):
    def outcome(self, context, execution_id):
        return 1 / 0


class ForgetsItsJobs(Agent):
    def on_start(self, context):
        super().on_start(context)
        self.active.clear()


class NeverAsksAgain(Agent):
    def on_unanswered(self, context, envelope): ...


class EndsTwice(Server):
    def on_complete(self, context, envelope):
        context.log("run.terminal", run=envelope.body.command_id, status="completed")
        return super().on_complete(context, envelope)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(PLAIN)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_built_in_actors_keep_their_promises(kind: Kind, folder: Path) -> None:
    check_actor(f"own.py:Plain{kind.capitalize()}", kind, folder=folder)


@pytest.mark.parametrize("kind", ["agent", "engine", "relay", "server"])
def test_the_templates_keep_them(kind: Kind) -> None:
    name = f"my_{kind}.py:My{kind.capitalize()}"
    check_actor(name, kind, folder=SHIPPED / "templates")


def test_the_example_keeps_them() -> None:
    config = {"eager": "1s", "jitter": "window"}
    check_actor("eager_relay.py:EagerRelay", "relay", config, folder=SHIPPED / "examples")


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("ReadsTheClock", "agent", "reads a clock, chance or the world"),
        ("KeepsAnAttribute", "relay", "keeps state that its on_start does not rebuild"),
        ("PollsOnce", "relay", "in a world without faults: it did not end within 3d"),
        ("Raises", "engine", "engine failed on .*: ZeroDivisionError: division by zero"),
        ("ForgetsItsJobs", "agent", "where the actor was killed at its commit in its turn"),
        ("NeverAsksAgain", "agent", "with lost messages: "),
        ("EndsTwice", "server", "run.terminal happened 2 times"),
    ],
)
def test_a_broken_promise_is_found(name: str, kind: Kind, sentence: str, folder: Path) -> None:
    with pytest.raises(ContractError, match=sentence):
        check_actor(f"own.py:{name}", kind, folder=folder)


def test_a_config_that_the_class_refuses_is_no_broken_promise(folder: Path) -> None:
    with pytest.raises(ScenarioError, match="unknown key"):
        check_actor("own.py:PlainRelay", "relay", {"pol": "5s"}, folder=folder)
