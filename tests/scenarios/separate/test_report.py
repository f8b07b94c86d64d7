"""What crosses between processes comes out as it went in, whole or not at all."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.separate import report
from scenarios.separate.report import (
    Begin,
    Delivery,
    Done,
    Failed,
    Report,
    Said,
    Sent,
    State,
    Tell,
    pickled_state,
    pieces,
    receive_order,
    receive_report,
    state_of,
)
from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.units import Duration


class Frames:
    """A connection from which these frames come."""

    def __init__(self, frames: Any) -> None:
        self.frames = deque(frames)

    async def receive(self) -> bytes:
        return self.frames.popleft()  # type: ignore[no-any-return]  # bytes, all of them


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
effects = st.lists(
    st.builds(Said, st.text(), st.dictionaries(st.text(), plain, max_size=3))
    | st.builds(Sent, st.text(), st.binary())
    | st.builds(Done),
    max_size=5,
)
reports = st.builds(
    Report,
    number=st.integers(1, 2**40),
    t=st.integers(0, 2**60),
    input=st.sampled_from(["start", "message", "timer", "unanswered", "late"]),
    what=st.integers(0, 2**53) | st.text(),
    cause=st.integers(0, 2**40),
    effects=effects,
    undone=st.text(),
)


@settings(max_examples=40)
@given(st.lists(reports, max_size=4))
async def test_reports_come_out_as_they_went_in(told: list[Report]) -> None:
    link = Frames(piece for one in told for piece in pieces(one))
    assert [await receive_report(link) for _ in told] == told
    assert not link.frames


async def test_orders_states_and_failures_do_too() -> None:
    for order in (Begin(1.5), Begin(0.25, look=True), Tell(), Delivery("relay", b"frame")):
        assert await receive_order(Frames(pieces(order))) == order
    for told in (State(b"x"), Failed("failed", "it failed", "trace", "relay")):
        assert await receive_report(Frames(pieces(told))) == told


@pytest.mark.parametrize("more", [-1, 0, 1, FRAME_LIMIT_BYTES])
async def test_what_is_over_the_frame_limit_goes_in_pieces(more: int) -> None:
    empty = len(next(pieces(State(bytes(FRAME_LIMIT_BYTES // 2))))) - FRAME_LIMIT_BYTES // 2
    told = State(bytes(FRAME_LIMIT_BYTES - empty + more))
    frames = list(pieces(told))
    assert len(frames) == (1 if more <= 0 else 2 if more == 1 else 3)
    assert all(1 < len(frame) <= FRAME_LIMIT_BYTES for frame in frames)
    assert await receive_report(Frames(frames)) == told


async def test_what_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "WHOLE_LIMIT_BYTES", FRAME_LIMIT_BYTES)
    told = State(bytes(3 * FRAME_LIMIT_BYTES))
    with pytest.raises(FrameError, match="a report of more than 1 MiB"):
        await receive_report(Frames(pieces(told)))


@pytest.mark.parametrize(
    "frame", [b"\x01", b"\x01\xc1", b"\x01\x91\xa4turn", b"\x01\x92\xa5begin\x00"]
)
async def test_what_is_no_report_is_refused(frame: bytes) -> None:
    with pytest.raises(FrameError, match="no report"):
        await receive_report(Frames([frame]))


def test_numbers_with_a_class_of_their_own_are_numbers() -> None:
    [frame] = pieces(Report(1, 2, "start", 0, effects=[Said("x", {"for": Duration(5)})]))
    assert msgspec.msgpack.decode(frame[1:])[6] == [["said", "x", {"for": 5}]]


def test_a_value_that_has_no_bytes_is_an_error_on_this_side() -> None:
    with pytest.raises(TypeError, match="can't hold a PosixPath"):
        list(pieces(Report(1, 2, "start", 0, effects=[Said("x", {"path": Path()})])))


class Row(msgspec.Struct, frozen=True):
    """A row as a user may have it."""

    wait: Duration
    key: tuple[str, ...] = ()


def test_a_state_has_rows_of_any_type() -> None:
    tables = {"rows": {("a", "b"): Row(Duration(5), ("x",))}}
    assert state_of(pickled_state(tables, {"poll": 7})) == (tables, {"poll": 7})
