"""What `equals` would catch: by how many standard errors a changed parameter moves each figure.

To print the study, in about 15 s: python -m tests.exact_mutations
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

from tests.exact_law import STRATEGIES, Figure, Model, Strategy
from tests.exact_values import SCENARIOS

SURE = 6.0  # moved this far, `equals` (3.3 standard errors) fails in 997 of 1,000 samples

Changes = dict[str, dict[str, Model]]


def changes() -> Changes:
    """The changed parameters, by scenario."""
    base = Model()
    poll = {f"poll {v}s": replace(base, poll_s=v) for v in (15.0, 18.0, 22.0, 25.0)}
    graph = {f"sigma {v}": replace(base, sigma=v) for v in (0.6, 0.7, 0.9, 1.0)}
    graph |= {f"median {v}s": replace(base, median_s=v) for v in (50.0, 54.0, 66.0, 72.0)}
    graph["least 10s"] = replace(base, least_s=10.0)
    control = {f"control {v}s": replace(base, control_s=v) for v in (2.5, 3.5)}
    control |= {f"stop {v}s": replace(base, stop_s=v) for v in (0.25, 0.4, 0.6, 1.0)}
    control |= {f"within {v}s": replace(base, cancel_within_s=v) for v in (30.0, 36.0, 44.0, 50.0)}
    fixed = {f"graph {v}s": replace(base, graph_s=Fraction(v)) for v in (24, 31)}
    lost = {f"time-out {v}s": replace(base, timeout_s=Fraction(v)) for v in (5, 20)}
    schedule: dict[str, dict[str, Strategy]] = {
        "2.2s for 2s": {"every 2s": ((), 2.2)},
        "backoff cap 25s": {"backoff 2s x2 max 30s": ((2.0, 4.0, 8.0, 16.0), 25.0)},
        "backoff x1.5": {"backoff 2s x2 max 30s": ((2.0, 3.0, 4.5, 6.75, 10.125, 15.19, 22.8), 30)},
        "wait 15s": {"wait 20s then every 10s": ((15.0,), 10.0)},
        "then every 9s": {"wait 20s then every 10s": ((20.0,), 9.0)},
    }
    asked = {k: replace(base, strategies=STRATEGIES | v) for k, v in schedule.items()}
    drops = {f"drop {v}": replace(base, drop=v) for v in (0.2, 0.25, 0.35, 0.4, 0.45)}
    return {
        "pickup_wait": poll,
        "fan_out": poll | graph,
        "poll_strategies": poll | graph | asked,
        "cancel": poll | graph | control,
        "idempotency": drops | {"runs 199": replace(base, runs=199)},
        "offline": poll | fixed,
        "outbox": poll | fixed | lost,
        "result_size": {"limit 99999": replace(base, limit_chars=99_999)},
    }


def shift(before: Figure, after: Figure) -> float:
    """By how many standard errors of the changed sample a figure moves.

    Infinite for a figure that never varies.
    """
    moved = after.value - before.value
    return moved / after.se if after.se else math.copysign(math.inf, moved) if moved else 0.0


def study(scenario: str) -> dict[str, dict[str, float]]:
    """For each change of a scenario, the shift of each of its figures."""
    compute = SCENARIOS[scenario]
    before = compute(Model())
    return {
        change: {name: shift(before[name], figure) for name, figure in compute(model).items()}
        for change, model in changes()[scenario].items()
    }


if __name__ == "__main__":
    for scenario in SCENARIOS:
        for change, shifts in study(scenario).items():
            largest = sorted(shifts.items(), key=lambda item: -abs(item[1]))[:4]
            text = "  ".join(f"{name} {moved:+.1f}" for name, moved in largest if moved)
            sys.stdout.write(f"{scenario:16s}{change:18s}{text or 'nothing moves'}\n")
