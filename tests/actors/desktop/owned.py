"""A deployed desktop's relay on a bench, with the words in which its owner speaks to it."""

from __future__ import annotations

from typing import Any, TypeVar

from actors.actor import Place
from actors.chance import Durations
from actors.desktop.messages import (
    AddSession,
    DesktopStatus,
    GetDesktopStatus,
    GraphSaved,
    History,
    ListHistory,
    SaveGraph,
    SessionSaved,
)
from actors.desktop.relay import DesktopRelay
from actors.desktop.sessions import digest_of
from actors.messages import Command, Complete, Message, Share, Sync
from tests.actors.harness import Bench, Sent
from tests.actors.relaying import Desktop, command

TEXTS = {"main": "export const meta = {description: 'Does it'}\nreturn 1"}
Answer = TypeVar("Answer", bound=Message)


class Owned(Desktop):
    """A relay without a session, that first polls at 5 s."""

    actor: DesktopRelay

    def __init__(self, **config: Any) -> None:
        fields: dict[str, Any] = {"phase_us": Durations.parse("5s"), "jitter": "none"}
        relay = DesktopRelay(DesktopRelay.Config(**fields | config), Place(name="relay"))
        Bench.__init__(self, relay, "relay")

    def told(self, kind: type[Answer], body: Message) -> Answer:
        """What the owner is answered."""
        answers = [each.body for each in self.deliver("owner", body) if each.target == "owner"]
        (answer,) = answers
        assert isinstance(answer, kind), answer
        return answer

    def add(self, name: str = "demo", project: str = "p", **more: Any) -> str:
        """Add a session, let the engine save its Graph as version 1, and return its id."""
        body = AddSession(name=name, project=project, entry="main", texts=more or TEXTS)
        (ask,) = self.deliver("owner", body)
        assert isinstance(ask.body, SaveGraph)
        return self.save(ask).session.meta.id

    def save(self, ask: Sent, version: int = 1) -> SessionSaved:
        """Let the engine save a Graph; what the owner is told."""
        body = ask.body
        saved = GraphSaved(
            session=body.session,
            version=version,
            sha256=digest_of(body.entry, body.texts),
            description="Does it",
        )
        (told,) = [each.body for each in self.answer(ask, saved) if each.target == "owner"]
        assert isinstance(told, SessionSaved), told
        return told

    def share(self, session: str) -> tuple[str, ...]:
        """Share a session; the slugs that are uploaded then."""
        self.deliver("owner", Share(session=session))
        return self.uploaded()

    def uploaded(self) -> tuple[str, ...]:
        """The slugs that a sync carries."""
        self.actor.passing = False
        (sync,) = [each for each in self.poll() if isinstance(each.body, Sync)]
        self.actor.passing = False
        return tuple(meta.slug for meta in sync.body.sessions)

    def command_for(self, session: str, run: str = "r1") -> Command:
        """A command of a session as it is now."""
        meta = self.actor.own.sessions.get(session).meta  # type: ignore[union-attr]  # it is there
        return command(run, session=session, slug=meta.slug, generation=meta.generation)

    def history(self) -> History:
        return self.told(History, ListHistory())

    def status(self) -> DesktopStatus:
        return self.told(DesktopStatus, GetDesktopStatus())

    def run_to_end(self, session: str, run: str = "r1") -> Sent:
        """Let a run of a session end, and return the post."""
        self.actor.passing = False
        self.executing(self.command_for(session, run))
        post = self.finished(run)
        assert isinstance(post.body, Complete)
        return post
