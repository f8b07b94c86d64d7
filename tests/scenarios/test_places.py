"""Places: on any document, in any style of writing it, each value is where its place says."""

import datetime as dt
import json
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.places import Keys, Lines, Scan

if sys.version_info >= (3, 15):
    import tomllib
else:
    import tomli as tomllib

keys = st.text("abc-_1", min_size=1, max_size=4) | st.text(max_size=4)
times = st.times() | st.dates() | st.datetimes() | st.datetimes(timezones=st.just(dt.UTC))
plain = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text()
texts = st.text("a \"'\\\n#]}=,[{\u65e5", max_size=8)


def nested(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Documents: tables in tables, arrays of anything, arrays of tables."""
    values = st.recursive(
        scalars | texts,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(keys, inner, max_size=3)
            | st.lists(st.dictionaries(keys, inner, max_size=2), min_size=1, max_size=3)
        ),
        max_leaves=12,
    )
    return st.dictionaries(keys, values, max_size=5)


class TomlWriter:
    """Writes a document as TOML, and leaves every choice of style to chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []

    def write(self, document: dict[str, Any]) -> str:
        """The whole text."""
        self.table(document, [])
        return "\n".join(self.lines) + self.pick("", "\n", "\n# end")

    def pick(self, *choices: str) -> str:
        """One of the choices."""
        return self.chance.choice(choices)

    def gap(self) -> str:
        """Space within a line."""
        return self.pick("", " ", "\t", "  ")

    def blank(self) -> str:
        """What may stand between the elements of arrays and inline tables."""
        return self.pick("", " ", "\n", "\n  ", ' # a "comment" ] } = ,\n', "\n\n")

    def key(self, key: str) -> str:
        """A key, bare where that is possible."""
        styles = [basic(key)]
        if re.fullmatch(r"[A-Za-z0-9_-]+", key):
            styles += [key, key, key]
        if "'" not in key and is_literal(key):
            styles.append(f"'{key}'")
        return self.pick(*styles)

    def value(self, value: object) -> str:
        """A value on the right of `=` or in an array."""
        if isinstance(value, dict):
            pairs = [self.pair(self.key(key), inner) for key, inner in value.items()]
            return self.enclosed("{", "}", pairs)
        if isinstance(value, list):
            return self.enclosed("[", "]", [self.value(element) for element in value])
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, dt.datetime):
            return value.isoformat(self.pick("T", " ", "t"))
        if isinstance(value, dt.date | dt.time):
            return value.isoformat()
        return self.text(value) if isinstance(value, str) else repr(value)

    def text(self, text: str) -> str:
        """One of TOML's four kinds of string."""
        styles = [basic(text), f'"""{self.pick("", chr(10))}{long_basic(text)}"""']
        if text.startswith("\n"):
            styles.pop()
        if "'" not in text and is_literal(text):
            styles.append(f"'{text}'")
        if "'''" not in text and is_literal(text.replace("\n", "")) and not text.startswith("\n"):
            styles.append(f"'''{text}'''" if len(text) - len(text.rstrip("'")) < 3 else basic(text))
        return self.pick(*styles)

    def enclosed(self, opening: str, closing: str, parts: list[str]) -> str:
        """The parts with commas, comments and line ends between."""
        spaced = [self.blank() + part + self.blank() for part in parts]
        comma = self.pick("", ",") if parts else ""
        return opening + ",".join(spaced) + comma + self.blank() + closing

    def pair(self, key: str, value: object) -> str:
        """`key = value`, or a dotted key if the value is a table of one."""
        if isinstance(value, dict) and len(value) == 1 and self.chance.random() < 0.5:
            ((inner_key, inner),) = value.items()
            return self.pair(f"{key}{self.gap()}.{self.gap()}{self.key(inner_key)}", inner)
        return f"{key}{self.gap()}={self.gap()}{self.value(value)}"

    def table(self, table: dict[str, Any], above: list[str]) -> None:
        """Pairs first; then the tables that get headers of their own."""
        later = []
        for key, value in table.items():
            is_array = isinstance(value, list) and value and isinstance(value[0], dict)
            if is_array and not all(isinstance(element, dict) for element in value):
                is_array = False
            if (is_array or isinstance(value, dict)) and self.chance.random() < 0.6:
                later.append((key, value))
            else:
                self.lines.append(self.gap() + self.pair(self.key(key), value))
                self.lines += [self.gap() + self.pick("", "# comment")] * self.chance.randint(0, 1)
        for key, value in later:
            for element in value if isinstance(value, list) else [value]:
                self.header([*above, key], element, is_array=isinstance(value, list))

    def header(self, path: list[str], table: dict[str, Any], *, is_array: bool) -> None:
        """`[a.b]` or `[[a.b]]` and what belongs to it; a header of tables alone may be left out."""
        is_needed = is_array or not table or not all(isinstance(v, dict) for v in table.values())
        at = len(self.lines)
        name = f"{self.gap()}.{self.gap()}".join(map(self.key, path))
        brackets = ("[[", "]]") if is_array else ("[", "]")
        self.lines.append(f"{brackets[0]}{self.gap()}{name}{self.gap()}{brackets[1]} # header")
        self.table(table, path)
        if not is_needed and self.lines[at + 1].startswith("[") and self.chance.random() < 0.5:
            del self.lines[at]


def basic(text: str) -> str:
    """A string in double quotes with only the escapes that JSON has too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def long_basic(text: str) -> str:
    """The inside of a string in three double quotes, with line ends and lone quotes as they are."""
    inside = basic(text)[1:-1].replace("\\\\", "\\u005c").replace("\\n", "\n")
    return inside if '"""' in text else inside.replace('\\"', '"')


def is_literal(text: str) -> bool:
    """Whether it can stand in single quotes."""
    return not re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text)


def walk(value: object, path: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """Every path in the document with its value, without the top."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk(inner, (*path, index))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(nested(plain | times), st.randoms(use_true_random=False))
def test_every_toml_value_is_at_its_place(document: dict[str, Any], chance: random.Random) -> None:
    text = TomlWriter(chance).write(document)
    assert tomllib.loads(text) == document, text
    spans = Scan(text, is_json=False).spans
    assert set(spans) == {path for path, _ in walk(document)}
    for path, value in walk(document):
        span = spans[path]
        key, written = text[span.key_start : span.key_end], text[span.start : span.end]
        if isinstance(path[-1], str):
            assert list(tomllib.loads(f"{key} = 0")) == [path[-1]]
            if span.start == span.key_start:  # a table that only longer names imply
                assert isinstance(value, dict)
                continue
        names = [name for name in path if isinstance(name, str)]
        if written.startswith("[") and "header" in text[span.end :].split("\n")[0]:
            assert header_names(written)[: len(names)] == names
        elif not (isinstance(value, dict) and "{" not in written):
            assert tomllib.loads(f"value = {written}")["value"] == value


def header_names(written: str) -> list[str]:
    """The names in `[a.b]` or `[[a.b]]`."""
    table: Any = tomllib.loads(written)
    names = []
    while table:
        ((name, table),) = table.items()
        names.append(name)
        table = table[0] if isinstance(table, list) else table
    return names


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    nested(plain | st.none()),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
    st.sampled_from([(", ", ": "), (",", ":"), (" ,\r\n", " :\n ")]),
)
def test_every_json_value_is_at_its_place(
    document: dict[str, Any],
    indent: int | str | None,
    ensure_ascii: bool,
    separators: tuple[str, str],
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ensure_ascii, separators=separators)
    spans = Scan(text, is_json=True).spans
    assert set(spans) == {path for path, _ in walk(document)}
    for path, value in walk(document):
        span = spans[path]
        assert json.loads(text[span.start : span.end]) == value
        if isinstance(path[-1], str):
            assert json.loads(text[span.key_start : span.key_end]) == path[-1]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(nested(plain), st.randoms(use_true_random=False), st.integers(0, 400), st.text(max_size=3))
def test_text_that_is_not_valid_ends_the_walk(
    document: dict[str, Any], chance: random.Random, at: int, noise: str
) -> None:
    text = TomlWriter(chance).write(document)
    for is_json in (False, True):
        Scan(text[:at] + noise, is_json=is_json)
        Scan(text[:at] + noise + text[at:], is_json=is_json)


TEXT = '''\
schema = 1
relay.poll = "20s" # dotted
[[agent]]
name = """
Ann"""
[[agent]]
rows = [1, { x = 2 },
  "three"]
[agent."very own"]
a . b = 1
'''


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("schema",), "schema", "1"),
        (("relay",), "relay", "relay"),
        (("relay", "poll"), "poll", '"20s"'),
        (("agent",), "agent", "[[agent]]"),
        (("agent", 1, "rows", 1, "x"), "x", "2"),
        (("agent", 1, "rows", 2), '"three"', '"three"'),
        (("agent", 1, "very own"), '"very own"', '[agent."very own"]'),
        (("agent", 1, "very own", "a", "b"), "b", "1"),
    ],
)
def test_what_counts_as_key_and_value(path: Keys, key: str, value: str) -> None:
    span = Scan(TEXT, is_json=False).spans[path]
    assert TEXT[span.key_start : span.key_end] == key
    assert TEXT[span.start : span.end] == value


def test_the_header_of_an_array_is_its_first_and_each_table_has_its_own() -> None:
    spans = Scan(TEXT, is_json=False).spans
    lines = Lines(TEXT)
    paths: list[Keys] = [("agent",), ("agent", 0), ("agent", 1)]
    assert [lines.place(*spans[path][2:])[0] for path in paths] == [3, 3, 6]


def test_places_count_from_one_and_end_with_their_line() -> None:
    lines = Lines("ab\n\u65e5 cd\ne")
    assert lines.place(0, 2) == (1, 1, 2)
    assert lines.place(5, 9) == (2, 3, 2)
    assert lines.place(8, 9) == (3, 1, 1)
    assert [lines.text(line) for line in (1, 2, 3)] == ["ab", "\u65e5 cd", "e"]


def test_what_is_missing_at_the_end_is_shown_after_the_last_text() -> None:
    problem = Lines("a = [1,\n\n\n").problem("x.toml", 10, 11, "more")
    assert (problem.line, problem.column, problem.source_line) == (1, 8, "a = [1,")


def test_repeated_keys_are_noted_with_both_places() -> None:
    scan = Scan('{"a": 1, "b": {"a": 2}, "a": 3}', is_json=True)
    ((path, first, again),) = scan.repeats
    assert (path, first.key_start, again.key_start) == (("a",), 1, 24)
