"""What a server keeps: its rows and its tables. A run is one row for its whole life."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.actor import TableSpec
from actors.messages import Command, Completion, Natural, SessionListing, SessionMeta


class Run(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run's row. `open_on` and `due_us` are indexed; None takes the row out of the index."""

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


class Ticket(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an agent's key stands for. It outlives its run: `final` is the deleted run's status."""

    meaning: bytes
    command_id: str
    final: str | None = None


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

    @classmethod
    def by(cls, device: str, meta: SessionMeta) -> Shared:
        """Return the row of a session that a device shares."""
        return cls(device=device, project=meta.project, meta=meta)

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


RUNS = TableSpec("runs", Run, open=("open_on", "queued_us"), load=("open_for",), due=("due_us",))
TICKETS = TableSpec("tickets", Ticket)
DEVICES = TableSpec("devices", Device)
SESSIONS = TableSpec("sessions", Shared, project=("project",), device=("device",))

NOTHING = Completion(execution_id=None, status="interrupted")  # in place of a completion
