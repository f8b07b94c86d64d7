"""Templates: everything is escaped, every name is known, and each is a page of its own."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from scenarios.service.http.render import FOLDER, page, style


def test_everything_is_escaped() -> None:
    shown = page("problem", 404, me="<me>", form_key='"', sentence="<b>&'\"")
    text = bytes(shown.body).decode()
    assert shown.status_code == 404
    assert "&lt;b&gt;&amp;&#39;&#34;" in text
    assert "<me>" not in text


def test_a_name_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        page("problem", me=None, form_key="")


def test_no_template_marks_anything_as_safe() -> None:
    for path in FOLDER.glob("*.j2"):
        text = path.read_text()
        assert "safe" not in text, path
        assert "autoescape" not in text, path
        assert "style=" not in text, path


def test_the_style_has_the_reports_colours_and_loads_nothing() -> None:
    assert "--paper:" in style()
    assert "url(" not in style()
    assert "@import" not in style()
