"""Who is signed in: sessions behind cookies, links that sign in once, and the keys of forms.

All of it is in memory, so a restart signs everybody out. What a browser holds is 256 random bits;
here is only its hash, so nobody can sign in with what a dump of this process's tables shows.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from actors.edges.door import hash_token

SESSION_LIMIT_S = 12 * 3600.0  # a working day: a stolen cookie ends by itself
IDLE_LIMIT_S = 2 * 3600.0
RENEW_S = 900.0  # a cookie's age when the browser is given another
OVERLAP_S = 60.0  # an old cookie is still good for pages that were asked for beside the first
CHECK_S = 60.0  # how long a session outlives its owner's token
SESSIONS_LIMIT = 1_000  # owners have a few browsers each
LINK_LIMIT_S = 300.0
LINKS_LIMIT = 100

Now = Callable[[], float]


class Session:
    """One browser that an owner signed in. `token_hash` is what with; empty for a link."""

    def __init__(self, principal: str, name: str, token_hash: str, now_s: float) -> None:
        self.principal = principal
        self.name = name
        self.token_hash = token_hash
        self.form_secret = secrets.token_bytes(32)
        self.begun_s = self.seen_s = self.renewed_s = self.checked_s = now_s
        self.cookies: dict[str, float] = {}  # hash of each, until when it is good

    @property
    def form_key(self) -> str:
        """What each form of this session carries; no other site can know it."""
        return self.form_secret.hex()


class Sessions:
    """The signed-in browsers. Times are seconds of a monotonic clock."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._all: dict[str, Session] = {}  # by the hash of each of their cookies

    def begin(self, principal: str, name: str, token_hash: str = "") -> tuple[Session, str]:
        """Sign an owner in; return the session and its cookie. The oldest ends if too many are."""
        self._drop_ended()
        kept = list(dict.fromkeys(self._all.values()))
        for session in sorted(kept, key=lambda one: one.seen_s)[: len(kept) + 1 - SESSIONS_LIMIT]:
            self.end(session)
        session = Session(principal, name, token_hash, self._now())
        return session, self._add_cookie(session)

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, None if there is none or it has ended."""
        key = hash_token(cookie)
        session = self._all.get(key)
        if session is None:
            return None
        now_s = self._now()
        if self._has_ended(session, now_s):
            self.end(session)
            return None
        if session.cookies[key] < now_s:
            del self._all[key], session.cookies[key]
            return None
        session.seen_s = now_s
        return session

    def renewed(self, session: Session) -> str | None:
        """Return another cookie for a session if it is time; those before it end soon.

        None for one that has ended: it stays so.
        """
        now_s = self._now()
        if not session.cookies or now_s - session.renewed_s < RENEW_S:
            return None
        for key, until_s in session.cookies.items():
            session.cookies[key] = min(until_s, now_s + OVERLAP_S)
        session.renewed_s = now_s
        return self._add_cookie(session)

    def must_check(self, session: Session) -> bool:
        """Whether it is time to ask again if the session's token is still good."""
        return bool(session.token_hash) and self._now() - session.checked_s >= CHECK_S

    def checked(self, session: Session) -> None:
        """Note that its token is still good."""
        session.checked_s = self._now()

    def end(self, session: Session) -> None:
        """Sign a browser out."""
        for key in session.cookies:
            self._all.pop(key, None)
        session.cookies.clear()

    def end_all(self, principal: str) -> None:
        """Sign an owner out everywhere."""
        for session in list(self._all.values()):
            if session.principal == principal:
                self.end(session)

    @property
    def count(self) -> int:
        """How many browsers are signed in."""
        self._drop_ended()
        return len(set(self._all.values()))

    def _add_cookie(self, session: Session) -> str:
        cookie = secrets.token_urlsafe(32)
        key = hash_token(cookie)
        session.cookies[key] = session.begun_s + SESSION_LIMIT_S
        self._all[key] = session
        return cookie

    def _has_ended(self, session: Session, now_s: float) -> bool:
        return now_s - session.begun_s >= SESSION_LIMIT_S or now_s - session.seen_s >= IDLE_LIMIT_S

    def _drop_ended(self) -> None:
        now_s = self._now()
        for session in list(self._all.values()):
            if self._has_ended(session, now_s):
                self.end(session)


class Links:
    """Links that sign an owner in once. They are made over the local socket."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._all: dict[str, tuple[float, str, str]] = {}  # until when, for whom, by what name

    def make(self, principal: str, name: str) -> str:
        """Return the secret of a new link; the oldest ends if there are too many."""
        while len(self._all) >= LINKS_LIMIT:
            del self._all[next(iter(self._all))]
        code = secrets.token_urlsafe(32)
        self._all[hash_token(code)] = (self._now() + LINK_LIMIT_S, principal, name)
        return code

    def take(self, code: str) -> tuple[str, str] | None:
        """Use a link up; return whom it signs in and their name, None if it is no good."""
        until_s, principal, name = self._all.pop(hash_token(code), (0.0, "", ""))
        return (principal, name) if until_s > self._now() else None


class FormKeys:
    """Keys for forms of browsers that are not signed in, each made from that browser's cookie."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def key(self, cookie: str) -> str:
        """Return the key that a form has for a browser with this cookie."""
        return hmac.digest(self._secret, cookie.encode("utf-8", "replace"), "sha256").hex()


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are the same; the time that takes tells nothing about either."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
