"""The parts of the stepper's screen: lines that are drawn when seen, and what asks or tells.

Their colours are the terminal's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, OptionList, Static

from scenarios.step_lines import cut

HELP: Final = """\
→ l j   to the next record        ← h k   to the one before
Home    to the first              End     to the last
f F     next fault, one before    v V     violation
c C     change of state           d D     divergence from the log
e E     event                     g       to a number or a time
/       search in the records     n N     the next one, one before
a       choose whose state is shown; else it is each record's own
1 to 6  changed, state, mailbox, timers, store, causes; Tab: next
↑ ↓ PgUp PgDn  scroll below       [ ]     to the left, the right
Esc     stop looking              q       quit

> here   * changed   + new   - gone
! wrong: a violation, or the re-execution does something else"""


class LineView(ScrollView, can_focus=False):
    """LineView that are drawn when they are seen.

    `draw` gives the text and style of one. `pick` is called with one that was clicked, `resized`
    when there is room for more of them or for fewer.
    """

    DEFAULT_CSS = """
    LineView {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        scrollbar-background: ansi_default;
        scrollbar-background-hover: ansi_default;
        scrollbar-background-active: ansi_default;
        scrollbar-color: ansi_default;
        scrollbar-color-hover: ansi_default;
        scrollbar-color-active: ansi_default;
    }
    """

    def __init__(
        self,
        draw: Callable[[int], tuple[str, Style]],
        name: str,
        pick: Callable[[int], None] = lambda _at: None,
        resized: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(id=name)
        self._draw = draw
        self._pick = pick
        self._resized = resized
        self._count = 0

    def show(self, count: int, width_columns: int = 0) -> None:
        """Have so many lines, as wide as the widest needs; 0 is never wider than the screen."""
        self._count = count
        self.virtual_size = Size(width_columns, count)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw a line of the screen; one that goes on to the right ends with an ellipsis."""
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        if top + y >= self._count:
            return Strip.blank(width)
        text, style = self._draw(top + y)
        return Strip([Segment(cut(text, left + width), style)]).crop_extend(
            left, left + width, style
        )

    def on_resize(self) -> None:
        """Say that there is more room, or less."""
        self._resized()

    def on_click(self, event: Click) -> None:
        """Pick the line that was clicked."""
        at = self.scroll_offset.y + event.y
        if at < self._count:
            self._pick(at)


class Ask(ModalScreen[str | None]):
    """Asks for one line; Esc gives none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)")]
    CSS = """
    Ask { align: center bottom; background: transparent; }
    Ask Input { border: round ansi_default; height: 3; background: ansi_default; }
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def compose(self) -> ComposeResult:
        """Make the line."""
        yield Input(placeholder=self._what)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give what was written."""
        self.dismiss(event.value.strip())


class Choose(ModalScreen[str | None]):
    """Asks for one of several; Esc gives none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)")]
    CSS = """
    Choose { align: center middle; background: transparent; }
    Choose OptionList {
        width: 40; max-height: 80%; border: round ansi_default; background: ansi_default;
    }
    """

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__()
        self._options = options

    def compose(self) -> ComposeResult:
        """Make the list."""
        yield OptionList(*self._options, markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Give what was chosen."""
        self.dismiss(self._options[event.option_index])


class Help(ModalScreen[None]):
    """Says what the keys do; any key closes it."""

    CSS = """
    Help { align: center middle; background: transparent; }
    Help Static {
        width: auto; border: round ansi_default; padding: 0 1; background: ansi_default;
    }
    """

    def compose(self) -> ComposeResult:
        """Make the text."""
        yield Static(HELP, markup=False)

    def on_key(self) -> None:
        """Close."""
        self.dismiss(None)
