"""Distributions: exact texts, one uniform number a draw, the right shape, errors with the cure."""

import copy
import math
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.chance import FAMILIES, Counts, Distribution, Durations, Numbers, Sizes
from transports.units import DURATION_LIMIT_US

CANONICAL = [
    "25s",
    "0s",
    "uniform(0s, 40s)",
    "exponential(mean=10s)",
    "exponential(mean=10s, min=1s, max=1m)",
    "lognormal(median=1m, sigma=0.8, min=5s)",
    "normal(mean=1m, sd=5s)",
    "choice(1s, 5s, 9s)",
    "choice(1s, 1s, 9s)",
    "triangular(5s, 20s, 1m)",
    "pareto(scale=1s, shape=1.5, max=1h)",
    "weibull(scale=10s, shape=2)",
]


def parse(text: str, unit: str = "duration") -> Distribution:
    """Read a distribution of some unit."""
    classes = {"duration": Durations, "number": Numbers, "count": Counts, "size": Sizes}
    return classes[unit].parse(text)


class Fixed:
    """A stream of given numbers that counts what was taken."""

    def __init__(self, *numbers: float) -> None:
        self.numbers: Iterator[float] = iter(numbers)
        self.taken = 0

    def random(self) -> float:
        self.taken += 1
        return next(self.numbers)


@pytest.mark.parametrize("text", CANONICAL)
def test_a_canonical_text_survives(text: str) -> None:
    distribution = Durations.parse(text)
    assert str(distribution) == text
    assert Durations.parse(text) == distribution
    assert hash(Durations.parse(text)) == hash(distribution)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("lognormal( sigma = 0.80, median = 60s )", "lognormal(median=1m, sigma=0.8)"),
        ("lognormal(60s, 0.8)", "lognormal(median=1m, sigma=0.8)"),
        ("uniform(high=90s, low=0s)", "uniform(0s, 1m30s)"),
        ("choice(1000ms)", "choice(1s)"),
    ],
)
def test_other_texts_become_canonical(text: str, canonical: str) -> None:
    assert str(Durations.parse(text)) == canonical


@pytest.mark.parametrize("text", CANONICAL)
@pytest.mark.parametrize("u", [0.0, 1e-9, 0.5, 1.0 - 2.0**-53])
def test_a_draw_takes_one_number_and_is_its_quantile(text: str, u: float) -> None:
    distribution = Durations.parse(text)
    stream = Fixed(u)
    drawn = distribution.draw(stream)
    assert stream.taken == 1
    assert repr(drawn).isdigit()
    low, high = distribution.support
    assert low <= drawn <= high
    if u > 0:
        assert distribution.quantile(u) == drawn


@pytest.mark.parametrize("text", [text for text in CANONICAL if not text.startswith("choice")])
@given(u=st.floats(0, 1), w=st.floats(0, 1))
def test_quantiles_rise(text: str, u: float, w: float) -> None:
    distribution = Durations.parse(text)
    assert distribution.quantile(min(u, w)) <= distribution.quantile(max(u, w))


@pytest.mark.parametrize("text", CANONICAL)
def test_it_pickles_and_copies(text: str) -> None:
    distribution = Durations.parse(text)
    for twin in (pickle.loads(pickle.dumps(distribution)), copy.deepcopy(distribution)):  # noqa: S301  our own bytes
        assert twin == distribution
        assert twin.draw(Fixed(0.3)) == distribution.draw(Fixed(0.3))


@pytest.mark.parametrize(
    ("text", "cdf"),
    [
        ("uniform(2, 6)", lambda x: (x - 2) / 4),
        ("exponential(mean=3)", lambda x: 1 - math.exp(-x / 3)),
        ("normal(mean=1, sd=2)", lambda x: math.erfc((1 - x) / 2 / math.sqrt(2)) / 2),
        ("lognormal(median=2, sigma=0.5)", lambda x: math.erfc(-math.log(x / 2) * 2**0.5) / 2),
        ("triangular(0, 1, 4)", lambda x: x * x / 4 if x < 1 else 1 - (4 - x) ** 2 / 12),
        ("pareto(scale=2, shape=3)", lambda x: 1 - (2 / x) ** 3),
        ("weibull(scale=2, shape=3)", lambda x: 1 - math.exp(-((x / 2) ** 3))),
    ],
)
@pytest.mark.parametrize("u", [0.01, 0.25, 0.5, 0.9, 0.999])
def test_the_quantile_inverts_the_textbook(
    text: str, cdf: Callable[[float], float], u: float
) -> None:
    assert cdf(Numbers.parse(text).quantile(u)) == pytest.approx(u, abs=1e-9)


def test_the_published_run_time_is_drawn_to_the_microsecond() -> None:
    duration = Durations.parse("lognormal(median=60s, sigma=0.8, min=5s)")
    stream = Random(1)
    draws = [duration.draw(stream) for _ in range(4000)]
    assert sorted(draws)[2000] == pytest.approx(60e6, rel=0.06)
    assert min(draws) >= 5_000_000
    assert duration.quantile(0.5) == 60_000_000
    assert duration.support == (5_000_000, DURATION_LIMIT_US)


def test_min_and_max_clamp_and_do_not_truncate() -> None:
    clamped = Durations.parse("exponential(mean=10s, min=5s, max=20s)")
    assert list(clamped.support) == [5_000_000, 20_000_000]
    assert clamped.quantile(1 - math.exp(-0.4)) == 5_000_000
    assert clamped.quantile(1 - math.exp(-2.1)) == 20_000_000
    assert clamped.quantile(1 - math.exp(-1)) == 10_000_000
    assert Durations.parse("exponential(mean=10s, min=5s)").quantile(0.01) == 5_000_000
    assert Durations.parse("exponential(mean=10s, max=20s)").quantile(0.99) == 20_000_000


def test_durations_never_go_below_zero_but_numbers_do() -> None:
    assert Durations.parse("normal(mean=1s, sd=5s)").quantile(0.01) == 0
    assert Numbers.parse("normal(mean=1, sd=5)").quantile(0.01) < -10
    assert Numbers.parse("normal(mean=1, sd=5)").support == (-math.inf, math.inf)


def test_whole_units_are_rounded_half_up() -> None:
    assert Durations.parse("uniform(0us, 1us)").draw(Fixed(0.5)) == 1
    assert Counts.parse("uniform(0, 3)").draw(Fixed(0.49)) == 1
    assert Counts.parse("uniform(0, 3)").draw(Fixed(0.5)) == 2
    assert Numbers.parse("uniform(0, 3)").draw(Fixed(0.5)) == 1.5


def test_a_choice_is_even_and_counts_repeats() -> None:
    choice = Durations.parse("choice(1s, 1s, 9s)")
    assert [choice.draw(Fixed(n / 6)) // 1_000_000 for n in range(6)] == [1, 1, 1, 1, 9, 9]


def test_a_bare_number_is_a_constant() -> None:
    assert Numbers.parse(0.5).constant == 0.5
    assert Numbers.parse(5) == Numbers.parse("5") == Numbers.parse("5.0")
    assert repr(Counts.parse(5).draw(Fixed(0.1))) == "5"
    assert Durations.parse("25s").constant == 25_000_000
    assert Durations.parse("uniform(1s, 1s)").constant == 1_000_000
    assert Durations.parse("uniform(1s, 2s)").constant is None


def test_classes_differ() -> None:
    assert Counts.parse("5") != Numbers.parse("5")
    assert Numbers.parse("5") != "5"
    assert repr(Numbers.parse("5")) == "Numbers('5')"


@pytest.mark.parametrize(
    ("unit", "text", "kind"),
    [
        ("duration", "20s", Durations),
        ("number", "20", Numbers),
        ("count", "20", Counts),
        ("size", "uniform(1KiB, 100KiB)", Sizes),
    ],
)
def test_the_unit_names_the_class(unit: str, text: str, kind: type[Distribution]) -> None:
    distribution = parse(text, unit)
    assert type(distribution) is kind
    assert str(distribution) == text


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("20", 'write "20s"'),
        ("lognormall(median=1s)", 'did you mean "lognormal"?'),
        ("zipf(1s)", "there are uniform, triangular"),
        ("lognormal(median=60s, sgma=0.8)", 'did you mean "sigma"?'),
        ("lognormal(median=60s)", "needs sigma"),
        ("lognormal(median=60, sigma=0.8)", 'write "60s"'),
        ("lognormal(median=60s, sigma=0.8s)", "write one without a unit"),
        ("lognormal(median=60s, median=6s, sigma=1)", '"median" twice'),
        ("lognormal(median=60s, sigma=0.8", "is not a distribution"),
        ("uniform(0s)", 'needs high; an example is "uniform(0s, 40s)"'),
        ("uniform(0s, 1s, 2s)", 'no place for "2s"'),
        ("uniform(2s, 1s)", "low <= high"),
        ("uniform(0s, 1s, max=1s)", 'no parameter "max"'),
        ("triangular(1s, 9s, 5s)", "low <= mode <= high"),
        ("exponential(mean=0s)", "mean > 0"),
        ("exponential(mean=1s, min=9s, max=8s)", "min <= max"),
        ("pareto(scale=1s, shape=0)", "shape > 0"),
        ("pareto(scale=1s, shape=0.001)", "spreads too far"),
        ("lognormal(median=1s, sigma=1000)", "spreads too far"),
        ("weibull(scale=1s, shape=nan)", "out of range"),
        ("weibull(scale=1s, shape=1e-200)", "out of range"),
        ("choice()", "1 to 1000 values"),
        ("exponential", 'write one as in "exponential(mean=10s)"'),
        ("", "is not a distribution"),
    ],
)
def test_a_wrong_distribution_says_the_cure(text: str, cure: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        Durations.parse(text)
    assert cure in str(caught.value)


@pytest.mark.parametrize("text", ["5.5", "-1", 5.5])
def test_a_constant_count_is_whole(text: str | float) -> None:
    with pytest.raises(ValueError, match="is not a count: write a whole number"):
        Counts.parse(text)


def test_a_quantile_needs_a_probability() -> None:
    with pytest.raises(ValueError, match="is not a probability"):
        Durations.parse("20s").quantile(1.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_its_example(family: str) -> None:
    with pytest.raises(ValueError, match=rf'an example is "{family}\(') as caught:
        Durations.parse(f"{family}(nonsense=1s)" if family != "choice" else "choice()")
    example = str(caught.value).split('"')[-2]
    assert Durations.parse(example).draw(Fixed(0.5)) > 0


def test_the_page_of_languages_tells_the_truth() -> None:
    page = (Path(__file__).parents[2] / "docs" / "languages.md").read_text(encoding="utf-8")
    section = page.partition("## Distributions")[2].partition("## Poll plans")[0]
    texts = re.findall(r"^\| `(.*?)`", section, re.MULTILINE)
    assert [str(Durations.parse(text)) for text in texts] == texts
    assert {text.partition("(")[0] for text in texts} == {"25s", *FAMILIES}
