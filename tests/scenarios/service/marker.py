"""What answers agents in the kill matrix: it leaves a mark outside of the system, then answers.

    marker.py MARKS < PROMPT

A mark is a line with the run's own word and a value that nobody else makes. It is on the disk
before anything is answered, so who counts the lines knows what was done, whatever the system says.
"""

import json
import os
import secrets
import sys
import time


def main() -> None:
    """Sleep, mark, sleep, answer with the value of the mark."""
    ask = json.load(sys.stdin)
    value = secrets.token_hex(4)
    time.sleep(ask["before_s"])
    marks = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(marks, f"{ask['mark']} {value}\n".encode())
    os.fsync(marks)
    time.sleep(ask["after_s"])
    sys.stdout.write(value)


if __name__ == "__main__":
    main()
