"""What a deployed process is told: flags over environment over a file, and where each came from.

A file is TOML with the keys of the settings below; tables of actors ([server], [relay], [engine])
have what their `Config` has, as in a scenario. A variable is PULLCORD_ and the key in capitals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Protocol, TypeVar, get_args, get_origin

import msgspec

from scenarios.decode import Decoder, fields_of
from scenarios.graph_files import refusal
from scenarios.problems import quote
from scenarios.source import Source, read_source
from transports.units import Size

PREFIX: Final = "PULLCORD_"
FILE: Final = "config.toml"
SECRET: Final = frozenset({"token"})
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")  # no setting has more digits
# A password in a URL: behind the user's name, or in the query.
PASSWORD: Final = re.compile(r"(://[^:/?#@\s]*:)[^/?#\s]*(?=@)|(password=)[^&\s]+")
_SWITCH: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


# What every process that stays has.
Whole = Annotated[bool, "writes messages into the log whole, arguments and results too"]
Files = Annotated[int, msgspec.Meta(ge=2, le=10_000), "how many log files are kept"]
FileSize = Annotated[Size, "how large a log file gets"]
FILES: Final = 20
FILE_SIZE: Final = Size(16 << 20)


class LogSettings(Protocol):
    """The settings of a log."""

    @property
    def record(self) -> bool:
        """Whether payloads are written."""

    @property
    def log_files(self) -> int:
        """How many files are kept."""

    @property
    def log_size(self) -> Size:
        """How large one gets, in bytes."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is told besides its [server] table."""

    listen: Annotated[str, "where it listens, HOST:PORT; port 0 is any free one"] = "127.0.0.1:8700"
    store: Annotated[
        str, "sqlite:PATH, by default in the folder, or postgresql://USER@HOST/DATABASE"
    ] = ""
    tls_cert: Annotated[str, "the file of its certificate and those above it, PEM"] = ""
    tls_key: Annotated[str, "the file of the certificate's key, PEM, without a password"] = ""
    plain: Annotated[bool, "listens without TLS although others than this machine can reach it"] = (
        False
    )
    connections: Annotated[
        int, msgspec.Meta(ge=1, le=1_000_000), "how many connections it takes"
    ] = 4096
    http: Annotated[str, "where it serves HTTP, HOST:PORT; empty is nowhere"] = ""
    http_url: Annotated[str, "the URL by which browsers elsewhere reach that"] = ""
    record: Whole = False
    log_files: Files = FILES
    log_size: FileSize = FILE_SIZE


class ReachSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is reached."""

    server: Annotated[str, "the server, HOST:PORT"] = ""
    ca: Annotated[str, "the file of the authorities whose certificates count, PEM"] = ""
    fingerprint: Annotated[str, "the SHA-256 of the one certificate that counts, in hex"] = ""
    plain: Annotated[bool, "speaks without TLS to a server on another machine"] = False


class DesktopSettings(ReachSettings, frozen=True, kw_only=True):
    """What a desktop is told besides its [relay] and [engine] tables."""

    backend: Annotated[
        str, "who answers agents: synthetic, recorded, openai, anthropic or command"
    ] = "synthetic"
    answers: Annotated[str, "the file of recorded answers"] = ""
    model: Annotated[str, "the model of agents that name none"] = ""
    base_url: Annotated[str, "the model server"] = ""
    key_env: Annotated[str, "the variable that holds the model server's key"] = ""
    command: Annotated[str, "the command that gets the prompt on its input"] = ""
    prices: Annotated[str, "the price of a million tokens read and written, as in 3/15"] = ""
    tools: Annotated[
        str, "the owner's settings of tools: which there are, and who may use them"
    ] = ""
    record: Whole = False
    log_files: Files = FILES
    log_size: FileSize = FILE_SIZE


class AgentSettings(ReachSettings, frozen=True, kw_only=True):
    """What an agent's calls are told."""

    token: Annotated[str, "the agent's token"] = ""


S = TypeVar("S", bound=msgspec.Struct)


class Resolved(msgspec.Struct, Generic[S]):
    """Settings, and where each was said: "--listen", "PULLCORD_LISTEN", a file's line, "default".

    `tables` has what the file says of actors, as it was read.
    """

    settings: S
    origins: dict[str, str]
    source: Source

    def table(self, name: str, config: type[Any], usual: Mapping[str, Any]) -> Any:
        """Return an actor's config: what the file says, else what is usual in a deployment."""
        decoder = Decoder(self.source)
        found = decoder.struct((name,), self.told(name, usual), config)
        decoder.finish()
        return found

    def told(self, name: str, usual: Mapping[str, Any]) -> Any:
        """Return what an actor's table has, as it was read, and what is usual besides."""
        told = self.source.data.get(name, {})
        return {**usual, **told} if isinstance(told, dict) else told


def resolve(
    kind: type[S],
    flags: Mapping[str, Any],
    file: Path | None,
    *,
    tables: tuple[str, ...] = (),
    environ: Mapping[str, str] = os.environ,
) -> Resolved[S]:
    """Return the settings; ScenarioError with every mistake in a file, or the first one elsewhere.

    `flags` have None for what was not given. A file that is not named need not be there.
    """
    source = Source("", "", {}) if file is None else read_source(file)
    decoder = Decoder(source)
    decoder.struct((), source.data, kind, extra_keys=tables)
    decoder.finish()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key, field in fields_of(kind).items():
        variable = PREFIX + key.upper()
        flag = f"--{key.replace('_', '-')}"
        if flags.get(key) is not None:
            told, origins[key] = flags[key], flag
        elif environ.get(variable):
            told, origins[key] = _typed(environ[variable], field.type, variable), variable
        elif key in source.data:
            told = source.data[key]
            line = source.place((key,))[0]
            origins[key] = f"{source.path}:{line}"
        else:
            origins[key] = "default"
            continue
        if isinstance(told, str) and "\0" in told:
            raise refusal(origins[key], f"{key} has a NUL character, which nothing here may have")
        values[field.name] = _decoded(key, told, field.type, origins[key])
    return Resolved(settings=kind(**values), origins=origins, source=source)


def _typed(text: str, kind: Any, place: str) -> Any:
    """Return a variable's text as a file would have it."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if bare is bool:
        if text.lower() not in _SWITCH:
            raise refusal(place, f"{quote(text)} is neither true nor false")
        return _SWITCH[text.lower()]
    if bare is int and NUMBER.fullmatch(text.strip()):
        return int(text)
    return text


def _decoded(key: str, value: Any, kind: Any, place: str) -> Any:
    decoder = Decoder(Source(place, "", {}))
    found = decoder.value((key,), value, kind)
    for problem in decoder.problems:
        raise refusal(place, problem.message, problem.cure)
    return found


def file_of(folder: Path, named: Path | None) -> Path | None:
    """Return which file is read: the one that is named, else the folder's own if there is one."""
    if named is not None:
        return named
    usual = folder / FILE
    return usual if usual.is_file() else None


def without_password(text: str) -> str:
    """Return a setting, or a word of a command, as it may be shown and logged."""
    return PASSWORD.sub(r"\1\2...", text)


def rows(resolved: Resolved[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each setting's key, value and origin, as they are shown: secrets are not."""
    kind: type[msgspec.Struct] = type(resolved.settings)
    for key, field in fields_of(kind).items():
        value = getattr(resolved.settings, field.name)
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        if key in SECRET and value:
            shown = "(set)"
        yield key, without_password(shown), resolved.origins[key]
    for name, table in resolved.source.data.items():
        if isinstance(table, dict):
            for key, value in table.items():
                line = resolved.source.place((name, key))[0]
                yield f"{name}.{key}", str(value), f"{resolved.source.path}:{line}"


KINDS: Final[Mapping[str, tuple[type[msgspec.Struct], tuple[str, ...]]]] = {
    "server": (ServerSettings, ("server",)),
    "desktop": (DesktopSettings, ("relay", "engine")),
    "agent": (AgentSettings, ()),
}
