"""Runs commands of a list, each a tool of its own. No shell is ever asked.

A command is a list of words that the settings write. An agent fills in its named places, each of
which stays within one word whatever it says; at the beginning of a word it may not begin with "-",
so that it is never taken for a flag. Patterns are part of the tool's schema, and are matched in
linear time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from actors.edges.models.failures import without
from actors.edges.processes import StartError, ending, run_process
from actors.edges.tools.tool import ToolError, ToolSpec, arguments_schema

PREFIX: Final = "shell__"
OUTPUT_LIMIT_BYTES: Final = 128 << 10  # of which a result has the beginning
ERRORS_LIMIT_CHARS: Final = 4_000  # of stderr, whose end is kept
VALUE_LIMIT_CHARS: Final = 4_096
PLACE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
ENVIRONMENT: Final = ("PATH", "HOME", "LANG")  # what a command gets of ours, and what it names
SECRET_CHARS: Final = 8  # a shorter value is no secret, and would be found everywhere


class CommandError(ValueError):
    """A command of the settings can't be one: one sentence."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One command of the settings.

    `patterns` has a regular expression for each place that has one, which a value must match as a
    whole. `dashes` are the places whose values may begin with "-". `environment` names the
    variables that it gets besides the usual ones.
    """

    name: str
    words: tuple[str, ...]
    description: str
    folder: Path
    patterns: Mapping[str, str] = {}
    dashes: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    limit_s: float = 60.0

    def __post_init__(self) -> None:
        """Refuse a command whose program an agent would choose, and places that there are not."""
        if not self.words or not self.words[0]:
            raise CommandError("a command has at least one word: its program")
        if PLACE.search(self.words[0]):
            raise CommandError("the program itself can't be an agent's choice")
        for name in (*self.patterns, *self.dashes):
            if name not in self.places:
                raise CommandError(f"the command has no place {{{name}}}")

    @property
    def places(self) -> tuple[str, ...]:
        """The names of its places, each once, in their order."""
        return tuple(dict.fromkeys(one for word in self.words for one in PLACE.findall(word)))

    @property
    def leading(self) -> frozenset[str]:
        """The places at the beginning of a word, where a dash would make a flag."""
        found = (PLACE.match(word) for word in self.words)
        return frozenset(one[1] for one in found if one is not None)

    def filled(self, values: Mapping[str, str]) -> list[str]:
        """Return its words with an agent's values; ToolError if one could be a flag."""
        for name in self.places:
            value = values[name]
            if "\0" in value:
                raise ToolError(f"{name} has a zero byte in it")
            if value.startswith("-") and name in self.leading and name not in self.dashes:
                raise ToolError(f'{name} may not begin with "-"')
        # All at once: what is in a value is never taken for a place.
        return [PLACE.sub(lambda found: values[found[1]], word) for word in self.words]


def schema_of(command: Command) -> dict[str, Any]:
    """Return the schema of a command's arguments: every place, as a text."""
    members: dict[str, Any] = {}
    for name in command.places:
        member: dict[str, Any] = {"type": "string", "maxLength": VALUE_LIMIT_CHARS}
        if name in command.patterns:
            member["pattern"] = f"^(?:{command.patterns[name]})$"
        else:
            member["minLength"] = 1  # `rm -r {folder}/` with nothing in it is another command
        members[name] = member
    return arguments_schema(members)


class ShellCommand:
    """The tool of one command."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.limit_s = command.limit_s
        self.spec = ToolSpec(
            name=PREFIX + command.name,
            description=command.description,
            schema=schema_of(command),
        )

    async def call(self, arguments: dict[str, Any]) -> str:
        """See Tool."""
        command = self.command
        words = command.filled(arguments)
        environment = environment_of(command.environment)
        try:
            ran = await run_process(
                words,
                environment=environment,
                folder=command.folder,
                limit_bytes=OUTPUT_LIMIT_BYTES,
            )
        except StartError as error:
            raise ToolError(str(error)) from None
        named = [environment.get(name, "") for name in command.environment]
        secrets = [value for value in named if len(value) >= SECRET_CHARS]
        output = without(ran.output.decode(errors="replace"), secrets)
        errors = without(ran.errors.decode(errors="replace"), secrets)[-ERRORS_LIMIT_CHARS:]
        how = ending(ran.status)
        if ran.flooded:
            how = f"it wrote more than {OUTPUT_LIMIT_BYTES:,} bytes, and was stopped"
        parts = [how, output.rstrip("\n")]
        if errors.strip():
            parts.append("[stderr]\n" + errors.rstrip("\n"))
        text = "\n".join(part for part in parts if part)
        if ran.status != 0:
            raise ToolError(text)
        return text


def environment_of(names: Sequence[str]) -> dict[str, str]:
    """Return what a program gets of our environment: what it needs, and what it names."""
    wanted = {*ENVIRONMENT, *names}
    return {name: value for name, value in os.environ.items() if name in wanted}
