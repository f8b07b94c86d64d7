"""The stepper on a whole screen: the records above, an actor below, a key for each way to go.

Both halves draw only the lines that are seen, so a log of any length opens at once. What was never
re-executed yet is done piece by piece between the keys; until it is, the lower half says so.
Colours are the terminal's own sixteen, which its user has chosen to be readable, and only repeat
what a sign, a word or a reversed line says already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from logs.words import kind_of, seconds
from scenarios.log_show import title
from scenarios.problems import printable
from scenarios.step_lines import CommandError, cut, go_to
from scenarios.step_text import (
    Line,
    Mark,
    Words,
    cause_in_short,
    causes,
    changed,
    mailbox,
    not_re_executed,
    state,
    store,
    table,
    timers,
    wrongs,
)
from scenarios.step_widgets import Ask, Choose, Help, LineView
from scenarios.stepper import Stepper

SLICE_S: Final = 0.03  # work between two looks at the keyboard: shorter than a finger notices
REST_S: Final = 0.2  # without a step before what was never re-executed is: who steps does not wait
CHUNK: Final = 256  # records that are re-executed at a time when nothing else is to do
AT_ONCE: Final = (
    2000  # records of an actor that are re-executed while one waits: a tenth of a second
)
TABS: Final = ("changed", "state", "mailbox", "timers", "store", "causes")
ACTOR_LIMIT_COLUMNS: Final = 16
SCROLL_COLUMNS: Final = 20

# Red, green and magenta are readable on white and on black, which yellow, cyan and blue are not.
STYLES: Final[dict[Mark, Style]] = {
    "": Style.null(),
    "head": Style(bold=True),
    "dim": Style(italic=True),
    "changed": Style(color="magenta", bold=True),
    "new": Style(color="green", bold=True),
    "gone": Style(color="red"),
    "wrong": Style(color="red", bold=True, reverse=True),
}
KINDS: Final[dict[str, Style]] = {
    "fault": Style(color="magenta", bold=True),
    "drop": Style(color="red"),
    "late": Style(color="red", italic=True),
    "unanswered": Style(color="red", italic=True),
    "undone": Style(color="red", bold=True),
    "event": Style(color="green"),
    "start": Style(bold=True),
}
HERE: Final = Style(reverse=True, bold=True)
KEYS: Final = "←→ step  f fault  v violation  c change  / search  g go  a actor  ? help  q quit"
RECORDS_OWN = "the record's own"


class StepScreen(App[None]):
    """The whole screen; `actor` is whose state is shown, None for the one of each record."""

    TITLE = "pullcord replay --step"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default; }
    #head, #tabs, #status, #keys { height: 1; }
    #head, #keys { text-style: reverse; }
    #tabs { text-style: underline; }
    #records { height: 40%; }
    #below { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,j", "forward"),
        Binding("left,h,k", "backward"),
        Binding("home", "first"),
        Binding("end", "last"),
        *(
            Binding(key, f"look('{kind}', {back})")
            for letter, kind in zip(
                "fvcde", ("fault", "violation", "change", "divergence", "event"), strict=True
            )
            for key, back in ((letter, False), (letter.upper(), True))
        ),
        Binding("slash", "search"),
        Binding("n", "again(False)"),
        Binding("N", "again(True)"),
        Binding("g", "go"),
        Binding("a", "actor"),
        Binding("tab", "next_tab", priority=True),
        *(Binding(str(number), f"tab({number})") for number in range(1, len(TABS) + 1)),
        Binding("up", "scroll(-1, 0)"),
        Binding("down", "scroll(1, 0)"),
        Binding("pageup", "scroll(-8, 0)"),
        Binding("pagedown", "scroll(8, 0)"),
        Binding("left_square_bracket", "scroll(0, -1)"),
        Binding("right_square_bracket", "scroll(0, 1)"),
        Binding("escape", "stop"),
        Binding("question_mark", "help"),
        Binding("q", "quit"),
        Binding("ctrl+c", "quit", priority=True),
    ]

    def __init__(self, stepper: Stepper, actor: str | None = None) -> None:
        super().__init__()
        self.theme = "ansi-dark"  # whose background and text are the terminal's, dark or light
        self._stepper = stepper
        self._words = Words(stepper)
        self._actor = actor
        self._tab = TABS[0]
        self._below: list[Line] = []
        self._searched = ""
        self._waiting = False  # for records that were never re-executed
        self._moved_at = 0.0  # on the machine's clock
        last = stepper.records[-1]
        names = dict.fromkeys(record.actor for record in stepper.records)
        self._columns = (
            len(str(last.n)),
            max(len(seconds(last.t)), 7),
            min(max(map(cell_len, names)), ACTOR_LIMIT_COLUMNS),
        )

    def compose(self) -> ComposeResult:
        """Make the two halves, and a line above, between and below them."""
        yield Static(id="head", markup=False)
        yield LineView(self._record_line, "records", self._goes_to, self._keep_in_sight)
        yield Static(id="tabs", markup=False)
        yield LineView(self._below_line, "below")
        yield Static(id="status", markup=False)
        yield Static(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Show the beginning, and begin to re-execute the rest."""
        self.query_one("#records", LineView).show(len(self._stepper.records))
        self.call_after_refresh(self._moved)
        self.run_worker(self._explore(), group="explore")

    # What is drawn

    def _record_line(self, at: int) -> tuple[str, Style]:
        stepper, record = self._stepper, self._stepper.records[at]
        number, t, actor = self._columns
        lane = stepper.lanes.get(record.actor)
        differs = lane is not None and record.n in lane.differences
        wrong = differs or record.n in stepper.violations
        here = at == stepper.at
        words = (
            f"{'>' if here else ' '}{'!' if wrong else ' '}{record.n:>{number}} "
            f"{seconds(record.t):>{t}} {set_cell_size(cut(printable(record.actor), actor), actor)} "
            f"{printable(self._words.of(record))}"
        )
        style = KINDS.get(kind_of(record), STYLES["wrong"] if wrong else Style.null())
        return words, HERE if here else style

    def _below_line(self, at: int) -> tuple[str, Style]:
        line = self._below[at]
        return printable(line.text), STYLES[line.mark]

    def _moved(self) -> None:
        """Draw all that depends on the position."""
        stepper = self._stepper
        self._keep_in_sight()
        head = f"{title(stepper.section.header)}  {stepper.record.n} of {stepper.records[-1].n}"
        self.query_one("#head", Static).update(printable(head))
        self._show_below()

    def _keep_in_sight(self) -> None:
        records = self.query_one("#records", LineView)
        height = max(records.size.height, 1)
        last = max(len(self._stepper.records) - height, 0)
        records.scroll_to(y=min(max(self._stepper.at - height // 2, 0), last), animate=False)
        records.refresh()

    def _show_below(self) -> None:
        self._moved_at = time.monotonic()
        stepper = self._stepper
        actor = self._actor or stepper.record.actor
        missing = max(stepper.missing(actor), stepper.missing(stepper.record.actor))
        self._waiting = missing > AT_ONCE
        if self._waiting:
            self._below = [Line(f"re-executing up to here: {missing:,} records are left", "dim")]
        else:
            self._below = self._lines_below(actor)
        names = (
            f"[{number} {name}]" if name == self._tab else f" {number} {name} "
            for number, name in enumerate(TABS, 1)
        )
        tabs = f"{printable(actor)}{' *' if self._actor else ''} {''.join(names)}"
        self.query_one("#tabs", Static).update(tabs)
        below = self.query_one("#below", LineView)
        below.show(len(self._below), max((cell_len(one.text) for one in self._below), default=0))
        # Of a chain of causes the last ones are looked at first.
        top = len(self._below) if self._tab == "causes" else 0
        below.call_after_refresh(below.scroll_to, 0, top, animate=False)
        self._show_status()

    def _show_status(self) -> None:
        wrong = [] if self._waiting else list(wrongs(self._stepper))
        words = wrong[0].text if wrong else cause_in_short(self._stepper, self._words)
        self._say(words or "this has no cause in the log")

    def _say(self, words: str) -> None:
        self.query_one("#status", Static).update(cut(printable(words), self.size.width))

    def _lines_below(self, actor: str) -> list[Line]:
        stepper = self._stepper
        if self._tab == "changed":
            return list(changed(stepper.turn(), stepper, self._words))
        if self._tab == "causes":
            return list(causes(stepper, self._words))
        if self._tab == "mailbox":
            return list(mailbox(stepper, actor))
        turn = stepper.turn()
        moment = stepper.moment(actor)
        if moment is None:
            return [not_re_executed(actor)]
        if self._tab == "state":
            return list(state(stepper, moment, turn))
        if self._tab == "timers":
            return list(timers(moment))
        tables = [line for name in moment.rows for line in table(stepper, moment, name, turn)]
        return [*store(moment), *tables]

    # Keys

    def action_forward(self) -> None:
        """Go to the next record."""
        self._step(self._stepper.forward(), "this is the last record")

    def action_backward(self) -> None:
        """Go to the record before."""
        self._step(self._stepper.back(), "this is the first record")

    def _step(self, gone: bool, end: str) -> None:
        self.workers.cancel_group(self, "look")
        if gone:
            self._moved()
        else:
            self._say(end)

    def _goes_to(self, at: int) -> None:
        self._stepper.at = at
        self._step(True, "")

    def action_first(self) -> None:
        """Go to the first record."""
        self._goes_to(0)

    def action_last(self) -> None:
        """Go to the last record."""
        self._goes_to(len(self._stepper.records) - 1)

    def action_look(self, kind: str, back: bool) -> None:
        """Look for the next of a kind; changes are the chosen actor's if one is chosen."""
        name = self._actor or "" if kind == "change" else ""
        self._look(self._stepper.wanted(kind, name), f"{kind} {name}".strip(), back)

    def action_search(self) -> None:
        """Ask for a text, and go to the next record that has it."""

        def found(text: str | None) -> None:
            if text:
                self._searched = text
                self.action_again(False)

        self.push_screen(Ask("search for, as run.terminal or relay or Sync"), found)

    def action_again(self, back: bool) -> None:
        """Go to the next record with the text that was searched for."""
        text = self._searched.casefold()
        if not text:
            self._say("nothing was searched for yet: / asks what")
            return
        line, records = self._words.line, self._stepper.records
        self._look(lambda at: text in line(records[at]).casefold(), f'"{self._searched}"', back)

    def action_go(self) -> None:
        """Ask for a record or a time, and go there."""

        def given(place: str | None) -> None:
            if not place:
                return
            try:
                go_to(self._stepper, place)
            except CommandError as error:
                self._say(f"{error}; {error.cure}")
            else:
                self._step(True, "")

        self.push_screen(Ask("a record's number, or a time as 12.5s"), given)

    def action_actor(self) -> None:
        """Ask whose state is to be shown."""

        def chosen(name: str | None) -> None:
            if name is not None:
                self._actor = None if name == RECORDS_OWN else name
                self._show_below()

        self.push_screen(Choose([RECORDS_OWN, *self._stepper.lanes]), chosen)

    def action_tab(self, number: int) -> None:
        """Show another side of the actor."""
        self._tab = TABS[number - 1]
        self._show_below()

    def action_next_tab(self) -> None:
        """Show the next side of the actor."""
        self.action_tab((TABS.index(self._tab) + 1) % len(TABS) + 1)

    def action_scroll(self, lines: int, columns: int) -> None:
        """Scroll what is below."""
        below = self.query_one("#below", LineView)
        below.scroll_relative(columns * SCROLL_COLUMNS, lines, animate=False, force=True)

    def action_stop(self) -> None:
        """Stop looking."""
        self.workers.cancel_group(self, "look")
        self._show_status()

    def action_help(self) -> None:
        """Say what the keys do."""
        self.push_screen(Help())

    # Work between the keys

    def _is_in_use(self) -> bool:
        """Whether somebody types or steps, and does not wait for what is to be explored."""
        steps = time.monotonic() - self._moved_at < REST_S
        return not self._waiting and (steps or len(self.screen_stack) > 1)

    def _look(self, wanted: Callable[[int], bool], what: str, back: bool) -> None:
        self.run_worker(self._find(wanted, what, back), group="look", exclusive=True)

    async def _find(self, wanted: Callable[[int], bool], what: str, back: bool) -> None:
        """Go to what is wanted; the keys are looked at meanwhile."""
        stepper = self._stepper
        begun = time.monotonic()
        for at in stepper.ahead(back=back):
            if wanted(at):
                stepper.at = at
                self._moved()
                return
            if time.monotonic() - begun > SLICE_S:
                self._say(f"looking for {what}: at {stepper.records[at].n}; Esc stops")
                await asyncio.sleep(0)
                begun = time.monotonic()
        self._say(f"there is no {what} {'before' if back else 'after'} {stepper.record.n}")

    async def _explore(self) -> None:
        """Re-execute everything once, a little at a time."""
        stepper = self._stepper
        for record in [*stepper.records[::CHUNK], stepper.records[-1]]:
            while self._is_in_use():  # noqa: ASYNC110  rest is not one task's event
                await asyncio.sleep(REST_S / 4)
            stepper.explore(record.n)
            await asyncio.sleep(0)
            if self._waiting:
                self._show_below()
