"""Every actor is killed at every commit point of a run, and every message is lost once.

Whatever happens, the run ends, its agent learns it, its Graph starts at most once, and nothing is
left to be posted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from actors.actor import Commit, Place, Step
from actors.agent import Agent
from actors.chance import Durations
from actors.engine import Engine
from actors.messages import TERMINAL, GraphRun
from actors.polls import parse_polls
from actors.relay import Relay
from actors.server import Server
from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo
from tests.actors.harness import SESSION, S, Trace, make_cell, put_to_work
from tests.actors.verdicts import complaints
from transports.faults.drop import Drop
from transports.memory import Link

UNTIL_US = 240 * S  # the run takes 65 s, a lost answer 10 s: three times everything, and a pass
FIVE = Durations.parse("5s")
SERVER = Server.Config(reconcile=True)
RELAYS = {
    "recommended": Relay.Config(phase_us=FIVE, presence=True, strict_consent=True),
    "published": Relay.Config(phase_us=FIVE),
}
AGENTS = {
    "run": Agent.Config(poll=parse_polls("every 10s")),
    "cancel while queued": Agent.Config(
        poll=parse_polls("every 10s"), cancel_us=Durations.parse("2s")
    ),
    "cancel while running": Agent.Config(
        poll=parse_polls("every 10s"), cancel_us=Durations.parse("31s")
    ),
    "unshare while queued": Agent.Config(poll=parse_polls("every 10s")),
}
STEPS = {
    "unshare while queued": (
        Step(at_us=3 * S, act="unshare", session=SESSION.id),
        Step(at_us=31 * S, act="share", session=SESSION.id),
    )
}
EACH_SETTING = pytest.mark.parametrize("setting", RELAYS)
EACH_STORY = pytest.mark.parametrize("story", AGENTS)
Hook = Callable[[ActorContext, Sequence[Undo]], Commit]


class Kill:
    """A commit hook that lets some turns, counted from 1 over all actors, end badly."""

    def __init__(self, *turns: int, verdict: Commit = Commit.CRASHED) -> None:
        self.turns = turns
        self.verdict = verdict
        self.seen = 0
        self.killed: list[str] = []

    def __call__(self, context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        self.seen += 1
        if self.seen not in self.turns:
            return Commit.DONE
        self.killed.append(context.name)
        return self.verdict


def play(
    setting: str,
    story: str,
    hook: Hook | None = None,
    drop: Drop | None = None,
    serve: Callable[[Place], Server] | None = None,
) -> tuple[Simulator, Trace]:
    """Play a story to its end and return the world as it stands then, and what happened."""
    judge = None if drop is None else drop.at_work()

    def link(sim: Simulator, _source: str, _target: str) -> Link | None:
        return None if judge is None else sim.new_link(judges=[judge])

    sim = make_cell(
        server=SERVER,
        serve=serve,
        relay=RELAYS[setting],
        engine=Engine.Config(duration_us=Durations.parse("60s")),
        agent=AGENTS[story],
        steps=STEPS.get(story, ()),
        commit_hook=hook,
        link=link,
    )
    if judge is not None:
        put_to_work(judge, sim)
    sim.on_begin.append(lambda: sim.at(UNTIL_US, sim.finish))
    trace = Trace()
    sim.run(0, trace)
    return sim, trace


def turns_of(setting: str, story: str) -> int:
    """How many turns there are until the agent has noticed the end, and a pass beyond."""
    times_us: list[int] = []

    def hook(context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        times_us.append(context.now_us)
        return Commit.DONE

    sim, trace = play(setting, story, hook)
    assert complaints(sim, trace) == []
    (noticed_us,) = {
        record[2]
        for record in trace.kinds("message")
        if isinstance(record[4].body, GraphRun) and record[4].body.status in TERMINAL
    }
    return sum(now_us <= noticed_us + 25 * S for now_us in times_us)


def fails(setting: str, story: str, **how: Any) -> list[str]:
    """Play a story and return what is wrong in the end."""
    return complaints(*play(setting, story, **how))


@EACH_STORY
@EACH_SETTING
@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_any_turn_may_end_badly(setting: str, story: str, verdict: Commit) -> None:
    killed: set[str] = set()
    wrong = {}
    for turn in range(1, turns_of(setting, story) + 1):
        kill = Kill(turn, verdict=verdict)
        found = fails(setting, story, hook=kill)
        killed.update(kill.killed)
        if found:
            wrong[turn, *kill.killed] = found
    assert wrong == {}
    assert killed >= {"server", "relay", "agent"}
    assert "engine" in killed or story.endswith("queued")


@EACH_STORY
@EACH_SETTING
def test_any_two_turns_may_end_badly(setting: str, story: str) -> None:
    chance = Random(f"{setting} {story}")
    last = turns_of(setting, story)
    wrong = {}
    for _ in range(200):
        turns = chance.randint(1, last), chance.randint(1, last)
        kill = Kill(*turns)
        found = fails(setting, story, hook=kill)
        if found:
            wrong[turns] = (kill.killed, found)
    assert wrong == {}


def messages_of(setting: str, story: str) -> dict[str, int]:
    """How many messages of each type there are."""
    _, trace = play(setting, story)
    counts: dict[str, int] = {}
    for record in trace.kinds("message"):
        name = type(record[4].body).__name__
        counts[name] = counts.get(name, 0) + 1
    return counts


@EACH_STORY
@EACH_SETTING
def test_any_message_may_be_lost(setting: str, story: str) -> None:
    wrong = {}
    for message, count in messages_of(setting, story).items():
        for nth in range(1, min(count, 8) + 1):
            sim, trace = play(setting, story, drop=Drop(message=message, nth=nth))
            assert len(trace.kinds("drop")) == 1
            found = complaints(sim, trace)
            if found:
                wrong[message, nth] = found
    assert wrong == {}


@EACH_STORY
@EACH_SETTING
def test_a_message_may_be_lost_and_a_turn_end_badly(setting: str, story: str) -> None:
    chance = Random(f"{setting} {story}")
    last = turns_of(setting, story)
    counts = messages_of(setting, story)
    wrong = {}
    for _ in range(200):
        message = chance.choice(sorted(counts))
        drop = Drop(message=message, nth=chance.randint(1, min(counts[message], 8)))
        kill = Kill(chance.randint(1, last))
        found = fails(setting, story, hook=kill, drop=drop)
        if found:
            wrong[message, drop.nth, kill.turns, *kill.killed] = found
    assert wrong == {}


def test_the_stories_go_through_every_message_but_those_of_strangers() -> None:
    said = {name for setting in RELAYS for story in AGENTS for name in messages_of(setting, story)}
    assert {
        "RunGraphSession",
        "GetGraphRun",
        "CancelGraphRun",
        "GraphRun",
        "Sync",
        "Commands",
        "Start",
        "StartAnswer",
        "Control",
        "ControlAnswer",
        "Complete",
        "Accepted",
        "FleetRun",
        "FleetStarted",
        "FleetCancel",
        "FleetFinished",
        "FleetAcknowledged",
        "Share",
        "Unshare",
        "Noted",
    } <= said
