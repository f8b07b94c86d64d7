"""The promises of actors: ours keep them all, and every broken variant is found by its promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.actor import Place
from actors.agent import Agent
from actors.desktop.relay import DesktopRelay
from actors.messages import CHANNEL, FleetRun
from actors.relay import Relay
from scenarios.cast import BUILT_IN
from scenarios.contract import ContractError, check_actor
from scenarios.promises.check import OF_KIND, broken_promises
from scenarios.promises.common import COMMON, SHAPE, UNDERSTOOD
from scenarios.spec import KINDS, Kind
from tests.scenarios import broken_actors as broken
from tests.scenarios.worldly_relay import RandomRelay

LOSS = "It bears the loss of any message"
DEATH = "It survives death at any of its turns"
SAME = "The same seed gives the same story"
STORY = "With it, every run ends"

MUTE = """
from pullcord import Server


class Mute(Server):
    def on_cancel(self, context, envelope):
        return self.answer(self.runs.get(envelope.body.command_id))
"""
BROKEN: list[tuple[Kind, Any, str]] = [
    ("relay", broken.DeafRelay, "It understands every message"),
    ("relay", broken.TrustingRelay, "It refuses a run whose session was unshared before"),
    ("relay", broken.TrustingRelay, "It checks consent again"),
    ("relay", broken.HastyRelay, "It checks consent again"),
    ("relay", broken.LateRelay, "It starts a run only after leave"),
    ("relay", broken.ForgetfulRelay, "It keeps a result until the server has accepted it"),
    ("relay", broken.OptimisticRelay, "It keeps a result until the server has accepted it"),
    ("relay", broken.RelentlessRelay, "It stops a run that was cancelled"),
    ("relay", broken.ObliviousRelay, "It keeps a result until the server has accepted it"),
    ("relay", broken.CountingRelay, SAME),
    ("relay", broken.FragileRelay, LOSS),
    ("relay", RandomRelay, SAME),
    ("relay", broken.RepeatingRelay, "It posts a result that was accepted no more"),
    ("relay", broken.FailingRelay, STORY),
    ("server", broken.KeylessServer, "The same key with the same meaning"),
    ("server", broken.CarelessServer, "The same key with the same meaning"),
    ("server", broken.AmnesicServer, "The same key with the same meaning"),
    ("server", broken.TalkativeServer, '"Not yours" and "does not exist"'),
    ("server", broken.OpenServer, '"Not yours" and "does not exist"'),
    ("server", broken.GenerousServer, "Leave to start is given to one delivery"),
    ("server", broken.GenerousServer, "A superseded delivery gets no leave"),
    ("server", broken.StingyServer, "Leave to start is given to one delivery"),
    ("server", broken.FickleServer, "An end stays as it is"),
    ("server", broken.DeafServer, "A cancel takes effect"),
    ("engine", broken.DoubleEngine, "A channel's Graph starts once for ever"),
    ("engine", broken.MortalEngine, "A channel's Graph starts once for ever"),
    ("engine", broken.EagerEngine, "A query starts nothing"),
    ("engine", broken.UnstoppableEngine, "An execution that is told to stop"),
    ("engine", broken.ShyEngine, "An end is told until the relay has it"),
    ("engine", broken.NaggingEngine, "An end is told until the relay has it"),
    ("agent", broken.KeyChangingAgent, "A call without an answer is made again under the same key"),
    ("agent", broken.ImpatientAgent, LOSS),
    ("agent", broken.SilentAgent, "It says when it has finished"),
    ("agent", broken.LazyAgent, STORY),
    ("owner", broken.HastyOwner, "Every step is told in order"),
    ("owner", broken.TimidOwner, "Every step is told in order"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_built_in_actors_keep_every_promise(kind: Kind) -> None:
    assert broken_promises(kind, BUILT_IN[kind]) == []


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("relay", {"poll": "1m", "jitter": "window", "presence": True, "strict_consent": True}),
        ("server", {"hints": True, "reconcile": True, "wait_limit": "5s"}),
        ("agent", {"runs": 3, "every": "10s", "poll": "hinted"}),
        ("agent", {"runs": 2, "submit": "in turn"}),
        ("engine", {"duration": "uniform(5s, 200s)", "alphabet": "emoji", "result_chars": 60_000}),
    ],
)
def test_other_settings_keep_them_too(kind: Kind, config: dict[str, Any]) -> None:
    assert broken_promises(kind, BUILT_IN[kind], config) == []


@pytest.mark.parametrize(
    ("kind", "actor_class", "promise"),
    BROKEN,
    ids=[f"{actor.__name__}: {promise}" for _, actor, promise in BROKEN],
)
def test_a_broken_promise_is_found(kind: Kind, actor_class: Any, promise: str) -> None:
    found = broken_promises(kind, actor_class)
    assert [each for each in found if each.promise.startswith(promise)], found
    assert all(each.seen for each in found)


def test_the_broken_promises_are_told_in_words_all_of_them() -> None:
    lines = [str(each) for each in broken_promises("server", broken.GenerousServer)]
    words = "A superseded delivery gets no leave: the first of two deliveries was let start"
    assert words in lines
    assert any(line.startswith("Leave to start is given to one delivery") for line in lines)


def test_the_suite_for_classes_in_files_tells_them_too(tmp_path: Path) -> None:
    source = "from actors.server import Server\n\n\nclass Mute(Server):\n"
    source += "    def on_cancel(self, context, envelope):\n"
    source += "        return self.answer(self.runs.get(envelope.body.command_id))\n"
    (tmp_path / "mute.py").write_text(source)
    with pytest.raises(ContractError, match="A cancel takes effect"):
        check_actor("mute.py:Mute", "server", folder=tmp_path, replications=1)


def test_every_promise_is_broken_by_somebody() -> None:
    everything = {
        each.words for promises in (SHAPE, COMMON, *OF_KIND.values()) for each in promises
    }
    tried = [promise for _, _, promise in BROKEN]
    left = {words for words in everything if not any(words.startswith(each) for each in tried)}
    assert left == {
        "Its Config is a frozen msgspec struct whose keys all have defaults",  # below
        "Its module imports nothing that brings a clock, chance, files or a network",  # below
        "It survives death at any of its turns, and no Graph starts twice",  # below
        "It hands no run over that has ended",  # below
    }


def test_the_published_weak_settings_are_found() -> None:
    found = broken_promises("relay", Relay, {"outbox": False})
    assert "It keeps a result until the server has accepted it" in {each.promise for each in found}
    found = broken_promises("agent", BUILT_IN["agent"], {"retry": "new key"})
    assert {each.promise for each in found} >= {
        "A call without an answer is made again under the same key"
    }


def test_death_is_survived_by_none_who_forgets_its_jobs() -> None:
    class Forgets(Agent):
        def resume(self, context: Any, job: Any) -> None: ...

    found = broken_promises("agent", Forgets)
    assert any(each.promise.startswith(DEATH) for each in found)
    assert any("in its turn" in each.seen for each in found)


@pytest.mark.parametrize("keys", [{}, {"slots": 3}], ids=["as it is", "three slots"])
@pytest.mark.parametrize("relay", [Relay, DesktopRelay])
def test_several_slots_and_a_deployed_desktop_keep_every_promise(
    relay: type[Relay], keys: dict[str, Any]
) -> None:
    assert broken_promises("relay", relay, keys) == []


def test_a_run_that_ended_is_not_handed_over_again() -> None:
    class Again(Relay):
        def on_accepted(self, context: Any, envelope: Any) -> None:
            runs = list(self.running.values())
            super().on_accepted(context, envelope)
            for run in runs:
                context.request(self.engine, self.run_of(run.command), self.timeout_us)

        def run_of(self, command: Any) -> Any:
            channel = CHANNEL + command.command_id
            return FleetRun(channel=channel, session="", slug="", arguments={})

    found = broken_promises("relay", Again)
    assert "It hands no run over that has ended" in {each.promise for each in found}


# The shape


def test_a_config_that_can_t_be_shared_is_found_first() -> None:
    found = broken_promises("relay", broken.ThawedRelay, {"colour": "red"})
    words = "Its Config is a frozen msgspec struct whose keys all have defaults"
    assert [each.promise for each in found] == [words, words]
    assert [each.seen for each in found] == ["Config is not frozen", "colour has no default"]


def test_a_class_without_a_config_is_named() -> None:
    class Bare:
        def __init__(self, config: Any, place: Any) -> None: ...

    (found,) = broken_promises("relay", Bare)
    assert "has none" in str(found)


def test_a_config_that_the_class_refuses_is_a_mistake_and_no_finding() -> None:
    with pytest.raises(msgspec.ValidationError, match="pol"):
        broken_promises("relay", Relay, {"pol": "5s"})


def test_imports_of_the_world_are_warnings() -> None:
    found = broken_promises("relay", RandomRelay)
    (warning,) = [each for each in found if each.level == "warning"]
    assert warning.seen.endswith("imports random")


def without(kind: Kind, message: type[Any]) -> Callable[[Any, Place], Any]:
    """How to make a built-in actor that doesn't understand a message."""

    def make(config: Any, place: Place) -> Any:
        actor = BUILT_IN[kind](config, place)
        actor.handlers = {k: v for k, v in actor.handlers.items() if k is not message}
        return actor

    make.Config = BUILT_IN[kind].Config  # type: ignore[attr-defined]  # as a class has it
    return make


def test_every_message_of_a_part_is_asked_for() -> None:
    for kind, kinds in UNDERSTOOD.items():
        for message in kinds:
            found = broken_promises(kind, without(kind, message))
            (error,) = [each for each in found if each.level == "error"]
            assert error.seen == f"it has no handler for {message.__name__}"


def test_an_actor_that_goes_round_in_one_instant_has_an_end() -> None:
    class Dizzy(Relay):
        def set_poll(self, context: Any) -> None:
            context.set_timer("poll", 0)

    found = broken_promises("relay", Dizzy)
    assert any("there is no end: 50000 turns" in each.seen for each in found)
