"""Which path is answered by what: one ASGI application, of parts that others may stand beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from scenarios.service.http.changes import Changes
from scenarios.service.http.desk import Desk
from scenarios.service.http.doorway import Doorway
from scenarios.service.http.guard import Guard
from scenarios.service.http.health import Health
from scenarios.service.http.pages import Pages
from scenarios.service.http.render import style
from scenarios.service.meter import Meter

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<path d="M8 1v8" stroke="#0072b2" stroke-width="2"/>'
    '<circle cx="8" cy="12" r="3" fill="#e69f00"/></svg>'
)
BOTH = ["GET", "POST"]


def application(
    desk: Desk,
    say: Callable[[str], None],
    connections: Callable[[], Mapping[str, int]],
    stopping: Callable[[], bool],
    meter: Meter,
) -> Guard:
    """Return the application. `say` is told of errors; `stopping` tells whether it drains."""
    answered: dict[int, int] = {}
    health = Health(desk, connections, answered, stopping, meter)
    routes = [*_for_machines(health), *_for_anybody(desk), *_for_owners(desk)]
    nothing = Doorway(desk).nothing

    async def missing(request: Request, _error: Exception) -> Response:
        return await nothing(request)

    handlers = {404: missing, 405: missing}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, desk.site, say, answered)


def _for_machines(health: Health) -> list[BaseRoute]:
    return [
        Route("/healthz", health.alive),
        Route("/readyz", health.ready),
        Route("/metrics", health.metrics),
    ]


def _for_anybody(desk: Desk) -> list[BaseRoute]:
    doorway = Doorway(desk)

    async def css(_request: Request) -> Response:
        headers = {"Cache-Control": "public, max-age=300"}
        return Response(style(), media_type="text/css", headers=headers)

    async def icon(_request: Request) -> Response:
        headers = {"Cache-Control": "public, max-age=86400"}
        return Response(ICON, media_type="image/svg+xml", headers=headers)

    async def robots(_request: Request) -> Response:
        return PlainTextResponse("User-agent: *\nDisallow: /\n")

    return [
        Route("/style.css", css),
        Route("/icon.svg", icon),
        Route("/robots.txt", robots),
        Route("/sign-in", doorway.show),
        Route("/sign-in", doorway.enter, methods=["POST"]),
        Route("/link/{code}", doorway.show_link),
        Route("/link/{code}", doorway.enter_by_link, methods=["POST"]),
        Route("/sign-out", desk.for_owner(doorway.leave), methods=["POST"]),
    ]


def _for_owners(desk: Desk) -> list[BaseRoute]:
    pages = Pages(desk)
    changes = Changes(desk, pages)
    mine = desk.for_owner
    return [
        Route("/", mine(pages.home)),
        Route("/runs/{id}", mine(pages.run)),
        Route("/runs/{id}/cancel", mine(changes.cancel), methods=BOTH),
        Route("/runs/{id}/forget", mine(changes.forget), methods=BOTH),
        Route("/devices/{id}/revoke", mine(changes.revoke_device), methods=BOTH),
        Route("/agents", mine(pages.agents)),
        Route("/agents", mine(changes.add_agent), methods=["POST"]),
        Route("/agents/{id}/renew", mine(changes.renew), methods=BOTH),
        Route("/agents/{id}/revoke", mine(changes.revoke_agent), methods=BOTH),
        Route("/pair", mine(pages.pair)),
        Route("/pair", mine(changes.pair), methods=["POST"]),
        Route("/audit", mine(pages.audit)),
    ]
