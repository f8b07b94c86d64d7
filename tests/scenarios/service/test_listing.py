"""Lists: piped they are lines, at a terminal a table if it has room, and ids are never broken."""

from __future__ import annotations

import pytest

from scenarios.service import listing
from scenarios.service.listing import print_rows

HEAD = ("run", "slug", "state", "")
ID = "15f2ad0a-748d-487c-8bd4-000000000009"
ROWS = [(ID, "sum", "queued 1s ago", ""), (ID, "summarise", "failed", "it \x1b[31mbroke")]
LINES = [f"{ID}  sum  queued 1s ago", f"{ID}  summarise  failed  it ␛[31mbroke"]


def test_what_is_piped_is_a_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(HEAD, ROWS)
    assert capsys.readouterr().out.splitlines() == LINES


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            90,
            [
                "run                                   slug       state",
                f"{ID}  sum        queued 1s ago",
                f"{ID}  summarise  failed         it ␛[31mbroke",
            ],
        ),
        (70, LINES),
    ],
)
def test_a_terminal_with_room_has_a_table(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    lines: list[str],
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(listing, "width_columns", lambda _stream: width)
    monkeypatch.setenv("NO_COLOR", "1")
    print_rows(HEAD, ROWS)
    assert capsys.readouterr().out.splitlines() == lines
    print_rows(HEAD, [])
    assert capsys.readouterr().out == ""
