"""The owner of a run at its terminal: tool calls that wait are put before them, one after another.

Nothing but a key that is typed after the question decides, and what an agent says is shown within a
frame that it can't leave: no word of it can look like the question, move the cursor or scroll the
question away. Where there is no terminal, the answer is no.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Any, Final, Literal, Protocol

import msgspec
import trio
from rich.cells import chop_cells

from actors.actor import Context, Handler, Unanswered
from actors.graphs.messages import Approval, Approvals, Decide, Decided, ListApprovals
from actors.messages import Message
from scenarios.graph_progress import one_line
from scenarios.problems import printable
from transports.envelope import Envelope

Choice = Literal["yes", "no", "always"]
CHOICES: Final[Mapping[str, Choice]] = {
    "y": "yes", "yes": "yes", "n": "no", "no": "no", "a": "always", "always": "always",
}  # fmt: skip
SHOWN_LINES: Final = 12  # of arguments, until all of them are asked for
FRAME: Final = "  | "
ANSWER_LIMIT_BYTES: Final = 1_024
REPEAT_US: Final = 10_000_000  # how long an engine may take to write a decision down


class Chosen(Message, frozen=True, kw_only=True):
    """The terminal tells its owner what was chosen for a call."""

    run: str
    call: int
    choice: Choice


class Settled(Message, frozen=True, kw_only=True):
    """The terminal tells its owner that a call waits no more, whoever settled it."""

    run: str
    call: int


class Asker(Protocol):
    """Who decides."""

    async def ask(self, approval: Approval) -> Choice:
        """Return what is chosen for a call. It may be cancelled at any time."""


class Nobody:
    """Decides where nobody can be asked: no."""

    async def ask(self, approval: Approval) -> Choice:
        """See Asker."""
        await trio.lowlevel.checkpoint()
        return "no"


class TerminalOwner:
    """The actor that puts calls before an asker and tells the engine what was decided.

    Its host calls `open` once its nursery is there, and `close` at the end.
    """

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.more = trio.Event()  # there is something to ask
        self.said = trio.Event()  # what was chosen is on its way
        self.forget()
        self.handlers: Mapping[type[Any], Handler] = {
            Approvals: self.on_approvals,
            Chosen: self.on_chosen,
            Settled: self.on_settled,
            Decided: self.on_decided,
            Unanswered: self.on_unanswered,
        }

    async def open(self, nursery: trio.Nursery, tell_myself: Callable[[Any], None]) -> None:
        """Get the nursery for the questions, and what puts a message into the own mailbox."""
        self.tell_myself = tell_myself
        nursery.start_soon(self.ask_on)

    async def close(self) -> None:
        """Nothing: the questions end with their nursery."""

    def on_start(self, context: Context) -> None:
        """Begin a boot: look what waits."""
        self.forget()
        context.request("engine", ListApprovals(), REPEAT_US)

    def forget(self) -> None:
        """Know of no call, and of no choice."""
        self.waiting: dict[tuple[str, int], Approval] = {}
        self.due_s: dict[tuple[str, int], float] = {}
        self.always: set[tuple[str, str, str]] = set()  # a run, a Graph of it, a tool
        self.asked: tuple[str, int] | None = None
        self.question: trio.CancelScope | None = None

    def on_timer(self, context: Context, timer: str) -> None:
        """Nothing: it sets none."""

    def on_approvals(self, context: Context, envelope: Envelope[Approvals]) -> None:
        """Note what is new; what the owner said of every such call is said at once."""
        for one in envelope.body.waiting:
            key = (one.run, one.call)
            if key in self.waiting:
                continue
            self.waiting[key] = one
            self.due_s[key] = trio.current_time() + one.left_us / 1e6
            if _kind(one) in self.always:
                self.decide(context, key, allow=True)
        self.more.set()

    async def ask_on(self) -> None:
        """Ask for one call after another, as long as the run goes on."""
        while True:
            key = next(iter(self.waiting), None)
            if key is None:
                await self.more.wait()
                self.more = trio.Event()
                continue
            self.asked = key
            with trio.CancelScope() as self.question:
                left_us = max(0, round((self.due_s[key] - trio.current_time()) * 1e6))
                one = msgspec.structs.replace(self.waiting[key], left_us=left_us)
                choice = await self.asker.ask(one)
                self.said = trio.Event()
                self.tell_myself(Chosen(run=key[0], call=key[1], choice=choice))
                await self.said.wait()
            self.asked = self.question = None

    def on_chosen(self, context: Context, envelope: Envelope[Chosen]) -> None:
        """Tell the engine what was chosen for a call, and for those like it."""
        chosen = envelope.body
        key = (chosen.run, chosen.call)
        approval = self.waiting.get(key)
        if approval is not None and envelope.source == context.name:
            self.decide(context, key, allow=chosen.choice != "no")
            if chosen.choice == "always":
                self.always.add(_kind(approval))
                for other, one in [*self.waiting.items()]:
                    if _kind(one) in self.always:
                        self.decide(context, other, allow=True)
        self.said.set()

    def on_settled(self, context: Context, envelope: Envelope[Settled]) -> None:
        """Ask no more for a call that waits no more."""
        key = (envelope.body.run, envelope.body.call)
        if envelope.source != context.name:
            return
        self.waiting.pop(key, None)
        self.due_s.pop(key, None)
        if self.asked == key and self.question is not None:
            self.question.cancel()

    def decide(self, context: Context, key: tuple[str, int], *, allow: bool) -> None:
        """Tell the engine of a decision."""
        del self.waiting[key], self.due_s[key]
        context.request("engine", Decide(run=key[0], call=key[1], allow=allow), REPEAT_US)

    def on_decided(self, context: Context, envelope: Envelope[Decided]) -> None:
        """Nothing more: the engine has it."""

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Say it again: an engine that was busy takes it once."""
        context.request("engine", envelope.body.question, REPEAT_US)


def _kind(approval: Approval) -> tuple[str, str, str]:
    return approval.run, approval.graph, approval.tool


class Screen(Protocol):
    """What else is on the terminal, and makes room."""

    def pause(self) -> None:
        """Stop redrawing."""

    def resume(self) -> None:
        """Go on."""


class Terminal:
    """Asks at a terminal. `keys` is its input's descriptor, `stream` its output."""

    def __init__(self, keys: int, stream: IO[str], screen: Screen, width_columns: int) -> None:
        self.keys = keys
        self.stream = stream
        self.screen = screen
        self.width_columns = width_columns

    async def ask(self, approval: Approval) -> Choice:
        """See Asker. Only whole words count, and only such as are typed now."""
        self.screen.pause()
        try:
            return await self._ask(approval)
        except trio.Cancelled:
            self.write("\n  it waits no more\n")
            raise
        finally:
            self.screen.resume()

    async def _ask(self, approval: Approval) -> Choice:
        lines = list(framed(approval, self.width_columns))
        cut = len(lines) > SHOWN_LINES
        self.write("".join(f"{line}\n" for line in (heading(approval, self.width_columns))))
        self.show(lines[:SHOWN_LINES] if cut else lines)
        if cut:
            self.write(f"  and {len(lines) - SHOWN_LINES:,} more lines: s shows them\n")
        left = shown_time(approval.left_us)
        self.write(
            f"  a is yes to every later call of {one_line(approval.tool)} as well,\n"
            "  by this Graph in this run, whatever its arguments\n"
            f"  without an answer it is denied in {left}\n"
        )
        # What was typed before the question was no answer to it.
        with suppress(termios.error):
            termios.tcflush(self.keys, termios.TCIFLUSH)
        while True:
            self.write("  allow it? [y]es, [n]o, [a]lways" + (", [s]how all: " if cut else ": "))
            word = await self.typed()
            if word is None:
                self.write("no\n")  # the terminal is gone
                return "no"
            if word in CHOICES:
                return CHOICES[word]
            if cut and word in ("s", "show"):
                self.show(lines)

    async def typed(self) -> str | None:
        """Return the next line that is typed, in lower case; None if no more will be."""
        raw = b""
        while not raw.endswith(b"\n"):
            await trio.lowlevel.wait_readable(self.keys)
            piece = os.read(self.keys, ANSWER_LIMIT_BYTES)
            if not piece:
                return None
            raw = (raw + piece)[-ANSWER_LIMIT_BYTES:]
        return raw.decode(errors="replace").strip().lower()

    def show(self, lines: list[str]) -> None:
        """Write lines of the frame."""
        self.write("".join(f"{line}\n" for line in lines))

    def write(self, text: str) -> None:
        """Write to the terminal."""
        self.stream.write(text)
        self.stream.flush()


def shown_time(time_us: int) -> str:
    """Return how long something takes, in whole minutes if there are some."""
    seconds = max(0, round(time_us / 1e6))
    return f"{seconds} s" if seconds < 120 else f"{round(seconds / 60)} min"


def heading(approval: Approval, width_columns: int) -> Iterator[str]:
    """Yield which agent wants which tool; its label is its script's word, and within the frame."""
    tool, graph = one_line(approval.tool), one_line(approval.graph)
    yield f"{tool}: agent {approval.agent} of {graph} wants to call it"
    if approval.label:
        yield from _boxed(f"label: {one_line(approval.label)}", width_columns)


def framed(approval: Approval, width_columns: int) -> Iterator[str]:
    """Yield a call's arguments, each line behind a mark that no agent can leave out."""
    arguments = approval.arguments
    if not isinstance(arguments, dict):
        yield from _boxed(_json(arguments), width_columns)
        return
    if not arguments:
        yield f"{FRAME}no arguments"
    for name, value in arguments.items():
        yield from _boxed(f"{name}: {_json(value)}", width_columns)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _boxed(text: str, width_columns: int) -> Iterator[str]:
    # Cut here: a line that the terminal breaks would begin with an agent's words.
    for line in chop_cells(printable(text), max(20, width_columns - len(FRAME) - 1)):
        yield FRAME + line
