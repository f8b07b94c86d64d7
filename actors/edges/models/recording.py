"""Answers written to a file as they come, for the scripted model to play again.

A line has the hash of the prompt and never its text, and what was answered, used and waited. An
answer that failed or was stopped has its line too, so a Graph that is played again meets the same.
Of an agent with tools each round has a line, with what it wanted of them; what came is not in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from actors.graphs.messages import AgentAnswer, AgentAsk
from actors.graphs.scripted import prompt_hash

_encode = msgspec.json.Encoder().encode


class Recording:
    """A file that is written a line an answer. OSError where it can't be, or is there already."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")

    def write(self, ask: AgentAsk, answer: AgentAnswer, took_s: float) -> None:
        """Write what was answered to a question, `took_s` after it was asked.

        OSError if there is no room for it.
        """
        self._file.write(_encode(line_of(ask, answer, took_s)) + b"\n")
        self._file.flush()  # whatever becomes of this process, the answers so far are kept

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def line_of(ask: AgentAsk, answer: AgentAnswer, took_s: float) -> dict[str, Any]:
    """Return an answer as a line of the file has it."""
    line: dict[str, Any] = {"hash": prompt_hash(ask.prompt)}
    if ask.rounds:
        line["round"] = len(ask.rounds)
    if answer.calls:
        line["calls"] = answer.calls
    if answer.outcome in ("ok", "tools"):
        line["value"] = answer.value
    else:
        line["error"] = answer.error or answer.outcome
        line["retryable"] = answer.retryable
    return {
        **line,
        "tokens": answer.tokens,
        "cost": answer.cost,
        "latency": f"{max(0, round(took_s * 1000))}ms",
    }
