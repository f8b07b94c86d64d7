"""The built-in actors, each without one of its safeguards: `pullcord explore @ablation`."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.journal import JOURNAL
from pullcord import Context, Engine, Relay, Server, messages


class NoGate(Server):
    """Lets whoever asks start, whatever has become of the run meanwhile."""

    def on_start_request(self, context: Context, envelope: Any) -> messages.Message:
        """Give leave."""
        run = self.runs.get(envelope.body.command_id)
        if run is not None and run.status != "running":
            run = msgspec.structs.replace(run, status="running", completion=None)
            self.runs.put(run.command_id, run)
            context.log("run.started", run=run.command_id, device=run.device)
        return messages.StartAnswer(go=True)


class NoKeys(Server):
    """Takes every key for a new one."""

    def replay(self, context: Context, envelope: Any, ticket: Any, meaning: bytes) -> Any:
        """Queue another run."""
        shared = self.sessions.get(envelope.body.graph_session_id)
        if shared is None:
            return super().replay(context, envelope, ticket, meaning)
        return self.answer(self.queue(context, envelope.source, envelope.body, shared))


class NoDelivery(Server):
    """Doesn't look which delivery and which boot asks to start."""

    def on_start_request(self, context: Context, envelope: Any) -> messages.Message:
        """Take any delivery for the current one."""
        run = self.runs.get(envelope.body.command_id)
        if run is not None:
            body = msgspec.structs.replace(
                envelope.body, boot=run.boot, delivery=max(1, run.delivery)
            )
            self.runs.put(run.command_id, msgspec.structs.replace(run, delivery=body.delivery))
            envelope = msgspec.structs.replace(envelope, body=body)
        return super().on_start_request(context, envelope)


class NoOwner(Server):
    """Doesn't look whose run it is."""

    def on_get(self, context: Context, envelope: Any) -> messages.Message | None:
        """Tell everybody."""
        run = self.runs.get(envelope.body.command_id)
        return super().on_get(context, envelope) if run is None else self.answer(run)


class NoFinality(Server):
    """Takes the last end that it hears of for the run's."""

    def on_complete(self, context: Context, envelope: Any) -> messages.Message:
        """Overwrite what was final."""
        run, done = self.runs.get(envelope.body.command_id), envelope.body.completion
        if run is None or run.status not in messages.TERMINAL:
            return super().on_complete(context, envelope)
        changed = msgspec.structs.replace(run, status=done.status, completion=done)
        self.runs.put(run.command_id, changed)
        context.log("run.terminal", **changed.ending(was=run.status, cause=done.status))
        return messages.Accepted(command_id=run.command_id)


class NoSecondLook(Relay):
    """Checks consent when it asks for leave, and not when it gets it."""

    def on_start_answer(self, context: Context, envelope: Any) -> None:
        """Run it, whatever the owner has done meanwhile."""
        kept, self.consented = self.consented, lambda command: True  # type: ignore[method-assign]  # noqa: ARG005  for this turn
        super().on_start_answer(context, envelope)
        self.consented = kept  # type: ignore[method-assign]  # as it was


class NoJournal(Relay):
    """Forgets at each start what it had begun."""

    def on_start(self, context: Context) -> None:
        """Begin as if nothing had ever run here."""
        journal = context.store.table(JOURNAL)
        for attempt in journal.scan("open", limit=100):
            journal.delete(attempt.command.command_id)
        super().on_start(context)


class NoBound(Relay):
    """Posts a result as it is, however long."""

    def on_fleet_finished(self, context: Context, envelope: Any) -> None:
        """Post it all."""
        body = envelope.body
        context.reply(envelope, messages.FleetAcknowledged(channel=body.channel))
        run = self.executing(body.channel)
        if run is not None:
            self.finish(context, run.command, body.completion)


class NoUniqueStart(Engine):
    """Starts a channel as often as it is told to."""

    def on_run(self, context: Context, envelope: Any) -> Any:
        """Start it again."""
        self.executions.delete(envelope.body.channel)
        return super().on_run(context, envelope)


class NoTombstone(Engine):
    """Forgets that it was asked about a channel that it did not know."""

    def on_query(self, context: Context, envelope: Any) -> Any:
        """Only look."""
        known = self.executions.get(envelope.body.channel)
        if known is None:
            return messages.FleetUnknown(channel=envelope.body.channel)
        return self.standing(known)


class NoReport(Engine):
    """Tells of an end once, and never again."""

    def report_again(self, context: Context, channel: str) -> None:
        """Leave it at that."""
