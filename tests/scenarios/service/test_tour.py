"""The tour as a user starts it: to its end, and broken off; nothing of it is left either way."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from scenarios.problems import ScenarioError
from scenarios.service import tour
from tests.scenarios.commandline import start

PLACE = re.compile(r"\S+/pullcord-tour-\w+")
GONE_S = 10.0


def left(folder: str) -> list[int]:
    """The processes that have the tour's folder as their home."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if f"PULLCORD_HOME={folder}".encode() in text:
            found.append(int(path.parent.name))
    return found


def assert_nothing_is_left(told: str) -> None:
    [folder] = set(PLACE.findall(told))
    end_s = time.monotonic() + GONE_S
    while (left(folder) or Path(folder).exists()) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert left(folder) == []
    assert not Path(folder).exists()


def test_the_tour_goes_from_ticket_to_result_through_two_kills(tmp_path: Path) -> None:
    process = start(tmp_path, "tour")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, ""), err
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) < 100
    assert out.count("$ kill -9 ") == 2
    assert out.count('    "words": 16\n') == 2
    assert "pc_agt_..." in out
    assert re.search(r"desktop outbox\n  \S+  completed, for", out)
    assert out.count("  0 violated, ") == 2
    assert "nothing lost, nothing run twice" in out
    assert_nothing_is_left(out)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_broken_off_it_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = start(tmp_path, "tour")
    assert process.stdout is not None
    told = ""
    while "server listens on" not in told:
        line = process.stdout.readline()
        assert line, told
        told += line
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in err
    assert_nothing_is_left(told + out)


def test_without_a_javascript_engine_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tour, "scripts_can_run", lambda: False)
    with pytest.raises(ScenarioError, match=r"(?s)JavaScript engine.*pullcord\[graphs\]"):
        tour.run_tour()
