"""Two server processes on one database: no run is started twice, no key gets two runs.

Each is a whole trio host in a thread of its own, with a server and a client that asks it. What the
clients race for is what relays and agents of a replicated server would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from actors.actor import Context, Handler, Place, Unanswered
from actors.durable import DurableWorld
from actors.ledger import RUNS, SESSIONS, Shared
from actors.messages import (
    Commands,
    GraphRun,
    RunGraphSession,
    SessionMeta,
    Start,
    StartAnswer,
    Sync,
)
from actors.server import Server
from actors.stores.postgres import PostgresStore
from bench.store import run
from tests.postgresql import address
from transports.envelope import Envelope

RUNS_QUEUED = 25
KEYS = 15
META = SessionMeta(id="gs_" + "0" * 32, project="default", name="demo", slug="demo")
TIMEOUT_US = 30_000_000


class Relay:
    """A boot of one device: it takes what it is offered, and asks leave to start it."""

    name = "relay-1"

    def __init__(self, boot: str, started: list[tuple[str, str, int]]) -> None:
        self.boot, self.started = boot, started
        self.handlers: Mapping[type[Any], Handler] = {
            Commands: self.on_commands,
            StartAnswer: self.on_answer,
            Unanswered: unanswered,
        }

    def on_start(self, context: Context) -> None:
        self.sync(context)

    def sync(self, context: Context) -> None:
        body = Sync(sessions=(META,), open=(), capacity=1, boot=self.boot, poll_us=1)
        context.request("server", body, TIMEOUT_US)

    def on_commands(self, context: Context, envelope: Envelope[Commands]) -> None:
        if not envelope.body.commands:
            context.done()
            return
        (command,) = envelope.body.commands
        self.asked = (command.command_id, self.boot, command.delivery)
        run, boot, delivery = self.asked
        body = Start(command_id=run, boot=boot, delivery=delivery)
        context.request("server", body, TIMEOUT_US)

    def on_answer(self, context: Context, envelope: Envelope[StartAnswer]) -> None:
        if envelope.body.go:
            self.started.append(self.asked)
        self.sync(context)

    def on_timer(self, context: Context, timer: str) -> None:
        raise AssertionError(timer)


class Agent:
    """An agent that submits each of its keys, one after another."""

    name = "agent-1"

    def __init__(self, tickets: list[tuple[str, str]]) -> None:
        self.tickets = tickets
        self.keys = [f"idempotency-key-{number}" for number in range(KEYS)]
        self.handlers: Mapping[type[Any], Handler] = {
            GraphRun: self.on_ticket,
            Unanswered: unanswered,
        }

    def on_start(self, context: Context) -> None:
        self.submit(context)

    def submit(self, context: Context) -> None:
        body = RunGraphSession(graph_session_id=META.id, arguments={}, idempotency_key=self.keys[0])
        context.request("server", body, TIMEOUT_US)

    def on_ticket(self, context: Context, envelope: Envelope[GraphRun]) -> None:
        self.tickets.append((self.keys.pop(0), envelope.body.command_id))
        if self.keys:
            self.submit(context)
        else:
            context.done()

    def on_timer(self, context: Context, timer: str) -> None:
        raise AssertionError(timer)


def unanswered(_context: Context, _envelope: Envelope[Unanswered]) -> None:
    raise AssertionError("nothing is lost here")


def race(where: str, *clients: Any) -> None:
    """Let each client ask a server process of its own until it is done."""
    failures: list[BaseException] = []

    def live(number: int, client: Any) -> None:
        try:
            with closing(PostgresStore(where)) as store:
                world = DurableWorld(number, "race", clock=None)
                config = Server.Config(agent_limit=1 << 20)
                world.add("server", Server(config, Place(name="server")))
                world.add(client.name, client)
                world.keep("server", store)
                world.connect(lambda _source, _target: None)
                world.on_done = lambda _name: world.finish()
                world.run(0)
        except BaseException as error:  # noqa: BLE001  it is raised where the test is
            failures.append(error)

    threads = [threading.Thread(target=live, args=each) for each in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def prepared(where: str, fill: Callable[[PostgresStore], None]) -> None:
    with closing(PostgresStore(where)) as store:
        store.table(SESSIONS).put(
            META.id, Shared(device=Relay.name, project=META.project, meta=META)
        )
        fill(store)
        store.commit()


def test_no_run_is_started_twice() -> None:
    where = address()

    def fill(store: PostgresStore) -> None:
        for number in range(RUNS_QUEUED):
            row = replace(run(number, ""), status="queued", open_on=Relay.name, boot="", delivery=0)
            store.table(RUNS).put(row.command_id, row)

    prepared(where, fill)
    started: list[tuple[str, str, int]] = []
    race(where, Relay("boot-1", started), Relay("boot-2", started))
    with closing(PostgresStore(where)) as store:
        rows = store.table(RUNS).scan("due", limit=100)
    assert len(rows) == RUNS_QUEUED
    assert {row.status for row in rows} == {"running"}
    assert sorted(started) == sorted((row.command_id, row.boot, row.delivery) for row in rows)


def test_no_key_gets_two_runs() -> None:
    where = address()
    prepared(where, lambda _store: None)
    tickets: list[tuple[str, str]] = []
    race(where, Agent(tickets), Agent(tickets))
    with closing(PostgresStore(where)) as store:
        rows = store.table(RUNS).scan("due", limit=100)
    assert len(tickets) == 2 * KEYS
    assert set(tickets) == {(row.key, row.command_id) for row in rows}
    assert len(rows) == KEYS
