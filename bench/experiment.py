"""The poll-strategies experiment, as every program of the benchmark runs it.

One run is queued while the relay's 20 s poll stands at a random phase; the run's duration is
lognormal (median 60 s, sigma 0.8, at least 5 s); the agent polls its ticket by one of six
strategies. Measured: polls for each run, and how late the agent notices the result.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from random import Random
from statistics import fmean
from typing import NamedTuple

SYNC_S = 20.0
CONTROL_S = 3.0

# For each strategy.
REPLICATIONS = 2000

STRATEGIES: dict[str, Callable[[], Iterator[float]]] = {
    "every 2s": lambda: repeat(2.0),
    "every 5s": lambda: repeat(5.0),
    "every 15s": lambda: repeat(15.0),
    "every 30s": lambda: repeat(30.0),
    "backoff 2s x2 max 30s": lambda: chain((2.0, 4.0, 8.0, 16.0), repeat(30.0)),
    "wait 20s then every 10s": lambda: chain((20.0,), repeat(10.0)),
}


class Outcome(NamedTuple):
    """What one replication measured."""

    calls: int
    late_s: float


class Replicate(NamedTuple):
    """What distinguishes one replication: its seed and the delays before the agent's polls."""

    seed: int
    delays_s: Iterator[float]


def draw_duration_s(stream: Random) -> float:
    """The time that one run takes."""
    return max(5.0, stream.lognormvariate(math.log(60.0), 0.8))


def percentile_95(values: list[float]) -> float:
    """The value that 95 in 100 don't exceed."""
    return sorted(values)[len(values) * 95 // 100]


def main(replicate: Callable[[Replicate], Outcome]) -> None:
    """Run every strategy and print the account's table, a strategy a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=REPLICATIONS, help="for each strategy")
    replications: int = parser.parse_args().replications
    begun = time.process_time()
    for name, delays_s in STRATEGIES.items():
        outcomes = [replicate(Replicate(seed, delays_s())) for seed in range(replications)]
        calls = [float(outcome.calls) for outcome in outcomes]
        late_s = [outcome.late_s for outcome in outcomes]
        print(
            f"{name:24} calls mean {fmean(calls):5.1f} p95 {percentile_95(calls):4.0f}"
            f"  late mean {fmean(late_s):5.1f} s p95 {percentile_95(late_s):5.1f} s"
        )
    print(f"experiment {time.process_time() - begun:.3f} s of CPU")
