"""What is told of a table's keys is what their struct says."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from actors.chance import Counts, Durations, Numbers
from actors.polls import PollPlan, parse_polls
from scenarios.fields import fault_kind, keys_of, toml_value, type_words, workload_keys
from scenarios.spec import FAULTS, WorkloadTable
from transports.faults.fault import Ordinal
from transports.units import Duration, Offset, Size


class Table(msgspec.Struct, kw_only=True):
    """A required key, a renamed one, one that is made anew each time."""

    needed: int
    wait_us: Annotated[Duration, "how long it waits"] = msgspec.field(
        name="wait", default=Duration(20_000_000)
    )
    slug: Annotated[
        str, msgspec.Meta(pattern="^a", description="text that begins with a"), "its short name"
    ] = "a"
    words: dict[str, int] = {}


def test_a_key_has_name_default_limits_and_meaning() -> None:
    needed, wait, slug, words = keys_of(Table)
    assert (needed.name, needed.required, needed.default, needed.meaning) == (
        "needed",
        True,
        None,
        "",
    )
    assert (wait.name, wait.kind, wait.default) == ("wait", Duration, Duration(20_000_000))
    assert (wait.required, wait.meaning) == (False, "how long it waits")
    assert slug.meaning == "its short name"
    assert slug.limits[0].pattern == "^a"
    assert (words.required, words.default) == (False, {})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Duration, "duration"),
        (Offset, "duration, + or -"),
        (Size, "size"),
        (Durations, "duration or distribution"),
        (Counts | None, "whole number or distribution"),
        (PollPlan, "poll plan"),
        (Literal["a", "b", "c"], '"a", "b" or "c"'),
        (tuple[str, ...], "list of texts"),
        (tuple[tuple[Ordinal, ...], ...], "list of lists of whole numbers, 1 or more"),
        (
            tuple[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], ...],
            "list of lists of whole numbers, 0 or more",
        ),
        (str | tuple[str, ...], "text or list of texts"),
        (Annotated[int, msgspec.Meta(ge=1, le=5)], "whole number, 1 to 5"),
        (Annotated[int, msgspec.Meta(ge=1)] | None, "whole number, 1 or more"),
        (Annotated[int, msgspec.Meta(ge=0, lt=2**63)], "whole number, 0 or more"),
        (dict[str, Any], "table"),
    ],
)
def test_types_in_words(kind: Any, words: str) -> None:
    assert type_words(kind) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("", ""),
        ((), ""),
        ({}, ""),
        (0, "0"),
        (True, "true"),
        ("demo", '"demo"'),
        (Duration(90_000_000), '"1m30s"'),
        (Durations.parse("25s"), '"25s"'),
        (Counts.parse(5), "5"),
        (Numbers.parse("uniform(0, 1)"), '"uniform(0, 1)"'),
        (parse_polls("every 2s"), '"every 2s"'),
    ],
)
def test_defaults_are_written_as_in_toml(value: Any, text: str) -> None:
    assert toml_value(value) == text


def test_the_workload_has_the_types_of_the_agent() -> None:
    keys = {key.name: key for key in workload_keys()}
    assert list(keys) == [key.name for key in keys_of(WorkloadTable)]
    assert type_words(keys["every"].kind) == "duration or distribution"


def test_every_fault_is_a_kind() -> None:
    for kind in FAULTS:
        assert f'"{kind}"' in type_words(fault_kind().kind)
