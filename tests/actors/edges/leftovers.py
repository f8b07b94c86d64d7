"""Whether processes that a test started are gone."""

import os
from pathlib import Path

import trio


def gone(process: int) -> bool:
    """Whether a process is no more, or only waits to be read by its parent."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return True
    return state == "Z"


async def wait_until_gone(*processes: int) -> None:
    """Return when they are gone; they have 5 s for it."""
    with trio.fail_after(5):
        while not all(gone(one) for one in processes):  # noqa: ASYNC110  not ours to wait for
            await trio.sleep(0.005)
