"""One run that has a slot on its desktop, from the question for leave to the answer to its end."""

from __future__ import annotations

import msgspec

from actors.messages import CHANNEL, Command, Control


class Running(msgspec.Struct):
    """What a relay knows of such a run in this boot. It changes, and is stored nowhere."""

    command: Command
    starts: int = 0  # how often leave was asked for
    question: Control | None = None  # what the server is asked while it executes
    timer: str = ""  # and the timer by which that is asked
    first: int = 0  # questions with greater ids were asked since it executes
    execution_id: str | None = None
    cancelled: bool = False  # the outcome is that, whatever comes
    stopped_us: int = 0  # when it was told to stop, first
    told_us: int = 0  # and last
    dropped: bool = False  # it did not stop, and its engine was told to drop it

    @property
    def channel(self) -> str:
        """What the engine knows it by."""
        return CHANNEL + self.command.command_id
