"""Reading a scenario file: every way in which a file can be wrong is a problem with a place."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.places import Keys
from scenarios.problems import Problem, ScenarioError
from scenarios.source import (
    NESTING_LIMIT,
    SIZE_LIMIT_BYTES,
    parse_source,
    read_source,
)


def problem_of(text: str, path: str = "x.toml") -> Problem:
    """The one problem of a text."""
    with pytest.raises(ScenarioError) as caught:
        parse_source(text, path)
    (problem,) = caught.value.problems
    return problem


def problem_of_file(path: Path | str) -> Problem:
    """The one problem of a file."""
    with pytest.raises(ScenarioError) as caught:
        read_source(path)
    (problem,) = caught.value.problems
    return problem


def test_a_file_is_read_with_its_data_and_places(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_bytes(b'\xef\xbb\xbfname = "x"\r\n[relay]\r\npoll = "20s"\r\n')
    source = read_source(path)
    assert source.path == str(path)
    assert source.data == {"name": "x", "relay": {"poll": "20s"}}
    assert source.text == 'name = "x"\n[relay]\npoll = "20s"\n'
    assert source.place(("name",), of="key") == (1, 1, 4)
    assert source.place(("relay", "poll")) == (3, 8, 5)


def test_toml_1_1_is_understood() -> None:
    assert parse_source('a = {\n  b = "\\x41",\n}', "x.toml").data == {"a": {"b": "A"}}


def test_what_is_not_in_the_file_has_the_closest_place_around_it() -> None:
    source = parse_source('schema = 1\n[relay]\npoll = "20s"\n', "x.toml")
    assert source.place(("relay", "duration")) == (2, 1, 7)
    assert source.place(("relay", "duration"), of="key") == (2, 2, 5)
    assert source.place(("relay", "poll", 3)) == (3, 8, 5)
    assert source.place(("agent", 0)) == (1, 1, 1)
    assert source.place(()) == (1, 1, 1)


def test_a_problem_takes_its_line_along() -> None:
    source = parse_source('[relay]\npol = "20s"\n', "x.toml")
    problem = source.problem(("relay", "pol"), "unknown key", of="key", cure="poll")
    assert problem == Problem(
        path="x.toml",
        line=2,
        column=1,
        length_chars=3,
        message="unknown key",
        cure="poll",
        source_line='pol = "20s"',
    )


def test_json_has_places_too(tmp_path: Path) -> None:
    path = tmp_path / "demo.JSON"
    path.write_text('{\n  "relay": {"poll": "20s"},\n  "rows": [1, 2]\n}')
    source = read_source(path)
    assert source.data == {"relay": {"poll": "20s"}, "rows": [1, 2]}
    assert source.place(("relay", "poll")) == (2, 21, 5)
    assert source.place(("relay", "poll"), of="key") == (2, 13, 6)
    assert source.place(("rows", 1)) == (3, 15, 1)
    assert source.place(("other",)) == (1, 1, 1)


def test_a_missing_file_has_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "poll_strategies.toml").touch()
    (tmp_path / "poll_strategy").mkdir()
    problem = problem_of_file(tmp_path / "poll-strategy.toml")
    assert problem.message == "there is no such file"
    assert problem.cure == f'did you mean "{tmp_path / "poll_strategies.toml"}"?'
    assert problem_of_file(tmp_path / "else.toml").cure is None


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    message = problem_of_file(tmp_path / "no" / "x.toml").message
    assert message.startswith("there is no folder")
    assert message.endswith('no"')


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert problem_of_file(tmp_path).message == "this is a directory, not a scenario file"


def test_permission_refused_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert problem_of_file("x.toml").message == "no permission to read this file"


def test_other_failures_keep_the_systems_reason() -> None:
    assert problem_of_file("x" * 5000).message == "this file can't be read: File name too long"
    assert "null byte" in problem_of_file("a\0b").message


def test_a_file_of_the_largest_size_is_read_and_no_larger(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"#" * SIZE_LIMIT_BYTES)
    assert read_source(path).data == {}
    path.write_bytes(b"#" * (SIZE_LIMIT_BYTES + 1))
    assert problem_of_file(path).message == "this file is larger than 1 MiB, so it is no scenario"


def test_the_byte_that_is_not_utf8_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b'\xef\xbb\xbfa = 1\nb = "\xc3\xa9 \xe9"\n')
    problem = problem_of_file(path)
    assert (problem.line, problem.column) == (2, 8)
    assert problem.message == "the byte 0xe9 is not UTF-8"
    assert problem.source_line == 'b = "\u00e9 \ufffd"'


@pytest.mark.parametrize(
    ("text", "place", "message", "cure"),
    [
        ("poll = ", "1:7", "a value is expected here", None),
        ("a = [1,\n\n", "1:8", "a value is expected here", None),
        ("poll = 20s # x", "1:8", '"20s" is not a value', 'text needs quotes: "20s"'),
        ("poll = every 2s#", "1:8", '"every 2s" is not a value', 'text needs quotes: "every 2s"'),
        ("on = True", "1:6", '"True" is not a value', "did you mean true?"),
        ("on = fasle", "1:6", '"fasle" is not a value', "did you mean false?"),
        ("a = 007", "1:5", '"007" is not a value', "a number has no zero in front"),
        ("a = 1, # x", "1:6", "the line should have ended here", "one key and value a line"),
        ('a = "x" b = 2', "1:9", "the line should have ended here", "one key and value a line"),
        ('a = "x\nb = 1', "1:7", "this string is not closed in its line", None),
        ('a = """x\n', "1:9", "the file ends inside this string", None),
        ("a = '''x\n", "1:9", "the file ends inside this string", None),
        ('a = "C:\\qux"', "1:8", 'a string has no escape "\\q"', "write \\\\ for a backslash"),
        ("\u00e9 = 1", "1:1", "this is neither a key", "needs quotes"),
        ('{"a": 1}', "1:1", "this is neither a key", "needs a name that ends in .json"),
        ("poll: 20", "1:5", 'there is no "=" after this key', None),
        ("[relay\n", "1:7", 'there is no "]"', None),
        ("a = [1 2]", "1:8", 'this array needs "," or "]" here', None),
        ("a = {b = 1", "1:11", 'this inline table needs "," or "}" here', None),
        ("a = 2026-02-31", "1:5", "there is no such date or time", None),
    ],
)
def test_syntax_errors_of_toml(text: str, place: str, message: str, cure: str | None) -> None:
    problem = problem_of(text)
    assert problem.place == f"x.toml:{place}"
    assert message in problem.message
    assert (problem.cure is None) == (cure is None)
    assert (cure or "") in (problem.cure or "")


@pytest.mark.parametrize(
    ("text", "place", "message", "cure"),
    [
        ("a = 1\n\n a = 2", "3:2", 'the key "a" is given twice', "already given in line 1"),
        ("a.b = 1\na = 2", "2:1", 'the key "a" is given twice', "already given in line 1"),
        ("a = {b=1, b=2}", "1:11", 'the key "b" is given twice', "already given in line 1"),
        ("[a]\n[a]", "2:2", 'the key "a" is given twice', "write [[a]] above each"),
        ("[a]\n[[a]]", "2:3", 'the key "a" is given twice', "write [[a]] above each"),
        ("a = 1\n[a.b]", "2:4", '"b" can\'t be added to "a"', '"a" is complete'),
        ("a = {}\na.b = 1", "2:3", '"b" can\'t be added to "a"', '"a" is complete'),
        ("[[a]]\nb=1\n[[a]]\nb=2\nb=3", "5:1", 'the key "b" is given twice', "in line 4"),
    ],
)
def test_keys_given_twice_in_toml(text: str, place: str, message: str, cure: str) -> None:
    problem = problem_of(text)
    assert problem.place == f"x.toml:{place}"
    assert problem.message == message
    assert cure in (problem.cure or "")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "expected value"),
        ('{"a": }', "1:7", "expected value"),
        ('{"a": 1\n "b": 2}', "2:2", "expected ',' delimiter"),
        ('{"a": "x', "1:7", "unterminated string starting"),
        ("[1]", "1:1", "a scenario in JSON must be one object: {...}"),
        ('{"a": NaN}', "1:7", "NaN is not a value of JSON"),
        ('{"a": "\\ud800"}', "1:7", "this string has half of a surrogate pair"),
        ('{"\\udc00": 1}', "1:2", "this string has half of a surrogate pair"),
        ('{"a": {"x": 1}, "a": {"x": 2}}', "1:17", 'the key "a" is given twice'),
    ],
)
def test_errors_of_json(text: str, place: str, message: str) -> None:
    problem = problem_of(text, "x.json")
    assert problem.place == f"x.json:{place}"
    assert message in problem.message


def test_json_names_every_key_given_twice() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_source('{"a": 1, "a": 2, "b": 1,\n "b": 2}', "x.json")
    assert [problem.place for problem in caught.value.problems] == ["x.json:1:10", "x.json:2:2"]
    assert caught.value.problems[1].cure == "it is already given in line 1"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a = " + "[" * (NESTING_LIMIT + 1) + "]" * (NESTING_LIMIT + 1), "x.toml"),
        ("a = " + "[" * 9999, "x.toml"),
        (".".join("a" * 9999) + " = 1", "x.toml"),
        ('{"a": ' * (NESTING_LIMIT + 2) + "1" + "}" * (NESTING_LIMIT + 2), "x.json"),
        ('{"a":' + "[" * 99999 + "]" * 99999 + "}", "x.json"),
    ],
)
def test_deep_nesting_is_refused(text: str, path: str) -> None:
    problem = problem_of(text, path)
    assert problem.message == "this file nests tables or arrays more than 64 levels deep"


def test_the_deepest_nesting_is_read_with_its_places() -> None:
    text = "a = " + "[" * NESTING_LIMIT + "]" * NESTING_LIMIT
    path: Keys = ("a", *[0] * (NESTING_LIMIT - 1))
    assert parse_source(text, "x.toml").place(path) == (1, 4 + NESTING_LIMIT, 2)


@pytest.mark.parametrize(("text", "path"), [("a = %s", "x.toml"), ('{"a": %s}', "x.json")])
def test_an_integer_of_too_many_digits(text: str, path: str) -> None:
    problem = problem_of(text % ("9" * 5000), path)
    assert problem.message == "an integer in this file has too many digits"


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text("a=1\"'[]{},.\n#\\ 2s:é", max_size=30).map(str.encode))
def test_no_bytes_end_in_a_traceback(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for path in ("x.toml", "x.json"):
        with contextlib.suppress(ScenarioError):
            assert parse_source(text, path).place(("a", 0))
