"""What an owner is granted with a secret: the server gets its hash, the owner's answer the secret.

It is made here, and here alone it is known: an answer that is lost is a secret that nobody has, and
the owner asks for another.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from actors.accounts.messages import (
    AddAgent,
    AddOwner,
    CodeAccepted,
    NewPairingCode,
    PrincipalAdded,
    RenewToken,
)
from actors.edges.door import (
    PairingCode,
    PrincipalToken,
    hash_code,
    hash_token,
    make_code,
    make_token,
)
from actors.edges.switchboard import Amend


def with_secret(body: Any, key: bytes, fingerprint: str = "") -> tuple[Any, Amend | None]:
    """Return what the server is asked, with a new secret's hash if one is asked for.

    And what adds the secret to the answer once it is granted; None if there is nothing to add.
    `key` is what pairing codes are hashed with; `fingerprint` is told with each of them.
    """
    if isinstance(body, NewPairingCode):
        code = make_code()

        def with_code(answer: Any) -> Any:
            if not isinstance(answer, CodeAccepted):
                return answer
            return PairingCode(
                code=code, expires_in_us=answer.expires_in_us, fingerprint=fingerprint
            )

        return replace(body, code_hash=hash_code(key, code)), with_code
    if isinstance(body, AddAgent | AddOwner | RenewToken):
        renewed = isinstance(body, RenewToken) and body.principal.startswith("own_")
        token = make_token("owner" if isinstance(body, AddOwner) or renewed else "agent")

        def with_token(answer: Any) -> Any:
            if not isinstance(answer, PrincipalAdded):
                return answer
            return PrincipalToken(principal=answer.principal, name=answer.name, token=token)

        return replace(body, token_hash=hash_token(token)), with_token
    return body, None
