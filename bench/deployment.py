"""A deployed server for a benchmark: its principals written, its process started and watched."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from actors.accounts.rows import PRINCIPALS, TOKENS, Holder, Principal, Token, newest_first
from actors.accounts.tokens import LOCAL_OWNER, PREFIXES
from actors.durable import DurableStore
from actors.edges.door import hash_token
from actors.stores.sqlite import SqliteStore
from transports.listening import Address, parse_address

READY_S = 60.0  # a busy machine takes seconds to start a Python
END_S = 30.0  # longer than a server drains
LISTENS = "server listens on "
CHANGES_AT = struct.Struct("@8xI")  # in a write-ahead log's index: transactions since it was made
Kind = str


class Known(NamedTuple):
    """A principal as its bearer knows it."""

    id: str
    token: str


def token_of(kind: Kind, number: int) -> str:
    """Return a token as a server makes them, the same each time."""
    drawn = hashlib.sha256(f"{kind} {number}".encode()).digest()
    mark = {"agent": "pc_agt_", "device": "pc_dev_"}[kind]
    return mark + base64.urlsafe_b64encode(drawn).decode().rstrip("=")


def enrol(store: DurableStore, kind: Kind, count: int) -> list[Known]:
    """Write so many principals of the first owner into a store, as pairing and adding would.

    By hand a thousand codes would take a minute, since nobody may try them any faster.
    """
    now_us = time.time_ns() // 1000
    rows, tokens = store.table(PRINCIPALS), store.table(TOKENS)
    known = []
    for number in range(count):
        identity, token = f"{PREFIXES[kind]}_{number:032x}", token_of(kind, number)
        row = Principal(
            id=identity,
            kind=kind,  # type: ignore[arg-type]  # one of those of PREFIXES
            name=f"{kind} {number}",
            owner=LOCAL_OWNER,
            added_us=now_us,
            listed=newest_first(now_us, identity),
            live_owner=LOCAL_OWNER,
            tokens=(Token(hash=hash_token(token), issued_us=now_us),),
            scopes=("graphs:read", "graphs:run") if kind == "agent" else (),
        )
        rows.put(identity, row)
        tokens.put(hash_token(token), Holder(principal=identity))
        known.append(Known(identity, token))
    store.commit()
    return known


class Usage(NamedTuple):
    """What a process has used so far, and holds now."""

    at_s: float
    cpu_s: float
    rss_bytes: int


def usage_of(pid: int) -> Usage:
    """Return what a process has used so far: from /proc, or where there is none from ps."""
    at_s = time.monotonic()
    proc = Path("/proc", str(pid), "stat")
    if proc.exists():
        # Behind the command's name, which is in parentheses: user and system time are 14 and 15 of
        # all, the memory is 24.
        fields = proc.read_text().rpartition(")")[2].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return Usage(at_s, cpu_s, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    told = subprocess.run(
        ["/bin/ps", "-o", "time=,rss=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    clock, kib = told.stdout.split()
    return Usage(at_s, seconds_of(clock), int(kib) * 1024)


def seconds_of(clock: str) -> float:
    """Return the seconds of what ps says of time: `[[days-]hours:]minutes:seconds`."""
    days, _, rest = clock.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + 86_400 * int(days or 0)


class ServerProcess:
    """A server that runs."""

    def __init__(self, popen: subprocess.Popen[bytes], address: Address, folder: Path) -> None:
        self.address = address
        self.popen = popen
        self._folder = folder

    def usage(self) -> Usage:
        """Return what it has used so far."""
        return usage_of(self.popen.pid)

    def commits(self) -> int:
        """Return how many transactions SQLite has committed, as the log's index tells everybody."""
        with (self._folder / "server.db-shm").open("rb") as index:
            (count,) = CHANGES_AT.unpack(index.read(CHANGES_AT.size))
        assert isinstance(count, int), "the format says so"
        return count

    def files_bytes(self) -> int:
        """Return how large the database is, with its log."""
        return sum(path.stat().st_size for path in self._folder.glob("server.db*"))


def config_text(settings: Mapping[str, Any]) -> str:
    """Return a configuration whose table of the server has these."""
    values = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    return "[server]\n" + "".join(values)


@contextmanager
def serving(
    folder: Path,
    settings: Mapping[str, Any],
    *,
    store: str = "",
    core: int | None = None,
    turns: int | None = None,
    profile: Path | None = None,
) -> Iterator[ServerProcess]:
    """Run a server on a folder; at the end it has drained. AssertionError if it fails."""
    (folder / "config.toml").write_text(config_text(settings))
    own = {"core": core, "turns": turns, "profile": profile}
    flags = [f"--{name}={value}" for name, value in own.items() if value is not None]
    flags += ["--", "--listen", "127.0.0.1:0", "--folder", str(folder)]
    flags += ["--store", store] if store else []
    said = folder / "server.said"
    with said.open("wb") as out:
        popen = subprocess.Popen(
            [sys.executable, "-m", "bench.one_server", *flags], stderr=out, stdout=out
        )
    try:
        yield ServerProcess(popen, _listening(popen, said), folder)
        popen.terminate()
        assert popen.wait(END_S) == 0, said.read_text()
    finally:
        popen.kill()
        popen.wait()


def _listening(popen: subprocess.Popen[bytes], said: Path) -> Address:
    """Wait until a server says where it listens."""
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s and popen.poll() is None:
        _, found, rest = said.read_text().partition(LISTENS)
        if found and "\n" in rest:
            return parse_address(rest.split()[0])
        time.sleep(0.05)
    raise AssertionError(f"the server did not begin: {said.read_text()}")


def enrolled(store: DurableStore, devices: int, agents: int) -> tuple[list[Known], list[Known]]:
    """Write devices and agents into a store, and close it."""
    try:
        return enrol(store, "device", devices), enrol(store, "agent", agents)
    finally:
        store.close()  # type: ignore[attr-defined]  # those of deployments have it


def new_sqlite(folder: Path) -> SqliteStore:
    """Return the store that a server finds in its folder."""
    return SqliteStore(folder / "server.db")
