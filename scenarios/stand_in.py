"""A program of one's own among the actors: what stands for it here, and what a file may say of it.

The program is its own actor, in a process of its own. Links, metrics and logs know it by its name
like any other, so something must bear that name: a stand-in, which understands the messages of the
part that it stands for and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from actors.actor import Actor, Context, Handler
from scenarios.decode import Decoder
from scenarios.places import Keys
from scenarios.problems import listed, quote
from scenarios.references import Role
from scenarios.spec import ACTOR_KEYS, Kind, SessionTable, StepTable
from transports.envelope import Envelope

PROGRAM_KINDS: tuple[Kind, ...] = ("relay", "agent")  # those that dial the server, and no other
NEEDS_TCP = "{} is a program of its own, which joins over sockets alone"


class StandIn:
    """Stands for a program that plays the part of `played`: takes its messages, never a turn."""

    def __init__(self, played: Actor) -> None:
        self.handlers: Mapping[type[Any], Handler] = dict.fromkeys(played.handlers, _ignore)

    def on_start(self, context: Context) -> None:
        """Do nothing."""

    def on_timer(self, context: Context, timer: str) -> None:
        """Do nothing."""


def _ignore(_context: Context, _envelope: Envelope[Any]) -> None:
    """Take a message that the program itself gets over its connection."""


def check_command(decoder: Decoder, kind: Kind, path: Keys, data: Mapping[str, Any]) -> None:
    """Report what a table with `command` can't say besides, and a kind that can't be a program."""
    if kind not in PROGRAM_KINDS:
        decoder.problem(
            (*path, "command"),
            f"the {kind} can't be a program of its own",
            of="key",
            cure=f"only {listed(PROGRAM_KINDS, last='and')} dial the server and so can join it",
        )
    if not all(data["command"]) or any("\0" in word for word in data["command"]):
        decoder.problem(
            (*path, "command"), "an argument is empty or has a NUL", cure='write ["perl", "my.pl"]'
        )
    if "use" in data:
        decoder.problem(
            (*path, "use"),
            f"a {kind} is either a class of this process or a program of its own",
            of="key",
            cure="leave out use or command",
        )
    for key in data:
        if key not in ACTOR_KEYS:
            decoder.problem(
                (*path, key),
                f"a program does not read {quote(key)}",
                of="key",
                cure="say it in its command, as an argument",
            )


def check_steps(
    decoder: Decoder,
    roles: Iterable[Role],
    sessions: list[tuple[Keys, SessionTable]],
    steps: Iterable[tuple[Keys, StepTable]],
) -> None:
    """Report steps at the desktop of a program, which hears nobody but the server."""
    programs = {role.cast.name for role in roles if role.cast.command}
    relays = {session.name: session.relay for _, session in sessions}
    for path, step in steps:
        name = step.session or next(iter(relays), None)
        if name is not None and relays.get(name) in programs:
            decoder.problem(
                path,
                f"{relays[name]} is a program of its own, whose sessions no step can change",
                cure="let the program do it",
            )
