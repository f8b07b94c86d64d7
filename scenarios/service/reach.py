"""How a server is reached: in plain on this machine, over TLS elsewhere; and what goes wrong there.

TLS is verified: by the system's authorities, by those of a file, or by the fingerprint of the one
certificate that counts. Plain connections to other machines have to be asked for.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec
from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute

from scenarios.graph_files import refusal
from scenarios.service.config import ReachSettings
from transports.connection import close_now
from transports.listening import Address, parse_address
from transports.tcp import connect_tcp

FINGERPRINT_CHARS = 64
SHA256 = "sha256:"  # may stand before a fingerprint

# What a reason for a broken link has in it, and what to do then; the first that fits.
CURES = (
    ("this is TLS", "it speaks TLS: leave --plain out; --ca or --fingerprint ask for TLS here too"),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS: start it with --tls-cert; --plain if it is near"),
    ("this is HTTP", "a web server answers there: check host and port"),
    ("this is SSH", "an SSH server answers there: check host and port"),
    ("another fingerprint", "if the server has a new certificate, give its fingerprint"),
    ("clock is wrong", "compare the date on both machines"),
    ("ostname mismatch", "reach it by a name that its certificate has"),
    ("IP address mismatch", "reach it by a name that its certificate has"),
    ("certificate is refused", "give --ca FILE with its authority, or --fingerprint"),
    ("its disk is full", "if it stays so, look at what the server prints"),
    ("try again", "say the same again in a minute"),
    ("speaks protocol", "update pullcord on the older side"),
    ("Connection refused", "is the server running there?"),
    ("no answer within", "is this the right address, and is a firewall in between?"),
    ("no welcome within", "does a pullcord server listen there?"),
    ("the peer closed", "is this a pullcord server? if it speaks TLS, give --ca or --fingerprint"),
    ("Name or service not known", "check the host's spelling"),
    ("not known", "check the host's spelling"),
)


class Reach(msgspec.Struct, frozen=True, dict=True):
    """Where a server is, and how it is spoken to."""

    address: Address
    tls: bool
    ca: str = ""
    fingerprint: str = ""

    async def connect(self) -> ByteStream:
        """Open a stream; OSError, of which an SSLError is one, or anyio's BrokenResourceError."""
        host, port = self.address
        if not self.tls:
            return await connect_tcp(host, port)
        stream = await connect_tcp(host, port, self._context)
        if self.fingerprint:
            certificate = stream.extra(TLSAttribute.peer_certificate_binary)  # noqa: S610  no database here
            found = hashlib.sha256(certificate or b"").hexdigest()
            if not hmac.compare_digest(found, self.fingerprint):
                await close_now(stream)
                raise OSError(f"the server's certificate has another fingerprint: {found}")
        return stream

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca or None)
        if self.fingerprint:  # it says more than any authority
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def reach_of(settings: ReachSettings, origins: Mapping[str, str]) -> Reach:
    """Return how the settings' server is reached; ScenarioError if they can't be used."""
    if not settings.server:
        cure = "give --server HOST:PORT, or set PULLCORD_SERVER"
        raise refusal("--server", "which server?", cure)
    try:
        address = parse_address(settings.server)
    except ValueError as error:
        raise refusal(origins["server"], str(error)) from None
    if not address.port:
        raise refusal(origins["server"], "0 is no server's port")
    fingerprint = settings.fingerprint.lower().removeprefix(SHA256).replace(":", "")
    if fingerprint and (
        len(fingerprint) != FINGERPRINT_CHARS or set(fingerprint) - set("0123456789abcdef")
    ):
        what = f"a fingerprint has {FINGERPRINT_CHARS} hexadecimal digits"
        raise refusal(origins["fingerprint"], what)
    asked = bool(settings.ca or fingerprint)
    if settings.plain and asked:
        what = "speaks without TLS, so --ca and --fingerprint mean nothing"
        raise refusal(origins["plain"], what, "leave one of them out")
    if settings.ca:
        _check_authorities(settings.ca, origins["ca"])
    tls = asked or not (settings.plain or is_here(address.host))
    return Reach(address, tls, settings.ca, fingerprint)


def is_here(host: str) -> bool:
    """Whether a host is this machine alone, so that nobody else can listen on the way."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def cure_of(reason: str) -> str | None:
    """Return what to do about a link's reason."""
    return next((cure for part, cure in CURES if part in reason), None)


def _check_authorities(path: str, place: str) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise refusal(place, f"{path} has no certificates in PEM") from None
    except OSError as error:
        raise refusal(place, f"{Path(path)} can't be read: {error.strerror}") from None


def server_context(cert: str, key: str, origins: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS of a server, None without one; ScenarioError if its files can't be used."""
    if not cert and not key:
        return None
    if not cert or not key:
        here, other = ("tls_cert", "--tls-key") if cert else ("tls_key", "--tls-cert")
        raise refusal(origins[here], f"TLS needs {other} too")
    for path, place in ((cert, origins["tls_cert"]), (key, origins["tls_key"])):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise refusal(place, f"{path} can't be read: {error.strerror}") from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise refusal(origins["tls_key"], f"{key} is not the key of {cert}") from None
        what = f"{cert} and {key} are no certificate and its key in PEM"
        raise refusal(origins["tls_cert"], what) from None
    except ValueError:
        what = f"{key} is protected by a password, which nobody is there to type"
        raise refusal(origins["tls_key"], what) from None
    return context


def _no_password() -> str:
    raise ValueError
