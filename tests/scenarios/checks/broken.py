"""Actors that break what one check holds, and quiet worlds in which they play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from actors.actor import Context
from actors.ledger import Run
from actors.messages import (
    GO,
    Accepted,
    Command,
    Complete,
    Completion,
    GraphSessions,
    ListGraphSessions,
    Message,
    SessionMeta,
    Start,
    Sync,
)
from actors.relay import Relay
from actors.server import Server
from scenarios.build import CellRun
from scenarios.checks.history import History
from tests.scenarios.checks.chaos import history
from tests.scenarios.loading import load
from transports.envelope import Envelope

LATE_US = 864_000_000_000  # ten days; a run has seven to start
OTHERS = Path(__file__).parent.parent / "broken_actors.py"  # those that break a promise


def played(
    folder: Path, part: str, name: str, text: str = "", *, file: Path | None = None, **how: Any
) -> History:
    """Return the history of a scenario in which this class plays this part."""
    use = f"{Path(__file__) if file is None else file}:{name}"
    plan = load(folder, f'[{part}]\nuse = "{use}"\n{text}')
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    return history(cell, **how)


class LosingServer(Server):
    """Deletes a run from the queue once it is offered."""

    def offer(self, context: Context, run: Run, boot: str) -> Command:
        command = super().offer(context, run, boot)
        self.runs.delete(run.command_id)
        return command


class AgreeingServer(Server):
    """Accepts every completion and keeps none."""

    def on_complete(self, context: Context, envelope: Envelope[Complete]) -> Message:
        return Accepted(command_id=envelope.body.command_id)


class LenientServer(Server):
    """Lets whatever it knows start."""

    def on_start_request(self, context: Context, envelope: Envelope[Start]) -> Message:
        super().on_start_request(context, envelope)
        return GO


class LavishServer(Server):
    """Offers without regard to room, and lists without regard to the limit."""

    def on_sync(self, context: Context, envelope: Envelope[Sync]) -> Message:
        body = msgspec.structs.replace(envelope.body, capacity=10)
        return super().on_sync(context, msgspec.structs.replace(envelope, body=body))

    def on_list(self, context: Context, envelope: Envelope[ListGraphSessions]) -> Message:
        rows = self.sessions.scan("project", (envelope.body.project_id,), limit=100)
        listing = tuple(row.listing() for row in rows)
        return GraphSessions(project_id=envelope.body.project_id, sessions=listing)


class BlindServer(Server):
    """Never sweeps."""

    def arm_sweep(self, context: Context, due_us: int, now_us: int) -> None: ...


class TardyServer(Server):
    """Sweeps later than the start deadline."""

    def arm_sweep(self, context: Context, due_us: int, now_us: int) -> None:
        super().arm_sweep(context, due_us + LATE_US, now_us)


class LyingRelay(Relay):
    """Posts a result of its own."""

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        super().finish(context, command, msgspec.structs.replace(done, result="made up"))


class WordyRelay(Relay):
    """Posts whole error texts."""

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        super().finish(context, command, msgspec.structs.replace(done, error="é" * 2_001))


class HoardingRelay(Relay):
    """Keeps in its outbox what was accepted."""

    def on_accepted(self, context: Context, envelope: Envelope[Accepted]) -> None:
        self.after_post(context, envelope.body.command_id)


class NarrowRelay(Relay):
    """Has room for one command."""

    def upload(self, shared: tuple[SessionMeta, ...]) -> None:
        super().upload(shared)
        self.idle_sync = msgspec.structs.replace(self.idle_sync, capacity=1)
