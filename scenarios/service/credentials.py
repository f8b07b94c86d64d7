"""What a desktop proves itself by: a file that its owner alone may read, replaced as a whole."""

from __future__ import annotations

from pathlib import Path

import msgspec

from scenarios.graph_files import refusal, text_of
from scenarios.service.files import write_secret
from scenarios.source import parse_source
from scenarios.toml_text import toml_of

FILE = "credentials.toml"
HEAD = "# Written by pullcord. The token is a secret: who has it is this desktop.\n"
NOT_PAIRED = "pair it first: pullcord desktop pair --server HOST:PORT CODE"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A desktop's name and token, and the server that gave it them.

    Without a `device` it isn't paired yet: the token was made and a code sent, and no answer came.
    """

    server: str
    token: str
    device: str = ""
    fingerprint: str = ""
    ca: str = ""
    plain: bool = False

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
