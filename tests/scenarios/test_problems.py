"""Problems: the rendered text, the caret under the right characters, and did-you-mean."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scenarios.problems import (
    ANSI,
    SHOWN_LIMIT,
    WIDTH_COLUMNS,
    Problem,
    ScenarioError,
    listed,
    printable,
    quote,
    suggest,
)


def a_problem(
    source_line: str, column: int, length_chars: int = 1, cure: str | None = None
) -> Problem:
    """A problem in line 7 of demo.toml, with a message that doesn't matter."""
    return Problem(
        path="demo.toml",
        line=7,
        column=column,
        length_chars=length_chars,
        source_line=source_line,
        message="unknown key",
        cure=cure,
    )


def under_caret(rendered: str) -> str:
    """The characters of the excerpt that stand above the carets, by terminal column."""
    _, line, carets, *_ = rendered.split("\n")
    first, end = carets.index("^"), carets.rindex("^") + 1
    columns = []
    for char in line:
        if unicodedata.combining(char):
            continue
        columns += [char] * (2 if unicodedata.east_asian_width(char) in "WF" else 1)
    columns += [" "] * (end - len(columns))
    return "".join(columns[first:end])


def test_one_problem_reads_like_a_compiler_message() -> None:
    problem = a_problem('pol = "20s"', 1, 3, cure='did you mean "poll"?')
    assert problem.render() == (
        'demo.toml:7:1: unknown key\n  7 | pol = "20s"\n    | ^^^\nhelp: did you mean "poll"?'
    )


def test_a_problem_of_the_whole_file_has_no_excerpt() -> None:
    assert Problem(path="x.toml", message="no such file").render() == "x.toml: no such file"


def test_colours_come_only_from_the_style() -> None:
    problem = a_problem("pol = 1", 1, 3, cure="poll")
    assert "\x1b" not in problem.render()
    coloured = problem.render(style=ANSI)
    assert "\x1b[1;31m^^^\x1b[0m" in coloured
    assert "\x1b[36mhelp: poll\x1b[0m" in coloured


def test_a_long_cure_is_wrapped_and_indented() -> None:
    rendered = a_problem("a", 1, cure="known keys: " + ", ".join(["retention"] * 20)).render()
    wrapped = rendered.split("\n")[3:]
    assert len(wrapped) > 1
    assert all(len(line) <= WIDTH_COLUMNS for line in wrapped)
    assert all(line.startswith(" " * 6) for line in wrapped[1:])


def test_tabs_become_spaces_and_the_caret_follows() -> None:
    assert a_problem("\ta\t= x", 6).render().split("\n")[1:] == [
        "  7 |     a   = x",
        "    |           ^",
    ]


def test_wide_characters_take_two_columns() -> None:
    rendered = a_problem('名前 = "日本" # x', 6, 4).render()
    assert rendered.split("\n")[2] == "    |        ^^^^^^"


def test_combining_characters_take_no_column() -> None:
    assert a_problem("e\u0301 = x", 6).render().split("\n")[2] == "    |     ^"


def test_a_place_after_the_end_of_the_line_is_shown_there() -> None:
    assert a_problem("poll = ", 8).render().split("\n")[1:] == ["  7 | poll =", "    |        ^"]


def test_a_long_line_is_cut_on_both_sides_of_the_caret() -> None:
    line = "x" * 300 + "HERE" + "y" * 300
    rendered = a_problem(line, 301, 4).render()
    assert under_caret(rendered) == "HERE"
    _, shown, _ = rendered.split("\n")
    assert len(shown) == WIDTH_COLUMNS
    assert shown.startswith("  7 | ...x")
    assert shown.endswith("y...")


def test_a_long_line_keeps_its_beginning_when_that_has_the_place() -> None:
    shown = a_problem("key = " + "v" * 300, 1, 3).render().split("\n")[1]
    assert shown.startswith("  7 | key = v")
    assert shown.endswith("v...")


@pytest.mark.parametrize("column", [1, 500_000, 1_000_000])
def test_a_line_of_a_mebibyte_is_cut_too(column: int) -> None:
    line = "x" * (column - 1) + "HERE" + "y" * (1_000_000 - column)
    assert under_caret(a_problem(line, column, 4).render()) == "HERE"


@settings(deadline=None)
@given(
    before=st.text("ab \u65e5", max_size=200),
    after=st.text("cd \u65e5", max_size=200),
    width_columns=st.integers(30, 100),
)
@example(before="a" * 70, after="", width_columns=80)
def test_the_caret_is_always_under_the_place(before: str, after: str, width_columns: int) -> None:
    problem = a_problem(before + "HERE" + after, len(before) + 1, 4)
    rendered = problem.render(width_columns=width_columns)
    assert under_caret(rendered) == "HERE"
    _, *excerpt = rendered.split("\n")
    for line in excerpt:
        wide = sum(unicodedata.east_asian_width(char) in "WF" for char in line)
        assert len(line) + wide <= width_columns


@settings(deadline=None)
@given(st.text(max_size=60), st.integers(1, 80), st.integers(1, 80))
def test_no_line_can_break_the_rendering(line: str, column: int, length_chars: int) -> None:
    rendered = a_problem(line, column, length_chars).render()
    assert len(rendered.split("\n")) == 3
    assert "\x1b" not in rendered
    rendered.encode()


def test_control_and_direction_characters_are_made_visible() -> None:
    assert printable("a\x1b[31m\x7f\x85\u202e\ud800b\n") == "a␛[31m␡\ufffd\ufffd\ufffdb␊"


def test_an_error_holds_all_problems_by_place() -> None:
    late, early = a_problem("b", 2), a_problem("a", 1)
    whole = Problem(path="demo.toml", message="first of all")
    error = ScenarioError([late, early, whole])
    assert error.problems == (whole, early, late)
    assert str(error) == "\n\n".join(p.render() for p in (whole, early, late))


def test_thousands_of_problems_are_not_all_shown() -> None:
    error = ScenarioError(a_problem("a", 1) for _ in range(SHOWN_LIMIT + 7))
    assert len(error.problems) == SHOWN_LIMIT + 7
    assert str(error).count("unknown key") == SHOWN_LIMIT
    assert str(error).endswith("\n\nand 7 more problems")


@pytest.mark.parametrize(
    ("word", "candidates", "expected"),
    [
        ("pol", ["seed", "poll"], "poll"),
        ("Poll", ["poll"], "poll"),
        ("polls", ["pool", "poll"], "poll"),
        ("metric", ["matrix", "metrics"], "metrics"),
        ("querys", ["queries"], "queries"),
        ("queries", ["query"], "query"),
        ("form", ["to", "from"], "from"),
        ("ot", ["at", "to"], "to"),
        ("sed", ["seed"], "seed"),
        ("runLimit", ["run-limit", "run"], "run-limit"),
        ("dur", ["every", "duration"], "duration"),
        ("agent.pol", ["agent.name", "agent.poll"], "agent.poll"),
        ("agent.x", ["agent.poll"], None),
        ("colour", ["poll", "at"], None),
        ("x", ["at", "to"], None),
        ("", ["at"], None),
        ("poll", [], None),
        ("x" * 5000, ["x" * 4999], None),
    ],
)
def test_suggestions(word: str, candidates: list[str], expected: str | None) -> None:
    assert suggest(word, candidates) == expected


@settings(deadline=None)
@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_a_suggestion_is_a_candidate_and_an_exact_one_wins(word: str, others: list[str]) -> None:
    assert suggest(word, others) in [None, *others]
    if word:
        assert suggest(word, [*others, word]) == word


def test_quoting_shortens_in_the_middle() -> None:
    assert quote("poll") == '"poll"'
    assert quote("a" * 50 + "b" * 50, limit_chars=11) == '"aaaa...bbbb"'


def test_lists_of_words() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a or b"
    assert listed(["a", "b", "c"], last="and") == "a, b and c"
