"""A Config is read from plain values and written back to the same."""

from typing import Any, Literal

import msgspec
import pytest

from actors.chance import Counts, Durations, Numbers, Sizes
from actors.config import decode_hook, describe
from actors.polls import PollPlan, parse_polls
from transports.units import Duration, Offset, Size

KINDS = [Duration, Offset, Size, Durations, Sizes, Numbers, Counts, PollPlan]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    poll_us: Duration = msgspec.field(name="poll", default=Duration(20_000_000))
    limit: Size = Size(102_400)
    duration: Durations = Durations.parse("25s")
    body: Sizes = Sizes.parse("4KiB")
    weight: Numbers = Numbers.parse(0.5)
    tries: Counts = Counts.parse(3)
    plan: PollPlan = parse_polls("hinted")
    pauses: tuple[Duration, ...] = ()
    give_up: Duration | None = None


VALUES: dict[str, Any] = {
    "poll": "30s",
    "limit": "1MiB",
    "duration": "lognormal(median=1m, sigma=0.8, min=5s)",
    "body": "uniform(1KiB, 8KiB)",
    "weight": "uniform(0, 1)",
    "tries": "choice(1, 2)",
    "plan": "every 2s",
    "pauses": ["1s", "2s"],
    "give_up": "1h",
}


def read(values: dict[str, Any]) -> Config:
    return msgspec.convert(values, Config, dec_hook=decode_hook)


def test_a_config_survives_its_text() -> None:
    config = read(VALUES)
    assert config.poll_us == 30_000_000
    assert type(config.poll_us) is Duration
    assert config.limit == Size(2**20)
    assert config.duration == Durations.parse(VALUES["duration"])
    assert config.plan == parse_polls("every 2s")
    assert config.pauses == (1_000_000, 2_000_000)
    written = {
        field.encode_name: getattr(config, field.name) for field in msgspec.structs.fields(Config)
    }
    texts = {key: str(value) for key, value in written.items() if not isinstance(value, tuple)}
    assert texts == {key: value for key, value in VALUES.items() if key in texts}
    assert read(texts | {"pauses": VALUES["pauses"]}) == config


def test_bare_numbers_where_they_mean_something() -> None:
    config = read({"weight": 0.25, "tries": 7})
    assert config.weight.constant == 0.25
    assert config.tries.constant == 7


@pytest.mark.parametrize(
    ("values", "cure"),
    [
        ({"poll": 20}, '20 has no unit: write "20s"'),
        ({"poll": 1.5}, 'write "1.5s"'),
        ({"poll": -5}, "can't be negative"),
        ({"poll": True}, 'true is not accepted: it takes a duration, as in "20s"'),
        ({"duration": 25}, 'write "25s"'),
        ({"limit": 100}, 'write "100B"'),
        ({"plan": ["2s"]}, 'a list is not accepted: it takes a poll plan, as in "every 2s"'),
        ({"plan": {"every": "2s"}}, "a table is not accepted"),
        ({"tries": 1.5}, "1.5 is not a count"),
        ({"tries": False}, "false is not accepted"),
        ({"pauses": ["1s", 2]}, 'write "2s" for seconds - at `$.pauses[1]`'),
    ],
)
def test_a_wrong_value_says_the_cure(values: dict[str, Any], cure: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        read(values)
    assert cure in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_shows_an_example_that_is_accepted(kind: type) -> None:
    meaning = describe(kind)
    example = meaning.split('"')[1]
    value = decode_hook(kind, example)
    assert type(value) is kind
    assert decode_hook(kind, value) is value
    assert decode_hook(kind, str(value)) == value


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
        (int, "a whole number, as in 5"),
        (bool, "true or false"),
        (Literal["on", "off"], '"on" or "off"'),
        (str | None, 'a text, as in "demo" or nothing (leave the key out)'),
        (tuple[int, ...], "a list, each of it a whole number, as in 5"),
        (tuple[int, bool], "a list of 2: a whole number, as in 5; true or false"),
    ],
)
def test_plain_types_are_described(kind: Any, meaning: str) -> None:
    assert describe(kind) == meaning


def test_other_types_are_the_actors_error() -> None:
    with pytest.raises(NotImplementedError, match="type bytes"):
        decode_hook(bytes, "x")
    with pytest.raises(NotImplementedError, match="bytes"):
        describe(bytes)
