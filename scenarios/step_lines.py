"""Stepping through a log by lines: a command a line in, its answer out, for scripts and pipes.

Whatever is wrong with a command is told with its cure, and the next one is read. The end of the
input ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import IO, Final

from rich.cells import cell_len, set_cell_size

from scenarios.problems import printable
from scenarios.step_text import (
    Line,
    Words,
    causes,
    changed,
    mailbox,
    not_re_executed,
    state,
    store,
    table,
    timers,
    where,
)
from scenarios.stepper import KINDS, Moment, Stepper
from transports.units import parse_duration

HELP: Final = """\
n, b                     to the next record, to the one before; n 10 goes ten
to 118, to 12.5s         to a record, to the last one up to a time
next KIND, prev KIND     to the next fault, violation, change or divergence; or
                         event NAME, change ACTOR, or an ACTOR's next record
where                    the record at the position, and what is wrong there
changed                  what it changed: attributes, rows, timers, messages
state [ACTOR]            an actor's attributes; without a name the record's actor
mailbox [ACTOR]          what is under way to it
timers [ACTOR]           its timers and open questions
store [ACTOR [TABLE]]    its tables, or the rows of one
causes                   the records that led here, the first cause first
actors                   who there is, and how each is
help, quit"""


class CommandError(Exception):
    """A command can't be done; `cure` says what can."""

    def __init__(self, sentence: str, cure: str) -> None:
        super().__init__(sentence)
        self.cure = cure


class LineMode:
    """Does commands on a stepper."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._words = Words(stepper)
        self._commands: dict[str, Callable[[list[str]], Iterable[Line]]] = {
            "n": self._forward,
            "b": self._back,
            "to": self._to,
            "next": lambda rest: self._search(rest, back=False),
            "prev": lambda rest: self._search(rest, back=True),
            "where": lambda _rest: where(stepper, self._words),
            "changed": lambda _rest: changed(stepper.turn(), stepper, self._words),
            "state": lambda rest: state(stepper, self._moment(rest), stepper.turn()),
            "mailbox": lambda rest: mailbox(stepper, self._name(rest)),
            "timers": lambda rest: timers(self._moment(rest)),
            "store": self._store,
            "causes": lambda _rest: causes(stepper, self._words),
            "actors": self._actors,
            "help": lambda _rest: map(Line, HELP.splitlines()),
        }

    def do(self, command: str) -> list[Line]:
        """Do a command and return its answer; CommandError if it can't be done."""
        verb, *rest = command.split()
        do = self._commands.get(verb)
        if do is None:
            near = get_close_matches(verb, [*self._commands, "quit"], 1)
            cure = f"did you mean {near[0]}?" if near else "help shows what there is"
            raise CommandError(f"there is no command {verb}", cure)
        return list(do(rest))

    # Going

    def _forward(self, rest: list[str]) -> Iterator[Line]:
        return self._step(rest, self._stepper.forward, "this is the last record")

    def _back(self, rest: list[str]) -> Iterator[Line]:
        return self._step(rest, self._stepper.back, "this is the first record")

    def _step(self, rest: list[str], go: Callable[[], bool], end: str) -> Iterator[Line]:
        steps = rest[0] if rest else "1"
        if not steps.isdecimal():
            raise CommandError(f"{steps} is no number of records", "give one, as in n 10")
        if not go():
            raise CommandError(end, "to 1 goes to the first, next and prev to what is looked for")
        for _ in range(int(steps) - 1):
            if not go():
                break
        return where(self._stepper, self._words)

    def _to(self, rest: list[str]) -> Iterator[Line]:
        if not rest:
            raise CommandError("to where?", "give a record's number, or a time: to 118, to 12.5s")
        go_to(self._stepper, rest[0])
        return where(self._stepper, self._words)

    def _search(self, rest: list[str], *, back: bool) -> Iterator[Line]:
        if not rest:
            cure = f"give {', '.join(KINDS)} or an actor"
            raise CommandError("the next what?", cure)
        search(self._stepper, rest[0], rest[1] if len(rest) > 1 else "", back=back)
        return where(self._stepper, self._words)

    # Showing

    def _name(self, rest: list[str]) -> str:
        """Return the actor that is meant, who may be one that is not re-executed."""
        name = rest[0] if rest else self._stepper.record.actor
        return name if self._stepper.is_known(name) else self._moment(rest).actor

    def _moment(self, rest: list[str]) -> Moment:
        return moment_of(self._stepper, rest[0] if rest else self._stepper.record.actor)

    def _store(self, rest: list[str]) -> Iterator[Line]:
        moment = self._moment(rest)
        if len(rest) < 2:
            return store(moment)
        if rest[1] not in moment.rows:
            has = ", ".join(moment.rows) or "none yet"
            raise CommandError(f"{moment.actor} has no table {rest[1]}", f"it has {has}")
        return table(self._stepper, moment, rest[1], self._stepper.turn())

    def _actors(self, _rest: list[str]) -> Iterator[Line]:
        for name in self._stepper.lanes:
            moment = moment_of(self._stepper, name)
            yield Line(f"{name} is {moment.status}, boot {moment.boot}")


def go_to(stepper: Stepper, place: str) -> None:
    """Go to a record's number, or to a time as `12.5s`; CommandError if there is none."""
    first, last = stepper.records[0], stepper.records[-1]
    if place.isdecimal():
        if not stepper.to(int(place)):
            raise CommandError(f"there is no record {place}", f"give {first.n} to {last.n}")
        return
    try:
        t_us = int(parse_duration(place))
    except ValueError as error:
        cure = "give a record's number, or a time: to 118, to 12.5s"
        raise CommandError(str(error), cure) from None
    if not stepper.to_time(t_us):
        raise CommandError("no record is as early", "to 1 goes to the first")


def search(stepper: Stepper, kind: str, name: str, *, back: bool) -> None:
    """Go to the next of a kind, or the one before; CommandError if there is none."""
    try:
        wanted = stepper.wanted(kind, name)
    except ValueError:
        near = get_close_matches(kind, [*KINDS, *stepper.lanes], 1)
        there = f"there are {', '.join(KINDS)}, and the actors {', '.join(stepper.lanes)}"
        cure = f"did you mean {near[0]}?" if near else there
        raise CommandError(f"{kind} is neither a kind of record nor an actor", cure) from None
    if not stepper.search(wanted, back=back):
        which = f"{kind} {name}".strip()
        side = "before" if back else "after"
        other = "next" if back else "prev"
        raise CommandError(
            f"there is no {which} {side} {stepper.record.n}", f"{other} {which} looks the other way"
        )


def moment_of(stepper: Stepper, actor: str) -> Moment:
    """Return what an actor is at the position; CommandError if there is no such actor."""
    moment = stepper.moment(actor)
    if moment is None:
        there = f"there are {', '.join(stepper.lanes)}"
        if stepper.is_known(actor):
            raise CommandError(not_re_executed(actor).text.strip(), there)
        near = get_close_matches(actor, stepper.lanes, 1)
        cure = f"did you mean {near[0]}?" if near else there
        raise CommandError(f"no actor is called {actor}", cure)
    return moment


def step_by_lines(
    stepper: Stepper, commands: IO[str], out: IO[str], width_columns: int, *, prompt: bool
) -> None:
    """Do commands line by line until `quit` or the end; `prompt` if who types them sees them.

    Where nobody does, each is repeated before its answer, so that the whole can be read.
    """
    mode = LineMode(stepper)
    _write(out, where(stepper, Words(stepper)), width_columns)
    while True:
        if prompt:
            out.write("> ")
            out.flush()
        read = commands.readline()
        command = read.strip()
        if not read or command in ("quit", "q", "exit"):
            break
        if not command:
            continue
        if not prompt:
            out.write(f"> {printable(command)}\n")
        try:
            _write(out, mode.do(command), width_columns)
        except CommandError as error:
            out.write(f"error: {printable(str(error))}\nhelp: {printable(error.cure)}\n")
    if prompt and not read:
        out.write("\n")


def _write(out: IO[str], lines: Iterable[Line], width_columns: int) -> None:
    for one in lines:
        out.write(f"{cut(printable(one.text), width_columns).rstrip()}\n")


def cut(words: str, columns: int) -> str:
    """Return a text that fits into so many columns, with an ellipsis if it was cut."""
    if cell_len(words) <= columns:
        return words
    return f"{set_cell_size(words, columns - 1).rstrip()}…"
