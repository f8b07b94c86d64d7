"""Pages as HTML: templates that decide nothing, with everything escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

FOLDER = Path(__file__).parent / "page"
STYLES = (Path(__file__).parent.parent.parent / "report" / "plot.css", FOLDER / "page.css")


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=FileSystemLoader(FOLDER),
    )


@cache
def style() -> str:
    """Return the style of every page: the reports' colours, then what is our own."""
    colours, own = (path.read_text(encoding="utf-8") for path in STYLES)
    return f"{colours}\n{own}"


def page(template: str, status: int = 200, **shown: Any) -> Response:
    """Return an answer with the page that a template makes."""
    return HTMLResponse(_environment().get_template(f"{template}.html.j2").render(shown), status)
