"""Gets pages from hosts that the settings name, and from nowhere else.

A host's name is resolved here, every address that it has must be one of the public Internet (unless
the settings say that this host may be private), and the connection goes to the address that was
looked at: a name that means something else a moment later changes nothing. Each redirection is
looked at in the same way. No cookie, key or password is ever sent.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

import msgspec
import trio

from actors.edges.models.http import each_chunk
from actors.edges.tools.tool import ToolError, ToolSpec, arguments_schema

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx

URL_LIMIT_CHARS: Final = 2_000
REDIRECTS_LIMIT: Final = 5
BODY_LIMIT_BYTES: Final = 2 << 20  # more than any page's text
LIMIT_S: Final = 30.0
CONNECT_LIMIT_S: Final = 10.0
ERROR_LIMIT_CHARS: Final = 500  # of what a server says of its error
REDIRECTS: Final = (301, 302, 303, 307, 308)
PORTS: Final = {"http": 80, "https": 443}
_TEXT: Final = re.compile(
    r"text/[\w.+-]+|application/(?:[\w.-]+\+)?(?:json|xml|javascript|yaml|x-yaml|toml|xhtml\+xml)"
)
_ENTRY: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>(?:\*\.)?[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>\d{1,5}))?",
)
_EMBEDDED: Final = (  # IPv6 addresses that stand for one of IPv4, and where that is in them
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
    (ipaddress.IPv6Network("::/96"), 0),
)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # a host and its port to its addresses


class HostError(ValueError):
    """An entry of the list of hosts is none: one sentence."""


class Host(msgspec.Struct, frozen=True):
    """One entry: a host, or all below it; over HTTPS unless the entry says http://."""

    scheme: str
    name: str  # in lower case; with `below` what it ends in
    port: int
    below: bool = False
    private: bool = False

    @classmethod
    def parse(cls, text: str, *, private: bool = False) -> Host:
        """Read an entry; HostError if it is none."""
        found = _ENTRY.fullmatch(text.lower())
        if found is None:
            raise HostError(
                "a host is written as docs.example.org, *.example.org or http://host:80"
            )
        scheme = found["scheme"] or "https"
        name = found["host"].strip("[]")
        below = name.startswith("*.")
        if below and "." not in name[2:]:
            raise HostError(f"{name} is too wide: name at least two parts, as in *.example.org")
        port = int(found["port"] or PORTS[scheme])
        if not 0 < port < 65_536:
            raise HostError("a port is a number from 1 to 65535")
        return cls(scheme, name.removeprefix("*"), port, below, private)

    def covers(self, scheme: str, name: str, port: int) -> bool:
        """Whether an address of the web is of this host."""
        if (scheme, port) != (self.scheme, self.port):
            return False
        if self.below:
            return name.endswith(self.name) and len(name) > len(self.name)
        return name == self.name

    def __str__(self) -> str:
        scheme = "" if self.scheme == "https" else f"{self.scheme}://"
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{scheme}{'*' if self.below else ''}{self.name}{port}"


async def resolve(name: str, port: int) -> Sequence[str]:
    """Return a host's addresses; ToolError if it has none."""
    try:
        found = await trio.socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ToolError(f"the host {name} has no address: {error.strerror}") from None
    except UnicodeError:  # a part of it is longer than names can be
        raise ToolError(f"the host {name} has no address: it is no name") from None
    return [str(one[4][0]) for one in found]


def is_public(address: str) -> bool:
    """Whether an address is one of the public Internet, whatever it is written as."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped
        for network, shift in _EMBEDDED:
            if inner is None and found in network:
                inner = ipaddress.IPv4Address((int(found) >> shift) & 0xFFFFFFFF)
        if found.teredo is not None or found.scope_id is not None:
            return False
        found = inner or found
    return found.is_global and not found.is_multicast and not found.is_reserved


class HttpGet:
    """The tool `http_get`. `trust` and `look_up` are the world's, but in tests."""

    limit_s = LIMIT_S

    def __init__(
        self,
        hosts: Sequence[Host],
        *,
        trust: SSLContext | bool = True,
        look_up: Resolve = resolve,
    ) -> None:
        self.hosts = hosts
        self.trust = trust
        self.look_up = look_up
        shown = ", ".join(map(str, hosts))
        self.spec = ToolSpec(
            name="http_get",
            description=f"Gets a page by its URL, as text. There are these hosts: {shown}.",
            schema=arguments_schema({"url": {"type": "string", "maxLength": URL_LIMIT_CHARS}}),
        )

    async def call(self, arguments: dict[str, Any]) -> str:
        """See Tool."""
        import httpx  # noqa: PLC0415  an extra

        url = arguments["url"]
        try:
            for _ in range(REDIRECTS_LIMIT + 1):
                said = await self.get(url)
                if isinstance(said, str):
                    return said
                url = urljoin(url, said.location)
        except (httpx.InvalidURL, ValueError):  # of an agent's words, or of a redirection's
            raise ToolError("this is no URL") from None
        except httpx.TimeoutException:
            raise ToolError("the host does not answer in time") from None
        except httpx.HTTPError as error:
            raise ToolError(f"it can't be got: {_reason(error)}") from None
        raise ToolError(f"the page redirects more than {REDIRECTS_LIMIT} times")

    async def get(self, text: str) -> str | _Elsewhere:
        """Get one address: what it says, or where else it says to look."""
        import httpx  # noqa: PLC0415  an extra

        url = httpx.URL(text)
        address = await self.address_of(url)
        # The name still stands in the request and is what the certificate must be for.
        there = url.copy_with(host=address, fragment=None)
        headers = {
            "Host": url.netloc.decode("ascii"),
            "Accept": "text/*, application/json;q=0.9, application/xml;q=0.9",
            "Accept-Encoding": "identity",
            "User-Agent": "pullcord",
        }
        extensions = {"sni_hostname": url.raw_host.decode("ascii")}
        async with (
            httpx.AsyncClient(
                verify=self.trust,
                timeout=httpx.Timeout(LIMIT_S, connect=CONNECT_LIMIT_S),
                follow_redirects=False,
                trust_env=False,  # no proxy that would look the name up again, no .netrc
            ) as client,
            client.stream("GET", there, headers=headers, extensions=extensions) as response,
        ):
            location = response.headers.get("Location")
            if response.status_code in REDIRECTS and location:
                return _Elsewhere(location)
            return await _said(response, url)

    async def address_of(self, url: httpx.URL) -> str:
        """Return the address to connect to; ToolError if the settings don't let it be."""
        if url.scheme not in PORTS or not url.raw_host or len(str(url)) > URL_LIMIT_CHARS:
            raise ToolError("a URL begins with https:// and names a host")
        if url.userinfo:
            raise ToolError("a URL has no password here")
        name = url.raw_host.decode("ascii").lower().rstrip(".").strip("[]")
        port = url.port or PORTS[url.scheme]
        entry = next((one for one in self.hosts if one.covers(url.scheme, name, port)), None)
        if entry is None:
            place = f"{url.scheme}://{name}" + ("" if url.port is None else f":{port}")
            shown = ", ".join(map(str, self.hosts))
            raise ToolError(f"{place} is none of the hosts that may be asked: {shown}")
        addresses = [str(name)] if _is_address(name) else await self.look_up(name, port)
        if not addresses:
            raise ToolError(f"the host {name} has no address")
        if not entry.private and not all(map(is_public, addresses)):
            raise ToolError(f"{name} is no host of the public Internet")
        return addresses[0]


class _Elsewhere(msgspec.Struct, frozen=True):
    """A redirection."""

    location: str


def _reason(error: BaseException) -> str:
    """Return why a page can't be got: the client wraps what went wrong, often without a word."""
    inner: BaseException | None = error
    while inner is not None:
        if words := " ".join(str(inner).split()):
            return words[:ERROR_LIMIT_CHARS]
        inner = inner.__cause__ or inner.__context__
    return type(error).__name__


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _said(response: httpx.Response, url: httpx.URL) -> str:
    """Return a response's text; ToolError if it is an error or no text."""
    kind = response.headers.get("Content-Type", "text/plain").partition(";")[0].strip().lower()
    status = f"HTTP {response.status_code}"
    if _TEXT.fullmatch(kind) is None:
        raise ToolError(f"{status}: the answer is {kind[:60] or 'of no type'}, and no text")
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ToolError(f"{status}: the answer is compressed, which was not asked for")
    raw = bytearray()

    def take(chunk: bytes) -> float | None:
        raw.extend(chunk)
        return 0 if len(raw) > BODY_LIMIT_BYTES else None

    await each_chunk(response, take)
    if len(raw) > BODY_LIMIT_BYTES:
        raise ToolError(f"{status}: the answer has more than {BODY_LIMIT_BYTES:,} bytes")
    try:
        text = raw.decode(response.charset_encoding or "utf-8", errors="replace")
    except LookupError:
        text = raw.decode(errors="replace")
    if not response.is_success:
        raise ToolError(f"{status}: {' '.join(text.split())[:ERROR_LIMIT_CHARS]}".rstrip(": "))
    return f"{status} {kind} from {url}\n\n{text}"
