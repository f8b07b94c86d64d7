"""The screen: each key does what it says, at any size, and no more is drawn than is seen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from scenarios.checks.history import Violation
from scenarios.step_files import stepper_of
from scenarios.step_screen import KEYS, TABS, StepScreen
from scenarios.step_widgets import HELP, Choose, Help, LineView
from scenarios.stepper import Stepper
from tests.scenarios.stepping import stepper

Play = Callable[[Pilot[None], StepScreen], Awaitable[None]]


def play(
    act: Play, made: Stepper | None = None, actor: str | None = None, size: Any = (80, 24)
) -> StepScreen:
    """Open a screen and do something with it."""
    screen = StepScreen(made or stepper(), actor)

    async def main() -> None:
        async with screen.run_test(size=size) as pilot:
            await pilot.pause()
            await act(pilot, screen)

    asyncio.run(main())
    return screen


def line(screen: StepScreen, name: str) -> str:
    return str(screen.query_one(f"#{name}", Static).content)


def below(screen: StepScreen) -> list[str]:
    return [one.text for one in screen._below]


def drawn(screen: StepScreen, name: str) -> list[str]:
    """What is seen of the records, or below."""
    view = screen.query_one(f"#{name}", LineView)
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    looking = [one for one in pilot.app.workers if one.group == "look"]
    if looking:
        await pilot.app.workers.wait_for_complete(looking)
    await pilot.pause()


def test_it_opens_at_the_position_with_all_its_parts() -> None:
    async def act(_pilot: Pilot[None], screen: StepScreen) -> None:
        assert line(screen, "head").startswith("first")
        assert line(screen, "keys") == KEYS
        assert len(KEYS) <= 80
        assert line(screen, "tabs").startswith("server [1 changed] 2 state ")
        records = drawn(screen, "records")
        assert re.fullmatch("> +1 +0s server starts, boot 0", records[0])
        assert re.fullmatch("  +2 +0s relay  starts, boot 0", records[1])
        assert below(screen)[:2] == [
            "1  0s  server  starts, boot 0",
            "* server is up  (was not started)",
        ]
        assert drawn(screen, "below")[0] == below(screen)[0]
        assert screen.theme == "ansi-dark"

    play(act)


def test_arrows_and_letters_step() -> None:
    made = stepper()

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        for key, number in [
            ("right", 2), ("l", 3), ("j", 4), ("left", 3), ("h", 2), ("k", 1), ("k", 1),
            ("end", len(made.records)), ("right", len(made.records)), ("home", 1),
        ]:  # fmt: skip
            await press(pilot, key)
            assert made.record.n == number, key
            assert line(screen, "head").endswith(f"  {number} of {len(made.records)}")
        await press(pilot, "left")
        assert line(screen, "status") == "this is the first record"
        here = [row for row in drawn(screen, "records") if row.startswith(">")]
        assert len(here) == 1

    play(act, made)


def test_the_position_stays_in_sight() -> None:
    made = stepper()

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        for index in range(0, len(made.records), 49):
            made.at = index
            screen._moved()
            await pilot.pause()
            [here] = [row for row in drawn(screen, "records") if row.startswith(">")]
            assert here.split()[1] == str(made.record.n)

    play(act, made)


@pytest.mark.parametrize(
    ("keys", "number"),
    [("f", 14), ("ff", 15), ("ffF", 14), ("e", 6), ("eeE", 6), ("c", 2), ("ccC", 2)],
)
def test_letters_look_for_the_next_of_a_kind(keys: str, number: int) -> None:
    made = stepper("chaos/killed_after_go")

    async def act(pilot: Pilot[None], _screen: StepScreen) -> None:
        await press(pilot, *keys)
        assert made.record.n == number

    play(act, made)


def test_what_is_not_there_is_said() -> None:
    made = stepper()

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        for key, words in [
            ("v", "violation after"),
            ("D", "divergence before"),
            ("f", "fault after"),
        ]:
            await press(pilot, key)
            assert made.record.n == 1
            assert line(screen, "status") == f"there is no {words} 1"

    play(act, made)


def test_what_is_wrong_is_marked_and_found() -> None:
    made = stepper()
    event = next(one for one in made.records if getattr(one, "event", ""))
    records = [
        msgspec.structs.replace(one, event="run.other") if one is event else one
        for one in made.records
    ]
    made = stepper_of(msgspec.structs.replace(made.section, records=records))
    made._judge = lambda _made: [Violation("no_harm", "harm was done", (9,))]

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "v")
        assert made.record.n == 9
        assert line(screen, "status") == "! violates no_harm: harm was done"
        assert any(row.startswith(">! 9 ") or ">!" in row for row in drawn(screen, "records"))
        await press(pilot, "home", "d")
        assert made.record.n == event.cause
        assert line(screen, "status").startswith("! the re-execution differs")
        assert any("!   log: says run.other" in row for row in below(screen))

    play(act, made)


def test_each_tab_is_another_side() -> None:
    made = stepper()
    made.to(5)
    heads = [
        "5  0s  server", "server is up, boot 0", "0 under way to server", "1 timer, 0 open",
        "the store of server has", "2 records led here",
    ]  # fmt: skip

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        for number, head in enumerate(heads, 1):
            await press(pilot, str(number))
            assert below(screen)[0].startswith(head)
            assert f"[{number} {TABS[number - 1]}]" in line(screen, "tabs")
        await press(pilot, "tab")
        assert below(screen)[0].startswith(heads[0])
        await press(pilot, "5")
        assert "runs of server: 1 row" in below(screen)

    play(act, made)


def test_of_the_causes_the_last_are_seen_first() -> None:
    made = stepper("chaos/weekend")

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "end", "6")
        assert len(below(screen)) > 50
        assert drawn(screen, "below")[-1][:40].strip() == below(screen)[-1][:40].strip()
        await press(pilot, "2")
        assert drawn(screen, "below")[0] == below(screen)[0], "all else begins at its beginning"

    play(act, made)


def test_an_actor_is_chosen_and_kept() -> None:
    made = stepper()
    made.to(5)

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "2", "a")
        assert isinstance(screen.screen, Choose)
        await press(pilot, "down", "down", "enter")
        assert below(screen)[0].startswith("relay is up")
        await press(pilot, "right")
        assert below(screen)[0].startswith("relay is up, boot 0, after 6")
        assert line(screen, "tabs").startswith("relay * ")
        await press(pilot, "c")
        assert made.record.actor == "relay", "changes are its own now"
        await press(pilot, "a")
        screen.screen.query_one(OptionList).highlighted = 0
        await press(pilot, "enter", "home")
        assert below(screen)[0].startswith("server is up")
        await press(pilot, "a", "escape")
        assert below(screen)[0].startswith("server is up")

    play(act, made)


def test_one_may_begin_with_an_actor() -> None:
    async def act(_pilot: Pilot[None], screen: StepScreen) -> None:
        assert line(screen, "tabs").startswith("agent * ")

    play(act, actor="agent")


@pytest.mark.parametrize(
    ("typed", "number", "said"),
    [
        ("7", 7, ""),
        ("0s", 7, ""),
        ("99999", 1, "there is no record 99999; give 1 to "),
        ("soon", 1, '"soon" is not a duration'),
    ],
)
def test_a_number_or_a_time_is_gone_to(typed: str, number: int, said: str) -> None:
    made = stepper("chaos/killed_after_go")

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "g", *typed, "enter")
        assert made.record.n == number
        if said:
            assert line(screen, "status").startswith(said)

    play(act, made)


def test_a_text_is_searched_for_and_again_both_ways() -> None:
    made = stepper()

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "n")
        assert line(screen, "status") == "nothing was searched for yet: / asks what"
        await press(pilot, "slash")
        screen.screen.query_one(Input).value = "RUN.queued"
        await press(pilot, "enter")
        first = made.record.n
        assert getattr(made.record, "event", "") == "run.queued"
        await press(pilot, "slash", *"sync", "enter")
        sync = made.record.n
        await press(pilot, "n")
        assert made.record.n > sync > first
        await press(pilot, "N")
        assert made.record.n == sync
        await press(pilot, "slash", "escape", "g", "enter")
        assert made.record.n == sync, "nothing was asked for"

    play(act, made)


def test_help_fits_and_any_key_closes_it() -> None:
    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "question_mark")
        assert isinstance(screen.screen, Help)
        box = screen.screen.query_one(Static).region
        assert box.width <= 80
        assert box.height <= 22
        await press(pilot, "x")
        assert not isinstance(screen.screen, Help)

    play(act)
    assert all(f"{letter} {letter.upper()}" in HELP for letter in "fvcden")


def test_names_of_any_width_stand_in_their_column() -> None:
    made = stepper()
    names = {"server": "日本語", "relay": "a" * 30}
    made.section.records[:] = [
        msgspec.structs.replace(one, actor=names.get(one.actor, one.actor)) for one in made.records
    ]

    async def act(_pilot: Pilot[None], screen: StepScreen) -> None:
        rows = drawn(screen, "records")[:3]
        assert [cell_len(row[: row.index("starts")]) for row in rows[::2]] == [
            len(rows[1][: rows[1].index("starts")])
        ] * 2
        assert "a" * 15 + "…" in rows[1]

    play(act, made)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_a_key_ends_it(key: str) -> None:
    async def act(pilot: Pilot[None], _screen: StepScreen) -> None:
        await pilot.press(key)
        await pilot.pause()

    screen = play(act)
    assert not screen.is_running
    assert not screen.return_code


def test_what_is_below_scrolls_both_ways() -> None:
    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "right", "2", "down", "down")
        assert drawn(screen, "below")[0][:70] == below(screen)[2][:70]
        await press(pilot, "up", "pagedown", "pageup", "up")
        whole = drawn(screen, "below")[0]
        assert whole == below(screen)[0]
        await press(pilot, "right_square_bracket")
        assert drawn(screen, "below")[0] == whole[20:]
        await press(pilot, "left_square_bracket")
        assert drawn(screen, "below")[0] == whole

    play(act)


def test_a_click_goes_to_a_record() -> None:
    made = stepper()

    async def act(pilot: Pilot[None], _screen: StepScreen) -> None:
        await pilot.click("#records", offset=(5, 3))
        await pilot.pause()
        assert made.record.n == 4
        await pilot.click("#below", offset=(5, 3))
        await pilot.pause()
        assert made.record.n == 4

    play(act, made)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (200, 60), (20, 8)])
def test_no_size_breaks_it(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "2", "right", "end", "f", "question_mark", "x", "a", "escape", "6")
        for name in ("records", "below"):
            for y, row in enumerate(drawn(screen, name)):
                assert len(row) <= size[0], y
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        [here] = [row for row in drawn(screen, "records") if row.startswith(">")]
        assert here

    play(act, size=size)


def test_a_hundred_thousand_rows_are_never_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = stepper()
    times = 100_000 // len(made.records) + 1
    last = made.records[-1]
    more = [msgspec.structs.replace(last, n=last.n + number) for number in range(1, 2000)]
    records = [*made.records, *more * (times // 50 + 1)]
    made.section.records[:] = records
    rows: list[int] = []

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        view = screen.query_one("#records", LineView)

        def counted(at: int) -> Any:
            rows.append(at)
            return screen._record_line(at)

        view._draw = counted
        await press(pilot, "right", "right")
        assert view.virtual_size.height == len(records)

    monkeypatch.setattr(StepScreen, "_explore", nothing)
    play(act, made)
    assert 0 < len(rows) < 200


async def nothing(_screen: StepScreen) -> None:
    """Explore nothing."""


def test_what_was_never_re_executed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.step_screen.AT_ONCE", 3)
    monkeypatch.setattr("scenarios.step_screen.CHUNK", 5)
    made = stepper()
    made._judge = lambda _made: []  # which would re-execute everything at once
    go_on = asyncio.Event()
    explore = StepScreen._explore

    async def later(screen: StepScreen) -> None:
        await go_on.wait()
        await explore(screen)

    monkeypatch.setattr(StepScreen, "_explore", later)

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        await press(pilot, "end")
        assert below(screen)[0].startswith("re-executing up to here: ")
        go_on.set()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert below(screen)[0].startswith(f"{len(made.records)}  ")

    play(act, made)


def test_looking_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.step_screen.SLICE_S", 0.0)
    made = stepper()

    async def act(pilot: Pilot[None], screen: StepScreen) -> None:
        screen._look(lambda _at: False, "nothing", back=False)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        screen.action_stop()
        await pilot.pause()
        assert not [one for one in pilot.app.workers if one.group == "look" and not one.is_finished]
        assert made.record.n == 1
        assert "no cause" in line(screen, "status")

    play(act, made)


def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert StepScreen(stepper()).no_color
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not StepScreen(stepper()).no_color
