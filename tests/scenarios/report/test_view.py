"""What the page says of a scenario: lists cut to what there is room for."""

from pathlib import Path

import pytest

from scenarios.report.story import Teller
from scenarios.report.view import LISTED, Detail, View, listing
from scenarios.runner import NO_OPTIONS
from tests.scenarios.commandline import SMALL, result_of

FAILING = SMALL + '[[expect]]\nthat = "wait.mean[20s] < 0.01s"\n'


def view(folder: Path, text: str, entries: int = 100, panels: int = 3) -> View:
    detail = Detail(panels, 1, 10, 50, entries)
    return View(result_of(folder, text), 1, Teller(NO_OPTIONS, None), detail, {})


def test_all_is_shown_in_the_order_of_the_file_where_there_is_room(tmp_path: Path) -> None:
    shown = view(tmp_path, FAILING)
    assert [one["verdict"] for one in shown.expects] == ["pass", "pass", "pass", "fail"]
    assert shown.more == {}


def test_what_failed_comes_first_where_there_is_not(tmp_path: Path) -> None:
    shown = view(tmp_path, FAILING, entries=1)
    assert [one["verdict"] for one in shown.expects] == ["fail"]
    assert shown.more["expects"] == "3 more not shown"
    (table,) = shown.tables
    assert (len(table["rows"]), table["more"]) == (1, "1 more not shown")


@pytest.mark.parametrize("count", [0, LISTED, LISTED + 3])
def test_long_lists_are_counted(count: int) -> None:
    text = listing([f"n{number}" for number in range(count)])
    assert text.count("n") - text.count("and") == min(count, LISTED)
    assert text.endswith("; and 3 more") == (count > LISTED)


def test_nothing_held_where_nothing_ran(tmp_path: Path) -> None:
    fault = '[[fault]]\nkind = "drop"\nat = "1s"\n[relay]\nuse = "mine.py:Mine"\n'
    (tmp_path / "mine.py").write_text(
        "from pullcord import Relay\n\n\nclass Mine(Relay):\n    def on_start(self, context):\n"
        "        raise RuntimeError('no')\n"
    )
    shown = view(tmp_path, SMALL + fault)
    assert shown.one.troubles
    assert shown.checks == []


def test_panels_that_are_not_drawn_are_named(tmp_path: Path) -> None:
    wait, late = view(tmp_path, SMALL, panels=1).metrics
    assert (len(wait["panels"]), wait["rest"]) == (1, "20s")
    assert late["rest"] == "20s"


def test_like_names_of_drawings_are_all_kept(tmp_path: Path) -> None:
    plots: dict[str, str] = {}
    one = result_of(tmp_path)
    for number in (1, 2):
        View(one, number, Teller(NO_OPTIONS, None), Detail(3, 1, 10, 50, 9), plots)
    names = sorted(plots)
    assert "small_wait_relay.poll=5s" in names
    assert "small_wait_relay.poll=5s_2" in names
    assert plots["small_wait_relay.poll=5s"] == plots["small_wait_relay.poll=5s_2"]
