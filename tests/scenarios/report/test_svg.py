"""Drawings are well-formed, escaped, rounded, and files of their own."""

from hypothesis import given
from hypothesis import strategies as st

from scenarios.report.scale import Axis, Unit
from scenarios.report.svg import (
    coordinate,
    cut,
    drawing,
    element,
    foot,
    label,
    line,
    path,
    standalone,
    width_px,
)
from tests.scenarios.report.drawings import check, path_points, tree


@given(st.floats(-1e6, 1e6))
def test_coordinates_have_two_decimals(value: float) -> None:
    text = coordinate(value)
    assert abs(float(text) - value) <= 0.005 + 1e-9
    assert len(text.partition(".")[2]) <= 2
    assert text != "-0"


@given(st.text())
def test_any_text_is_only_text(text: str) -> None:
    parts = [label(1, 20, text), element("rect", x=1.0, id=text)]
    root = tree(drawing(10, 30, text or "n", text or "d", parts))
    assert [child.tag.rpartition("}")[2] for child in root] == [
        "style", "title", "desc", "text", "rect",
    ]  # fmt: skip


def test_names_of_attributes() -> None:
    assert element("g", class_="a", stroke_width=1.5) == '<g class="a" stroke-width="1.5"/>'


def test_a_path_says_only_what_changes() -> None:
    assert path([(0, 0), (5, 0), (5, 0), (5, 2.5), (7, 3)]) == "M0 0H5V2.5L7 3"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1))
def test_a_path_goes_through_its_points(wanted: list[tuple[int, int]]) -> None:
    points = [(float(x), float(y)) for x, y in wanted]
    distinct = [one for place, one in enumerate(points) if not place or points[place - 1] != one]
    assert path_points(path(points)) == distinct


@given(st.text(min_size=1), st.floats(10, 200))
def test_what_is_cut_fits(text: str, room: float) -> None:
    found = cut(text, room)
    assert width_px(found) <= room or found == "…"
    if width_px(text) <= room:
        assert found == text


@given(st.floats(0, 1e5), st.floats(1e-3, 1e5), st.integers(2, 8))
def test_no_two_numbers_of_an_axis_touch(low: float, span: float, most: int) -> None:
    axis = Axis(low, low + span, 20.0, 180.0, Unit("min", 1.0))
    parts = [line(20, 10, 180, 10, "a"), *foot(axis, 10.0, 200.0, most)]
    check(drawing(200, 40, "axis", "of nothing", parts))


def test_a_file_has_its_colours_and_its_namespace() -> None:
    svg = standalone(drawing(10, 10, "name", "words", [], "x"))
    root = tree(drawing(10, 10, "name", "words", [], "x"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in svg
    assert root.attrib["class"] == "plot x"
