"""What is said at the door of a deployed server and never within: tokens and pairing codes.

Who answers the door hashes what it is given, so no secret comes to an actor, a log or a database;
and what an actor has granted it gives out once, with the secret that it made for it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated, Final, Literal

import msgspec

from actors.messages import Message

PAIRING: Final = "pairing"  # what a desktop that has no name yet calls itself
TOKEN_BYTES: Final = 32
ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # nothing that is read as another
CODE_CHARS: Final = 8  # of 31: some 10^12 codes, for ten minutes and twenty tries

Kind = Literal["owner", "agent", "device"]
MARKS: Final[Mapping[Kind, str]] = {"owner": "pc_own_", "agent": "pc_agt_", "device": "pc_dev_"}
# What a greeting calls itself that has a token and no name: the token says who it is.
NAMELESS: Final = frozenset(MARKS)

DeviceToken = Annotated[str, msgspec.Meta(pattern="^pc_dev_[A-Za-z0-9_-]{43}$")]
Code = Annotated[str, msgspec.Meta(max_length=40)]


class PairDevice(Message, frozen=True, kw_only=True):
    """Desktop brings a pairing code, and the token that it made itself and will have from now on.

    Asked again with the same code and token it is answered the same: an answer may be lost.
    `old_token` proves which device it was before; it stays that one.
    """

    code: Code
    name: Annotated[str, msgspec.Meta(max_length=200)]
    token: DeviceToken
    old_token: Annotated[str, msgspec.Meta(max_length=1000)] = ""

    def __repr__(self) -> str:
        return f"PairDevice(name={self.name!r})"


class PairingCode(Message, frozen=True, kw_only=True):
    """Server tells an owner a code that pairs one desktop, for so long.

    `fingerprint` is that of the server's certificate where no authority vouches for it, else "".
    """

    code: str
    expires_in_us: int
    fingerprint: str = ""

    def __repr__(self) -> str:
        return f"PairingCode(expires_in_us={self.expires_in_us})"


class PrincipalToken(Message, frozen=True, kw_only=True):
    """Server tells an owner the token of an agent or owner: this once, since it keeps a hash."""

    principal: str
    name: str
    token: str

    def __repr__(self) -> str:
        return f"PrincipalToken(principal={self.principal!r}, name={self.name!r})"


class MakeLink(Message, frozen=True, kw_only=True):
    """Owner asks for a link that signs it in to the server's pages, once."""


class SignInLink(Message, frozen=True, kw_only=True):
    """Server tells an owner a link that signs it in, for so long."""

    url: str
    expires_in_us: int

    def __repr__(self) -> str:
        return f"SignInLink(expires_in_us={self.expires_in_us})"


class NewToken(Message, frozen=True, kw_only=True):
    """Server gives a device its next token; the first use of it ends the one before."""

    token: DeviceToken

    def __repr__(self) -> str:
        return "NewToken()"


def make_token(kind: Kind) -> str:
    """Return a new token: a mark that scanners for leaked secrets know, and 256 random bits."""
    return MARKS[kind] + secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> str:
    """Return what is kept of a token. It is random, so nothing slower is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def make_code() -> str:
    """Return a new pairing code, as in WXYZ-2345."""
    drawn = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
    return f"{drawn[:4]}-{drawn[4:]}"


def network_of(address: str) -> str:
    """Return what the tries of one stranger are counted under: where it can't choose afresh.

    Each connection has another port, and whoever has an IPv6 address has 2^64 of them.
    """
    host, _, port = address.rpartition(":")
    try:
        found = ip_address((host if port.isdecimal() else address).strip("[]").partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped or ip_network((found, 64), strict=False))
    return str(found)


def hash_code(key: bytes, code: str) -> str:
    """Return what is kept of a pairing code, however it was typed. Codes are short: `key` is ours.

    Small letters, spaces and dashes don't count.
    """
    typed = "".join(char for char in code.upper() if char.isalnum())
    return hmac.digest(key, typed.encode(), "sha256").hex()
