"""Decoding: all mistakes at once, each at its own place, in plain words."""

import enum
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.polls import PollPlan
from scenarios.decode import KEYS_LISTED_LIMIT, Decoder
from scenarios.problems import ScenarioError
from scenarios.source import parse_source
from transports.units import Duration, Size

Count = Annotated[int, msgspec.Meta(ge=1)]


class Colour(enum.Enum):
    """For fields of an enumeration."""

    RED = "red"
    GREEN = "green"


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    """A table inside a table."""

    x: int
    y: str = ""


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """A field of each type that scenario files use."""

    poll_us: Duration = msgspec.field(name="poll", default=Duration(20_000_000))
    plan: PollPlan | None = None
    size: Size | None = None
    count: Count = 1
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    odd: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.5
    even: Annotated[int, msgspec.Meta(multiple_of=2)] = 2
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=5)] = "x"
    slug: Annotated[str, msgspec.Meta(pattern="^[a-z]+$")] = "a"
    tag: Annotated[
        str, msgspec.Meta(pattern="^[a-z]+$", description="small letters without spaces")
    ] = "a"
    on: bool = False
    profile: Literal["published", "recommended"] = "published"
    level: Literal[1, 2] = 1
    colour: Colour = Colour.RED
    rows: tuple[str, ...] = ()
    some: Annotated[tuple[int, ...], msgspec.Meta(min_length=1, max_length=2)] = (1,)
    pair: tuple[int, str] = (1, "a")
    numbers: list[Count] = []
    until: str | tuple[str, ...] = "done"
    limit: Duration | Literal["never"] = "never"
    mixed: int | str = 1
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    named: Mapping[str, Inner] = {}
    words: dict[Literal["left", "right"], int] = {}


class Strict(msgspec.Struct, frozen=True, kw_only=True):
    """Required keys, and a check of the whole."""

    low: int
    high: int
    wait_us: Duration = msgspec.field(name="wait", default=Duration(0))

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.low > self.high:
            raise ValueError(f"low is {self.low}, which is more than high, {self.high}")


def decode(text: str, kind: type[Any] = Thing, **options: Any) -> tuple[Any, list[str]]:
    """The table `[t]` of a text as a Struct, and its problems: `line:column message | cure`."""
    source = parse_source("[t]\n" + text, "x.toml")
    decoder = Decoder(source)
    result = decoder.struct(("t",), source.data["t"], kind, **options)
    problems = []
    for problem in decoder.problems:
        cure = "" if problem.cure is None else f" | {problem.cure}"
        problems.append(f"{problem.line}:{problem.column} {problem.message}{cure}")
    return result, problems


def test_good_values_are_converted() -> None:
    result, problems = decode(
        'poll = "2s"\nplan = "every 2s"\nrows = ["a", "b"]\nshare = 1\npair = [2, "b"]\n'
        'inner = { x = 1 }\ninners = [{ x = 2, y = "z" }]\nwords = { left = 1 }\ncolour = "green"\n'
        "named.one = { x = 3 }\nnumbers = [1]\nsome = [1, 2]\n"
    )
    assert problems == []
    assert result.poll_us == Duration(2_000_000)
    assert isinstance(result.plan, PollPlan)
    assert result.rows == ("a", "b")
    assert (result.share, type(result.share)) == (1.0, float)
    assert (result.pair, result.numbers, result.some) == ((2, "b"), [1], (1, 2))
    assert (result.inner, result.inners) == (Inner(x=1), (Inner(x=2, y="z"),))
    assert (result.words, result.named) == ({"left": 1}, {"one": Inner(x=3)})
    assert result.colour is Colour.GREEN
    assert result.profile == "published"


def test_all_problems_are_found_at_once() -> None:
    result, problems = decode('pol = "2s"\ncount = 0\nrows = ["a", 2, true]\ninner = { y = 1 }\n')
    assert result is None
    assert problems == [
        '2:1 unknown key "pol" in [t] | did you mean "poll"?',
        '3:9 "count" must be at least 1',
        '4:14 element 2 of "rows" must be a string, not an integer | put it in quotes: "2"',
        '4:17 element 3 of "rows" must be a string, not a boolean | put it in quotes: "true"',
        '5:9 [t.inner] needs the key "x" | it takes a whole number, as in 5',
        '5:15 "y" must be a string, not an integer | put it in quotes: "1"',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('count = "a"', '2:9 "count" must be an integer, not a string'),
        (
            'count = "5"',
            '2:9 "count" must be an integer, not a string | write it without quotes: 5',
        ),
        ("count = true", '2:9 "count" must be an integer, not a boolean'),
        (
            "count = 2.0",
            '2:9 "count" must be an integer, not a float | write it without a fraction: 2',
        ),
        ("count = 2.5", '2:9 "count" must be an integer, not a float'),
        ("count = [1]", '2:9 "count" must be an integer, not an array'),
        ("share = true", '2:9 "share" must be a number, not a boolean'),
        ("share = 1.5", '2:9 "share" must be at most 1'),
        ("share = -0.5", '2:9 "share" must be at least 0'),
        ("share = nan", '2:9 "share" must be a number, not nan'),
        ("odd = 0", '2:7 "odd" must be more than 0'),
        ("odd = 1.0", '2:7 "odd" must be less than 1'),
        ("even = 3", '2:8 "even" must be a multiple of 2'),
        ('name = ""', '2:8 "name" must not be empty'),
        ('name = "abcdef"', '2:8 "name" must have at most 5 characters'),
        (
            "name = 2026-01-02",
            '2:8 "name" must be a string, not a date | put it in quotes: "2026-01-02"',
        ),
        ('slug = "A"', '2:8 "slug" must be text that matches the pattern ^[a-z]+$'),
        ('tag = "A"', '2:7 "tag" must be small letters without spaces'),
        (
            'on = "true"',
            '2:6 "on" must be true or false, not a string | write it without quotes: true',
        ),
        ("on = 1", '2:6 "on" must be true or false, not an integer'),
        (
            'profile = "publishd"',
            '2:11 "profile" must be "published" or "recommended" | did you mean "published"?',
        ),
        ("profile = 3", '2:11 "profile" must be "published" or "recommended"'),
        ("level = 3", '2:9 "level" must be 1 or 2'),
        ('colour = "rad"', '2:10 "colour" must be "red" or "green" | did you mean "red"?'),
        (
            'rows = "a"',
            '2:8 "rows" must be an array, not a string | put it in brackets: ["a"]',
        ),
        ("some = []", '2:8 "some" must have at least 1 element, not 0'),
        ("some = [1, 2, 3]", '2:8 "some" must have at most 2 elements, not 3'),
        ("pair = [1]", '2:8 "pair" must have exactly 2 elements, not 1'),
        (
            "pair = [1, 2]",
            '2:12 element 2 of "pair" must be a string, not an integer | put it in quotes: "2"',
        ),
        ("numbers = [3, 0]", '2:15 element 2 of "numbers" must be at least 1'),
        (
            'until = ["a", 1]',
            '2:15 element 2 of "until" must be a string, not an integer | put it in quotes: "1"',
        ),
        (
            "until = 1",
            '2:9 "until" must be a string, not an integer | put it in quotes: "1"',
        ),
        ("until = {}", '2:9 "until" must be a string or an array, not a table'),
        ("mixed = 1.5", '2:9 "mixed" must be an integer or a string, not a float'),
        ("inner = 1", '2:9 "inner" must be a table, not an integer'),
        ("inners = [1]", '2:11 element 1 of "inners" must be a table, not an integer'),
        ('named.one.x = "a"', '2:15 "x" must be an integer, not a string'),
        (
            "words = { rihgt = 1 }",
            '2:11 unknown key "rihgt" in [t.words] | did you mean "right"?',
        ),
        ('words = { left = "a" }', '2:18 "left" must be an integer, not a string'),
    ],
)
def test_each_kind_of_wrong_value_has_its_sentence(text: str, problem: str) -> None:
    result, problems = decode(text)
    assert problems == [problem]
    assert result is None


@pytest.mark.parametrize("value", ["20", '"20"', "true", "[]", "{}", "1.5", '"soon"'])
def test_the_actors_types_answer_with_their_own_sentence(value: str) -> None:
    for key in ("poll", "size"):
        result, (problem,) = decode(f"{key} = {value}")
        assert result is None
        assert problem.startswith(f'2:8 "{key}": ')
        assert "Expected" not in problem


def test_a_union_with_one_of_the_actors_types() -> None:
    assert decode('limit = "30d"')[0].limit == Duration(30 * 86_400_000_000)
    assert decode('limit = "never"')[0].limit == "never"
    _, (problem,) = decode('limit = "nevr"')
    assert problem.startswith('2:9 "limit" must be a duration')
    assert problem.endswith('or "never", not "nevr" | did you mean "never"?')


def test_missing_keys_are_shown_at_the_header() -> None:
    _, problems = decode("", Strict)
    assert problems == [
        '1:1 [t] needs the key "low" | it takes a whole number, as in 5',
        '1:1 [t] needs the key "high" | it takes a whole number, as in 5',
    ]


def test_a_misspelt_required_key_is_reported_once() -> None:
    _, problems = decode("lwo = 1\nhigh = 2", Strict)
    assert problems == ['2:1 unknown key "lwo" in [t] | did you mean "low"?']


def test_a_check_of_the_whole_is_shown_at_the_header() -> None:
    result, problems = decode("low = 3\nhigh = 2", Strict)
    assert result is None
    assert problems == ["1:1 [t]: low is 3, which is more than high, 2"]


def test_unknown_keys_know_where_they_belong() -> None:
    _, problems = decode(
        "low = 1\nhigh = 2\nwiat = 1\npoll = 1\nzzz = 1",
        Strict,
        elsewhere={"poll": "[relay] and [agent]"},
    )
    assert problems == [
        '4:1 unknown key "wiat" in [t] | did you mean "wait"?',
        '5:1 unknown key "poll" in [t] | "poll" is a key of [relay] and [agent]',
        '6:1 unknown key "zzz" in [t] | the keys here are "low", "high" and "wait"',
    ]


def test_a_long_list_of_keys_is_left_out() -> None:
    assert len(msgspec.structs.fields(Thing)) > KEYS_LISTED_LIMIT
    assert decode("zzz = 1")[1] == ['2:1 unknown key "zzz" in [t]']


def test_extra_keys_are_suggested_and_ignored_ones_are_not() -> None:
    text = 'low = 1\nhigh = 2\nuse = "a.py:A"\nkind = "drop"'
    result, problems = decode(text, Strict, extra_keys=["use"], ignore=["kind"])
    assert (result, problems) == (Strict(low=1, high=2), [])
    _, problems = decode(
        "low = 1\nhigh = 2\nuses = 1\nkinds = 1", Strict, extra_keys=["use"], ignore=["kind"]
    )
    assert problems == [
        '4:1 unknown key "uses" in [t] | did you mean "use"?',
        '5:1 unknown key "kinds" in [t] | the keys here are "low", "high", "wait" and "use"',
    ]


def test_what_should_be_a_table_may_be_anything() -> None:
    source = parse_source("agent = [1]\nrelay = 2", "x.toml")
    decoder = Decoder(source)
    assert decoder.struct(("agent", 0), 1, Strict) is None
    assert decoder.struct(("relay",), 2, Strict) is None
    assert [problem.message for problem in decoder.problems] == [
        'element 1 of "agent" must be a table, not an integer',
        '"relay" must be a table, not an integer',
    ]


def test_tables_of_an_array_are_named_by_their_header() -> None:
    source = parse_source('[[a."b c"]]\nx = 1\n[[a."b c"]]\nz = 1', "x.toml")
    decoder = Decoder(source)
    decoder.struct(("a", "b c", 1), source.data["a"]["b c"][1], Inner)
    first, second = decoder.problems
    assert (first.place, first.message) == ("x.toml:4:1", 'unknown key "z" in [[a."b c"]]')
    assert (second.place, second.message) == ("x.toml:3:1", '[[a."b c"]] needs the key "x"')


def test_the_top_of_the_file() -> None:
    source = parse_source("lwo = 1\nhigh = 0", "x.toml")
    decoder = Decoder(source)
    assert decoder.struct((), source.data, Inner) is None
    assert [problem.message for problem in decoder.problems] == [
        'unknown key "lwo"',
        'unknown key "high"',
        'the file needs the key "x"',
    ]


def test_single_values() -> None:
    decoder = Decoder(parse_source("a = 1\nb = 0", "x.toml"))
    assert decoder.value(("a",), 1, Count) == 1
    assert decoder.value(("b",), 0, Count) is None
    with pytest.raises(ScenarioError) as caught:
        decoder.finish()
    assert str(caught.value) == 'x.toml:2:5: "b" must be at least 1\n  2 | b = 0\n    |     ^'


def test_nothing_is_raised_without_problems() -> None:
    Decoder(parse_source("", "x.toml")).finish()


def test_a_null_of_json_is_named() -> None:
    source = parse_source('{"x": null, "y": null}', "x.json")
    decoder = Decoder(source)
    decoder.struct((), source.data, Inner)
    assert [problem.message for problem in decoder.problems] == [
        '"x" must be an integer, not null',
        '"y" must be a string, not null',
    ]


def test_a_type_that_cannot_be_decoded_is_no_traceback() -> None:
    class Odd(msgspec.Struct):
        z: Decoder

    _, (problem,) = decode("z = 1", Odd)
    assert problem.startswith('2:5 "z": ')


scalars = st.integers() | st.floats() | st.booleans() | st.text(max_size=5) | st.none()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)
thing_keys = st.sampled_from([field.encode_name for field in msgspec.structs.fields(Thing)])


@settings(deadline=None)
@given(st.dictionaries(thing_keys, values, max_size=4))
def test_any_data_is_decoded_or_refused(data: dict[str, Any]) -> None:
    decoder = Decoder(parse_source("", "x.toml"))
    result = decoder.struct((), data, Thing)
    assert (result is None) == bool(decoder.problems)
    assert not [p for p in decoder.problems if "`" in p.message]
