"""A deployed server among real actors, killed at every commit point, with every message lost once.

What holds of the published server holds of it; and whatever was undone, the audit tells exactly
what stayed.
"""

from __future__ import annotations

from random import Random

import pytest

from actors.accounts.server import AccountedServer
from actors.accounts.tokens import LOCAL_OWNER
from actors.actor import Commit, Context, Place
from actors.messages import GraphRun
from actors.simulator import Simulator
from tests.actors.harness import Trace, rows
from tests.actors.test_crash_points import EACH_STORY, Kill
from tests.actors.test_crash_points import play as play_with
from tests.actors.verdicts import complaints
from transports.faults.drop import Drop


class Seeded(AccountedServer):
    """Knows the world's agent and desktop as principals of its first owner."""

    def share_given(self, now_us: int) -> None:
        for principal, kind in (("agent", "agent"), ("relay", "device")):
            if self.accounts.find(principal) is None:
                self.accounts.add(
                    self.seeding,
                    kind,  # type: ignore[arg-type]  # one of the three
                    principal,
                    LOCAL_OWNER,
                    identity=principal,
                    scopes=("graphs:read", "graphs:run"),
                )
        super().share_given(now_us)

    def on_start(self, context: Context) -> None:
        self.seeding = context
        super().on_start(context)


def serve(place: Place) -> AccountedServer:
    return Seeded(AccountedServer.Config(), place)


def play(story: str, hook: Kill, drop: Drop | None = None) -> tuple[Simulator, Trace]:
    """Play a story to its end and return the world as it stands then, and what happened."""
    return play_with("recommended", story, hook, drop, serve)


def wrong(sim: Simulator, trace: Trace, unheard: int = 0) -> list[str]:
    """What is not as it must be in the end."""
    found = complaints(sim, trace, unheard=unheard)
    for run in rows(sim, "server", "runs"):
        want = ["run.queue", *["run.start"] * (run.started_us is not None), f"run.{run.status}"]
        acts = [row for row in rows(sim, "server", "audit") if row.subject == run.command_id]
        acts.sort(key=lambda row: row.listed, reverse=True)
        told = [row.act for row in acts if row.act != "run.cancel"]
        if told != want:
            found.append(f"the audit says {told} of a run that was {want}")
    return found


@EACH_STORY
@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_any_turn_may_end_badly(story: str, verdict: Commit) -> None:
    whole = Kill()
    sim, trace = play(story, whole)
    assert wrong(sim, trace) == []
    assert trace.bodies(GraphRun)
    found = {}
    for turn in range(1, whole.seen + 1):
        kill = Kill(turn, verdict=verdict)
        if complaint := wrong(*play(story, kill)):
            found[turn, *kill.killed] = complaint
    assert found == {}


@EACH_STORY
def test_a_message_may_be_lost_and_a_turn_end_badly(story: str) -> None:
    chance = Random(story)
    whole = Kill()
    _, trace = play(story, whole)
    said = sorted({type(record[4].body).__name__ for record in trace.kinds("message")})
    found = {}
    for _ in range(100):
        drop = Drop(message=chance.choice(said), nth=chance.randint(1, 3))
        kill = Kill(chance.randint(1, whole.seen))
        if complaint := wrong(*play(story, kill, drop)):
            found[drop.message, drop.nth, kill.turns, *kill.killed] = complaint
    assert found == {}
