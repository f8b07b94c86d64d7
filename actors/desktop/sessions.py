"""The sessions of a deployed desktop: its owner adds, saves, shares and removes them as it runs."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from actors.actor import Store, Table
from actors.consents import Consents
from actors.desktop.messages import GraphSaved, SessionState
from actors.desktop.rows import OWN_SESSIONS, OwnSession
from actors.graphs.meta import MetaError, read_script
from actors.journal import ENABLED, PROJECTS, Consent
from actors.messages import Failure, SessionMeta
from actors.text import clean_text, cut, slug_of, units

UPLOADED_LIMIT = 100  # the account's bound on a sync
SESSIONS_LIMIT = 1_000  # of one desktop: a person looks after them
NAME_LIMIT_CHARS = 200  # a line of a list
DESCRIPTION_LIMIT_CHARS = 1_000  # what an agent reads of each session
TEXTS_LIMIT_BYTES = 512 * 1024  # a Graph and what it calls go in one message of half a frame

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder(order="sorted").encode


class Sessions(Consents):
    """A relay's sessions, of which the first 100 that were ticked are uploaded.

    So ticking one more never takes from agents what they had; it comes in when another is unticked.
    """

    sessions: Table[OwnSession]  # type: ignore[assignment]  # these rows have more fields

    def open(self, store: Store) -> tuple[SessionMeta, ...]:
        """Read what outlives a boot, and return what is uploaded."""
        self.sessions, self.projects = store.table(OWN_SESSIONS), store.table(PROJECTS)
        for place, given in enumerate(self.given):
            meta, ticked = given.meta, place if given.shared else None
            row = OwnSession(meta=meta, shared=given.shared, slug=meta.slug, place=ticked)
            self.sessions.insert_unique(meta.id, row)
            self.projects.insert_unique(meta.project, ENABLED)
        return self.shared()

    def all(self) -> list[Consent]:
        """Return every session, in the order of their slugs."""
        return [*self.sessions.scan("slug", limit=SESSIONS_LIMIT)]

    def ticked(self) -> list[OwnSession]:
        """Return what agents might see, the longest ticked first."""
        return [
            each for each in self.sessions.scan("place", limit=SESSIONS_LIMIT) if self.shares(each)
        ]

    def shared(self) -> tuple[SessionMeta, ...]:
        """Return what a sync uploads."""
        return tuple([each.meta for each in self.ticked()[:UPLOADED_LIMIT]])

    def states(self, after: str, limit: int) -> list[SessionState]:
        """Return sessions as their owner sees them, those whose slugs come after one."""
        uploaded = {meta.id for meta in self.shared()}
        rows = [
            each for each in self.sessions.scan("slug", limit=SESSIONS_LIMIT) if each.slug > after
        ]
        return [self.state(each, each.meta.id in uploaded) for each in rows[:limit]]

    def state(self, row: OwnSession, uploaded: bool) -> SessionState:
        """Return one session as its owner sees it."""
        project = self.projects.get(row.meta.project)
        enabled = project is not None and project.enabled
        return SessionState(
            meta=row.meta, shared=row.shared, enabled=enabled, uploaded=uploaded, sha256=row.sha256
        )

    def named(self, slug: str) -> OwnSession | None:
        """Return the session that has a slug."""
        return next(iter(self.sessions.scan("slug", (slug,), limit=1)), None)

    def named_like(self, name: str) -> OwnSession | None:
        """Return the session whose slug a name would have."""
        return self.named(slug_of(name))

    def add(self, session: str, name: str, project: str) -> OwnSession:
        """Return a new session, which nobody shares; its Graph is still to be saved."""
        meta = SessionMeta(id=session, project=project, name=name, slug=slug_of(name), version=0)
        return OwnSession(meta=meta, shared=False, slug=meta.slug)

    def enable_new(self, project: str) -> None:
        """Enable a project that nothing was said of."""
        self.projects.insert_unique(project, ENABLED)

    def save(self, row: OwnSession, saved: GraphSaved) -> OwnSession:
        """Write a session with what its Graph is now; who may run it stays as it is."""
        meta = _replace(row.meta, version=saved.version, description=saved.description)
        row = _replace(row, meta=meta, sha256=saved.sha256)
        self.sessions.put(meta.id, row)
        return row

    def renew(self, consent: Consent) -> None:
        """Write a session under a new generation, with its place among those that are ticked."""
        assert isinstance(consent, OwnSession), "its table has no others"
        place = consent.place if consent.shared else None
        if consent.shared and place is None:
            ticked = self.sessions.scan("place", limit=SESSIONS_LIMIT)
            place = 1 + max((each.place or 0 for each in ticked), default=0)
        meta = _replace(consent.meta, generation=consent.meta.generation + 1)
        self.sessions.put(meta.id, _replace(consent, meta=meta, slug=meta.slug, place=place))

    # What is refused

    def misnamed(self, name: str, session: str = "") -> Failure | None:
        """Return why a session can't have a name, None if it can."""
        slug = slug_of(name)
        if not slug or clean_text(name) != name or units(name) > NAME_LIMIT_CHARS:
            error = f"a name has 1 to {NAME_LIMIT_CHARS} characters, with a letter or a digit"
            return Failure(code="bad_request", error=error)
        other = self.named(slug)
        if other is not None and other.meta.id != session:
            text = f"the session {other.meta.name!r} has this name, or one like it: take another"
            return Failure(code="name_taken", error=text)
        return None

    def unfit(self, entry: str, texts: Mapping[str, str]) -> Failure | None:
        """Return why texts are no Graph, None if they may be one; no script is run for that."""
        if entry not in texts:
            return Failure(code="no_graph", error=f"there is no text for the Graph {entry!r}")
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())
        if size > TEXTS_LIMIT_BYTES:
            error = f"a Graph and what it calls take {TEXTS_LIMIT_BYTES:,} bytes at most"
            return Failure(code="no_graph", error=f"{error}, and this {size:,}")
        for name, text in sorted(texts.items()):
            if clean_text(text) != text or clean_text(name) != name:
                return Failure(code="no_graph", error=f"{name!r} is no Unicode text")
            try:
                read_script(text)
            except MetaError as problem:
                return Failure(code="no_graph", error=f"{name}: {problem}")
        return None


def digest_of(entry: str, texts: Mapping[str, str]) -> str:
    """Return the SHA-256 of a Graph with all that it may call."""
    return sha256(_encode((entry, texts))).hexdigest()


def description_of(text: str) -> str:
    """Return what a Graph's `meta` says of it, as agents may be told."""
    said = read_script(text).meta.get("description", "")
    return cut(clean_text(said), DESCRIPTION_LIMIT_CHARS) if isinstance(said, str) else ""
