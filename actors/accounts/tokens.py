"""Principals and what proves them: who a token is, rotation, renewal, removal.

A token is found by its hash, so how long that takes tells nothing of which names exist, and the
hash of 256 random bits can't be approached step by step; it is compared in constant time besides.

Rotation adds a token beside those that are good. Whoever uses one ends those that were issued
before it. So a new token that was lost on its way changes nothing, a server restored from an older
backup still knows the token before, and nobody is ever locked out. A token that comes after it was
ended is a copy in other hands, or a desktop restored from a backup: it is refused and flagged.
"""

from __future__ import annotations

from hmac import compare_digest

import msgspec

from actors.accounts.audit import NOBODYS, AuditLog
from actors.accounts.messages import (
    Authenticate,
    Authenticated,
    BeginRotation,
    Denied,
    PrincipalKind,
    Rotation,
    Scope,
)
from actors.accounts.rows import PRINCIPALS, TOKENS, Holder, Principal, Token, newest_first
from actors.actor import Context
from actors.text import clean_text

LOCAL_OWNER = "own_local"  # who may open the local socket; the administrator
PREFIXES = {"owner": "own", "agent": "agt", "device": "dev"}
TOKENS_LIMIT = 4  # good at once: three rotations may be lost before the next waits for a use
RETIRED_LIMIT = 8  # ended tokens that are still told from unknown ones
SWEEP_LIMIT = 100  # rows deleted in one turn
NAME_CHARS = 60  # of a display name
SEEN_US = 60_000_000  # how exactly the last use is kept: most connections write nothing

UNKNOWN = Denied(reason="unknown", error="unknown name or wrong token")
REVOKED = Denied(reason="revoked", error="access was removed by the owner: pair or add it again")
SUPERSEDED = Denied(
    reason="superseded", error="this token was replaced by a newer one: pair again, or renew it"
)

_replace = msgspec.structs.replace


def display_name(name: str, otherwise: str) -> str:
    """Return a name that can be shown in one line."""
    words = "".join(c if c.isprintable() else " " for c in clean_text(name)).split()
    return " ".join(words)[:NAME_CHARS].strip() or otherwise


class Accounts:
    """The principals of a server, and their tokens."""

    def __init__(self, context: Context, audit: AuditLog, token_age_us: int) -> None:
        self.rows = context.store.table(PRINCIPALS)
        self.tokens = context.store.table(TOKENS)
        self.audit = audit
        self.token_age_us = token_age_us

    def find(self, principal: str) -> Principal | None:
        """Return a principal, revoked ones too."""
        return self.rows.get(principal)

    def live(self, principal: str, kind: PrincipalKind, owner: str) -> Principal | None:
        """Return an owner's principal of a kind that is not revoked."""
        found = self.rows.get(principal)
        if found is None or (found.kind, found.owner) != (kind, owner):
            return None
        return found if found.revoked_us is None else None

    def is_taken(self, name: str, owner: str, kind: PrincipalKind) -> bool:
        """Whether an owner has a principal of this kind and name."""
        return self.rows.count("live", (owner, kind, name)) > 0

    def count(self, owner: str, kind: PrincipalKind) -> int:
        """How many principals of a kind an owner has, without those that were removed."""
        return self.rows.count("live", (owner, kind))

    def free_name(self, name: str, owner: str, kind: PrincipalKind) -> str:
        """Return the name, with a number behind it if it is taken."""
        free, number = name, 1
        while self.is_taken(free, owner, kind):
            number += 1
            free = f"{name}-{number}"
        return free

    def local_owner(self, context: Context, address: str) -> Principal:
        """Return the first owner, made if it is new."""
        known = self.rows.get(LOCAL_OWNER)
        if known is None:
            known = self.add(context, "owner", "local", LOCAL_OWNER, identity=LOCAL_OWNER)
            self.audit.note(context, known.id, known.id, "owner.add", known.id, address=address)
        return known

    def add(
        self,
        context: Context,
        kind: PrincipalKind,
        name: str,
        owner: str,
        token_hash: str = "",
        *,
        identity: str = "",
        scopes: tuple[Scope, ...] = (),
        open_limit: int | None = None,
    ) -> Principal:
        """Write a new principal; an owner without another is its own."""
        now_us = context.stamp_us
        identity = identity or context.new_id(PREFIXES[kind])
        row = Principal(
            id=identity,
            kind=kind,
            name=name,
            owner=owner or identity,
            added_us=now_us,
            listed=newest_first(now_us, identity),
            live_owner=owner or identity,
            scopes=scopes,
            open_limit=open_limit,
            administrator=identity == LOCAL_OWNER,
        )
        return self.renew(context, row, token_hash) if token_hash else self.put(row)

    def is_held(self, token_hash: str, principal: str = "") -> bool:
        """Whether a token is or was another's: whoever draws 256 bits never meets one."""
        holder = self.tokens.get(token_hash)
        return holder is not None and holder.principal != principal

    def put(self, row: Principal) -> Principal:
        """Write a principal and return it."""
        self.rows.put(row.id, row)
        return row

    # Tokens

    def authenticate(self, context: Context, body: Authenticate) -> Authenticated | Denied:
        """Say whose token it is."""
        holder = self.tokens.get(body.token_hash)
        who = None if holder is None else self.rows.get(holder.principal)
        if who is None or body.name not in {"", who.id, who.name}:
            outcome = "unknown" if who is None else "another's name"
            self.audit.count(context, NOBODYS, "", "sign_in", body.name, outcome, body.address)
            return UNKNOWN
        if who.revoked_us is not None:
            self.denied(context, who, "revoked", body.address)
            return REVOKED
        good = [compare_digest(token.hash, body.token_hash) for token in who.tokens]
        if True not in good:
            if who.reused_us is None and context.store.writable:
                self.put(_replace(who, reused_us=context.stamp_us))
            self.denied(context, who, "superseded", body.address)
            return SUPERSEDED
        who = self.used(context, who, good.index(True), body.address)
        old_us = who.tokens[-1].issued_us + self.token_age_us
        rotate_in_us = max(0, old_us - context.stamp_us) if who.kind == "device" else None
        return Authenticated(
            principal=who.id,
            kind=who.kind,
            owner=who.owner,
            name=who.name,
            scopes=who.scopes,
            rotate_in_us=rotate_in_us,
        )

    def denied(self, context: Context, who: Principal, outcome: str, address: str) -> None:
        """Count a refused sign-in of somebody who is known."""
        self.audit.count(context, who.owner, who.id, "sign_in", who.id, outcome, address)

    def used(self, context: Context, who: Principal, at: int, address: str) -> Principal:
        """End the tokens that were issued before the one in use, and note when it was used.

        A disk that is full keeps nobody out: the next use does it.
        """
        if not context.store.writable:
            return who
        now_us = context.stamp_us
        if at:
            self.audit.note(context, who.owner, who.id, "token.use", who.id, address=address)
            who = self.retire(who, at)
        elif who.seen_us is not None and now_us - who.seen_us < SEEN_US:
            return who
        return self.put(_replace(who, seen_us=now_us))

    def retire(self, who: Principal, count: int) -> Principal:
        """Return a principal without its first `count` tokens, which are known as ended."""
        retired = (*who.retired, *(token.hash for token in who.tokens[:count]))
        for forgotten in retired[:-RETIRED_LIMIT]:
            self.tokens.delete(forgotten)
        return _replace(who, tokens=who.tokens[count:], retired=retired[-RETIRED_LIMIT:])

    def renew(self, context: Context, who: Principal, token_hash: str) -> Principal:
        """Make this the only token of a principal; those before end at once."""
        if [token.hash for token in who.tokens] == [token_hash]:
            return self.put(who)
        who = self.retire(who, len(who.tokens))
        retired = tuple(each for each in who.retired if each != token_hash)
        token = Token(hash=token_hash, issued_us=context.stamp_us)
        self.tokens.put(token_hash, Holder(principal=who.id))
        return self.put(_replace(who, tokens=(token,), retired=retired, reused_us=None))

    def begin_rotation(self, context: Context, body: BeginRotation) -> Rotation:
        """Let a device have one more token, unless too many wait for their first use."""
        who = self.rows.get(body.device)
        if who is None or who.kind != "device" or who.revoked_us is not None:
            return Rotation(begun=False)
        if body.token_hash in {token.hash for token in who.tokens}:
            return Rotation(begun=True)
        begun = len(who.tokens) < TOKENS_LIMIT and self.tokens.insert_unique(
            body.token_hash, Holder(principal=who.id)
        )
        if begun:
            token = Token(hash=body.token_hash, issued_us=context.stamp_us)
            self.put(_replace(who, tokens=(*who.tokens, token)))
        outcome = "ok" if begun else "too many unused"
        self.audit.note(context, who.owner, who.id, "token.rotate", who.id, outcome)
        return Rotation(begun=begun)

    def revoke(self, context: Context, who: Principal) -> Principal:
        """End a principal; its tokens are still known as those of one that was revoked."""
        now_us = context.stamp_us
        return self.put(
            _replace(
                self.retire(who, len(who.tokens)),
                revoked_us=now_us,
                closing_us=now_us,
                live_owner=None,
            )
        )

    def sweep(self, context: Context, retention_us: int) -> None:
        """Forget principals that were removed so long ago that no audit tells of them."""
        up_to = context.stamp_us - retention_us
        for who in self.rows.claim("revoked", limit=SWEEP_LIMIT, up_to=up_to):
            if who.closing_us is None:
                for token_hash in who.retired:
                    self.tokens.delete(token_hash)
                self.rows.delete(who.id)
