"""The flags that commands of a deployment share; apart from what they do, to be light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from scenarios.flags import flag, switch

Flat = Parameter(name="*")  # a class's fields are flags of their own
Folder = flag("Its files' folder; by default in PULLCORD_HOME or the user's data.")
ServerFolder = flag("The server's folder on this machine, if it isn't the usual one.")
DesktopFolder = flag("The desktop's folder, if it isn't the usual one.")
ConfigFile = flag("A TOML file with these settings; by default config.toml in the folder.")
JSON_HELP = "Print JSON."
Record = switch("Write messages into the log whole, arguments and results too.")
Ticket = flag("A run's ticket.")


@dataclass(frozen=True, kw_only=True)
class ReachFlags:
    """How a server is reached."""

    server: Annotated[str | None, flag("The server, HOST:PORT; or PULLCORD_SERVER.")] = None
    ca: Annotated[str | None, flag("The authorities whose certificates count, a PEM file.")] = None
    fingerprint: Annotated[str | None, flag("The SHA-256 of the one certificate that counts.")] = (
        None
    )
    plain: Annotated[bool | None, switch("Speak without TLS to a server on another machine.")] = (
        None
    )


NOWHERE = ReachFlags()
