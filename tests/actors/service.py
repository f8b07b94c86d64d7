"""A server on a bench, with the words in which agents and relays speak to it."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.actor import Place
from actors.ledger import RUNS, Run
from actors.messages import (
    TERMINAL,
    Accepted,
    CancelGraphRun,
    Command,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    Ending,
    GetGraphRun,
    GraphRun,
    RunGraphSession,
    SessionMeta,
    Start,
    StartAnswer,
    Sync,
)
from actors.server import Server
from tests.actors.harness import SESSION, Bench, S, body_of
from transports.units import Duration

DAY = 86_400 * S
META = SessionMeta(id=SESSION.id, project="default", name="demo", slug="demo")
RESULT = Completion(execution_id="x", status="completed", result="R", total_tokens=7)


class Service(Bench):
    """A server, with the words in which agents and relays speak to it."""

    actor: Server

    def __init__(self, **config: Any) -> None:
        place = Place(name="server", sessions=(SESSION,))
        super().__init__(Server(Server.Config(**config), place), "server")

    def run(self, key: str = "key-0000", agent: str = "agent", **arguments: Any) -> GraphRun:
        """Queue a run and return the answer."""
        body = RunGraphSession(
            graph_session_id=SESSION.id, idempotency_key=key, arguments=arguments
        )
        return body_of(self.deliver(agent, body), GraphRun)

    def get(self, run: str, agent: str = "agent") -> GraphRun:
        return body_of(self.deliver(agent, GetGraphRun(command_id=run)), GraphRun)

    def status(self, run: str) -> str:
        return self.get(run).status

    def cancel(self, run: str) -> GraphRun:
        return body_of(self.deliver("agent", CancelGraphRun(command_id=run)), GraphRun)

    def sync(
        self, *held: str, boot: str = "boot-1", capacity: int = 100, device: str = "relay"
    ) -> tuple[Command, ...]:
        body = Sync(boot=boot, sessions=(META,), open=held, capacity=capacity, poll_us=20 * S)
        return body_of(self.deliver(device, body), Commands).commands

    def start_run(
        self, run: str, delivery: int = 1, boot: str = "boot-1", device: str = "relay"
    ) -> StartAnswer:
        body = Start(command_id=run, boot=boot, delivery=delivery)
        return body_of(self.deliver(device, body), StartAnswer)

    def control(self, run: str, boot: str = "boot-1", device: str = "relay") -> ControlAnswer:
        return body_of(self.deliver(device, Control(command_id=run, boot=boot)), ControlAnswer)

    def complete(
        self, run: str, done: Completion = RESULT, device: str = "relay", boot: str = "boot-1"
    ) -> None:
        body = Complete(command_id=run, boot=boot, delivery=1, completion=done)
        assert body_of(self.deliver(device, body), Accepted) == Accepted(command_id=run)

    def sweep_at(self, now_us: int) -> None:
        """Let time come to a moment and wake the server for its sweep if it is due by then."""
        while self.context.timers.get("sweep", now_us + 1) <= now_us:
            self.fire("sweep")
        self.context.now_us = max(self.context.now_us, now_us)

    def row(self, run: str) -> Run | None:
        return self.context.store.table(RUNS).get(run)

    # Ways into each state

    def queued(self) -> str:
        return self.run().command_id

    def running(self) -> str:
        run = self.queued()
        self.sync()
        assert self.start_run(run).go
        return run


def completion(status: Ending) -> Completion:
    return msgspec.structs.replace(RESULT, status=status)


STATES = ("queued", "running", *sorted(TERMINAL))


def service_with(state: str) -> tuple[Service, str]:
    """A server with a run in a state, reached by messages."""
    service = Service(reconcile=True, retention_us=Duration(300 * DAY), delivery_limit=3)
    if state in {"queued", "expired"}:
        run = service.queued()
        if state == "expired":
            service.sweep_at(8 * DAY)
    else:
        run = service.running()
        if state in {"completed", "failed", "cancelled", "interrupted"}:
            service.complete(run, Completion(execution_id="x", status=state))  # type: ignore[arg-type]  # an ending
    assert service.status(run) == state
    return service, run
