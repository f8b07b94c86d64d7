"""The HTTP side of a server, if it is asked for: its settings, and what they need."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from urllib.parse import urlsplit

from actors.edges.gateway import Gateway
from scenarios.graph_files import refusal
from scenarios.problems import quote
from scenarios.service.config import ServerSettings
from scenarios.service.process import say
from scenarios.service.reach import is_here, server_context
from scenarios.service.world import Edge, ServiceWorld
from transports.listening import parse_address

PARTS = ("hypercorn", "starlette", "prometheus_client")  # what the extra [server] installs


def web_edge(
    settings: ServerSettings, origins: dict[str, str], gateway: Gateway, world: ServiceWorld
) -> Edge:
    """Return the edge that serves HTTP. ScenarioError for settings that can't be."""
    place = origins["http"]
    if any(find_spec(part) is None for part in PARTS):
        cure = "pip install 'pullcord[server]', or leave --http out"
        raise refusal(place, "HTTP needs a web server", cure)
    try:
        address = parse_address(settings.http)
    except ValueError as error:
        raise refusal(place, str(error)) from None
    here = is_here(address.host)
    if not (here or settings.tls_cert or settings.plain):
        what = f"others can reach {address}, and without TLS they can read every page and token"
        cure = "give --tls-cert and --tls-key, or --plain if something in front speaks TLS"
        raise refusal(place, what, cure)
    from scenarios.service.http.edge import HttpEdge, HttpPlace  # noqa: PLC0415  needs the extra

    return HttpEdge(
        HttpPlace(
            listen=address,
            origin=place,
            here=here,
            url=public_url(settings.http_url, origins["http_url"]),
            tls=server_context(settings.tls_cert, settings.tls_key, origins),
        ),
        gateway,
        partial(world.stamp_us, "http"),
        say,
        world.meter,
    )


def public_url(text: str, place: str) -> str:
    """Return the URL by which others reach the server, without a slash at its end."""
    cure = 'write it as in "https://pull.example.org"'
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not text:
        return ""
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise refusal(place, f"{quote(text)} is no URL of a server", cure)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise refusal(place, f"{quote(text)} has more than a host: pages begin at its root", cure)
    return f"{parts.scheme}://{parts.netloc}"
