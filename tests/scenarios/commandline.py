"""The command line as a user has it, and scenario files small enough to run in a moment."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from scenarios.load import Plan, load_plan
from scenarios.results import ScenarioResult
from scenarios.run import load_plans
from scenarios.runner import Options, Runner

ROOT = Path(__file__).resolve().parent.parent.parent
MAIN = "from pullcord import main; main()"

# Two cells, a metric with one value a replication and one with another number; all passes.
SMALL = """
schema = 1
name = "small"
summary = "How long a run waits, with two intervals."
[run]
replications = 40
[engine]
duration = "uniform(5s, 40s)"
[agent]
poll = "every 30s"
runs = 2
[sweep.product]
"relay.poll" = ["5s", "20s"]
[metrics.wait]
from = "run.queued"
to = "run.started"
[metrics.late]
count = "Sync"
per = "replication"
[[table]]
rows = "relay.poll"
columns = ["wait.mean", "wait.max"]
[[expect]]
that = "wait.max <= 100s"
[[expect]]
that = "wait.count[5s] equals 80"
"""

# A user's relay; `BODY` is what it does in its second turn with a timer.
FOREIGN = """
import time
from pullcord import Relay, messages

class Mine(Relay):
    def on_timer(self, context, timer):
        if context.now_us > 5_000_000:
            BODY
        super().on_timer(context, timer)
"""
USING = """
schema = 1
name = "mine"
[run]
replications = 6
[relay]
use = "mine.py:Mine"
[agent]
poll = "every 30s"
[metrics.wait]
from = "run.queued"
to = "run.started"
"""


class Done(NamedTuple):
    """What a command ended with."""

    code: int
    out: str
    err: str


def environment(**extra: str) -> dict[str, str]:
    """The environment of a user whose checkout this is, without a terminal's settings."""
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    return kept | {"PYTHONPATH": str(ROOT), "COVERAGE_CORE": ""} | extra


def start(folder: Path, *args: str, env: Mapping[str, str] = {}) -> "subprocess.Popen[str]":
    """Begin a command in a session of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *args],
        cwd=folder,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def command(folder: Path, *args: str, env: Mapping[str, str] = {}, timeout_s: float = 60) -> Done:
    """Run a command to its end."""
    process = start(folder, *args, env=env)
    out, err = process.communicate(timeout=timeout_s)
    return Done(process.returncode, out, err)


def alive(group: int) -> list[int]:
    """The living processes of a group; those that nobody has buried yet don't count."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def await_end(group: int, limit_s: float = 3.0) -> list[int]:
    """The processes of a group that still live after the limit."""
    end = time.monotonic() + limit_s
    while alive(group) and time.monotonic() < end:
        time.sleep(0.02)
    return alive(group)


def write(folder: Path, text: str = SMALL, name: str = "small.toml") -> Path:
    """Write a scenario file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def write_foreign(folder: Path, body: str, more: str = "") -> Path:
    """Write a user's relay that does `body` after 5 s, and a scenario that uses it."""
    indented = body.replace("\n", "\n            ")
    (folder / "mine.py").write_text(FOREIGN.replace("BODY", indented), encoding="utf-8")
    return write(folder, USING + more, "mine.toml")


def plan_of(folder: Path, text: str = SMALL) -> Plan:
    """A plan from a file's text."""
    return load_plan(write(folder, text))


def result_of(folder: Path, text: str = SMALL, **options: object) -> ScenarioResult:
    """A scenario's results, run here."""
    chosen = Options(jobs=1, **options)  # type: ignore[arg-type]  # fields by name
    plans = load_plans([str(write(folder, text))], chosen)
    return Runner(plans, chosen, None).run().scenarios[0]


def records(path: Path) -> list[bytes]:
    """A log's lines without its headers, which name the environment."""
    return [line for line in path.read_bytes().splitlines() if not line.startswith(HEADER)]


HEADER = b'{"kind":"header"'
