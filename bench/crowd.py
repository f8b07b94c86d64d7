"""Desktops and agents for a benchmark: many connections in one process, each a real client's.

A desktop polls at a random time in each interval, takes the runs that it is offered one after
another, asks before each whether it may start, looks for a cancel while it executes, and posts a
result of 2,000 characters. An agent thinks, submits, sleeps as long as the server's hint says, asks
how its run stands, and from then on lets the server hold the question back until something changes;
last it reads the result once more. How long each answer took is noted.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from math import inf
from typing import Any, NamedTuple

import trio

from actors.edges.door import NewToken
from actors.messages import (
    TERMINAL,
    Accepted,
    Command,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    Failure,
    GetGraphRun,
    GraphRun,
    RunGraphSession,
    SessionMeta,
    Start,
    StartAnswer,
    Sync,
)
from bench.deployment import Known
from scenarios.service.client import CALL_ERRORS, Caller, calling
from transports.handshake import Hello
from transports.listening import Address
from transports.tcp import connect_tcp

PROJECT = "bench"
GREETING = 32  # at once: a server lets 64 strangers wait
WAIT_US = 20_000_000  # how long a server may hold a question back
AGAIN_S = 1.0  # before a connection that broke is made again
CAPACITY = 100
RESULT = "x" * 2_000
TO_DEVICES = (Commands, StartAnswer, ControlAnswer, Accepted, NewToken)
TO_AGENTS = (GraphRun, Failure)


class Pace(NamedTuple):
    """How a crowd behaves, in seconds."""

    poll_s: float = 20.0
    control_s: float = 3.0
    run_s: tuple[float, float] = (2.0, 10.0)  # from, to
    think_s: tuple[float, float] = (0.0, 20.0)

    def scaled(self, poll_s: float) -> Pace:
        """Return the same behaviour with other polls."""
        by = poll_s / self.poll_s
        shortest_s, longest_s = self.run_s
        run_s, think_s = (shortest_s * by, longest_s * by), (0.0, self.think_s[1] * by)
        return Pace(poll_s, self.control_s * by, run_s, think_s)


class Crowd:
    """Everybody who talks to one server, and what they noted: seconds, by what was asked."""

    def __init__(self, address: Address, pace: Pace, seed: int) -> None:
        self.address = address
        self.pace = pace
        self.chance = random.Random(seed)
        self.took_s: dict[str, list[float]] = defaultdict(list)
        self.errors: dict[str, int] = defaultdict(int)
        self.runs = 0  # that an agent has read the result of
        self.synced = 0  # desktops that have
        self._greeting = trio.Semaphore(GREETING)
        self._posted_s: dict[str, float] = {}  # when a run's result was posted

    def forget(self) -> None:
        """Begin to note anew."""
        self.took_s.clear()
        self.errors.clear()
        self.runs = 0

    async def ask(self, kind: str, caller: Caller, body: Any) -> Any:
        """Ask, and note how long the answer took."""
        since_s = trio.current_time()
        answer = await caller.ask(body)
        self.took_s[kind].append(trio.current_time() - since_s)
        return answer

    async def stay(
        self,
        kind: str,
        who: Known,
        heard: Sequence[type[Any]],
        live: Callable[[Caller], Awaitable[None]],
    ) -> None:
        """Be connected, and again when that ends; not too many connect at once."""
        connect = partial(connect_tcp, self.address.host, self.address.port)
        hello = Hello(name=kind, boot=f"boot-{who.id}", token=who.token)
        while True:
            try:
                async with AsyncExitStack() as stack:
                    async with self._greeting:
                        since_s = trio.current_time()
                        caller = await stack.enter_async_context(calling(connect, hello, heard))
                        self.took_s["greeting"].append(trio.current_time() - since_s)
                    await live(caller)
            except CALL_ERRORS as error:
                self.errors[f"{kind}: {error}"] += 1
            await trio.sleep(AGAIN_S)

    # Desktops

    def session_of(self, number: int) -> SessionMeta:
        """Return what a desktop shares."""
        name = f"report-{number}"
        return SessionMeta(id=f"gs_{number:032x}", project=PROJECT, name=name, slug=name)

    async def desktop(self, number: int, who: Known) -> None:
        """Be a desktop until cancelled."""
        first = True
        session = self.session_of(number)

        async def live(caller: Caller) -> None:
            nonlocal first
            desktop = Desktop(self, caller, session, f"boot-{number}")
            await desktop.sync()
            self.synced += first
            first = False
            await desktop.run()

        await self.stay("device", who, TO_DEVICES, live)

    def posted(self, command_id: str) -> None:
        """Note that the server has a run's result."""
        self._posted_s[command_id] = trio.current_time()

    # Agents

    async def agent(self, number: int, who: Known, desktops: int) -> None:
        """Be an agent until cancelled."""
        serial = 0

        async def live(caller: Caller) -> None:
            nonlocal serial
            while True:
                await trio.sleep(self.chance.uniform(*self.pace.think_s))
                serial += 1
                body = self.submission(self.chance.randrange(desktops), number, serial)
                await self.follow(caller, await self.ask("submit", caller, body))

        await self.stay("agent", who, TO_AGENTS, live)

    async def submitter(self, number: int, who: Known, desktops: int) -> None:
        """Be an agent that only submits, one run after another, until cancelled."""
        serial = 0

        async def live(caller: Caller) -> None:
            nonlocal serial
            while True:
                serial += 1
                body = self.submission(serial % desktops, number, serial)
                answer = await self.ask("submit", caller, body)
                if isinstance(answer, Failure):
                    self.errors[f"agent: {answer.code}"] += 1

        await self.stay("agent", who, TO_AGENTS, live)

    def submission(self, desktop: int, agent: int, serial: int) -> RunGraphSession:
        """Return a run of a desktop's session."""
        return RunGraphSession(
            graph_session_id=self.session_of(desktop).id,
            arguments={"question": "What did we sell last quarter?", "limit": 10},
            idempotency_key=f"key-{agent:06}-{serial:06}",
        )

    async def follow(self, caller: Caller, answer: GraphRun | Failure) -> None:
        """Ask how a run stands until it has ended, and then for its result."""
        kind, wait_us, asked_s = "get", 0, inf
        while isinstance(answer, GraphRun) and answer.status not in TERMINAL:
            if answer.poll_after_us is not None:
                await trio.sleep(answer.poll_after_us / 1e6)
            body = GetGraphRun(command_id=answer.command_id, wait_us=wait_us)
            asked_s = trio.current_time() if wait_us else inf
            answer = await self.ask(kind, caller, body)
            kind, wait_us = "held", WAIT_US
        if isinstance(answer, Failure):
            self.errors[f"agent: {answer.code}"] += 1
            return
        posted_s = self._posted_s.pop(answer.command_id, None)
        if posted_s is not None and posted_s > asked_s:
            self.took_s["told"].append(trio.current_time() - posted_s)
        again: Any = await self.ask("get", caller, GetGraphRun(command_id=answer.command_id))
        if again != answer or answer.status != "completed" or answer.result != RESULT:
            self.errors[f"agent: a run is {answer.status}"] += 1
        self.runs += 1


class Desktop:
    """One desktop's connection: its polls, and the one run that it executes."""

    def __init__(self, crowd: Crowd, caller: Caller, session: SessionMeta, boot: str) -> None:
        self.crowd = crowd
        self.caller = caller
        self.session = session
        self.boot = boot
        self.waiting: deque[Command] = deque()
        self.current: Command | None = None
        self.look_s = self.done_s = inf  # when the current run is looked after, and ends
        self.window_s = trio.current_time()
        self.poll_s = self.next_poll_s()

    def next_poll_s(self) -> float:
        """Return a time in the next interval."""
        interval_s = self.crowd.pace.poll_s
        self.window_s += interval_s
        return self.window_s - interval_s * self.crowd.chance.random()

    async def ask(self, kind: str, body: Any) -> Any:
        """Ask the server."""
        return await self.crowd.ask(kind, self.caller, body)

    async def run(self) -> None:
        """Do what is due, until cancelled."""
        while True:
            if self.current is None and self.waiting:
                await self.start(self.waiting.popleft())
            await trio.sleep_until(min(self.poll_s, self.look_s, self.done_s))
            now_s = trio.current_time()
            if self.poll_s <= now_s:
                self.poll_s = self.next_poll_s()
                await self.sync()
            elif self.done_s <= now_s:
                await self.complete()
            else:
                await self.control()

    async def sync(self) -> None:
        """Poll."""
        current = () if self.current is None else (self.current,)
        held = tuple(command.command_id for command in (*current, *self.waiting))
        body = Sync(
            boot=self.boot,
            sessions=(self.session,),
            open=held,
            capacity=CAPACITY,
            poll_us=int(self.crowd.pace.poll_s * 1e6),
        )
        told: Commands = await self.ask("sync", body)
        self.waiting.extend(told.commands)

    async def start(self, command: Command) -> None:
        """Ask whether a run may start, and begin it."""
        body = Start(command_id=command.command_id, boot=self.boot, delivery=command.delivery)
        told: StartAnswer = await self.ask("start", body)
        if not told.go:
            self.crowd.errors[f"desktop: may not start, {told.reason}"] += 1
            return
        pace, now_s = self.crowd.pace, trio.current_time()
        self.current = command
        self.look_s = now_s + pace.control_s
        self.done_s = now_s + self.crowd.chance.uniform(*pace.run_s)

    async def control(self) -> None:
        """Look for a cancel; nobody here does."""
        assert self.current is not None, "it runs"
        self.look_s += self.crowd.pace.control_s
        body = Control(command_id=self.current.command_id, boot=self.boot)
        told: ControlAnswer = await self.ask("control", body)
        if told.stop:
            self.crowd.errors[f"desktop: shall stop, {told.reason}"] += 1

    async def complete(self) -> None:
        """Post what became of the run."""
        command = self.current
        assert command is not None, "it runs"
        self.crowd.posted(command.command_id)
        done = Completion(
            execution_id=f"ex-{command.command_id}", status="completed", result=RESULT
        )
        body = Complete(
            command_id=command.command_id,
            boot=self.boot,
            delivery=command.delivery,
            completion=done,
        )
        await self.ask("complete", body)
        self.current, self.look_s, self.done_s = None, inf, inf
