"""Measure the herd: what a thousand relays do to a server that hangs for a minute and returns.

The server is suspended in a simulated world and wakes. While it slept its relays' polls were lost
on time (each gives up after 10 s) or waited; two figures say what it gets when it is back:

- sent: the most polls that relays sent in one second after it woke, what their jitter decides;
- waiting: the polls that had piled up and were handed to it at the instant when it woke.

Two fleets are measured: one whose relays all began at one instant, as after a power cut or the
roll-out of an update, and one whose relays began anywhere in an interval of 20 s. Each is tried
with `jitter = "none"` (a poll every 20 s) and with "window" (at a random time in each 20 s).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from actors.actor import Handler
from actors.messages import Sync
from actors.simulator import Simulator
from scenarios.build import CellRun
from scenarios.load import load_plan
from transports.envelope import Envelope

RELAYS = 1_000
HANG_US = 60_000_000
HUNG_AT_US = 103_000_000  # five polls of each relay; it wakes between two intervals
BACK_US = HUNG_AT_US + HANG_US
END_US = BACK_US + 120_000_000  # six polls of each relay
SECOND_US = 1_000_000
JITTERS = ("none", "window")
FLEETS = {"at one instant": 'phase = "0s"', "anywhere in 20 s": ""}

FILE = """schema = 1
name = "herd"
[run]
check = "none"
until = "{end_s}s"
[relay]
count = {relays}
poll = "20s"
jitter = "{jitter}"
{phase}
[workload]
runs = 0
[[fault]]
kind = "suspend"
actor = "server"
at = "{at_s}s"
for = "{hang_s}s"
"""


class Herd(NamedTuple):
    """Polls after the server is back: most sent in one second, their mean, and those piled up."""

    peak: int
    mean: float
    waiting: int


def run(relays: int, jitter: str, phase: str) -> Herd:
    """Run one replication with so many relays."""
    text = FILE.format(
        end_s=END_US // SECOND_US,
        relays=relays,
        jitter=jitter,
        phase=phase,
        at_s=HUNG_AT_US // SECOND_US,
        hang_s=HANG_US // SECOND_US,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "herd.toml")
        path.write_text(text)
        plan = load_plan(path)
        cell = CellRun(plan.scenarios[0], plan.run.seed, "", plan.folder)
    taken: Counter[int] = Counter()  # polls by the microsecond at which the server had them
    cell.simulator.wrap(Sync, _counted(cell.simulator, taken), ["server"])
    cell.simulator.run(0)
    return herd_of(taken)


def _counted(simulator: Simulator, taken: Counter[int]) -> Any:
    """Return a wrapper that counts deliveries; ways here take no time, so sent is delivered."""

    def wrapper(handler: Handler) -> Handler:
        def counting(context: Any, envelope: Envelope[Any]) -> Any:
            taken[simulator.now_us] += 1
            return handler(context, envelope)

        return counting

    return wrapper


def herd_of(taken: Counter[int]) -> Herd:
    """Return the figures for polls that the server had at these microseconds."""
    waiting = taken[BACK_US]
    later = {at_us: polls for at_us, polls in taken.items() if at_us > BACK_US}
    seconds: Counter[int] = Counter()
    for at_us, polls in later.items():
        seconds[at_us // SECOND_US] += polls
    span_s = (END_US - BACK_US) / SECOND_US
    return Herd(max(seconds.values(), default=0), sum(later.values()) / span_s, waiting)


def main() -> int:
    """Measure both fleets with both jitters and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relays", type=int, default=RELAYS, help="that poll one server")
    relays: int = parser.parse_args().relays
    print(f"{relays:,} relays poll every 20 s a server that hangs for {HANG_US // SECOND_US} s\n")
    columns = "{:18} {:8} {:>12} {:>10} {:>9} {:>9}"
    print(columns.format("relays began", "jitter", "peak in 1 s", "mean", "peak/mean", "waiting"))
    for fleet, phase in FLEETS.items():
        herds = {jitter: run(relays, jitter, phase) for jitter in JITTERS}
        for jitter, herd in herds.items():
            ratio = f"{herd.peak / herd.mean:.1f}x"
            print(columns.format(fleet, jitter, herd.peak, f"{herd.mean:.1f}", ratio, herd.waiting))
        times = herds["none"].peak / herds["window"].peak
        print(columns.format("", "ratio", f"{times:.1f}x", "", "", ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
