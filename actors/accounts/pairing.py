"""Pairing: an owner's code, typed at a desktop, gives it a name and a token, once.

A code is short, so guessing is bounded: five wrong ones from an address within ten minutes shut the
address out for the rest of them, and twenty in all end every code that is open. Using a code up and
writing the device are one turn: if it fails, the pairing before it is as it was.

A desktop that brings a token of the device that it was, even an ended one, stays that device if the
code is of the same owner: its sessions and its open runs go on. A removed device comes back as a
new one. Another owner's code makes a new device too.
"""

from __future__ import annotations

import msgspec

from actors.accounts.audit import NOBODYS
from actors.accounts.messages import CodeAccepted, Denied, NewPairingCode, Pair, Paired
from actors.accounts.rows import CODES, TRIES, Code, Principal, Tries
from actors.accounts.tokens import Accounts, display_name
from actors.actor import Context
from actors.messages import Failure

CODES_LIMIT = 50  # open at once: each wrong try is counted on all of them
OWNER_CODES_LIMIT = 5  # open at once for one owner, who has two hands
ADDRESS_TRIES = 5  # wrong codes from one address
WRONG_TRIES = 20  # wrong codes in all, while a code is open
TRIES_LIMIT = 1_000  # addresses that are remembered; beyond them only the count in all protects
DEVICES_LIMIT = 1_000  # devices of an owner
SWEEP_LIMIT = 100  # rows deleted in one turn

BAD_CODE = Denied(
    reason="bad_code", error="this pairing code is wrong, used or too old: ask for a new one"
)
TOO_MANY_CODES = Failure(
    code="limit", error="too many pairing codes are open: use one, or wait ten minutes"
)
TOO_MANY_DEVICES = Failure(
    code="limit", error=f"an owner may have {DEVICES_LIMIT} devices: remove one first"
)
NO_CODE = Failure(code="bad_request", error="code_hash is missing")

_replace = msgspec.structs.replace


class Pairing:
    """The open codes of a server."""

    def __init__(self, context: Context, accounts: Accounts, lifetime_us: int) -> None:
        self.codes = context.store.table(CODES)
        self.tries = context.store.table(TRIES)
        self.accounts = accounts
        self.audit = accounts.audit
        self.lifetime_us = lifetime_us

    def new_code(
        self, context: Context, owner: Principal, body: NewPairingCode
    ) -> CodeAccepted | Failure:
        """Accept a code from now on."""
        if not body.code_hash:
            return NO_CODE
        self.sweep(context)
        open_codes = self.codes.count("mine", (owner.id,))
        if open_codes >= OWNER_CODES_LIMIT or self.codes.count("due") >= CODES_LIMIT:
            return TOO_MANY_CODES
        expires_us = context.stamp_us + self.lifetime_us
        code = Code(hash=body.code_hash, owner=owner.id, expires_us=expires_us)
        if not self.codes.insert_unique(code.hash, code):
            return TOO_MANY_CODES  # the same one twice: the gateway draws another
        self.audit.note(context, owner.id, owner.id, "pairing.code", owner.id)
        return CodeAccepted(expires_in_us=self.lifetime_us)

    def pair(self, context: Context, body: Pair) -> Paired | Denied | Failure:
        """Make the desktop that brought a code a device of the code's owner."""
        now_us = context.stamp_us
        tries = self.tries.get(body.address)
        if tries is not None and tries.count >= ADDRESS_TRIES and tries.until_us > now_us:
            wait_us = tries.until_us - now_us
            self.audit.count(
                context, NOBODYS, "", "pair", body.name, "too many tries", body.address
            )
            return Denied(
                reason="too_many_tries",
                error=f"too many wrong pairing codes: wait {wait_us // 60_000_000 + 1} minutes",
                retry_after_us=wait_us,
            )
        code = self.codes.get(body.code_hash)
        owner = None if code is None else self.accounts.live(code.owner, "owner", code.owner)
        if (
            code is None
            or owner is None
            or code.expires_us <= now_us
            or (code.token_hash and code.token_hash != body.token_hash)
        ):
            self.wrong(context, body)
            return BAD_CODE
        former = self.former(body.token_hash, code.owner)
        if self.accounts.is_held(body.token_hash, "" if former is None else former.id):
            return BAD_CODE
        if code.device:
            device = self.accounts.live(code.device, "device", code.owner)
            return BAD_CODE if device is None else paired(device)
        former = former or self.former(body.old_hash, code.owner)
        return self.use(context, body, code, former)

    def use(
        self, context: Context, body: Pair, code: Code, device: Principal | None
    ) -> Paired | Failure:
        """Use a code up: for a new device, or for the one that a former token proves."""
        act = "device.pair_again"
        if device is not None:
            device = self.accounts.renew(context, device, body.token_hash)
        elif self.accounts.count(code.owner, "device") >= DEVICES_LIMIT:
            return TOO_MANY_DEVICES
        else:
            act = "device.pair"
            name = self.accounts.free_name(display_name(body.name, "desktop"), code.owner, "device")
            device = self.accounts.add(context, "device", name, code.owner, body.token_hash)
        used = _replace(code, token_hash=body.token_hash, device=device.id)
        self.codes.put(body.code_hash, used)
        self.tries.delete(body.address)
        self.audit.note(context, code.owner, device.id, act, device.id, address=body.address)
        return paired(device)

    def former(self, token_hash: str, owner: str) -> Principal | None:
        """Return the device of this owner that a token is or was of."""
        holder = self.accounts.tokens.get(token_hash) if token_hash else None
        return None if holder is None else self.accounts.live(holder.principal, "device", owner)

    def wrong(self, context: Context, body: Pair) -> None:
        """Count a wrong code: for its address, and for every code that is open."""
        now_us = context.stamp_us
        tries = self.tries.get(body.address)
        if tries is None or tries.until_us <= now_us:
            tries = Tries(address=body.address, count=0, until_us=now_us + self.lifetime_us)
        if tries.count or self.tries.count("due") < TRIES_LIMIT:
            self.tries.put(body.address, _replace(tries, count=tries.count + 1))
        self.audit.count(context, NOBODYS, "", "pair", body.name, "bad code", body.address)
        for code in self.codes.scan("due", limit=CODES_LIMIT):
            if code.wrong + 1 < WRONG_TRIES:
                self.codes.put(code.hash, _replace(code, wrong=code.wrong + 1))
            else:
                self.codes.delete(code.hash)
                self.audit.note(context, code.owner, "server", "pairing.end", code.owner)

    def sweep(self, context: Context) -> None:
        """Delete codes and tries that are over."""
        now_us = context.stamp_us
        for code in self.codes.claim("due", limit=SWEEP_LIMIT, up_to=now_us):
            self.codes.delete(code.hash)
        for tries in self.tries.claim("due", limit=SWEEP_LIMIT, up_to=now_us):
            self.tries.delete(tries.address)


def paired(device: Principal) -> Paired:
    """Return the answer to a desktop that has become, or is, this device."""
    return Paired(device=device.id, name=device.name, owner=device.owner)
