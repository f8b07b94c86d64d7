"""The commands of processes that stay, `server` and `desktop`, and `config`.

As in `scenarios.commands`, each turns its flags into a call, and what it does is imported when it
runs. Every flag that is a setting has a variable and a key in a file too: see docs/deploy.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from scenarios.flags import flag, switch
from scenarios.service.flags import (
    JSON_HELP,
    NOWHERE,
    ConfigFile,
    Flat,
    Folder,
    ReachFlags,
    Record,
)


def server(
    *,
    listen: Annotated[
        str | None, flag("Where it listens, HOST:PORT; by default 127.0.0.1:8700.")
    ] = None,
    store: Annotated[
        str | None, flag("sqlite:PATH, by default in the folder, or postgresql://USER@HOST/DB.")
    ] = None,
    tls_cert: Annotated[str | None, flag("Its certificate and those above it, a PEM file.")] = None,
    tls_key: Annotated[str | None, flag("The certificate's key, a PEM file.")] = None,
    plain: Annotated[
        bool | None, switch("Listen without TLS although other machines can reach it.")
    ] = None,
    http: Annotated[
        str | None, flag("Where its pages and metrics are, HOST:PORT; by default nowhere.")
    ] = None,
    http_url: Annotated[
        str | None, flag("The URL by which browsers elsewhere reach those pages.")
    ] = None,
    record: Annotated[bool | None, Record] = None,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Serve desktops and agents until SIGTERM or Ctrl-C, which let it finish what it has.

    Exit codes: 0 stopped, 2 it can't begin.
    """
    from scenarios.service.config import ServerSettings, file_of, resolve
    from scenarios.service.files import home
    from scenarios.service.server import run_server

    place = folder or home() / "server"
    flags = {
        "listen": listen,
        "store": store,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "plain": plain,
        "http": http,
        "http_url": http_url,
        "record": record,
    }
    resolved = resolve(ServerSettings, flags, file_of(place, config), tables=("server",))
    return run_server(resolved, place)


def desktop_run(
    *,
    tools: Annotated[
        str | None, flag("Your settings of tools: which agents have, and what you are asked for.")
    ] = None,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    record: Annotated[bool | None, Record] = None,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Stay connected to a server, and run what it queues, until SIGTERM or Ctrl-C.

    Exit codes: 0 stopped, 2 it can't begin.
    """
    from scenarios.service.config import DesktopSettings, file_of, resolve
    from scenarios.service.desktop import run_desktop
    from scenarios.service.files import home

    place = folder or home() / "desktop"
    flags = {**vars(reach), "tools": tools, "record": record}
    file = file_of(place, config)
    resolved = resolve(DesktopSettings, flags, file, tables=("relay", "engine"))
    return run_desktop(resolved, place)


def desktop_pair(
    code: Annotated[str, flag("The code, as the server's owner sees it by `devices pair`.")],
    /,
    *,
    name: Annotated[str | None, flag("What the owner sees; by default the host's name.")] = None,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Make this desktop a device of a server's owner. If the answer is lost, say it again."""
    from scenarios.service.config import DesktopSettings, file_of, resolve
    from scenarios.service.files import home
    from scenarios.service.pairing import pair

    place = folder or home() / "desktop"
    file = file_of(place, config)
    resolved = resolve(DesktopSettings, vars(reach), file, tables=("relay", "engine"))
    return pair(code, name, resolved.settings, resolved.origins, place)


def tour() -> int:
    """See a server, a desktop and an agent at work here, from ticket to result, and killed twice.

    Nothing is left of it. It takes half a minute. Exit codes: 0 all of it happened, 1 something did
    not, 130 Ctrl-C.
    """
    from scenarios.service.tour import run_tour

    return run_tour()


def config_show(
    part: Annotated[Literal["server", "desktop", "agent"], flag("Whose settings.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Print every setting, its value, and where that was said: a variable, a file's line, default.

    Flags go over both; they are not known here.
    """
    from scenarios.service.config import KINDS, file_of, resolve, rows
    from scenarios.service.files import home

    kind, tables = KINDS[part]
    resolved: Any = resolve(kind, {}, file_of(folder or home() / part, config), tables=tables)
    found = list(rows(resolved))
    if json:
        from scenarios.json_text import indented

        named = ({"key": key, "value": value, "from": origin} for key, value, origin in found)
        sys.stdout.write(indented(list(named)))
        return 0
    widths = [max(len(row[at]) for row in found) for at in (0, 1)]
    for key, value, origin in found:
        sys.stdout.write(f"{key:{widths[0]}}  {value:{widths[1]}}  {origin}\n")
    return 0
