"""Sections to step through: replications of shipped scenarios, logged in memory."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

from logs.read import RawSection, Section
from scenarios.load import load_plan
from scenarios.runner import Options, job_of
from scenarios.step_files import stepper_of
from scenarios.stepper import Stepper
from scenarios.work import log_one
from tests.scenarios.commandline import ROOT


@cache
def data_of(name: str, replication: int = 0, cell: int = 0, **options: Any) -> bytes:
    """The log of one replication of a shipped scenario's cell, by default of its first."""
    out = io.BytesIO()
    plan = load_plan(ROOT / "scenarios" / f"{name}.toml")
    log_one(job_of(plan, cell, Options(**options)), replication, out, 60.0)
    return out.getvalue()


def section_of(data: bytes) -> Section:
    """A log's only section."""
    return RawSection("a.jsonl", 1, data.splitlines(keepends=True)).section()


def stepper(name: str = "examples/first", replication: int = 0, **options: Any) -> Stepper:
    """A stepper at the first record of such a log."""
    return stepper_of(section_of(data_of(name, replication, **options)))
