"""Histories made by hand, record by record."""

from __future__ import annotations

from typing import Any

from actors.messages import CHANNEL, Completion, FleetFinished, GraphRun, RunGraphSession
from logs.keep import MemoryRecorder
from logs.record import DropRecord, LateRecord, MessageRecord, Record
from scenarios.checks.history import Check, History, Violation
from transports.envelope import Envelope

S = 1_000_000  # a second in microseconds
KINDS = {
    "server": "server",
    "relay": "relay",
    "engine": "engine",
    "claude": "agent",
    "eve": "agent",
}
DONE = Completion(execution_id="e1", status="completed", result="xx", total_tokens=5)
SEEN = GraphRun(command_id="r1", status="completed", result="xx", execution_id="e1", total_tokens=5)


class Act(Record, frozen=True, tag="fault"):
    """What a host records of a fault that it carries out."""

    act: str


class Tale:
    """A history in the making; each method returns the number of its record."""

    def __init__(self) -> None:
        self.recorder = MemoryRecorder()
        self.now_us = 0
        self._ids = 0

    @property
    def last(self) -> int:
        """The number of the last record."""
        return self.recorder.records[-1].n

    def say(
        self,
        source: str,
        target: str,
        body: Any,
        *,
        to: int = 0,
        by: int | None = None,
        lost: bool = False,
        late: bool = False,
    ) -> int:
        """Send a message: an answer `to` the message of that record, in the turn `by`."""
        self._ids += 1
        asked = self.recorder.records[to - 1] if to else None
        assert asked is None or isinstance(asked, MessageRecord | LateRecord | DropRecord)
        reply_to = 0 if asked is None else asked.envelope.id
        envelope = Envelope(self._ids, source, target, reply_to, to if by is None else by, body)
        if lost:
            self.recorder.drop(self.now_us, envelope, "drop")
        elif late:
            self.recorder.late(self.now_us, envelope)
        else:
            self.recorder.message(self.now_us, envelope)
        return self.last

    def event(self, name: str, *, by: int = 0, actor: str = "server", **fields: Any) -> int:
        """Let an actor say something in the turn `by`."""
        self.recorder.event(self.now_us, actor, by, name, fields)
        return self.last

    def queue(self, run: str = "r1", agent: str = "claude", key: str = "key-0001") -> int:
        """Let an agent queue a run; return the number of `run.queued`."""
        call = self.say(
            agent, "server", RunGraphSession(graph_session_id="gs", idempotency_key=key)
        )
        queued = self.event("run.queued", by=call, run=run, agent=agent, session="gs")
        self.say("server", agent, GraphRun(command_id=run, status="queued"), to=call)
        return queued

    def end(self, status: str, run: str = "r1", by: int = 0) -> int:
        """Let the server say that a run has ended."""
        return self.event("run.terminal", by=by, run=run, status=status, was="running")

    def finish(self, done: Completion = DONE, run: str = "r1") -> int:
        """Let the engine report an end."""
        return self.say("engine", "relay", FleetFinished(channel=CHANNEL + run, completion=done))

    def kill(self, actor: str) -> None:
        """Let an actor be killed and stay down."""
        number = len(self.recorder.records) + 1
        self.recorder.records.append(Act(number, self.now_us, actor, 0, "kill"))

    def history(self, **how: Any) -> History:
        """Return what was told so far."""
        return History(self.recorder.records, kinds=KINDS, **how)

    def judge(self, check: Check, **how: Any) -> list[Violation]:
        """Return what a check finds in it."""
        return list(check(self.history(**how)))
