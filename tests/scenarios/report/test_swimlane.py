"""Swimlanes: lanes, arrows and labels that keep apart and inside."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logs.record import KINDS as RECORDS
from logs.record import DropRecord, EventRecord, MessageRecord, Record
from scenarios.report.beats import Beat
from scenarios.report.story import Story, Teller
from scenarios.report.swimlane import LANE, LANES_LIMIT, clock, swimlane, tip
from scenarios.results import ScenarioResult
from scenarios.runner import NO_OPTIONS
from tests.scenarios.commandline import SMALL, result_of
from tests.scenarios.report.drawings import check, points, size, texts, tree
from tests.scenarios.report.test_strip import FAULTS
from transports.envelope import Envelope

LINK = '[[link]]\nlatency = "300ms"\n[[agent]]\ncount = 9\n'
KINDS = {"agent": "agent", "server": "server", "relay": "relay", "engine": "engine"}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    one = result_of(tmp_path_factory.mktemp("lane"), SMALL + FAULTS)
    return told(one)


def told(one: ScenarioResult) -> Story:
    story = Teller(NO_OPTIONS, None).tell(one.plan, one.cells[0], 0)
    assert story is not None
    return story


def lane(story: Story, focus: int, rows: int = 40) -> str:
    svg = swimlane("replication 0", story, [focus], "", (rows, 100), KINDS)
    assert svg is not None
    return svg


def test_labels_keep_apart_wherever_one_looks(story: Story) -> None:
    for focus in range(1, len(story.records), 7):
        check(lane(story, focus))


def test_lanes_stand_in_their_order(story: Story) -> None:
    head = [box.text for box in sorted(texts(lane(story, 40)), key=lambda box: box.left)
            if box.top < 20]  # fmt: skip
    assert head == ["min:s", "agent", "server", "relay", "engine"]


def test_rows_are_limited(story: Story) -> None:
    assert size(lane(story, 40, 5))[1] < size(lane(story, 40, 40))[1]
    more = [box.text for box in texts(lane(story, 40, 5)) if box.text.startswith("⋮")]
    assert more
    assert all(text.endswith("more") for text in more)


def test_what_is_in_focus_is_marked_and_told(story: Story) -> None:
    wanted = next(record for record in story.records if record.n == 40)
    svg = lane(story, wanted.n)
    titles = [part.text or "" for part in tree(svg).iter() if part.tag.endswith("title")]
    assert any(f"record {wanted.n}:" in text for text in titles)
    wide = [part for part in tree(svg).iter() if part.get("class") == "b" and part.get("height")]
    assert max(float(part.attrib["width"]) for part in wide) >= LANE * 4


def test_a_stop_is_a_bar_on_its_lane(story: Story) -> None:
    strikes = [record.n for record in story.records if type(record).__name__ == "FaultRecord"]
    svg = lane(story, strikes[0])
    titles = [part.text or "" for part in tree(svg).iter() if part.tag.endswith("title")]
    assert "relay: suspend by sleep, until 0:30.00" in titles


def test_slow_messages_and_many_actors(tmp_path: Path) -> None:
    one = result_of(tmp_path, SMALL.replace("[agent]", "[[agent]]\ncount = 9") + LINK[:36])
    story = told(one)
    svg = lane(story, len(story.records) // 2)
    check(svg)
    heads = [box for box in texts(svg) if box.top < 20]
    assert 2 <= len(heads) - 1 <= LANES_LIMIT
    assert any("after 0.3 s" in box.text for box in texts(svg))


def test_long_names_keep_to_their_lane(story: Story) -> None:
    long = {name: name * 30 for name in KINDS}
    svg = swimlane("x", renamed(story, long), [40], "", (30, 50), {})
    assert svg is not None
    check(svg)


def test_long_labels_keep_to_the_box() -> None:
    envelope = Envelope(1, "agent", "server", 0, 0, {"type": "Start", "reason": "r" * 90})
    records: list[Record] = [
        MessageRecord(1, 0, "server", 0, envelope),
        DropRecord(2, 5, "agent", 0, "loss" * 50, envelope),
        EventRecord(3, 6, "server", 0, "event" * 60, {}),
        EventRecord(4, 6, "agent", 0, "event" * 60, {}),
    ]
    svg = lane(Story(records=records, end_us=9, outcome="ended", windows={}, firings={}), 2)
    check(svg)
    assert sum(box.text.endswith("…") for box in texts(svg)) == 3


def renamed(story: Story, names: dict[str, str]) -> Story:
    raw = msgspec.json.encode(story.records)
    for old, new in names.items():
        for key in ("actor", "source", "target"):
            raw = raw.replace(f'"{key}":"{old}"'.encode(), f'"{key}":"{new}"'.encode())
    union: Any = reduce(or_, RECORDS.values())
    records = msgspec.json.decode(raw, type=list[union])
    return msgspec.structs.replace(story, records=records)


def test_nothing_of_nothing() -> None:
    bare = Story(records=[], end_us=0, outcome="ended", windows={}, firings={})
    assert swimlane("x", bare, [], "", (10, 10), {}) is None


def test_faults_on_links_have_their_bars(story: Story) -> None:
    svg = lane(story, 40)
    bars = [part for part in tree(svg).iter()
            if part.get("class") == "b" and part.get("width") == "10"]  # fmt: skip
    assert 1 <= len(bars) <= 2
    assert points(svg)


@pytest.mark.parametrize(
    ("t_us", "text"),
    [(0, "0:00.00"), (59_999_000, "1:00.00"), (297_600_000, "4:57.60"),
     (3_897_600_000, "1:04:57.60")],
)  # fmt: skip
def test_times_are_minutes_and_seconds(t_us: int, text: str) -> None:
    assert clock(t_us) == text


def test_tips_are_cut() -> None:
    beat = Beat(n=7, cause=0, t=0, sent_us=0, source="a", target="b", style="message",
                label="l", told="x" * 500, text="")  # fmt: skip
    assert len(tip(beat, 60)) == 60
    assert tip(beat, 60).startswith("0:00.00 record 7: xxx")
    assert len(tip(beat, 0)) == 1
