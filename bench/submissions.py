"""Measure a server that keeps what it is told: submissions a second, on disk when answered.

A crowd asks a server on the trio host to queue runs, as many at a time as its mailbox holds, over
the wire's own encoding. Each answer leaves after its commit: of up to 64 turns together, or of one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from actors.actor import Context, Handler, Place, Session, Unanswered
from actors.durable import DurableStore, DurableWorld
from actors.messages import GraphRun, Message, RunGraphSession
from actors.server import Server
from transports.envelope import Envelope

AT_ONCE = 200  # below a mailbox's 256: nobody waits before the server's door
TIMEOUT_US = 60_000_000
SESSION = Session(id="gs_" + "0" * 32, name="demo", slug="demo", project="default", relay="relay")


class Crowd:
    """An actor that asks, and asks again for each answer, until its time is up."""

    def __init__(self, duration_s: float) -> None:
        self.duration_s = duration_s
        self.handlers: Mapping[type[Any], Handler] = {
            GraphRun: self.on_answer,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Ask so many questions at once."""
        self.asked = self.answers = 0
        self.begun_s = time.perf_counter()
        for _ in range(AT_ONCE):
            self.ask(context)

    def ask(self, context: Context) -> None:
        """Submit a run."""
        self.asked += 1
        body = RunGraphSession(
            graph_session_id=SESSION.id,
            arguments={"question": "What did we sell last quarter?"},
            idempotency_key=f"idempotency-key-{self.asked:020}",
        )
        context.request("server", body, TIMEOUT_US)

    def on_answer(self, context: Context, envelope: Envelope[Message]) -> None:
        """Count a ticket."""
        self.answers += 1
        self.took_s = time.perf_counter() - self.begun_s
        if self.took_s < self.duration_s:
            self.ask(context)
        else:
            context.done()

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Fail: nothing is lost here."""
        raise AssertionError("a submission was not answered")

    def on_timer(self, context: Context, timer: str) -> None:
        """Set none."""


def submissions_per_s(store: DurableStore, *, group_turns: int, duration_s: float) -> float:
    """Return how many runs a second a server queues in a store, with so many turns a commit."""
    world = DurableWorld(time.time_ns(), "bench", clock=None)
    world.group_turns = group_turns
    crowd = Crowd(duration_s)
    config = Server.Config(agent_limit=1 << 30, device_limit=1 << 30)
    world.add("server", Server(config, Place(name="server", sessions=(SESSION,))))
    world.add("crowd", crowd)
    world.keep("server", store)
    world.connect(lambda _source, _target: None)
    world.on_done = lambda _name: world.finish()
    world.run(0)
    return crowd.answers / crowd.took_s
