"""The seam's structs as the text that crosses into JavaScript and back.

Both VMs, the one in this process and the one in a child, speak through these functions, so their
turns are equal byte for byte. Stacks come out in the terms of the source as its user wrote it: the
frames of prelude.js are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from actors.graphs.meta import MetaError, read_script
from actors.graphs.seam import (
    Finished,
    ScriptFailure,
    Seed,
    Settlement,
    VmLimitError,
    VmLimits,
    VmState,
    VmTurn,
)

PAD_LINES = 1_000  # as in prelude.js: the script's line 1 is the engine's line 1001
FILE = "graph.js"  # in stacks; which file it was, the engine knows
FRAME = re.compile(r"^\s*at (?:(.*) \()?<input>:(\d+):(\d+)\)?$", re.MULTILINE)

Call = Literal["start", "settle"]

_encode = msgspec.json.encode
_decode_turn = msgspec.json.Decoder(VmTurn).decode
_replace = msgspec.structs.replace


class TextVm:
    """A VM of the seam whose turns are text: wherever the script runs, it begins and goes on so."""

    def __init__(self, limits: VmLimits) -> None:
        self.limits = limits
        self.lines = 0

    def start(self, source: str, args: Any, seed: Seed, state: VmState) -> VmTurn:
        """See Vm."""
        try:
            text = start_text(source, args, seed, state, self.limits.output_bytes)
        except MetaError as error:
            return refused(error)
        self.lines = source.count("\n") + 1
        return self.turn("start", text)

    def settle(self, settlements: Sequence[Settlement], state: VmState) -> VmTurn:
        """See Vm."""
        return self.turn("settle", settle_text(settlements, state))

    def hurry(self) -> None:
        """See Vm. What runs in this process ends by its limits alone."""

    def turn(self, op: Call, text: str) -> VmTurn:
        """Run one turn; a VM that went over a limit runs no more."""
        raise NotImplementedError


def start_text(source: str, args: Any, seed: Seed, state: VmState, room: int) -> str:
    """The message that starts a script. Raises MetaError for a `meta` that can't be read."""
    return json_text(
        {
            "source": read_script(source).source,
            "args": args,
            "seed": seed,
            "room": room,
            **msgspec.structs.asdict(state),
        }
    )


def settle_text(settlements: Sequence[Settlement], state: VmState) -> str:
    """The message that answers requests."""
    answers = [
        (each.id, True, each.value) if each.ok else (each.id, False, each.error)
        for each in settlements
    ]
    return json_text({"settlements": answers, **msgspec.structs.asdict(state)})


def json_text(message: Any) -> str:
    """A message as JSON."""
    try:
        return _encode(message).decode()
    except UnicodeEncodeError:  # half a character, which JSON can name and UTF-8 can't
        return json.dumps(msgspec.to_builtins(message))


def refused(error: MetaError) -> VmTurn:
    """The turn of a script whose `meta` can't be read: as if the engine had said so."""
    failure = ScriptFailure(
        name="SyntaxError",
        message=error.message,
        stack=f"    at {FILE}:{error.line}:{error.column}\n",
        line=error.line,
        column=error.column,
    )
    return VmTurn(finished=Finished(error=failure))


def read_turn(text: bytes, lines: int) -> VmTurn:
    """The turn of a script of so many lines. Raises VmLimitError for what no honest VM says."""
    try:
        turn = _decode_turn(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise VmLimitError("died", f"the script's VM answered no turn: {error}") from None
    if turn.finished is None or turn.finished.error is None:
        return turn
    return _replace(turn, finished=Finished(error=placed(turn.finished.error, lines)))


def placed(failure: ScriptFailure, lines: int) -> ScriptFailure:
    """The failure with the script's own frames alone, and the first of them as its place.

    A source that ends too early fails behind its last line; it is told as that line.
    """
    frames = [
        (name, int(line) - PAD_LINES, int(column))
        for name, line, column in FRAME.findall(failure.stack)
        if int(line) > PAD_LINES
    ]
    frames = [(n, line, col) if line <= lines else (n, lines, 1) for n, line, col in frames]
    written = "".join(
        f"    at {name} ({FILE}:{line}:{column})\n"
        if name and name != "<anonymous>"
        else f"    at {FILE}:{line}:{column}\n"
        for name, line, column in frames
    )
    _, line, column = frames[0] if frames else ("", 0, 0)
    return _replace(failure, stack=written, line=line, column=column)
