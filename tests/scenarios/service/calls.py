"""An agent that asks until it is answered, and what it has asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import trio

from actors.messages import (
    TERMINAL,
    CancelGraphRun,
    Failure,
    GetGraphRun,
    GraphRun,
    GraphSessions,
    RunGraphSession,
)
from scenarios.service.client import BOOT, CALL_ERRORS, calling
from transports.connection import Timings
from transports.handshake import Hello
from transports.listening import Address
from transports.tcp import connect_tcp

HEARD: Final = (GraphRun, GraphSessions, Failure)
AGAIN_S: Final = 0.1  # between a question that was not answered and the next
ANSWER_S: Final = 4.0  # for an answer: longer than the server may hold it back
WAIT_US: Final = 1_000_000
QUICK: Final = Timings(connect_s=3.0, handshake_s=3.0)


class Calls:
    """Asks over a new connection each time, since nothing says that the last one lives."""

    def __init__(self, address: Address, token: str) -> None:
        self.unanswered = 0
        self._connect = partial(connect_tcp, address.host, address.port)
        self._hello = Hello(name="agent", boot=BOOT, token=token)

    async def ask(self, body: Any) -> Any:
        """Ask until there is an answer; every question may be asked again."""
        while True:
            try:
                async with calling(self._connect, self._hello, HEARD, timings=QUICK) as caller:
                    return await caller.ask(body, ANSWER_S)
            except CALL_ERRORS:
                self.unanswered += 1
                await trio.sleep(AGAIN_S)


@dataclass
class Wish:
    """One run that an agent wants, and what it was told of it.

    `mark` is its key too. `cancel_s` is how long after the ticket it is cancelled, None for never.
    """

    mark: str
    steps: int
    before_s: float
    after_s: float
    delay_s: float
    cancel_s: float | None = None
    ticket: str = ""
    told: list[GraphRun | Failure] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def run(self) -> GraphRun | None:
        """The run as it ended, None if it has not, or is not known any more."""
        last = self.told[-1] if self.told else None
        return last if isinstance(last, GraphRun) and last.status in TERMINAL else None

    @property
    def lost(self) -> bool:
        """Whether the server has said that it does not know it."""
        return bool(self.told) and isinstance(self.told[-1], Failure)

    async def live(self, calls: Calls, session: str) -> None:
        """Queue it, cancel it if that is wished, and follow it to its end."""
        await trio.sleep(self.delay_s)
        pauses = {"before_s": self.before_s, "after_s": self.after_s}
        body = RunGraphSession(
            graph_session_id=session,
            idempotency_key=f"key of {self.mark}",
            arguments={"mark": self.mark, "steps": self.steps, **pauses},
        )
        async with trio.open_nursery() as nursery:  # its answer may be late, and it asks again
            nursery.start_soon(self._queue, calls, body)
            nursery.start_soon(self._queue, calls, body)
        if self.ticket and self.cancel_s is not None:
            await trio.sleep(self.cancel_s)
            self.hear(await calls.ask(CancelGraphRun(command_id=self.ticket)))
        while self.ticket and self.run is None and not self.lost:
            await self.look(calls)

    async def look(self, calls: Calls) -> None:
        """Ask how it stands."""
        body = GetGraphRun(command_id=self.ticket, wait_us=WAIT_US)
        self.hear(await calls.ask(body))

    async def _queue(self, calls: Calls, body: RunGraphSession) -> None:
        answer = await calls.ask(body)
        if isinstance(answer, Failure):
            self.complaints.append(f"{self.mark} was not queued: {answer.error}")
        elif self.ticket not in ("", answer.command_id):
            self.complaints.append(f"one key got two tickets: {self.ticket}, {answer.command_id}")
        else:
            self.ticket = answer.command_id

    def hear(self, answer: GraphRun | Failure) -> None:
        """Note what was told; the end of a run never changes."""
        ended = self.run
        self.told.append(answer)
        if isinstance(answer, Failure):
            self.complaints.append(f"{self.ticket}: {answer.error}")
        elif ended is not None and (ended.status, ended.result) != (answer.status, answer.result):
            what = f"{self.ticket} was {ended.status} and is {answer.status}"
            self.complaints.append(what)
