"""`pullcord desktop pair`: a code that a server's owner has shown makes this desktop a device.

The desktop makes its token itself and has it on disk before the code is sent: if the answer is
lost, the same command asks again and is answered the same.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import trio

from actors.accounts.messages import Denied, Paired
from actors.edges.door import PAIRING, PairDevice, make_token
from scenarios.graph_files import refusal
from scenarios.service.client import BOOT, CALL_ERRORS, call_problem, calling
from scenarios.service.config import ReachSettings
from scenarios.service.credentials import Credentials, read_credentials, write_credentials
from scenarios.service.files import lock_folder, make_folder
from scenarios.service.process import say
from scenarios.service.reach import Reach, reach_of
from transports.handshake import Hello

CODE_LIMIT_CHARS = 40
NEW_CODE = "ask the server's owner for a new one: pullcord devices pair"
NAME_LIMIT_CHARS = 100


def pair(
    code: str, name: str | None, settings: ReachSettings, origins: Mapping[str, str], folder: Path
) -> int:
    """Pair this desktop; return the exit code. ScenarioError if that can't be done."""
    reach = reach_of(settings, origins)
    if not 0 < len(code.strip()) <= CODE_LIMIT_CHARS:
        raise refusal("CODE", "this is no pairing code", NEW_CODE)
    name = (name or socket.gethostname() or "desktop").strip()
    if not 0 < len(name) <= NAME_LIMIT_CHARS or not name.isprintable():
        raise refusal("--name", f"a name has 1 to {NAME_LIMIT_CHARS} characters")
    make_folder(folder)
    lock = lock_folder(folder, "desktop")  # a desktop that runs has its own token in its hands
    try:
        return _pair(code, name, reach, settings, folder)
    except OSError as error:
        what = f"the token can't be kept: {error.strerror or error}"
        cure = "free some space, or change who may write there, and say the same again"
        raise refusal(str(folder), what, cure) from None
    finally:
        lock.release()


def _pair(code: str, name: str, reach: Reach, settings: ReachSettings, folder: Path) -> int:
    known = read_credentials(folder)
    begun = Credentials(
        server=settings.server,
        token=make_token("device"),
        fingerprint=reach.fingerprint,
        ca=settings.ca and str(Path(settings.ca).resolve()),
        plain=settings.plain,
    )
    pending = folder / "pairing"
    pending.mkdir(mode=0o700, exist_ok=True)
    before = read_credentials(pending)
    if before is not None and before.server == settings.server:
        begun = msgspec.structs.replace(begun, token=before.token)
    write_credentials(pending, begun)
    old = known.token if known is not None else ""
    body = PairDevice(code=code.strip(), name=name, token=begun.token, old_token=old)
    try:
        answer = trio.run(_asked, reach, body)
    except CALL_ERRORS as error:
        raise call_problem(str(reach.address), error, NEW_CODE) from None
    if isinstance(answer, Denied):
        raise refusal(str(reach.address), answer.error, NEW_CODE)
    write_credentials(folder, msgspec.structs.replace(begun, device=answer.device))
    (pending / "credentials.toml").unlink()
    pending.rmdir()
    say(f"this desktop is {answer.name} ({answer.device}) at {reach.address}")
    say("next: pullcord desktop run")
    return 0


async def _asked(reach: Reach, body: PairDevice) -> Any:
    async with calling(reach.connect, Hello(name=PAIRING, boot=BOOT), [Paired, Denied]) as caller:
        return await caller.ask(body)
