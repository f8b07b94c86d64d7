"""What holds for every test."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Heed Ctrl-C also where a shell runs the tests in its background, which ignores it for them.

    Programs inherit that, and tests that interrupt one would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
