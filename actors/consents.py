"""What the owner of a desktop lets others run there: its sessions, and the projects they are in."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.actor import Session, Store, meta_of
from actors.journal import CONSENTS, ENABLED, PROJECTS, Consent, Project
from actors.messages import Command, Disable, Enable, Rename, SessionMeta, Share, Unshare
from actors.text import slug_of

Change = Share | Unshare | Rename | Enable | Disable

_replace = msgspec.structs.replace


class Consents:
    """One relay's sessions as its store has them.

    `given` are those that a scenario begins with. Where consent is `strict` every change of a
    session makes a new generation of it, which is another one to what was asked for before.
    """

    def __init__(self, given: Sequence[Session], strict: bool) -> None:
        self.strict = strict
        self.given = [Consent(meta=meta_of(session), shared=session.shared) for session in given]
        self.given_shared = tuple([each.meta for each in self.given if each.shared])

    def open(self, store: Store) -> tuple[SessionMeta, ...]:
        """Read what outlives a boot, and return what is shared."""
        self.sessions, self.projects = store.table(CONSENTS), store.table(PROJECTS)
        first = True
        for consent in self.given:
            first &= self.sessions.insert_unique(consent.meta.id, consent)
            self.projects.insert_unique(consent.meta.project, ENABLED)
        return self.given_shared if first else self.shared()

    def all(self) -> list[Consent]:
        """Return every session, in a fixed order."""
        known = (self.sessions.get(each.meta.id) for each in self.given)
        return [each for each in known if each is not None]

    def shared(self) -> tuple[SessionMeta, ...]:
        """Return what a sync uploads."""
        return tuple([each.meta for each in self.all() if self.shares(each)])

    def shares(self, consent: Consent) -> bool:
        """Whether a session is ticked and its project enabled."""
        project = self.projects.get(consent.meta.project)
        return consent.shared and project is not None and project.enabled

    def allow(self, command: Command) -> bool:
        """Whether the owner lets this very command run now."""
        consent = self.sessions.get(command.session)
        if consent is None or consent.meta.slug != command.slug or not self.shares(consent):
            return False
        return not self.strict or consent.meta.generation == command.generation

    def change(self, change: Change) -> None:
        """Write what an owner changes."""
        if isinstance(change, Enable | Disable):
            self.set_project(change.project, Project(isinstance(change, Enable)))
        else:
            self.set_session(change)

    def set_project(self, name: str, project: Project) -> None:
        """Write a project and renew its sessions, unless it is so already."""
        if self.projects.get(name) != project:
            self.projects.put(name, project)
            for consent in self.all():
                if consent.meta.project == name:
                    self.renew(consent)

    def set_session(self, change: Share | Unshare | Rename) -> None:
        """Write and renew a session, unless it is so already: an owner may say a thing twice."""
        consent = self.sessions.get(change.session)
        if consent is None:
            return
        if isinstance(change, Rename):
            meta = _replace(consent.meta, name=change.name, slug=slug_of(change.name))
            changed = _replace(consent, meta=meta)
        else:
            changed = _replace(consent, shared=isinstance(change, Share))
        if changed != consent:
            self.renew(changed)

    def renew(self, consent: Consent) -> None:
        """Write a session under a new generation, so that older commands don't match."""
        meta = _replace(consent.meta, generation=consent.meta.generation + 1)
        self.sessions.put(meta.id, _replace(consent, meta=meta))
