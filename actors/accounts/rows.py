"""What a deployed server keeps besides: principals, tokens, codes, the audit, whose each run is."""

from __future__ import annotations

import msgspec

from actors.accounts.messages import PrincipalKind, Scope
from actors.actor import TableSpec
from actors.ledger import RUNS, Run, Shared

_LAST_US = 10**19  # beyond every stamp: what is less of it comes first


def newest_first(at_us: int, name: str) -> str:
    """Return a text, of its own for each name, that sorts before those of earlier moments."""
    return f"{_LAST_US - at_us:020}{name}"


class Token(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A token that is good: its SHA-256 in hex, and when it was given out."""

    hash: str
    issued_us: int


class Principal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An owner, an agent or a device. An owner is its own `owner`.

    `tokens` are good, in the order of their issue; `retired` were, and tell a copy that is used.
    A revoked principal stays for as long as the audit tells of it; its `live_owner` is None, and
    `closing_us` is set until its runs are closed.
    """

    id: str
    kind: PrincipalKind
    name: str
    owner: str
    added_us: int
    listed: str
    live_owner: str | None
    tokens: tuple[Token, ...] = ()
    retired: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ()
    open_limit: int | None = None
    administrator: bool = False
    seen_us: int | None = None
    reused_us: int | None = None
    revoked_us: int | None = None
    closing_us: int | None = None


class Holder(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whose a token is or was, under the token's hash."""

    principal: str


class Code(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pairing code, under its hash; used up once it has a device."""

    hash: str
    owner: str
    expires_us: int
    wrong: int = 0
    token_hash: str = ""
    device: str = ""


class Tries(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many wrong codes came from an address, and until when that counts."""

    address: str
    count: int
    until_us: int


class AuditRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that was done or denied; `owner` is whose book it stands in."""

    key: str
    owner: str
    at_us: int
    listed: str
    who: str
    act: str
    subject: str
    outcome: str
    address: str = ""
    count: int = 1


class OwnedRun(Run, frozen=True, kw_only=True, gc=False):
    """A run with the owner of its agent and its device."""

    owner: str
    listed: str


class OwnedShared(Shared, frozen=True, kw_only=True, gc=False):
    """A shared session with its device's owner."""

    owner: str


PRINCIPALS = TableSpec(
    "principals",
    Principal,
    kind=("kind", "listed"),
    mine=("owner", "kind", "listed"),
    live=("live_owner", "kind", "name"),
    closing=("closing_us",),
    revoked=("revoked_us",),
)
TOKENS = TableSpec("tokens", Holder)
CODES = TableSpec("codes", Code, due=("expires_us",), mine=("owner", "expires_us"))
TRIES = TableSpec("tries", Tries, due=("until_us",))
AUDIT = TableSpec("audit", AuditRow, mine=("owner", "listed"), all=("listed",), due=("at_us",))
OWNED_RUNS = TableSpec(
    RUNS.name,
    OwnedRun,
    **RUNS.indexes,
    mine=("owner", "listed"),
    state=("status", "owner", "queued_us"),
    known=("command_id", "agent"),
)
OWNED_SESSIONS = TableSpec(
    "sessions", OwnedShared, project=("owner", "project"), device=("device",)
)
