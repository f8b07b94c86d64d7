"""The screen's parts by themselves: what is drawn, what is picked, what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen

from scenarios.step_widgets import Ask, Choose, Help, LineView

RED = Style(color="red")


def play(app: App[None], act: Callable[[Pilot[None]], Awaitable[None]]) -> None:
    async def main() -> None:
        async with app.run_test(size=(20, 6)) as pilot:
            await pilot.pause()
            await act(pilot)

    asyncio.run(main())


class Rows(App[None]):
    """Nothing but lines, each with its number."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[int] = []
        self.picked: list[int] = []
        self.sizes = 0
        self.view = LineView(self.draw, "rows", self.picked.append, self.note)

    def compose(self) -> ComposeResult:
        yield self.view

    def draw(self, at: int) -> tuple[str, Style]:
        self.drawn.append(at)
        return f"{at:>8}{'.' * at}", RED

    def note(self) -> None:
        self.sizes += 1


def rows(app: Rows) -> list[str]:
    return [app.view.render_line(y).text.rstrip() for y in range(app.view.size.height)]


def test_only_what_is_seen_is_drawn() -> None:
    app = Rows()

    async def act(pilot: Pilot[None]) -> None:
        app.view.show(1_000_000)
        await pilot.pause()
        assert max(app.drawn) < 10
        app.drawn.clear()
        app.view.scroll_to(y=500_000, animate=False)
        await pilot.pause()
        assert set(app.drawn) == set(range(500_000, 500_006))

    play(app, act)


def test_a_line_that_goes_on_ends_with_an_ellipsis_and_behind_the_last_is_nothing() -> None:
    app = Rows()

    async def act(pilot: Pilot[None]) -> None:
        app.view.show(2)
        await pilot.pause()
        assert rows(app) == ["       0", "       1.", "", "", "", ""]
        app.view.show(100, 108)
        await pilot.pause()
        app.view.scroll_to(y=50, animate=False)
        await pilot.pause()
        [first, *_] = rows(app)
        assert (len(first), first[-1]) == (19, "\N{HORIZONTAL ELLIPSIS}")
        app.view.scroll_to(x=6, animate=False, force=True)
        await pilot.pause()
        assert rows(app)[0].startswith("50....")
        strip = app.view.render_line(0)
        assert {segment.style for segment in strip if segment.text.strip()} == {RED}

    play(app, act)


def test_a_click_picks_a_line_if_there_is_one() -> None:
    app = Rows()

    async def act(pilot: Pilot[None]) -> None:
        app.view.show(3)
        await pilot.pause()
        await pilot.click("#rows", offset=(2, 1))
        await pilot.click("#rows", offset=(2, 4))
        assert app.picked == [1]
        seen = app.sizes
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        assert app.sizes > seen

    play(app, act)


@pytest.mark.parametrize(
    ("screen", "keys", "answer"),
    [
        (lambda: Ask("what?"), ("space", "a", "b", "enter"), "ab"),
        (lambda: Ask("what?"), ("enter",), ""),
        (lambda: Ask("what?"), ("a", "escape"), None),
        (lambda: Choose(["a", "[b]"]), ("down", "enter"), "[b]"),
        (lambda: Choose(["a", "b"]), ("escape",), None),
        (Help, ("x",), None),
    ],
)
def test_what_asks_gives_an_answer(
    screen: Callable[[], Screen[Any]], keys: tuple[str, ...], answer: str | None
) -> None:
    app: App[None] = App()
    found: list[Any] = []

    async def act(pilot: Pilot[None]) -> None:
        app.push_screen(screen(), found.append)
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        assert found == [answer]

    play(app, act)
