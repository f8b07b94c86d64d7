"""Toxics: Toxiproxy's types mean our faults, ours take a file's keys, and both read back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.decode import Decoder
from scenarios.source import Source
from scenarios.toxics import (
    ALIASES,
    BYTE_FAULTS,
    change_toxic,
    file_toxic,
    read_toxic,
    toxic_view,
)
from transports.faults.byte_fault import DOWN, UP
from transports.toxic import Toxic


def read(body: Any) -> tuple[Toxic | None, list[str]]:
    """A toxic, and what is wrong with it."""
    decoder = Decoder(Source("request.json", "{}", {}))
    toxic = read_toxic(decoder, body)
    return toxic, [f"{one.message}: {one.cure}" for one in decoder.problems]


def sound(type: str, attributes: dict[str, Any] | None = None, **more: Any) -> Toxic:  # noqa: A002  as the API names it
    toxic, problems = read({"type": type, "attributes": attributes or {}, **more})
    assert problems == []
    assert toxic is not None
    return toxic


@pytest.mark.parametrize(
    ("type_", "attributes", "kind", "fields"),
    [
        ("latency", {"latency": 100}, "delay", {"delay": "100ms"}),
        ("latency", {"latency": 100, "jitter": 30}, "delay", {"delay": "uniform(70ms, 130ms)"}),
        ("latency", {"latency": 10, "jitter": 30}, "delay", {"delay": "uniform(0s, 40ms)"}),
        ("bandwidth", {"rate": 3}, "throttle", {"rate": "3KB"}),
        ("bandwidth", {"rate": 0}, "partition", {"both": "False"}),
        ("slow_close", {"delay": 5}, "slow_close", {"delay": "5ms"}),
        ("timeout", {"timeout": 5}, "black_hole", {"close": "5ms"}),
        ("timeout", {"timeout": 0}, "black_hole", {"close": "None"}),
        ("reset_peer", {"timeout": 5}, "reset", {"after": "5ms"}),
        ("slicer", {"average_size": 9}, "slice", {"size": "9B", "pause": "0s"}),
        (
            "slicer",
            {"average_size": 9, "size_variation": 3, "delay": 7},
            "slice",
            {"size": "uniform(6B, 12B)", "pause": "7us"},
        ),
        ("limit_data", {"bytes": 5}, "close_after", {"limit": "5B"}),
    ],
)
def test_each_of_toxiproxys_types_is_a_fault_of_ours(
    type_: str, attributes: dict[str, Any], kind: str, fields: dict[str, str]
) -> None:
    toxic = sound(type_, attributes)
    assert type(toxic.fault) is BYTE_FAULTS[kind]
    assert {key: str(getattr(toxic.fault, key)) for key in fields} == fields
    assert attributes.items() <= toxic_view(toxic)["attributes"].items()


def test_a_toxic_reads_back_with_its_defaults() -> None:
    assert toxic_view(sound("latency", {"latency": 5})) == {
        "name": "latency_downstream",
        "type": "latency",
        "stream": "downstream",
        "toxicity": 1.0,
        "attributes": {"latency": 5, "jitter": 0},
    }


def test_the_longest_latency_with_its_jitter_is_a_delay() -> None:
    longest_ms = 36_500 * 86_400_000 // 2
    toxic = sound("latency", {"latency": longest_ms, "jitter": longest_ms})
    assert toxic_view(toxic)["attributes"]["jitter"] == longest_ms
    assert read({"type": "latency", "attributes": {"latency": longest_ms + 1}})[0] is None


def test_stream_and_toxicity_say_where_and_how_often() -> None:
    toxic = sound("latency", stream="upstream", toxicity=0.25, name="mine")
    assert (toxic.ways, toxic.fault.probability, toxic.name) == ((UP,), 0.25, "mine")
    assert sound("timeout", stream="both").ways == (UP, DOWN)
    assert sound("timeout").fault.probability is None


def test_our_kinds_take_a_files_keys() -> None:
    toxic = sound("corrupt", {"share": 0.5, "at": "5s", "for": "1s", "every": 2})
    assert (toxic.fault.at, toxic.fault.lasts, toxic.fault.every) == (5_000_000, 1_000_000, 2)
    ours = sound("slow_close", {"delay": "uniform(1s, 2s)"})
    assert toxic_view(ours)["attributes"] == {"delay": "uniform(1s, 2s)"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, 'needs the key "type"'),
        ({"type": 5}, '"type" must be a string'),
        ({"type": "latncy"}, 'there is no toxic type "latncy": did you mean "latency"?'),
        ({"type": "zzzzzz"}, "there are latency, bandwidth"),
        ({"type": "latency", "strem": "upstream"}, 'did you mean "stream"?'),
        ({"type": "latency", "stream": "upsteam"}, 'did you mean "upstream"?'),
        ({"type": "latency", "toxicity": 2}, '"toxicity" must be at most 1'),
        ({"type": "latency", "name": "a/b"}, '"name" must be 1 to 64 characters without /'),
        ({"type": "latency", "attributes": {"latncy": 1}}, 'did you mean "latency"?'),
        ({"type": "latency", "attributes": {"latency": -1}}, '"latency" must be at least 0'),
        ({"type": "latency", "attributes": {"latency": "1s"}}, '"latency" must be an integer'),
        ({"type": "slicer"}, 'needs the key "average_size"'),
        (
            {"type": "slicer", "attributes": {"average_size": 5, "size_variation": 5}},
            'must be less than "average_size"',
        ),
        ({"type": "throttle", "attributes": {"rate": "0B"}}, "at least 1B"),
        ({"type": "corrupt", "attributes": {"from": "client"}}, '"stream" of the toxic says it'),
        ({"type": "reset", "attributes": {"on": "run.started"}}, "knows no event"),
        ({"type": "partition", "attributes": {"both": True}}, '"stream" of the toxic says it'),
        ({"type": "reset", "attributes": {"nth": 1}, "toxicity": 0.5}, "one of nth, every"),
    ],
)
def test_what_is_wrong_is_said_with_the_cure(body: Any, says: str) -> None:
    toxic, problems = read(body)
    assert toxic is None
    assert says in "; ".join(problems)


def test_a_change_keeps_what_it_leaves_out() -> None:
    before = sound("latency", {"latency": 5, "jitter": 1}, toxicity=0.5, stream="upstream")
    decoder = Decoder(Source("request.json", "{}", {}))
    body = {"name": "other", "type": "x", "attributes": {"latency": 9}}
    after = change_toxic(decoder, before, body)
    assert after is not None
    assert toxic_view(after) == toxic_view(before) | {"attributes": {"latency": 9, "jitter": 1}}
    assert after.fault.name == before.name
    surer = change_toxic(decoder, before, {"toxicity": 1})
    assert surer is not None
    assert surer.fault.probability is None
    assert change_toxic(decoder, before, {"attributes": {"latency": -1}}) is None
    assert change_toxic(decoder, before, []) is None


def test_a_fault_of_a_file_is_shown_as_it_was_written() -> None:
    fields = {"name": "x", "delay": "5s", "at": "1s", "probability": 0.5, "from": "client"}
    decoder = Decoder(Source("x.toml", "", {}))
    fault = decoder.struct((), fields, BYTE_FAULTS["delay"])
    assert fault is not None
    assert toxic_view(file_toxic(fault, "delay", (UP,))) == {
        "name": "x",
        "type": "delay",
        "stream": "upstream",
        "toxicity": 0.5,
        "attributes": {"at": "1s", "delay": "5s"},
    }


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_keys = sorted(
    {
        field.encode_name
        for kind in [*ALIASES.values(), *BYTE_FAULTS.values()]
        for field in msgspec.structs.fields(kind)
    }
)
_values = _json | st.sampled_from(["1s", "5B", "uniform(1s, 2s)", "10KiB", 2**63, 10**20])


@given(
    kind=st.sampled_from([*ALIASES, *BYTE_FAULTS]),
    attributes=st.dictionaries(st.sampled_from(_keys), _values, max_size=4),
    toxicity=st.sampled_from([0, 0.5, 1]),
)
def test_any_attributes_are_a_toxic_or_a_sentence(
    kind: str, attributes: dict[str, Any], toxicity: float
) -> None:
    toxic, problems = read({"type": kind, "attributes": attributes, "toxicity": toxicity})
    assert (toxic is None) == bool(problems)
    if toxic is not None:
        msgspec.json.encode(toxic_view(toxic))
