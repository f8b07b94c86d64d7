"""What a deployed desktop keeps beside its journal and outbox: sessions, history, saved Graphs."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.actor import TableSpec
from actors.desktop.messages import PastRun
from actors.journal import Consent


class OwnSession(Consent, frozen=True, kw_only=True, gc=False):
    """A session that its owner added; those that are ticked have a `place`, in order of ticking."""

    slug: str
    place: int | None = None
    sha256: str = ""


class Past(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run of the history; `kept` is its number again while its result is kept."""

    number: int
    command_id: str
    execution_id: str | None
    session: str
    run: PastRun
    kept: int | None = None


class KeptResult(msgspec.Struct, frozen=True, gc=False):
    """A result as it was posted."""

    result: Any


class Saved(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session's Graph as its owner saved it, with all that it may call."""

    session: str
    entry: str
    texts: dict[str, str]
    version: int
    sha256: str
    saved_us: int
    description: str = ""


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An execution whose result its relay has on disk, and its engine still keeps."""

    number: int
    channel: str


OWN_SESSIONS = TableSpec("graph_sessions", OwnSession, slug=("slug",), place=("place",))
HISTORY = TableSpec(
    "history",
    Past,
    order=("number",),
    run=("command_id",),
    execution=("execution_id",),
    session=("session", "number"),
    kept=("kept",),
)
RESULTS = TableSpec("results", KeptResult)
ACKNOWLEDGED = TableSpec("acknowledged", Acknowledged, order=("number",))
GRAPHS = TableSpec("graphs", Saved, session=("session",))
PINNED = TableSpec("pinned", Saved)  # what executes, by channel
