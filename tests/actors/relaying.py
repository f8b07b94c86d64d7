"""A relay on a bench, with the words in which its server, engine and owner speak to it."""

from __future__ import annotations

from typing import Any

from actors.actor import Place
from actors.chance import Durations
from actors.journal import OUTBOX
from actors.messages import (
    CHANNEL,
    Accepted,
    Command,
    Commands,
    Complete,
    Completion,
    ControlAnswer,
    FleetAcknowledged,
    FleetFinished,
    FleetRun,
    FleetStarted,
    Message,
    Noted,
    Start,
    StartAnswer,
    Sync,
)
from actors.relay import Relay
from tests.actors.harness import SESSION, Bench, Sent, body_of, only

DONE = Completion(execution_id="x-1", status="completed", result="R", total_tokens=7)


def command(run: str = "r1", **changed: Any) -> Command:
    fields: dict[str, Any] = {
        "command_id": run,
        "delivery": 1,
        "session": SESSION.id,
        "slug": "demo",
        "generation": 0,
        "arguments": {"to": "x"},
    }
    return Command(**fields | changed)


class Desktop(Bench):
    """A relay that first polls at 5 s."""

    actor: Relay

    def __init__(self, **config: Any) -> None:
        fields: dict[str, Any] = {"phase_us": Durations.parse("5s")}
        place = Place(name="relay", sessions=(SESSION,))
        super().__init__(Relay(Relay.Config(**fields | config), place), "relay")

    def poll(self) -> list[Sent]:
        return self.fire("poll")

    def sync(self) -> Sent:
        """Poll, and return the sync of the pass."""
        return only(self.poll(), Sync, "server")

    def offer(self, *commands: Command) -> list[Sent]:
        """Begin a pass and give it these commands."""
        return self.answer(self.sync(), Commands(commands=commands))

    def asked_to_start(self, *commands: Command) -> Sent:
        """Give it commands, and return its question for leave to start the first."""
        return only(self.offer(*commands or (command(),)), Start, "server")

    def handed_over(self, *commands: Command) -> Sent:
        """Let it start the first command, and return what it asks its engine to run."""
        return only(self.answer(self.asked_to_start(*commands), StartAnswer(go=True)), FleetRun)

    def executing(self, *commands: Command) -> None:
        """Let the first command run, under the execution id x-1."""
        run = self.handed_over(*commands)
        assert self.answer(run, FleetStarted(channel=run.body.channel, execution_id="x-1")) == []

    def finished(self, run: str = "r1", done: Completion = DONE) -> Sent:
        """Let the engine report the run's end, and return the post of the result."""
        sent = self.deliver("engine", FleetFinished(channel=CHANNEL + run, completion=done))
        assert sent[0].body == FleetAcknowledged(channel=CHANNEL + run)
        return only(sent[1:], Complete, "server")

    def control(self, *, stop: bool) -> list[Sent]:
        """Let it poll for a cancel, and answer."""
        (question,) = self.fire("control")
        return self.answer(question, ControlAnswer(stop=stop, reason="cancel" if stop else None))

    def accept(self, post: Sent) -> list[Sent]:
        return self.answer(post, Accepted(command_id=post.body.command_id))

    def owner(self, change: Message) -> list[Sent]:
        """Let the owner change something; return what follows the acknowledgement."""
        sent = self.deliver("owner", change)
        assert isinstance(sent[0].body, Noted)
        assert sent[0].target == "owner"
        return sent[1:]

    def unsent(self) -> list[str]:
        """The runs whose results wait in the outbox, oldest first."""
        outbox = self.context.store.table(OUTBOX)
        return [each.complete.command_id for each in outbox.scan("order", limit=1_000)]

    def refused(self, sent: list[Sent]) -> Completion:
        """The completion by which it refuses a run."""
        return body_of(sent, Complete).completion
