"""The exact value of every figure in the published tables, computed without our actors.

Layout: one section a scenario; the whole table. The model is described in `exact_law.py`;
`exact_mutations.py` tells what the standard errors let a reader catch. To print the table:
python -m tests.exact_values
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from operator import mul

from tests.exact_law import (
    Figure,
    Figures,
    Model,
    Strategy,
    duration_excess,
    duration_survival,
    integral,
    quantile,
    quantile_se,
    terminal_cdf,
    terminal_density,
    terminal_survival,
    uniform_max_se,
)

POLL_N = PICKUP_N = CANCEL_N = 2000  # replications, as published
FAN_OUT_N = 500
IDEMPOTENCY_N = 3
OFFLINE_N = 1
FAN_OUT_COUNTS = (1, 3, 5)
TAIL = 1e-9  # polls go on until the run is still open with less than this probability

# pickup_wait: how long a run sits in the queue.


def pickup_wait(m: Model) -> Figures:
    """U ~ uniform(0, w): mean and median w/2, p95 0.95 w; sd w/sqrt(12), density 1/w."""
    w = m.poll_s
    return {
        "wait.mean": Figure(w / 2, w / math.sqrt(12 * PICKUP_N)),
        "wait.median": Figure(w / 2, quantile_se(0.5, PICKUP_N, 1 / w)),
        "wait.p95": Figure(0.95 * w, quantile_se(0.95, PICKUP_N, 1 / w)),
        "wait.max": Figure(w, uniform_max_se(w, PICKUP_N)),
    }


# fan_out: k runs queued at once, in sequence on one desktop.


def convolve(a: list[float], b: list[float]) -> list[float]:
    """The first len(a) masses of the sum of two independent lattice variables."""
    flipped = b[::-1]
    size = len(a)
    return [sum(map(mul, a[: i + 1], flipped[size - 1 - i :])) for i in range(size)]


@lru_cache(maxsize=64)
def duration_sum(m: Model, count: int, step_s: float, limit_s: float) -> tuple[float, ...]:
    """The masses of D1 + ... + Dcount at 0, step, 2 step, ... below the limit.

    Each D is put on the lattice by sharing every point's mass between its two neighbours so that
    its mean is kept: node j gets the second difference of E[(D - x)+] divided by the step. A
    smooth function's mean is then off by O(step^2). All terms are positive, so cutting the
    lattice at the limit changes nothing below the limit.
    """
    if count == 0:
        return (1.0,)
    if count > 1:
        rest = list(duration_sum(m, count - count // 2, step_s, limit_s))
        return tuple(convolve(rest, list(duration_sum(m, count // 2, step_s, limit_s))))
    excess = [duration_excess(m, j * step_s) for j in range(-1, round(limit_s / step_s) + 1)]
    nodes = zip(excess, excess[1:], excess[2:], strict=False)
    return tuple((left - 2 * here + right) / step_s for left, here, right in nodes)


def mixed(
    law: Callable[[Model, float], float],
    m: Model,
    masses: tuple[float, ...],
    step_s: float,
    x: float,
) -> float:
    """The mean of law(x - S), S with these masses at 0, step, 2 step, ...; law is 0 below 0."""
    near = enumerate(masses[: math.ceil(x / step_s)])
    return math.fsum(mass * law(m, x - j * step_s) for j, mass in near if mass)


def last_figure(m: Model, count: int, share: float, step_s: float) -> tuple[float, float]:
    """The quantile of U + D1 + ... + Dcount, and the density there.

    All but one D are on the lattice, U + D1 keeps its closed form, so the cdf is a sum of smooth
    terms. Two lattices, step and step/2, give the limit by Richardson: (4 fine - coarse) / 3.
    """
    limit_s = 400.0 * count
    found = []
    for step in (step_s, step_s / 2):
        masses = duration_sum(m, count - 1, step, limit_s)
        x = quantile(partial(mixed, terminal_cdf, m, masses, step), share, 0.0, limit_s)
        found.append((x, mixed(terminal_density, m, masses, step, x)))
    (coarse, rough), (fine, density) = found
    return (4 * fine - coarse) / 3, (4 * density - rough) / 3


def fan_out(m: Model, step_s: float = 4.0) -> Figures:
    """First completion U + D1 whatever k is; last completion U + D1 + ... + Dk.

    The pass runs its k commands one right after the other, with no gap and no further poll.
    """
    figures: Figures = {}
    for count in FAN_OUT_COUNTS:
        asked = (("first.median", 1, 0.5), ("last.median", count, 0.5), ("last.p95", count, 0.95))
        for name, runs, share in asked:
            value, density = last_figure(m, runs, share, step_s)
            figures[f"{name}[{count}]"] = Figure(value, quantile_se(share, FAN_OUT_N, density))
    return figures


# poll_strategies: what noticing costs.


def poll_times(m: Model, strategy: Strategy) -> list[float]:
    """0, then the polls until the run is still open with a probability below TAIL."""
    first, period = strategy
    times = [0.0]
    while terminal_survival(m, times[-1]) > TAIL:
        i = len(times) - 1
        times.append(times[-1] + (first[i] if i < len(first) else period))
    return times


def calls_cdf(m: Model, strategy: Strategy) -> list[float]:
    """P(calls <= k), k = 0, 1, ...: the k-th poll sees the end iff T is not after it."""
    return [terminal_cdf(m, p) for p in poll_times(m, strategy)]


def calls_figures(m: Model, strategy: Strategy) -> Figures:
    """Calls N: mean = sum of P(N > k), second moment = sum of (2k + 1) P(N > k).

    The p95 is the least k with P(N <= k) >= 0.95; its standard error takes the mass at k for a
    density. `chance_of_p95` has the exact law of the sample's p95.
    """
    below = calls_cdf(m, strategy)
    mean = math.fsum(1 - f for f in below)
    square = math.fsum((2 * k + 1) * (1 - f) for k, f in enumerate(below))
    k = next(k for k, f in enumerate(below) if f >= 0.95)
    return {
        "calls.mean": Figure(mean, math.sqrt((square - mean**2) / POLL_N)),
        "calls.p95": Figure(float(k), quantile_se(0.95, POLL_N, below[k] - below[k - 1])),
    }


def late_cdf(m: Model, times: list[float], x: float) -> float:
    """P(late <= x): T lies at most x before the poll that ends its interval."""
    return math.fsum(
        terminal_survival(m, max(a, b - x)) - terminal_survival(m, b) for a, b in pairwise(times)
    )


def late_figures(m: Model, strategy: Strategy) -> Figures:
    """Late L = p_N - T, p_N the first poll not before T.

    Mean: E p_N = sum of (p_k+1 - p_k) P(T > p_k), less E T = poll/2 + E D. Second moment:
    (p_k - t)^2 against T's density, interval by interval. p95: from the closed cdf.
    """
    times = poll_times(m, strategy)
    noticed = math.fsum((b - a) * terminal_survival(m, a) for a, b in pairwise(times))
    mean = noticed - m.poll_s / 2 - duration_excess(m, 0.0)

    def square_before(b: float, t: float) -> float:
        return (b - t) ** 2 * terminal_density(m, t)

    square = math.fsum(integral(partial(square_before, b), a, b, 4) for a, b in pairwise(times))
    gap = max(b - a for a, b in pairwise(times))
    p95 = quantile(lambda x: late_cdf(m, times, x), 0.95, 0.0, gap)
    density = math.fsum(terminal_density(m, b - p95) for a, b in pairwise(times) if b - p95 > a)
    return {
        "late.mean": Figure(mean, math.sqrt((square - mean**2) / POLL_N)),
        "late.p95": Figure(p95, quantile_se(0.95, POLL_N, density)),
    }


def poll_strategies(m: Model) -> Figures:
    """Calls and lateness of every strategy, labelled by its text."""
    return {
        f"{name}[{label}]": figure
        for label, strategy in m.strategies.items()
        for name, figure in (calls_figures(m, strategy) | late_figures(m, strategy)).items()
    }


def chance_of_p95(m: Model, strategy: Strategy, n: int = POLL_N) -> dict[int, float]:
    """The law of the sample's p95 of calls by nearest rank, r = ceil(0.95 n).

    The r-th smallest is <= k iff at least r of n are: a binomial tail. Values rarer than 1e-4
    are left out.
    """
    rank = -(-95 * n // 100)

    def tail(p: float) -> float:
        if not 0 < p < 1:
            return float(p >= 1)
        logs = (
            math.lgamma(n + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * math.log(p)
            + (n - i) * math.log1p(-p)
            for i in range(rank, n + 1)
        )
        return math.fsum(math.exp(term) for term in logs)

    near = [f for f in calls_cdf(m, strategy) if f < 0.999]
    steps = pairwise(map(tail, near))
    return {k: b - a for k, (a, b) in enumerate(steps, 1) if b - a > 1e-4}


# cancel: a cancel at C ~ uniform(0, within) after queueing.


def pieces(m: Model, reach_s: float, shift_s: float) -> Iterator[tuple[float, float]]:
    """Stretches of the run's age a on which the cancel's integrands are smooth.

    One control interval after another, each only up to `reach` after its beginning, cut where the
    weight has its corner and where a + shift passes the least duration.
    """
    corners = (m.cancel_within_s - m.poll_s, m.least_s - shift_s)
    start = 0.0
    while start < m.cancel_within_s:
        end = min(start + reach_s, m.cancel_within_s)
        cuts = [start, *sorted(c for c in corners if start < c < end), end]
        yield from pairwise(cuts) if end > start else ()
        start += m.control_s


def aged(m: Model, shift_s: float, reach_s: float) -> float:
    """P(C hits a run of age a less than `reach` after its last control poll, and D > a + shift).

    Given D, (U, C) is uniform on poll x within; age a = C - U leaves U a stretch of
    min(poll, within - a).
    """

    def weight(a: float) -> float:
        room = min(m.poll_s, m.cancel_within_s - a)
        return room * duration_survival(m, a + shift_s)

    total = math.fsum(integral(weight, a, b, 4) for a, b in pieces(m, reach_s, shift_s))
    return total / m.poll_s / m.cancel_within_s


def took_survival(m: Model, x: float) -> float:
    """P(running at C, and terminal later than C + x).

    The flag is read r after C, at the next control poll (polls at start + control, + 2 control,
    ...), the engine stops `stop` later: time = min(r + stop, D - a). It exceeds x iff D > a + x
    and x < r + stop, that is: C fell less than control + stop - x after the last control poll.
    """
    return aged(m, x, min(m.control_s, m.control_s + m.stop_s - x))


def cancel(m: Model) -> Figures:
    """Counts of 2,000 by what C met; the time from cancel to terminal, given running; outcomes.

    Still queued: P(C < U) = poll / 2 / within. Running: U < C < T. The time's mean and second
    moment are integrals of its survival. Outcomes given running: `completed` if D ends before
    the flag is read; `cancelled.ended` if between flag and stop; `cancelled.stopped` otherwise.
    """
    queued = m.poll_s / 2 / m.cancel_within_s
    running = took_survival(m, 0.0)
    count = CANCEL_N * running
    longest = m.control_s + m.stop_s

    def above(x: float) -> float:
        return took_survival(m, x) / running

    stretches = ((0.0, m.stop_s), (m.stop_s, longest))
    mean = math.fsum(integral(above, a, b, 24) for a, b in stretches)
    square = math.fsum(integral(lambda x: 2 * x * above(x), a, b, 24) for a, b in stretches)
    p95 = quantile(lambda x: 1 - above(x), 0.95, 0.0, longest)
    density = (above(p95 - 1e-4) - above(p95 + 1e-4)) / 2e-4
    shares = {"queued": queued, "running": running, "done": 1 - queued - running}
    figures = {
        f"{name}.count": Figure(CANCEL_N * p, math.sqrt(CANCEL_N * p * (1 - p)))
        for name, p in shares.items()
    }
    figures["took.mean"] = Figure(mean, math.sqrt((square - mean**2) / count))
    figures["took.p95"] = Figure(p95, quantile_se(0.95, round(count), density))
    shortfall = 1e-3 / above(longest - 1e-3) / count  # the survival is linear near its end
    figures["took.max"] = Figure(longest, shortfall)
    return figures | outcomes(m, running, count)


def outcomes(m: Model, running: float, count: float) -> Figures:
    """The share of each outcome among the runs that C met running; `cancel` says which is which.

    Age a has its next control poll at r(a); P(D > a + r + s) is integrated for s = 0 and s = stop.
    """

    def outlives(extra: float) -> float:
        def weight(a: float) -> float:
            flag = (math.floor(a / m.control_s) + 1) * m.control_s
            room = min(m.poll_s, m.cancel_within_s - a)
            return room * duration_survival(m, flag + extra)

        parts = (integral(weight, a, b, 4) for a, b in pieces(m, m.control_s, 0.0))
        return math.fsum(parts) / m.poll_s / m.cancel_within_s / running

    flagged, stopped = outlives(0.0), outlives(m.stop_s)
    shares = {
        "completed": 1 - flagged,
        "cancelled.ended": flagged - stopped,
        "cancelled.stopped": stopped,
    }
    return {
        f"share.{name}": Figure(p, math.sqrt(p * (1 - p) / count)) for name, p in shares.items()
    }


# idempotency, offline, outbox: counting and lattice arithmetic.


def idempotency(m: Model) -> Figures:
    """Calls until each of the runs is answered: a negative binomial variable.

    Its mean is runs/(1 - q), its variance runs q/(1 - q)^2. With a new key every call queues a
    run; with the same key exactly `runs` are queued. The standard errors are those of the mean of
    three repetitions.
    """
    q = m.drop
    calls = Figure(m.runs / (1 - q), math.sqrt(m.runs * q / IDEMPOTENCY_N) / (1 - q))
    return {
        "calls.mean[new]": calls,
        "queued.mean[new]": calls,
        "calls.mean[same]": calls,
        "queued.mean[same]": Figure(float(m.runs)),
    }


def offline(m: Model) -> Figures:
    """Five fixed Graphs queued during an absence.

    The first start is uniform(0, poll) after the return. They run in one pass without a gap, so
    completions lie one Graph apart: 4 from first to last, 5 from the first start. One replication.
    """
    return {
        "first_start.mean": Figure(m.poll_s / 2, m.poll_s / math.sqrt(12 * OFFLINE_N)),
        "first_start.max": Figure(m.poll_s, uniform_max_se(m.poll_s, OFFLINE_N)),
        "completions.span": Figure(float(4 * m.graph_s)),
        "start_to_last": Figure(float(5 * m.graph_s)),
    }


def outbox(m: Model) -> Figures:
    """From start to delivery when the completion is lost once.

    The pass began on the tick of the start, lasts graph + time-out and skips the ticks it
    meets; the first tick after it flushes the outbox. A pass that ends on a tick is undecided.
    """
    poll = Fraction(m.poll_s)
    passes = (m.graph_s + m.timeout_s) / poll
    if passes.denominator == 1:
        raise ValueError("the pass ends exactly on a tick")
    return {"delivered[on]": Figure(float(math.ceil(passes) * poll))}


# result_size: what still fits.


def completion_chars(execution_id: str, result: str, tokens: int, cost: float) -> int:
    """UTF-16 units of JSON.stringify of a completion: what JavaScript's `.length` counts.

    Python's compact json with ensure_ascii off escapes what JSON.stringify escapes: the quote,
    the backslash and controls below U+0020.
    """
    body = {
        "execution_id": execution_id,
        "status": "completed",
        "result": result,
        "total_tokens": tokens,
        "reported_cost": cost,
    }
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-16-le")) // 2


ALPHABETS = {
    "ascii": ("a", 1),
    "japanese": ("\u3042", 1),
    "emoji": ("\U0001f642", 2),
    "quotes": ('"', 2),
    "control": ("\u0001", 6),
}


def result_size(m: Model, execution_id: str = "x" * 36, tokens: int = 1200) -> Figures:
    """The longest result of one repeated character: floor((limit - rest) / units a character).

    Characters are UTF-16 code units, as JavaScript counts. The rest is 85 of braces, names and
    commas, the id, and the digits of tokens and cost (0.01). Bytes are UTF-8 of the result itself,
    before JSON escapes it.
    """
    room = m.limit_chars - completion_chars(execution_id, "", tokens, 0.01)
    figures: Figures = {}
    for name, (character, units) in ALPHABETS.items():
        count = room // units
        figures[f"{name}.chars"] = Figure(float(count * len(character.encode("utf-16-le")) // 2))
        figures[f"{name}.bytes"] = Figure(float(count * len(character.encode())))
    return figures


# The whole table.

SCENARIOS: dict[str, Callable[[Model], Figures]] = {
    "pickup_wait": pickup_wait,
    "fan_out": fan_out,
    "poll_strategies": poll_strategies,
    "cancel": cancel,
    "idempotency": idempotency,
    "offline": offline,
    "outbox": outbox,
    "result_size": result_size,
}


def exact_figures(m: Model) -> Figures:
    """Every figure with its standard error; keys `scenario/metric.statistic[label]`."""
    return {
        f"{scenario}/{name}": figure
        for scenario, compute in SCENARIOS.items()
        for name, figure in compute(m).items()
    }


def exact_table() -> dict[str, float]:
    """Every exact value under the published parameters."""
    return {key: figure.value for key, figure in exact_figures(Model()).items()}


if __name__ == "__main__":
    for key, figure in exact_figures(Model()).items():
        sys.stdout.write(f"{key:55s}{figure.value:14.6g}  +/- {figure.se:.4g}\n")
