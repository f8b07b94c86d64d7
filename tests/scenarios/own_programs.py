"""Programs that the tests start: one that greets and then does as told, and who is left of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

RELAY = Path(__file__).resolve().parents[2] / "scenarios" / "foreign" / "relay.pl"

_GREETING = """
import os, socket, struct, sys, time, zlib
import msgspec
def dial(token=os.environ["PULLCORD_TOKEN"]):
    address = os.environ["PULLCORD_HOST"], int(os.environ["PULLCORD_PORT"])
    link = socket.create_connection(address)
    greet(link, {"type": "hello", "protocol": 2, "name": os.environ["PULLCORD_NAME"],
                 "boot": "b", "token": token})
    return link
def greet(link, what):
    content = msgspec.msgpack.encode(what)
    checked = struct.pack(">I", len(content)) + content
    link.sendall(checked + struct.pack(">I", zlib.crc32(checked)))
def say(link, what):
    send(link, msgspec.msgpack.encode(what))
def send(link, content):
    checked = struct.pack(">II", len(content), zlib.crc32(content))
    link.sendall(checked + struct.pack(">I", zlib.crc32(checked)) + content)
def hear(link):
    "Read until the other side closes."
    while link.recv(65536):
        pass
"""


def greeter(then: str) -> tuple[str, ...]:
    """Return the command of a program with `dial`, `say`, `send` and `hear` that does `then`."""
    return (sys.executable, "-c", _GREETING + then)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    ps = ["/bin/ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(ps, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    ps = ["/bin/ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(ps, capture_output=True, text=True, check=False).stdout.startswith("T")


def is_gone(pid: int) -> bool:
    """Whether a process that was killed has ended, within two seconds."""
    for _ in range(100):
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False
