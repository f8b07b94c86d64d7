"""The fleet engine of a deployed desktop: it runs Graphs as their owner saved them.

A run goes with the texts that were saved when it was handed over, through a change of them, a wait
for its turn and a restart. That a channel was started is kept for ever, since it is never started
again; its result is kept here until many others were acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from actors.actor import Context, Handler, Place
from actors.desktop.chronicle import key_of
from actors.desktop.messages import (
    NOT_WRITABLE,
    DropGraph,
    EngineStatus,
    GetEngineStatus,
    GetGraph,
    GraphSaved,
    SavedGraph,
    SaveGraph,
)
from actors.desktop.rows import ACKNOWLEDGED, GRAPHS, PINNED, Acknowledged, Saved
from actors.desktop.sessions import SESSIONS_LIMIT, description_of, digest_of
from actors.engine import Execution
from actors.graph_engine import GraphEngine
from actors.messages import Completion, Failure, FleetAcknowledged, FleetRun, Message
from actors.relay_config import SLOTS_LIMIT
from transports.envelope import Envelope

# Results that a relay has on disk, for one whose disk is lost: it asks for those that it still has
# as open, a few. Each has 600 KB at most.
RESULTS_KEPT = 200
NO_GRAPH = Failure(code="not_found", error="no Graph is saved for this session")
FULL = Failure(
    code="too_many", error=f"{SESSIONS_LIMIT:,} Graphs are saved, and that is all: remove some"
)

_replace = msgspec.structs.replace


class DesktopEngine(GraphEngine):
    """See the module's docstring."""

    class Config(GraphEngine.Config, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What may be set of a deployed engine: each session brings a Graph of its own."""

        graph: Annotated[str, "a folder of Graphs for sessions that have none saved"] = ""
        max_runs: Annotated[
            int,
            msgspec.Meta(ge=1, le=10_000),
            "how many runs go at once; its relay's slots are fewer",
        ] = SLOTS_LIMIT

    config: Config

    def __init__(self, config: Config, place: Place) -> None:
        super().__init__(config, place)
        mine: dict[type[Any], Handler] = {
            SaveGraph: self.on_save_graph,
            DropGraph: self.on_drop_graph,
            GetGraph: self.on_get_graph,
            GetEngineStatus: self.on_status,
        }
        self.handlers = {**self.handlers, **mine}

    def on_start(self, context: Context) -> None:
        """Read what is saved, and begin as every engine does."""
        self.saved, self.pinned = context.store.table(GRAPHS), context.store.table(PINNED)
        self.acknowledged = context.store.table(ACKNOWLEDGED)
        kept = self.acknowledged.scan("order", limit=RESULTS_KEPT)
        self.kept, self.last = len(kept), kept[-1].number if kept else 0
        super().on_start(context)

    # Runs

    def begin(self, context: Context, execution: Execution, run: FleetRun) -> None:
        """Keep the texts that a run began with, and let it run."""
        saved = self.saved.get(run.session)
        if saved is not None:
            self.pinned.put(execution.channel, saved)
        super().begin(context, execution, run)

    def graph_of(self, run: FleetRun) -> str:
        """Return the name of the Graph that runs."""
        pinned = self.pinned.get(run.channel)
        return super().graph_of(run) if pinned is None else pinned.entry

    def library_of(self, execution: Execution) -> Mapping[str, str]:
        """Return the texts that an execution began with."""
        pinned = self.pinned.get(execution.channel)
        return super().library_of(execution) if pinned is None else pinned.texts

    def finish(self, context: Context, execution: Execution, done: Completion) -> None:
        """Keep an execution's end; its texts are needed no more."""
        self.pinned.delete(execution.channel)
        super().finish(context, execution, done)

    def on_acknowledged(self, context: Context, envelope: Envelope[FleetAcknowledged]) -> None:
        """Report no more; once there are many results that need no report, forget the oldest."""
        channel = envelope.body.channel
        execution = self.executions.get(channel)
        super().on_acknowledged(context, envelope)
        if execution is None or not execution.open or execution.completion is None:
            return
        if execution.completion.result is None:
            return
        self.last += 1
        self.acknowledged.put(key_of(self.last), Acknowledged(number=self.last, channel=channel))
        self.kept += 1
        if self.kept > RESULTS_KEPT:
            (oldest,) = self.acknowledged.scan("order", limit=1)
            self.acknowledged.delete(key_of(oldest.number))
            self.kept -= 1
            self.forget_result(oldest.channel)

    def forget_result(self, channel: str) -> None:
        """Forget an execution's result, unless somebody waits for it again."""
        execution = self.executions.get(channel)
        if execution is not None and not execution.open and execution.completion is not None:
            done = _replace(execution.completion, result=None, result_truncated=True)
            self.executions.put(channel, _replace(execution, completion=done))

    # Saved Graphs

    def on_save_graph(self, context: Context, envelope: Envelope[SaveGraph]) -> Message:
        """Save a session's Graph under the next version, unless it is so already."""
        body = envelope.body
        digest, there = digest_of(body.entry, body.texts), self.saved.get(body.session)
        if there is None or there.sha256 != digest:
            if not context.store.writable:
                return NOT_WRITABLE
            if there is None and self.saved.count("session") >= SESSIONS_LIMIT:
                return FULL
            there = Saved(
                session=body.session,
                entry=body.entry,
                texts=body.texts,
                version=1 if there is None else there.version + 1,
                sha256=digest,
                saved_us=context.stamp_us,
                description=description_of(body.texts[body.entry]),
            )
            self.saved.put(body.session, there)
            context.log("engine.saved", session=body.session, version=there.version)
        return GraphSaved(
            session=there.session,
            version=there.version,
            sha256=there.sha256,
            description=there.description,
        )

    def on_drop_graph(self, context: Context, envelope: Envelope[DropGraph]) -> None:
        """Forget a session's Graph; what was handed over has its own copy."""
        self.saved.delete(envelope.body.session)

    def on_get_graph(self, context: Context, envelope: Envelope[GetGraph]) -> Message:
        """Tell what is saved for a session."""
        there = self.saved.get(envelope.body.session)
        if there is None:
            return NO_GRAPH
        return SavedGraph(
            session=there.session,
            entry=there.entry,
            texts=there.texts,
            version=there.version,
            sha256=there.sha256,
            saved_us=there.saved_us,
        )

    def on_status(self, context: Context, envelope: Envelope[GetEngineStatus]) -> EngineStatus:
        """Tell how this engine stands."""
        return EngineStatus(
            up_us=context.now_us,
            running=len(self.fleets),
            waiting=len(self.waiting),
            saved=self.saved.count("session"),
            unreported=self.executions.count("open") - len(self.running),
            writable=context.store.writable,
        )
