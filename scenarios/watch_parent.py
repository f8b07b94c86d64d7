"""A process that ends others when its parent is gone, however that went: killed, or lost its power.

Started with `python -I -S`, so it needs nothing but the standard library and a hundredth of a
second. On its standard input come lines: `+5` for a process group to end, `-5` for one that has
ended. When the input closes, whatever is left of them gets SIGKILL, stopped or not, and then the
folders that it was given as arguments are removed.
"""

import os
import shutil
import signal
import sys
import time

ATTEMPTS, PAUSE_S = 50, 0.02


def main(folders: list[str]) -> None:
    """Follow the lines until the input closes, then end what is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: dict[int, None] = {}
    for line in sys.stdin:
        if line.startswith("+"):
            groups[int(line)] = None
        else:
            groups.pop(-int(line), None)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:  # it has just ended
            continue
    for folder in folders:
        for _ in range(ATTEMPTS):  # what was just killed may still be writing into it
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder):  # noqa: PTH110  pathlib takes half as long as all else
                break
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1:])
