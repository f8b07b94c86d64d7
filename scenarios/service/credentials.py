"""What a desktop proves itself by: a file that its owner alone may read, replaced as a whole."""

from __future__ import annotations

from pathlib import Path

import msgspec

from actors.accounts.tokens import UNKNOWN
from scenarios.graph_files import refusal, text_of
from scenarios.service.files import write_secret
from scenarios.source import parse_source
from scenarios.toml_text import toml_of

FILE = "credentials.toml"
HEAD = "# Written by pullcord. The token is a secret: who has it is this desktop.\n"
KEPT = 30  # tokens before the newest: a month of backups, at one token a day
NOT_PAIRED = "pair it first: pullcord desktop pair --server HOST:PORT CODE"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A desktop's name and token, and the server that gave it them.

    Without a `device` it isn't paired yet: the token was made and a code sent, and no answer came.
    `earlier` are the tokens before it, the newest first; each has ended, but for a server whose
    database was restored from before its end.
    """

    server: str
    token: str
    device: str = ""
    fingerprint: str = ""
    ca: str = ""
    plain: bool = False
    earlier: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Credentials(server={self.server!r}, device={self.device!r})"


def read_credentials(folder: Path) -> Credentials | None:
    """Return a desktop's credentials, None if it has none. ScenarioError if they can't be read."""
    path = folder / FILE
    if not path.exists():
        return None
    source = parse_source(text_of(path, str(path)), str(path))
    try:
        return msgspec.convert(source.data, Credentials)
    except msgspec.ValidationError as error:
        raise refusal(str(path), f"it can't be used: {error}", NOT_PAIRED) from None


def write_credentials(folder: Path, credentials: Credentials) -> None:
    """Write them: on the disk when this returns, or as they were. OSError."""
    write_secret(folder / FILE, HEAD + toml_of(msgspec.structs.asdict(credentials)))


class Tokens:
    """The tokens of a desktop, one after another until its server knows one.

    A server that was restored from a backup knows none of those that it gave since. So one that is
    refused as unknown is followed by the one before, and the last by the newest again. One that is
    refused for any other reason stays: an ended token that comes again counts as stolen.
    """

    def __init__(self, folder: Path, credentials: Credentials) -> None:
        self._folder = folder
        self._credentials = credentials
        self._tokens = [credentials.token, *credentials.earlier]
        self._at = 0

    @property
    def token(self) -> str:
        """The one to be used."""
        return self._tokens[self._at]

    def refused(self, reason: str) -> bool:
        """Go on to the one before if the server does not know this; whether it is untried."""
        if UNKNOWN.error in reason:
            self._at = (self._at + 1) % len(self._tokens)
            return self._at > 0
        return False

    def keep(self, token: str) -> None:
        """Write a new one down, and use it from now on; OSError, and then nothing changes."""
        used = self._tokens[self._at]
        others = [one for one in self._tokens if one != used]
        tokens = [token, used, *others][: KEPT + 1]
        new = msgspec.structs.replace(self._credentials, token=token, earlier=tuple(tokens[1:]))
        write_credentials(self._folder, new)
        self._tokens, self._at = tokens, 0
