"""What an owner is granted with a secret: its hash goes in, the secret comes out, once granted."""

from __future__ import annotations

from typing import Any

import pytest

from actors.accounts.messages import (
    AddAgent,
    AddOwner,
    CodeAccepted,
    ListDevices,
    NewPairingCode,
    PrincipalAdded,
    RenewToken,
)
from actors.edges.door import PairingCode, PrincipalToken, hash_code, hash_token
from actors.edges.grants import with_secret
from actors.messages import NOT_FOUND

KEY = b"key"
CHOSEN = "a hash that an owner sends"


@pytest.mark.parametrize(
    ("body", "mark"),
    [
        (AddAgent(name="a", token_hash=CHOSEN), "pc_agt_"),
        (AddOwner(name="o"), "pc_own_"),
        (RenewToken(principal="agt_1"), "pc_agt_"),
        (RenewToken(principal="own_1"), "pc_own_"),
    ],
)
def test_a_token_is_made_here_and_only_its_hash_goes_in(body: Any, mark: str) -> None:
    asked, amend = with_secret(body, KEY)
    assert amend is not None
    told = amend(PrincipalAdded(principal="p", name="n"))
    assert isinstance(told, PrincipalToken)
    assert told.token.startswith(mark)
    assert asked.token_hash == hash_token(told.token)
    assert (told.principal, told.name) == ("p", "n")
    assert amend(NOT_FOUND) is NOT_FOUND


def test_a_code_is_made_here_and_only_its_hash_goes_in() -> None:
    asked, amend = with_secret(NewPairingCode(code_hash="chosen"), KEY, "ab")
    assert amend is not None
    told = amend(CodeAccepted(expires_in_us=5))
    assert isinstance(told, PairingCode)
    assert asked.code_hash == hash_code(KEY, told.code)
    assert (told.expires_in_us, told.fingerprint) == (5, "ab")
    assert amend(NOT_FOUND) is NOT_FOUND


def test_nothing_else_is_touched() -> None:
    body = ListDevices()
    assert with_secret(body, KEY) == (body, None)
