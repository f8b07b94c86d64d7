"""The published model and the law of its times, in closed form: the ground of `exact_values.py`.

Layout: the model and its figures; quantiles and their standard errors; the law of a Graph's
duration and of the terminal time.

The model, in seconds. The agent queues at 0. The relay's first poll is U ~ uniform(0, poll); the
run starts in that instant. It lasts D = max(least, lognormal(median, sigma)), is reported when it
ends, and is terminal at T = U + D. Rounding to whole microseconds moves no figure by more than
1e-6 s, and two events fall on one instant with probability zero, so both are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

Strategy = tuple[tuple[float, ...], float]  # first delays, then one delay for ever

STRATEGIES: dict[str, Strategy] = {
    "every 2s": ((), 2.0),
    "every 5s": ((), 5.0),
    "every 15s": ((), 15.0),
    "every 30s": ((), 30.0),
    "backoff 2s x2 max 30s": ((2.0, 4.0, 8.0, 16.0), 30.0),
    "wait 20s then every 10s": ((20.0,), 10.0),
}


@dataclass(frozen=True)
class Model:
    """Every parameter that the published scenarios share; the defaults are the account's."""

    poll_s: float = 20.0
    median_s: float = 60.0
    sigma: float = 0.8
    least_s: float = 5.0
    control_s: float = 3.0
    stop_s: float = 0.5
    cancel_within_s: float = 40.0
    drop: float = 0.3
    runs: int = 200
    graph_s: Fraction = Fraction(25)
    timeout_s: Fraction = Fraction(10)
    limit_chars: int = 100_000
    strategies: dict[str, Strategy] = field(default_factory=lambda: STRATEGIES, hash=False)


@dataclass(frozen=True)
class Figure:
    """An exact value, and the standard error of its estimate from the published sample size.

    Zero: the same in every replication. The value of a maximum is the end of its support, its
    standard error the standard deviation of the sample's maximum, which falls short of it.
    """

    value: float
    se: float = 0.0


Figures = dict[str, Figure]


def quantile(cdf: Callable[[float], float], share: float, low: float, high: float) -> float:
    """Where a continuous cdf reaches `share`, by bisection to 1e-9."""
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle) < share else (low, middle)
    return (low + high) / 2


def quantile_se(share: float, n: int, density: float) -> float:
    """The large-sample standard error of a quantile: sqrt(p (1 - p) / n) / f(x_p)."""
    return math.sqrt(share * (1 - share) / n) / density


def uniform_max_se(width: float, n: int) -> float:
    """The standard deviation of the largest of n uniforms: width * sqrt(n / (n + 2)) / (n + 1)."""
    return width * math.sqrt(n / (n + 2)) / (n + 1)


def integral(f: Callable[[float], float], low: float, high: float, panels: int = 1) -> float:
    """Three-point Gauss-Legendre on equal panels: exact for polynomials of degree five."""
    half = (high - low) / panels / 2
    offset = half * math.sqrt(0.6)
    centres = [low + half * (2 * i + 1) for i in range(panels)]
    total = math.fsum(5 * f(c - offset) + 8 * f(c) + 5 * f(c + offset) for c in centres)
    return total * half / 9


# The law of the duration D and of the terminal time T.


def duration_survival(m: Model, x: float) -> float:
    """P(D > x): one below the least duration, above it the lognormal's tail.

    D has an atom at `least`, the mass that the lognormal has below it (0.00095).
    """
    if x < m.least_s:
        return 1.0
    return 0.5 * math.erfc(math.log(x / m.median_s) / m.sigma / math.sqrt(2))


def duration_excess(m: Model, x: float) -> float:
    """E[(D - x)+], the integral of P(D > y) from x to infinity, in closed form.

    Above `least` it is the lognormal's partial expectation (Black and Scholes' formula):
    mean * Phi(sigma - z) - x * Phi(-z), z = ln(x / median) / sigma. Below, the survival is one.
    """
    if x < m.least_s:
        return duration_excess(m, m.least_s) + m.least_s - x
    z = math.log(x / m.median_s) / m.sigma
    mean = m.median_s * math.exp(m.sigma**2 / 2)
    upper = 0.5 * math.erfc((z - m.sigma) / math.sqrt(2))
    return mean * upper - x * 0.5 * math.erfc(z / math.sqrt(2))


def terminal_survival(m: Model, t: float) -> float:
    """P(T > t) = the mean of P(D > t - u) over u in (0, poll): a difference of two excesses."""
    return (duration_excess(m, t - m.poll_s) - duration_excess(m, t)) / m.poll_s


def terminal_cdf(m: Model, t: float) -> float:
    """P(T <= t)."""
    return 1 - terminal_survival(m, t)


def terminal_density(m: Model, t: float) -> float:
    """The density of T: the mean of D's law over (t - poll, t)."""
    return (duration_survival(m, t - m.poll_s) - duration_survival(m, t)) / m.poll_s
