"""Actors with one rule broken, for scenarios that must notice: `use = "mutants.py:Careless"`."""

from __future__ import annotations

from typing import Any

from actors.actor import Context
from actors.ledger import Run, Ticket
from actors.messages import Command, Failure, Message
from actors.relay import Relay
from actors.server import Server
from transports.envelope import Envelope


class Forgetful(Server):
    """A server that takes every key for a new one."""

    def replay(
        self, context: Context, envelope: Envelope[Any], ticket: Ticket, meaning: bytes
    ) -> Message:
        shared = self.sessions.get(envelope.body.graph_session_id)
        assert shared is not None
        return self.answer(self.queue(context, envelope.source, envelope.body, shared))


class Talkative(Server):
    """A server that tells "not yours" from "does not exist"."""

    def on_get(self, context: Context, envelope: Envelope[Any]) -> Message | None:
        run = self.runs.get(envelope.body.command_id)
        if run is not None and run.agent != envelope.source:
            return Failure(code="not_found", error="this run is not yours")
        return super().on_get(context, envelope)


class Trusting(Server):
    """A server to which every agent is the run's own."""

    def own(self, envelope: Envelope[Any]) -> Run | None:
        return self.runs.get(envelope.body.command_id)


class Careless(Relay):
    """A relay that asks nobody whether a run may still start."""

    def consented(self, command: Command) -> bool:
        return True
