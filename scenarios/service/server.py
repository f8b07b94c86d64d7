"""`pullcord server`: everything between its flags and its end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.accounts.server import AccountedServer
from actors.actor import Place
from actors.edges.gateway import SERVER, Gateway
from actors.stores.failures import StoreError
from actors.stores.sqlite import SqliteStore
from scenarios.graph_files import refusal
from scenarios.problems import quote
from scenarios.service.certificate import strange_fingerprint
from scenarios.service.config import Resolved, ServerSettings, without_password
from scenarios.service.doors import Doors
from scenarios.service.files import (
    SQLITE,
    lock_folder,
    make_folder,
    open_sqlite,
    store_problem,
    write_secret,
)
from scenarios.service.process import open_log, say, serve
from scenarios.service.reach import is_here, server_context
from scenarios.service.recorded import RecordedActor
from scenarios.service.web import web_edge
from scenarios.service.world import ServiceWorld
from transports.connection import Peer
from transports.handshake import PROTOCOL
from transports.listening import Address, parse_address

if TYPE_CHECKING:
    from actors.stores.postgres import PostgresStore

DATABASE = "server.db"
SOCKET = "owner.sock"
KEY = "pairing.key"
KEY_BYTES = 32
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  what one listens on and nobody dials
POSTGRES = ("postgresql://", "postgres://")


def run_server(resolved: Resolved[ServerSettings], folder: Path) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code. ScenarioError for what can be mended."""
    settings, origins = resolved.settings, resolved.origins
    config = server_config(resolved)
    address = listening_address(settings, origins)
    tls = server_context(settings.tls_cert, settings.tls_key, origins)
    make_folder(folder)
    lock = lock_folder(folder, "server")
    try:
        world = ServiceWorld(SERVER, say)
        is_new = not settings.store and not (folder / DATABASE).exists()
        store = open_store(settings.store, origins["store"], folder, say)
        world.house(SERVER, AccountedServer(config, Place(name=SERVER)), store)

        def log_link(event: str, /, **fields: Any) -> None:
            world.tell_event("gateway", event, fields)

        me = Peer(protocol=PROTOCOL, name=SERVER, boot=f"{world.seed:x}")
        gateway = Gateway(me, world, pairing_key(folder), log_link)
        if tls is not None:
            gateway.fingerprint = strange_fingerprint(tls)
        doors = Doors(
            gateway,
            address,
            origins["listen"],
            tls,
            folder.resolve() / SOCKET,
            settings.connections,
        )
        world.edges.append(doors)
        if settings.http:
            world.edges.append(web_edge(settings, origins, gateway, world))

        def ready() -> None:
            how = "in plain" if tls is None else "over TLS"
            say(f"server listens on {doors.address} {how}; its files lie in {folder}")
            if is_new:
                for line in first_steps(doors.address):
                    say(line)

        world.on_ready = ready
        try:
            log = open_log(
                SERVER,
                folder,
                settings,
                world,
                {
                    SERVER: RecordedActor(
                        kind=AccountedServer.__name__,
                        config=resolved.told("server", usual_config(settings)),
                        store="PostgreSQL" if is_postgres(settings.store) else "SQLite",
                    )
                },
            )
            return serve(world, log)
        finally:
            store.close()
    finally:
        lock.release()


def server_config(resolved: Resolved[ServerSettings]) -> AccountedServer.Config:
    """Return what the server itself is told."""
    usual = usual_config(resolved.settings)
    config: AccountedServer.Config = resolved.table("server", AccountedServer.Config, usual)
    return config


def usual_config(settings: ServerSettings) -> dict[str, Any]:
    """Return what a server is told unless its settings say otherwise."""
    # What other processes do in the same database is looked at only where there may be some.
    return {"shared": is_postgres(settings.store)}


def first_steps(address: Address) -> Iterator[str]:
    """Yield what whoever starts the first server does next."""
    host = "HOST" if address.host in EVERYWHERE else address.host
    yield "this is a new server; next, in another terminal of this machine:"
    yield "  pullcord devices pair             a code that pairs one desktop"
    yield "  pullcord agents add NAME          the token of an agent"
    yield "and on the desktop, which may be this machine:"
    yield f"  pullcord desktop pair CODE --server {address._replace(host=host)}"
    yield "  pullcord desktop run"
    yield "  pullcord desktop share GRAPH --project NAME"


def listening_address(settings: ServerSettings, origins: dict[str, str]) -> Address:
    """Return where a server listens; ScenarioError if tokens would cross a network in plain."""
    try:
        address = parse_address(settings.listen)
    except ValueError as error:
        raise refusal(origins["listen"], str(error)) from None
    encrypted = settings.tls_cert or settings.tls_key
    if not (encrypted or settings.plain or is_here(address.host)):
        what = f"others can reach {address}, and without TLS they can read every token"
        cure = "give --tls-cert and --tls-key, or --plain if something in front speaks TLS"
        raise refusal(origins["listen"], what, cure)
    return address


def open_store(
    text: str, place: str, folder: Path, say: Callable[[str], None]
) -> SqliteStore | PostgresStore:
    """Return the server's store; ScenarioError if it can't be had."""
    if not text:
        return open_sqlite(folder / DATABASE, say)
    if text.startswith(SQLITE):
        return open_sqlite(Path(text.removeprefix(SQLITE)), say)
    if is_postgres(text):
        return _open_postgres(text, place)
    cure = "write sqlite:PATH or postgresql://USER@HOST/DATABASE"
    raise refusal(place, f"{quote(without_password(text))} names no store", cure)


def is_postgres(text: str) -> bool:
    """Whether a store's text names a PostgreSQL database."""
    return text.startswith(POSTGRES)


def _open_postgres(address: str, place: str) -> PostgresStore:
    try:
        from actors.stores.postgres import PostgresStore  # noqa: PLC0415  an extra, for few
    except ImportError:
        raise refusal(
            place, "PostgreSQL needs psycopg", "pip install 'pullcord[postgres]'"
        ) from None
    try:
        return PostgresStore(address)
    except StoreError as error:
        raise store_problem(error) from None


def pairing_key(folder: Path) -> bytes:
    """Return what pairing codes are hashed with, made at the first start."""
    path = folder / KEY
    try:
        if not path.exists():
            write_secret(path, secrets.token_hex(KEY_BYTES))
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        what = f"the key of pairing codes can't be used: {error}"
        raise refusal(str(path), what, "remove the file: codes that are not used yet end") from None
    if len(key) != KEY_BYTES:
        raise refusal(str(path), "this is no key of pairing codes", "remove the file")
    return key
