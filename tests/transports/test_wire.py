"""The wire form: what is sent comes back with the receiver's source, all else is a FrameError."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.messages import (
    Accepted,
    Command,
    Complete,
    Completion,
    Control,
    FleetCancel,
    GetGraphRun,
    Message,
    Noted,
    RunGraphSession,
)
from tests.actors.drawing import MESSAGES, drawn
from tests.transports.bodies import MALFORMED
from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.envelope import Envelope
from transports.units import Duration
from transports.wire import WireCodec

CODEC = WireCodec(MESSAGES)
BIG = 2**53 - 1


def envelope_of(body: Any, **changed: Any) -> Envelope[Any]:
    fields: dict[str, Any] = {"id": 1 << 33, "source": "a", "target": "b", "reply_to": 0}
    return Envelope(**({"cause": 0} | fields | changed), body=body)


def test_a_field_that_is_unset_is_left_out() -> None:
    body = Control(command_id="r", boot="b")
    frame = CODEC.encode(envelope_of(body))
    assert b"waiting" not in frame
    assert CODEC.decode(frame, "a").body == body
    told = Control(command_id="r", boot="b", waiting=0)
    assert CODEC.decode(CODEC.encode(envelope_of(told)), "a").body == told != body


def run_with(**arguments: Any) -> Envelope[Any]:
    return envelope_of(
        RunGraphSession(graph_session_id="g", idempotency_key="k" * 8, arguments=arguments)
    )


def raw(body: Any, *more: Any, **changed: Any) -> bytes:
    """The frame that a stranger writes."""
    fields = {"id": 1, "target": "b", "reply_to": 0, "cause": 0, "body": body} | changed
    return msgspec.msgpack.encode([*fields.values(), *more])


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_comes_back_equal(kind: type[Message]) -> None:
    @settings(max_examples=20, deadline=None)
    @given(drawn(kind), st.integers(0, BIG), st.text(min_size=1, max_size=9), st.integers(0, BIG))
    def check(body: Message, number: int, name: str, reply_to: int) -> None:
        envelope = Envelope(number, "me", name, reply_to, number, body)
        again = CODEC.decode(CODEC.encode(envelope), "me")
        assert again == envelope
        assert type(again.body) is kind

    check()


TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_traced_message_has_a_sixth_element() -> None:
    envelope = envelope_of(Noted(), traceparent=TRACEPARENT)
    frame = CODEC.encode(envelope)
    assert msgspec.msgpack.decode(frame) == [1 << 33, "b", 0, 0, {"type": "Noted"}, TRACEPARENT]
    assert CODEC.decode(frame, "a") == envelope
    assert CODEC.decode(raw({"type": "Noted"}, TRACEPARENT, 7), "a").traceparent == TRACEPARENT


@settings(max_examples=50)
@given(
    st.one_of(
        st.recursive(
            st.none() | st.booleans() | st.integers(0, 9) | st.floats() | st.text() | st.binary(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
        st.sampled_from([TRACEPARENT[:-1], TRACEPARENT.upper(), TRACEPARENT + "0", "x" * 70_000]),
    )
)
def test_a_sixth_element_of_any_other_form_is_dropped(value: Any) -> None:
    assert CODEC.decode(raw({"type": "Noted"}, value), "a") == Envelope(1, "a", "b", 0, 0, Noted())


@pytest.mark.parametrize("last", [b"\xc7\x01\x05\x00", b"\xd9\x02\xff\xff", b"\xc4\x01\x00"])
def test_not_even_what_json_lacks_breaks_a_link_in_its_place(last: bytes) -> None:
    frame = b"\x96" + raw({"type": "Noted"})[1:] + last
    assert CODEC.decode(frame, "a") == Envelope(1, "a", "b", 0, 0, Noted())


def test_what_is_malformed_does_not_leave_either() -> None:
    frame = CODEC.encode(envelope_of(Noted(), traceparent="00-nonsense"))
    assert frame == CODEC.encode(envelope_of(Noted()))


def test_the_page_s_example_is_a_traced_call() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^    (\[.*?\n.*-01\"\])$", page, re.MULTILINE)
    envelope = CODEC.decode(msgspec.msgpack.encode(msgspec.json.decode(example)), "agent")
    assert (type(envelope.body), envelope.traceparent) == (RunGraphSession, TRACEPARENT)


def test_the_form_is_an_array_of_five() -> None:
    frame = CODEC.encode(envelope_of(Accepted(command_id="c"), reply_to=7, cause=9))
    body = {"type": "Accepted", "command_id": "c"}
    assert msgspec.msgpack.decode(frame) == [1 << 33, "b", 7, 9, body]


def test_the_source_is_the_connections_and_never_on_the_wire() -> None:
    frame = CODEC.encode(envelope_of(Noted(), source="nobody-else"))
    assert b"nobody-else" not in frame
    assert CODEC.decode(frame, "relay").source == "relay"


def test_a_duration_is_its_number() -> None:
    frame = CODEC.encode(run_with(wait=Duration(5)))
    assert CODEC.decode(frame, "a").body.arguments == {"wait": 5}


def test_later_versions_may_add_fields_and_elements() -> None:
    frame = raw({"type": "Accepted", "command_id": "c", "invented_later": 1}, "more")
    assert CODEC.decode(frame, "a").body == Accepted(command_id="c")


def test_structs_inside_a_message_need_no_type() -> None:
    command: dict[str, Any] = {
        "command_id": "c", "delivery": 1, "session": "s", "slug": "l", "generation": 0,
        "arguments": {},
    }  # fmt: skip
    wanted = Command(**command)
    body = CODEC.decode(raw({"type": "Commands", "commands": [command]}), "a").body
    assert body.commands == (wanted,)


# What is refused


@pytest.mark.parametrize(
    "frame",
    [
        *map(raw, MALFORMED),
        raw({"type": "Noted"}, id="1"),
        raw({"type": "Noted"}, id=-1),
        raw({"type": "Noted"}, id=2**53),
        raw({"type": "Noted"}, reply_to=None),
        raw({"type": "Noted"}, cause=2**64 - 1),
        raw({"type": "Noted"}, target=""),
        raw({"type": "Noted"}, target="x" * 201),
        raw({"type": "Noted"}, target=b"b"),
        raw({"type": "Noted"})[:-1],
        raw({"type": "Noted"}) + b"\0",
        msgspec.msgpack.encode([1, "b", 0, 0]),
        msgspec.msgpack.encode({"id": 1, "target": "b", "body": {"type": "Noted"}}),
        b"",
        b"\xc1",
    ],
)
def test_what_is_of_another_form_is_refused(frame: bytes) -> None:
    with pytest.raises(FrameError, match="not an envelope"):
        CODEC.decode(frame, "a")


NOT_JSON = [
    (b"x", "a bytes is no JSON value"),
    (float("nan"), "nan is no JSON value"),
    ([1, {"a": float("-inf")}], "-inf is no JSON value"),
    ({"a": {1: 2}}, "a key that is no text"),
    (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "a datetime is no JSON value"),
]


@pytest.mark.parametrize(("value", "why"), NOT_JSON)
def test_values_that_json_lacks_are_refused_both_ways(value: Any, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        CODEC.encode(run_with(value=value))
    body = {"type": "RunGraphSession", "graph_session_id": "g", "idempotency_key": "k"}
    with pytest.raises(FrameError, match=why):
        CODEC.decode(raw(body | {"arguments": {"value": value}}), "a")


def test_numbers_that_json_lacks_are_refused_in_fields_too() -> None:
    done = Completion(execution_id=None, status="failed", reported_cost=float("inf"))
    body = Complete(command_id="c", boot="b", delivery=1, completion=done)
    with pytest.raises(FrameError, match="inf is no JSON value"):
        CODEC.encode(envelope_of(body))
    with pytest.raises(FrameError, match="inf is no JSON value"):
        CODEC.decode(raw(msgspec.to_builtins(body)), "a")


class Inner(msgspec.Struct):
    far: int | msgspec.UnsetType = msgspec.UNSET


class Outer(Message, frozen=True, kw_only=True):
    inner: Inner
    near: int | msgspec.UnsetType = msgspec.UNSET


def test_a_field_that_is_unset_is_left_out_at_any_depth() -> None:
    frame = WireCodec([Outer]).encode(envelope_of(Outer(inner=Inner())))
    assert b"near" not in frame
    assert b"far" not in frame
    assert WireCodec([Outer]).decode(frame, "a").body == Outer(inner=Inner())
    with pytest.raises(FrameError, match="a UnsetType is no JSON value"):
        CODEC.encode(run_with(value=msgspec.UNSET))


def test_extension_types_are_refused() -> None:
    body = {"type": "RunGraphSession", "graph_session_id": "g", "idempotency_key": "k"}
    body["arguments"] = {"x": msgspec.msgpack.Ext(5, b"x")}  # type: ignore[assignment]  # no text
    with pytest.raises(FrameError, match="extension type 5"):
        CODEC.decode(raw(body), "a")


def test_a_message_that_the_codec_was_not_given_is_refused() -> None:
    frame = CODEC.encode(envelope_of(FleetCancel(execution_id="x")))
    with pytest.raises(FrameError, match="FleetCancel"):
        WireCodec([Accepted, GetGraphRun]).decode(frame, "a")
    only = WireCodec([Noted])
    assert only.decode(only.encode(envelope_of(Noted())), "a") == envelope_of(Noted())


def test_what_has_no_form_is_a_frame_error() -> None:
    for thing in (object(), {1, 2}, "\ud83d", 2**64):
        with pytest.raises(FrameError):
            CODEC.encode(run_with(thing=thing))


def test_deep_nesting_is_a_frame_error_in_both_directions() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(FrameError, match="cannot be encoded"):
        CODEC.encode(run_with(deep=value))
    frame = CODEC.encode(run_with(deep=1))
    assert frame.endswith(b"\x01")
    with pytest.raises(FrameError, match="not an envelope"):
        CODEC.decode(frame[:-1] + b"\x91" * 100_000 + b"\x01", "a")


def test_the_limit_holds_in_both_directions() -> None:
    room = FRAME_LIMIT_BYTES - len(CODEC.encode(run_with(text="x" * 70_000))) + 70_000
    largest = run_with(text="x" * room)
    assert CODEC.decode(CODEC.encode(largest), "a") == largest
    with pytest.raises(FrameError, match="1048577 bytes, the limit is 1048576"):
        CODEC.encode(run_with(text="x" * (room + 1)))
    with pytest.raises(FrameError, match="1048577 bytes, the limit is 1048576"):
        CODEC.decode(CODEC.encode(largest) + b"\0", "a")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_a_frame_error(frame: bytes) -> None:
    with suppress(FrameError):
        assert isinstance(CODEC.decode(frame, "a"), Envelope)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_an_envelope_or_a_frame_error(place: int, change: int) -> None:
    frame = bytearray(CODEC.encode(run_with(text="ä🙂", numbers=[1, 2.5, None])))
    frame[place % len(frame)] ^= change
    with suppress(FrameError):
        envelope = CODEC.decode(bytes(frame), "a")
        assert CODEC.decode(CODEC.encode(envelope), "a") == envelope
