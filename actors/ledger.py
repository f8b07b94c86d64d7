"""What a server keeps: its rows and its tables. A run is one row for its whole life."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from actors.actor import TableSpec
from actors.messages import (
    TERMINAL,
    Command,
    Completion,
    GraphRun,
    Natural,
    SessionListing,
    SessionMeta,
)
from actors.text import units

NOTHING = Completion(execution_id=None, status="interrupted")  # in place of a completion

_replace = msgspec.structs.replace


class Run(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run's row. `open_on` and `due_us` are indexed; None takes the row out of the index.

    Runs are offered in the order of their `rank`, those of one rank as they were queued.
    """

    command_id: str
    agent: str
    key: str
    device: str
    session: str
    slug: str
    generation: int
    arguments: dict[str, Any]
    status: str
    queued_us: int
    open_on: str | None
    open_for: str | None
    due_us: int
    hint_us: int | None = None
    boot: str = ""
    delivery: int = 0
    started_us: int | None = None
    finished_us: int | None = None
    cancel_requested: bool = False
    error: str | None = None
    completion: Completion | None = None
    late: Completion | None = None
    traceparent: str = ""
    rank: int = 0
    awaiting: Natural | msgspec.UnsetType = msgspec.UNSET  # calls that wait for the desktop's owner

    def command(self) -> Command:
        """Return the run as its last delivery offers it to a relay."""
        return Command(
            command_id=self.command_id,
            delivery=self.delivery,
            session=self.session,
            slug=self.slug,
            generation=self.generation,
            arguments=self.arguments,
            traceparent=self.traceparent,
        )

    def ending(self, was: str, cause: str) -> dict[str, Any]:
        """Return the fields of its end's event; a result's size is its text's, in two units."""
        done = self.completion or NOTHING
        text = done.result if isinstance(done.result, str) else ""
        return {
            "run": self.command_id,
            "status": self.status,
            "cause": cause,
            "was": was,
            "tokens": done.total_tokens,
            "cost": done.reported_cost,
            "truncated": done.result_truncated,
            "chars": units(text),
            "bytes": len(text) if text.isascii() else len(text.encode()),
        }

    def answer(self) -> GraphRun:
        """Return the run as its agent sees it."""
        answer = GraphRun(
            command_id=self.command_id,
            status=self.status,
            error=self.error,
            cancel_requested=self.cancel_requested,
            poll_after_us=None if self.status in TERMINAL else self.hint_us,
            awaiting_approval=self.awaiting or msgspec.UNSET,
        )
        done = self.completion
        if done is None:
            return answer
        return _replace(
            answer,
            result=done.result if self.status == "completed" else None,
            result_truncated=done.result_truncated,
            error=self.error or done.error,
            execution_id=done.execution_id,
            total_tokens=done.total_tokens,
            reported_cost=done.reported_cost,
        )


class Ticket(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an agent's key stands for. It outlives its run: `final` is the deleted run's status.

    Of what was asked for a digest is left then. One that is not kept for ever has its own `key`,
    agent and key, and is deleted at `due_us`.
    """

    meaning: bytes
    command_id: str
    final: str | None = None
    key: tuple[str, str] | None = None
    due_us: int | None = None

    def means(self, meaning: bytes) -> bool:
        """Whether it was asked for just this."""
        return self.meaning in (meaning, sha256(meaning).digest())

    def spent(self, run: Run, kept_us: int | None) -> Ticket:
        """Return the ticket without its run, which is deleted, and without what was asked for.

        It is kept so long behind the run's time; None is for ever.
        """
        spent = _replace(self, final=run.status, meaning=sha256(self.meaning).digest())
        if kept_us is None:
            return spent
        return _replace(spent, key=(run.agent, run.key), due_us=run.due_us + kept_us)


class Device(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A relay as its last contact showed it."""

    boot: str
    seen_us: int
    poll_us: int
    sessions: tuple[SessionMeta, ...]


class Shared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One session that a device shares with a project."""

    device: str
    project: str
    meta: SessionMeta

    def listing(self) -> SessionListing:
        """Return the session as an agent sees it."""
        meta = self.meta
        return SessionListing(
            graph_session_id=meta.id,
            name=meta.name,
            description=meta.description,
            slug=meta.slug,
            version=meta.version,
            status=meta.status,
        )


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far a device has come in the order of its runs: the highest rank that has started."""

    rank: int


RUNS = TableSpec(
    "runs",
    Run,
    open=("open_on", "rank", "queued_us"),
    load=("open_for", "open_on"),
    due=("due_us",),
)
TICKETS = TableSpec("tickets", Ticket, due=("due_us",))
DEVICES = TableSpec("devices", Device)
TURNS = TableSpec("turns", Turn)
SESSIONS = TableSpec("sessions", Shared, project=("project",), device=("device",))
