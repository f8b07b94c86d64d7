"""Logs to look at: of shipped scenarios as they are written, and small ones made by hand."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

from logs.read import RawSection, Section
from logs.record import HeaderRecord, Record
from logs.write import SectionWriter
from scenarios.load import load_plan
from scenarios.runner import Options, job_of
from scenarios.work import log_one
from transports.envelope import Envelope

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
OUTBOX_RUN = "32128a12-2dae-42de-80fd-000000000001"  # of @published/outbox, seed 1, replication 0


@cache
def log_of(name: str, cell: int = 0, replications: int = 1) -> bytes:
    """The log of a cell of a shipped scenario, named as "published/outbox"."""
    plan = load_plan(SCENARIOS / f"{name}.toml")
    out = io.BytesIO()
    for replication in range(replications):
        log_one(job_of(plan, cell, Options()), replication, out, 60.0)
    return out.getvalue()


def section(data: bytes) -> Section:
    """The one section of a log."""
    return RawSection("a.jsonl", 1, data.splitlines(keepends=True)).section()


def header(**values: Any) -> HeaderRecord:
    """A header, with what a test is about."""
    given: dict[str, Any] = {
        "scenario": "s", "digest": "d", "seed": 1, "cell": "", "replication": 0, "command": "c",
        "pullcord": "0", "python": "3", "resolved": {},
    }  # fmt: skip
    return HeaderRecord(**given | values)


class Made:
    """Puts a section together: `made.message(...)` and so on, as a host tells its recorder."""

    def __init__(self, **values: Any) -> None:
        self._out = io.BytesIO()
        self.tell = SectionWriter(self._out)
        self.tell.begin(header(**values))
        self._serial = 0
        self._closed = False

    def envelope(
        self,
        source: str,
        target: str,
        body: Any,
        cause: int = 0,
        reply_to: int = 0,
        traceparent: str = "",
    ) -> Envelope[Any]:
        """A message, with the next serial."""
        self._serial += 1
        return Envelope(self._serial, source, target, reply_to, cause, body, traceparent)

    def data(self, t: int = 0, *, end: bool = True) -> bytes:
        """The lines, after which there are no more; without an `end` they are truncated."""
        if not self._closed:
            self.tell.close("ended", t)
        self._closed = True
        lines = self._out.getvalue().splitlines(keepends=True)
        return b"".join(lines if end else lines[:-1])

    def section(self, t: int = 0) -> Section:
        """The section."""
        return section(self.data(t))

    def records(self) -> list[Record]:
        """Its records."""
        return self.section().records
