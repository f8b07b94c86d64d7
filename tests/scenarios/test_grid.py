"""Tables in plain text."""

from hypothesis import given
from hypothesis import strategies as st

from scenarios.grid import Row, grid, is_figure, painted


def lines(head: list[str], rows: list[Row], width: int = 80, colored: bool = False) -> list[str]:
    return list(grid(head, rows, width, colored=colored))


def test_figures_stand_to_the_right_and_words_to_the_left() -> None:
    rows = [Row(("every 2s", "46.7")), Row(("hinted", "8"))]
    assert lines(["poll", "calls.mean"], rows) == [
        "poll      calls.mean",
        "every 2s        46.7",
        "hinted             8",
    ]


def test_words_wrap_where_they_are_too_wide_and_figures_never() -> None:
    words = "complete it as cancelled, and say so to whoever asks"
    found = lines(["said", "ours"], [Row((words, "123456.789"))], width=30)
    assert all(len(line) <= 30 for line in found)
    assert sum("123456.789" in line for line in found) == 1
    assert " ".join(line[:18].strip() for line in found[1:]) == words


@given(
    st.lists(
        st.tuples(
            st.text("abc ", max_size=40),
            st.decimals(0, 10**9, allow_nan=False, places=2),
            st.text("xyz ", max_size=60),
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(20, 120),
)
def test_no_figure_is_ever_cut(rows: list[tuple[str, object, str]], width: int) -> None:
    found = lines(["a", "b", "c"], [Row((a, str(b), c)) for a, b, c in rows], width)
    for _, figure, _ in rows:
        assert any(str(figure) in line.split() for line in found)


def test_a_note_stands_below_its_row() -> None:
    found = lines(["a", "b"], [Row(("one", "1"), {}, "a long note " * 8)], width=40)
    assert found[1] == "one  1"
    assert all(line.startswith("    ") for line in found[2:])
    assert max(len(line) for line in found) <= 40


def test_colours_do_not_move_anything() -> None:
    rows = [Row(("one", "1", "fail"), {2: "31"})]
    plain = lines(["a", "b", "verdict"], rows)
    colored = lines(["a", "b", "verdict"], rows, colored=True)
    assert colored[1] == plain[1].replace("fail", "\x1b[31mfail\x1b[0m").ljust(0)
    assert colored[0].count("\x1b[2m") == 3


def test_wide_characters_take_two_columns() -> None:
    found = lines(["a", "b"], [Row(("日本", "1")), Row(("abcd", "2"))])
    assert found[1:] == ["日本  1", "abcd  2"]


def test_what_a_figure_is() -> None:
    assert all(map(is_figure, ["1", "46.7", "2.009s", "-", "", "1e+06", "12%"]))
    assert not any(map(is_figure, ["every 2s", "runs=1", "nan", "a1", "2 s"]))


def test_paint_needs_colours() -> None:
    assert painted("a", "31", False) == "a"
    assert painted("", "31", True) == ""
    assert painted("a", "31", True) == "\x1b[31ma\x1b[0m"
