"""SIGTERM ends a command as Ctrl-C does: what is done is kept, and nothing of ours is left.

By default it would end the process at once, and with it everything that tidies up: folders of
sockets, copies of pipes, the word of how to go on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TERMINATED = 128 + signal.SIGTERM  # the exit code, as a shell tells of one that a signal ended


@contextmanager
def term_as_interrupt() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM raise KeyboardInterrupt meanwhile; gives what tells whether it came.

    A second one ends the process at once. Where somebody else handles either signal, or ignores
    it, nothing changes.
    """
    came = False

    def interrupt(_number: int, _frame: Any) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)  # to whoever handles that at the moment, trio too

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield lambda: False
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
