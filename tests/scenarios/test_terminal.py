"""What a terminal is told."""

import contextlib
import io
import os
import pty
import sys
import time
from types import SimpleNamespace

import pytest

from scenarios import terminal as module
from scenarios.terminal import colored, progress, set_color, width_columns, write_outside_text

pytestmark = pytest.mark.usefixtures("call")  # which puts the colours back


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_coloured_unless_somebody_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert colored(Terminal())
    assert not colored(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colored(Terminal())
    set_color("always")
    assert colored(io.StringIO())
    set_color("never")
    assert not colored(Terminal())
    set_color("auto")
    monkeypatch.setenv("NO_COLOR", "")
    assert colored(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not colored(Terminal())


def test_what_is_no_terminal_has_a_hundred_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert width_columns(io.StringIO()) == 100
    monkeypatch.setenv("COLUMNS", "70")
    assert width_columns(io.StringIO()) == 70
    monkeypatch.setenv("COLUMNS", "wide")
    assert width_columns(io.StringIO()) == 100


def test_what_others_wrote_moves_no_cursor_and_a_pipe_gets_it_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "a\tb\r\n\x1b]52;c;cm0=\x07 \u202eno \x9b31m é\n"
    for stream, shown in (
        (io.StringIO(), text),
        (Terminal(), "a\tb\n␛]52;c;cm0=␇ \ufffdno \ufffd31m é\n"),
    ):
        monkeypatch.setattr("sys.stdout", stream)
        write_outside_text(text)
        write_outside_text("x")
        assert stream.getvalue() == shown + "x\n"


def test_a_line_now_and_then_where_no_bar_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with progress(True) as report:
        assert report is not None
        report(1000, 5000)  # what a resumed run had done
        clock.now += 20
        report(1500, 5000)
        assert err.getvalue() == ""
        clock.now += 20
        report(2000, 5000)
        report(2100, 5000)
    assert err.getvalue() == "pullcord: 2,000 of 5,000 replications, about 120 s left\n"


def test_nothing_is_told_when_it_is_not_wanted() -> None:
    with progress(False) as report:
        assert report is None


def test_a_short_run_draws_no_bar_and_imports_no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with progress(True) as report:
        assert report is not None
        report(0, 10)
        report(10, 10)
    assert err.getvalue() == ""


def test_a_long_run_has_a_bar_that_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "BAR_S", 0.0)
    control, end = pty.openpty()
    with os.fdopen(end, "w") as err:
        monkeypatch.setattr(sys, "stderr", err)
        with progress(True) as report:
            assert report is not None
            report(5, 10)
            time.sleep(0.01)
            report(10, 10)
        monkeypatch.undo()
    os.set_blocking(control, False)
    drawn = ""
    with contextlib.suppress(OSError):  # there is nothing more, and nobody who writes
        while part := os.read(control, 100_000).decode():
            drawn += part
    os.close(control)
    assert "10/10" in drawn
    assert "replications" in drawn
