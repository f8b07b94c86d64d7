"""A figure against what was wanted: the dot, the interval, the limit."""

import math

import pytest
from msgspec.structs import replace

from scenarios.judge import Judgement
from scenarios.report.interval import Shown, draw, ends, is_timed, shown_of
from scenarios.results import ScenarioResult
from tests.scenarios.commandline import SMALL, result_of
from tests.scenarios.report.drawings import check, points, tree

FORMS = """
[[expect]]
that = "wait.mean[5s] within 2.5s +/- 1s"
[[expect]]
that = "wait.mean[5s] > 0.1s"
[[expect]]
that = "wait.mean[5s] < 0.5 * wait.mean[20s]"
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> ScenarioResult:
    return result_of(tmp_path_factory.mktemp("interval"), SMALL + FORMS)


def shown(one: ScenarioResult, text: str) -> Shown:
    expect, judgement = next(
        pair for pair in one.judgements if pair[0].expectation.text.startswith(text)
    )
    found = shown_of(one, expect, judgement)
    assert found is not None
    return found


def test_a_limit_accepts_one_side(one: ScenarioResult) -> None:
    found = shown(one, "wait.max <=")
    assert (found.accepted, found.wanted, found.timed) == ((-math.inf, 100.0), (100.0,), True)
    assert shown(one, "wait.mean[5s] >").accepted == (0.1, math.inf)


def test_a_band_accepts_what_lies_between(one: ScenarioResult) -> None:
    found = shown(one, "wait.mean[5s] within")
    assert found.accepted == (1.5, 3.5)
    assert found.low < found.here < found.high


def test_a_value_accepts_nothing_else(one: ScenarioResult) -> None:
    found = shown(one, "wait.count[5s] equals")
    assert (found.accepted, found.wanted, found.timed) == (None, (80.0,), False)
    assert not found.tells


def test_of_two_figures_the_difference_is_drawn(one: ScenarioResult) -> None:
    found = shown(one, "wait.mean[5s] <")
    small, large = (cell.samples["wait"].mean() for cell in one.cells)
    assert found.here == pytest.approx(small - 0.5 * large)
    assert found.low < found.here < found.high
    assert found.wanted == (0.0,)


def test_a_judgement_without_a_figure_has_no_drawing(one: ScenarioResult) -> None:
    expect, judgement = one.judgements[0]
    none = Judgement(
        expectation="", cell=judgement.cell, verdict="inconclusive", target="", detail=""
    )
    assert shown_of(one, expect, none) is None


@pytest.mark.parametrize("low", [2.0, -math.inf])
@pytest.mark.parametrize("high", [4.0, math.inf])
@pytest.mark.parametrize("accepted", [None, (-math.inf, 5.0), (1.0, math.inf), (1.0, 5.0)])
def test_drawings_keep_to_their_box(
    low: float, high: float, accepted: tuple[float, float] | None
) -> None:
    wanted = tuple(one for one in accepted or (5.0,) if math.isfinite(one))
    svg = draw(
        Shown(here=3.0, low=low, high=high, wanted=wanted, accepted=accepted, timed=True),
        "x < 5s", "pass",
    )  # fmt: skip
    check(svg)
    assert (tree(svg)[1].text or "").endswith("pass"), "the verdict in words"
    dot = next(part for part in tree(svg).iter() if part.tag.endswith("circle"))
    bars = sorted(x for x, y in points(svg) if y == 13.0)
    assert bars[0] <= float(dot.attrib["cx"]) <= bars[-1]


def test_all_in_one_place_is_drawn_too() -> None:
    for here in (0.0, 7.0):
        check(draw(Shown(here=here, low=here, high=here, wanted=(here,), accepted=None,
                         timed=False), "x", "pass"))  # fmt: skip


def test_what_rounds_to_the_wanted_value_stands_beside_it() -> None:
    svg = draw(Shown(here=3.4995, low=3.4995, high=3.4995, wanted=(3.5,), accepted=None,
                     timed=True), "x", "pass")  # fmt: skip
    dot = next(part for part in tree(svg).iter() if part.tag.endswith("circle"))
    wanted = next(part for part in tree(svg).iter() if part.get("class") == "v")
    assert abs(float(dot.attrib["cx"]) - float(wanted.attrib["x1"])) < 5


def test_rounding_is_no_interval(one: ScenarioResult) -> None:
    _, judgement = one.judgements[0]
    assert ends(replace(judgement, low=5 - 5e-9, high=5 + 5e-9)) is None
    assert ends(replace(judgement, low=4.9, high=5.1)) == (4.9, 5.1)
    assert ends(replace(judgement, low=None, high=None)) is None


def test_what_is_a_time(one: ScenarioResult) -> None:
    assert is_timed(one, "wait")
    assert not is_timed(one, "wait", "count")
    assert not is_timed(one, "late")
