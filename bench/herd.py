"""Measure the herd: what a thousand relays do to a server that hangs for a minute and returns.

The server is suspended in a simulated world and wakes. While it slept its relays gave each poll up
after 10 s, and what they had sent waited. Two figures say what the server gets when it is back:

- peak: the most polls that relays sent in one second after it woke, which their jitter decides;
- waiting: the polls that had piled up and were handed to it when it woke.

Two fleets are measured: one whose relays all began at one instant, as after a power cut or the
roll-out of an update, and one whose relays began anywhere in an interval of 20 s. Each is tried
with `jitter = "none"` (a poll every 20 s) and with "window" (at a random time in each 20 s). Then
small fleets over TCP, on the machine's clock.
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
from scenarios.drivers import trio_world
from scenarios.load import load_plan
from transports.envelope import Envelope

RELAYS = 1_000
HANG_US = 60_000_000
HUNG_AT_US = 103_000_000  # five polls of each relay; it wakes between two intervals
BACK_US = HUNG_AT_US + HANG_US
END_US = BACK_US + 120_000_000  # six polls of each relay
SECOND_US = 1_000_000
TCP_RELAYS = 40  # with their engines, some 240 sockets; all in one process
TCP_SPEED = 40.0  # seven seconds of the machine for each fleet and jitter
TCP_SETTLE_US = 1_000_000  # 25 ms of the machine
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


def run(relays: int, jitter: str, phase: str, *, tcp: bool = False) -> Herd:
    """Run one replication with so many relays, in the simulator or over TCP."""
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
        scenario = plan.scenarios[0]
        world = trio_world(scenario, "tcp", TCP_SPEED) if tcp else None
        cell = CellRun(scenario, plan.run.seed, "", plan.folder, world=world)
    taken: Counter[int] = Counter()  # polls by the microsecond at which the server had them
    cell.simulator.wrap(Sync, _counted(cell.simulator, taken), ["server"])
    cell.simulator.run(0)
    return herd_of(taken, TCP_SETTLE_US if tcp else 0)


def _counted(simulator: Simulator, taken: Counter[int]) -> Any:
    """Return a wrapper that counts deliveries; ways here take no time, so sent is delivered."""

    def wrapper(handler: Handler) -> Handler:
        def counting(context: Any, envelope: Envelope[Any]) -> Any:
            taken[simulator.now_us] += 1
            return handler(context, envelope)

        return counting

    return wrapper


def herd_of(taken: Counter[int], settle_us: int = 0) -> Herd:
    """Return the figures for polls that the server had at these microseconds.

    What it had within `settle_us` after it woke is what had piled up.
    """
    settled_us = BACK_US + settle_us
    waiting = sum(polls for at_us, polls in taken.items() if BACK_US <= at_us <= settled_us)
    later = {at_us: polls for at_us, polls in taken.items() if at_us > settled_us}
    seconds: Counter[int] = Counter()
    for at_us, polls in later.items():
        seconds[at_us // SECOND_US] += polls
    span_s = (END_US - settled_us) / SECOND_US
    return Herd(max(seconds.values(), default=0), sum(later.values()) / span_s, waiting)


def compare(relays: int, *, tcp: bool = False) -> list[str]:
    """Return a table's lines: both fleets, each with both jitters."""
    columns = "{:18} {:8} {:>12} {:>10} {:>9} {:>9}"
    lines = [
        columns.format("relays began", "jitter", "peak in 1 s", "mean", "peak/mean", "waiting")
    ]
    for fleet, phase in FLEETS.items():
        herds = {jitter: run(relays, jitter, phase, tcp=tcp) for jitter in JITTERS}
        for jitter, herd in herds.items():
            ratio = f"{herd.peak / herd.mean:.1f}x"
            lines.append(
                columns.format(fleet, jitter, herd.peak, f"{herd.mean:.1f}", ratio, herd.waiting)
            )
        times = herds["none"].peak / herds["window"].peak
        lines.append(columns.format("", "ratio", f"{times:.1f}x", "", "", "").rstrip())
    return lines


def main() -> int:
    """Measure both fleets with both jitters and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relays", type=int, default=RELAYS, help="that poll one server")
    parser.add_argument("--tcp-relays", type=int, default=TCP_RELAYS, help="over TCP; 0 for none")
    asked = parser.parse_args()
    hang_s = HANG_US // SECOND_US
    print(f"{asked.relays:,} relays poll every 20 s a server that hangs for {hang_s} s\n")
    print("\n".join(compare(asked.relays)))
    if asked.tcp_relays:
        print(f"\n{asked.tcp_relays:,} relays over TCP, at {TCP_SPEED:g} times the speed\n")
        print("\n".join(compare(asked.tcp_relays, tcp=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
