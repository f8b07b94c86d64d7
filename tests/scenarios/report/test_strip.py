"""The fault strip: when faults were to act, when they did, how often."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.report.story import Story, Teller
from scenarios.report.strip import WIDTH, FaultLine, fault_lines, fired_words, strip, union
from scenarios.results import ScenarioResult
from scenarios.runner import NO_OPTIONS
from tests.scenarios.commandline import SMALL, result_of
from tests.scenarios.report.drawings import check, path_points, tree

FAULTS = """
[[fault]]
name = "sleep"
kind = "suspend"
actor = "relay"
at = "10s"
for = "20s"
[[fault]]
kind = "drop"
from = "agent"
probability = 0.5
at = "5s"
for = "40s"
[[fault]]
name = "never"
kind = "kill"
actor = "agent"
at = "1h"
[[fault]]
name = "on_start"
kind = "delay"
delay = "1s"
on = "run.started"
for = "10s"
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> ScenarioResult:
    return result_of(tmp_path_factory.mktemp("strip"), SMALL + FAULTS)


def told(one: ScenarioResult, count: int = 4) -> list[Story]:
    teller = Teller(NO_OPTIONS, None)
    stories = [teller.tell(one.plan, one.cells[0], number) for number in range(count)]
    return [story for story in stories if story is not None]


def test_windows_and_firings_of_each_kind(one: ScenarioResult) -> None:
    stories = told(one)
    assert len(stories) == 4
    sleep, drop, never, on_start = fault_lines(one.cells[0], stories)
    assert sleep.windows == [(10_000_000, 30_000_000)]
    assert sleep.firings == [10_000_000] * 4
    assert drop.windows == [(5_000_000, 45_000_000)]
    assert len(drop.firings) == sum(one.cells[0].fired(drop.name)[:4])
    assert all(5_000_000 <= at < 45_000_000 for at in drop.firings)
    assert (never.windows, never.firings, never.words) == ([], [], "never fired")
    assert len(on_start.windows) == 4, "each began with its own event"


def test_a_log_tells_no_window_so_the_file_does(one: ScenarioResult) -> None:
    bare = Story(records=[], end_us=1, outcome="ended", windows={}, firings={})
    sleep, drop, _, on_start = fault_lines(one.cells[0], [bare])
    assert drop.windows == [(5_000_000, 45_000_000)]
    assert sleep.windows == on_start.windows == []


def test_how_often_in_words(one: ScenarioResult, tmp_path: Path) -> None:
    cell = one.cells[0]
    assert fired_words(cell, cell.scenario.faults[0]) == (
        "fired 40 times, in 40 of 40 replications, 1 each"
    )
    alone = result_of(tmp_path, SMALL.replace("= 40", "= 1") + FAULTS).cells[0]
    assert fired_words(alone, alone.scenario.faults[0]) == "fired 1 time"


def test_the_drawing_keeps_to_its_box(one: ScenarioResult) -> None:
    stories = told(one)
    svg = strip("small", fault_lines(one.cells[0], stories), stories)
    check(svg)
    ticks = [part for part in tree(svg).iter() if part.get("class") == "k"]
    assert len(ticks) == 3, "what never fired has none"
    first = path_points(ticks[0].attrib["d"])[0][0]
    end_s = max(story.end_us for story in stories) / 1e6
    assert first == pytest.approx(10 + (WIDTH - 20) * 10 / end_s, abs=0.6)


def test_long_names_and_no_stories_keep_to_the_box() -> None:
    line = FaultLine(
        name="n" * 200, kind="drop", words="", windows=[(0, None)], firings=[5, 5, 90_000_000]
    )
    check(strip("x", [line] * 3, []))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted).map(tuple)))
def test_a_union_covers_the_same_times(spans: list[tuple[int, int]]) -> None:
    found = union(spans)
    covered = {at for begin, end in spans for at in range(begin, end + 1)}
    assert {at for begin, end in found for at in range(begin, end + 1)} == covered
    assert all(before[1] < after[0] for before, after in pairwise(found))
