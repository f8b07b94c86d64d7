"""The codec: what is encoded comes back equal, and what is no frame is a FrameError."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.messages import (
    Accepted,
    Complete,
    Completion,
    FleetCancel,
    GetGraphRun,
    Message,
    Noted,
    RunGraphSession,
)
from tests.actors.drawing import MESSAGES, drawn
from tests.transports.bodies import MALFORMED
from transports.codec import FRAME_LIMIT_BYTES, Codec, FrameError
from transports.envelope import Envelope

CODEC = Codec(MESSAGES)


def envelope_of(body: Any) -> Envelope[Any]:
    return Envelope((1 << 32) + 5, "agent", "server", 0, 0, body)


def run_with(**arguments: Any) -> Envelope[Any]:
    body = RunGraphSession(graph_session_id="g", idempotency_key="k" * 8, arguments=arguments)
    return envelope_of(body)


def test_a_traceparent_is_there_only_where_there_is_one() -> None:
    plain = envelope_of(Noted())
    traced = msgspec.structs.replace(plain, traceparent="00-x")
    assert set(msgspec.msgpack.decode(CODEC.encode(plain))) == {
        "id", "source", "target", "reply_to", "cause", "body",
    }  # fmt: skip
    assert b"traceparent" not in msgspec.json.encode(plain)
    assert CODEC.decode(CODEC.encode(plain)).traceparent == ""
    assert CODEC.decode(CODEC.encode(traced)) == traced


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_comes_back_equal(kind: type[Message]) -> None:
    @settings(max_examples=25, deadline=None)
    @given(drawn(kind), st.integers(0, 2**53 - 1), st.text(max_size=9), st.integers(0, 2**53 - 1))
    def check(body: Message, number: int, name: str, reply_to: int) -> None:
        envelope = Envelope(number, name, name + "2", reply_to, number, body)
        again = CODEC.decode(CODEC.encode(envelope))
        assert again == envelope
        assert type(again.body) is kind

    check()


def test_a_codec_of_one_message_type_works() -> None:
    codec = Codec([Noted])
    assert codec.decode(codec.encode(envelope_of(Noted()))) == envelope_of(Noted())


# What is no frame


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_a_frame_error(frame: bytes) -> None:
    with suppress(FrameError):
        assert isinstance(CODEC.decode(frame), Envelope)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_an_envelope_or_a_frame_error(place: int, change: int) -> None:
    frame = bytearray(CODEC.encode(run_with(text="ä🙂", numbers=[1, 2.5, None])))
    frame[place % len(frame)] ^= change
    with suppress(FrameError):
        assert isinstance(CODEC.decode(bytes(frame)), Envelope)


def test_every_cut_of_a_frame_is_refused() -> None:
    frame = CODEC.encode(run_with(text="ä🙂", numbers=[1, 2.5, None]))
    for length in range(len(frame)):
        with pytest.raises(FrameError, match="not a frame"):
            CODEC.decode(frame[:length])
    with pytest.raises(FrameError, match="not a frame"):
        CODEC.decode(frame + b"\0")


def raw(body: Any, **changed: Any) -> bytes:
    """The frame of an envelope whose fields and body are what a stranger writes."""
    fields = {"id": 1, "source": "a", "target": "b", "reply_to": 0, "cause": 0, "body": body}
    return msgspec.msgpack.encode(fields | changed)


def test_the_raw_form_is_what_decode_reads() -> None:
    accepted = {"type": "Accepted", "command_id": "c"}
    assert CODEC.decode(raw(accepted)).body == Accepted(command_id="c")


@pytest.mark.parametrize(
    "frame",
    [
        *map(raw, MALFORMED),
        raw({"type": "Noted"}, id="1"),
        raw({"type": "Noted"}, source=None),
        msgspec.msgpack.encode({"body": {"type": "Noted"}}),
        msgspec.msgpack.encode([1, "a", "b", 0, 0, {"type": "Noted"}]),
        b"",
    ],
)
def test_what_is_of_another_type_is_refused(frame: bytes) -> None:
    with pytest.raises(FrameError, match="not a frame"):
        CODEC.decode(frame)


def test_a_status_that_no_ending_has_is_refused() -> None:
    done = {"execution_id": None, "status": "queued"}
    body = {"type": "Complete", "command_id": "c", "boot": "b", "delivery": 1}
    with pytest.raises(FrameError, match="status"):
        CODEC.decode(raw(body | {"completion": done}))


def test_a_message_that_the_codec_was_not_given_is_refused() -> None:
    frame = CODEC.encode(envelope_of(FleetCancel(execution_id="x")))
    with pytest.raises(FrameError):
        Codec([Accepted, GetGraphRun]).decode(frame)


def test_unknown_fields_are_left_out_so_that_an_older_peer_still_reads() -> None:
    frame = raw({"type": "Accepted", "command_id": "c", "invented_later": 1}, hop=3)
    assert CODEC.decode(frame).body == Accepted(command_id="c")


def test_extension_types_are_refused() -> None:
    done = {"type": "Completion", "execution_id": None, "status": "completed"}
    done["result"] = msgspec.msgpack.Ext(5, b"x")  # type: ignore[assignment]  # what JSON lacks
    body = {"type": "Complete", "command_id": "c", "boot": "b", "delivery": 1, "completion": done}
    with pytest.raises(FrameError):
        CODEC.decode(raw(body))


# Limits


def text_frame(chars: int) -> Envelope[Any]:
    return run_with(text="x" * chars)


def test_a_frame_may_be_as_long_as_the_limit_and_not_a_byte_longer() -> None:
    room = FRAME_LIMIT_BYTES - len(CODEC.encode(text_frame(70_000))) + 70_000
    frame = CODEC.encode(text_frame(room))
    assert len(frame) == FRAME_LIMIT_BYTES
    assert CODEC.decode(frame) == text_frame(room)
    with pytest.raises(FrameError, match="1048577 bytes, the limit is 1048576"):
        CODEC.encode(text_frame(room + 1))


def test_a_frame_over_the_limit_is_not_even_read() -> None:
    frame = msgspec.msgpack.encode(text_frame(FRAME_LIMIT_BYTES))
    with pytest.raises(FrameError, match="the limit is 1048576"):
        CODEC.decode(frame)


@pytest.mark.parametrize("letter", ["x", "あ", "🙂", '"', "\x01"])
def test_the_largest_legal_completion_fits_in_a_frame(letter: str) -> None:
    units = len(letter.encode("utf-16-le")) // 2
    done = Completion(execution_id="e", status="completed", result=letter * (100_000 // units))
    body = Complete(command_id="c" * 36, boot="b" * 36, delivery=1, completion=done)
    assert CODEC.decode(CODEC.encode(envelope_of(body))).body == body


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_deep_nesting_is_a_frame_error_in_both_directions() -> None:
    assert CODEC.decode(CODEC.encode(run_with(deep=nested(64)))) == run_with(deep=nested(64))
    with pytest.raises(FrameError, match="cannot be encoded"):
        CODEC.encode(run_with(deep=nested(100_000)))
    frame = CODEC.encode(run_with(deep=1))
    assert frame.endswith(b"\x01")
    with pytest.raises(FrameError, match="not a frame"):
        CODEC.decode(frame[:-1] + b"\x91" * 100_000 + b"\x01")


def test_a_lone_surrogate_is_a_frame_error_in_both_directions() -> None:
    with pytest.raises(FrameError, match="cannot be encoded"):
        CODEC.encode(run_with(text="\ud83d"))
    frame = CODEC.encode(run_with(text="\ud7ff"))
    with pytest.raises(FrameError, match="not a frame"):
        CODEC.decode(frame.replace("\ud7ff".encode(), b"\xed\xa0\xbd"))


def test_a_number_of_more_than_64_bits_is_a_frame_error() -> None:
    assert CODEC.decode(CODEC.encode(run_with(n=2**64 - 1))) == run_with(n=2**64 - 1)
    with pytest.raises(FrameError, match="cannot be encoded"):
        CODEC.encode(run_with(n=2**64))


def test_what_has_no_form_is_a_frame_error() -> None:
    with pytest.raises(FrameError, match="cannot be encoded"):
        CODEC.encode(run_with(thing=object()))
