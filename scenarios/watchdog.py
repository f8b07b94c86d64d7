"""The watchdog: ends a turn, or the turns of one instant, that would go on for ever.

A timer looks at the virtual time a few times a second, so the hot loop pays nothing.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from actors.errors import SimulationError, describe_turn
from actors.simulator import Simulator
from scenarios.problems import listed

PATIENCE_S: Final = 10.0  # long against any instant of a sensible scenario, short against a coffee
TICK_S: Final = 0.25
MESSAGES_LIMIT: Final = 2_000_000  # of one instant: a loop that sends fills the memory before long
SHOWN_LIMIT: Final = 4  # turns that the message names

_OURS: Final = str(Path(__file__).resolve().parent.parent)


class StuckError(SimulationError):
    """A turn, or the turns of one instant, never end."""


class Stop(BaseException):
    """Raised in the turn that does not end; no `except Exception` of an actor holds it up.

    `watchdog` makes a StuckError of it.
    """


def is_ours(file: str) -> bool:
    """Whether a source file is part of pullcord, and no template or example that users copy."""
    inside = file.removeprefix(_OURS).lstrip("/\\")
    return (
        inside != file.lstrip("/\\")
        and inside.startswith(("actors", "transports", "logs", "scenarios/", "scenarios\\"))
        and not inside.startswith(("scenarios/examples", "scenarios/templates"))
    )


class _Look:
    """What the timer calls: counts for how long the virtual time has stood still."""

    def __init__(self, simulator: Simulator, patience_s: float) -> None:
        self.simulator = simulator
        self.patience_s = patience_s
        self.tick_s = min(TICK_S, patience_s / 4)
        self._instant = (-1, -1)
        self._serial = 0
        self._still_s = 0.0
        self._last = time.monotonic()
        self._turns: dict[str, None] = {}
        self._line = ""

    def __call__(self, _signum: int, frame: FrameType | None) -> None:
        simulator, now = self.simulator, time.monotonic()
        # A stopped process does not count: one tick adds two at most.
        passed_s, self._last = min(now - self._last, 2 * self.tick_s), now
        acts = self._see(frame)
        # A real clock waits for nobody: there it is a turn that stands still, and nothing else.
        turned_us = getattr(simulator, "turned_us", None)
        stands_us = simulator.now_us if turned_us is None else turned_us
        instant = (simulator.replication, stands_us)
        if instant != self._instant or (turned_us is not None and not acts):
            self._instant, self._serial = instant, simulator.serial
            self._still_s = 0.0
            self._turns.clear()
            return
        self._still_s += passed_s
        sent = simulator.serial - self._serial
        if self._still_s >= self.patience_s or sent > MESSAGES_LIMIT:
            halt = None if acts else getattr(simulator, "halt", None)
            if halt is None:
                raise Stop
            halt(Stop())  # trio's scheduler can't go on after what is raised in it

    def _see(self, frame: FrameType | None) -> bool:
        """Take note of whose turn it is; return whether it is anybody's."""
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        turn, line = acting(reversed(frames))
        if turn:
            self._turns[turn] = None
            self._line = line
        return bool(turn)

    def error(self) -> StuckError:
        """Return the error that says what went on at that instant."""
        at = f"at {self.simulator.now_us / 1e6:g} s"
        turns = list(self._turns)
        if len(turns) > 1:
            names = listed(turns[:SHOWN_LIMIT], last="and")
            more = f" and {len(turns) - SHOWN_LIMIT} more" if len(turns) > SHOWN_LIMIT else ""
            return StuckError(
                f"time stands still {at}: actors keep each other busy without end: {names}{more}"
            )
        who = turns[0] if turns else "a turn"
        line = f" ({self._line})" if self._line else ""
        sent = self.simulator.serial - self._serial
        if sent > MESSAGES_LIMIT:
            return StuckError(
                f"time stands still {at}: more than {MESSAGES_LIMIT:,} messages and timers in one "
                f"instant, the last by {who}{line}"
            )
        why = "a turn that causes itself, or a loop that sends" if sent else "an endless loop"
        return StuckError(
            f"{who} {at} did not end within {self.patience_s:g} s of real time: {why}{line}"
        )


def acting(frames: Iterable[FrameType]) -> tuple[str, str]:
    """Return whose turn runs in a stack, outermost frame first, and the user's line in it."""
    turn = line = ""
    for frame in frames:
        code, known = frame.f_code, frame.f_locals
        if isinstance(known.get("self"), Simulator) and known.get("context") is not None:
            turn = f"{known['context'].name} on {describe_turn(known.get('turn', 'its start'))}"
        elif turn and not line and not is_ours(code.co_filename):
            line = f"{code.co_filename}:{frame.f_lineno}"
    return turn, line


@contextmanager
def watchdog(simulator: Simulator, patience_s: float) -> Iterator[None]:
    """Raise StuckError if the virtual time stands still for so many seconds of real time.

    Only in the main thread of a process, on systems that have interval timers. A call into C that
    never returns can't be ended.
    """
    if hasattr(simulator, "patience_s"):  # its turns are taken, and watched, in other processes
        simulator.patience_s = patience_s
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return
    look = _Look(simulator, patience_s)
    before: Any = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, look.tick_s, look.tick_s)
    try:
        yield
    except Stop as stop:
        raise look.error() from stop
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
