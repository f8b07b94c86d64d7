"""What an owner and the own desktop say to each other goes over the wire as it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.desktop.messages import (
    DESKTOP_MESSAGES,
    PAGE_LIMIT,
    AddSession,
    GetGraph,
    History,
    PastRun,
    SavedGraph,
    SaveGraph,
    SaveSession,
)
from actors.messages import Message
from actors.text import ERROR_LIMIT_CHARS
from tests.actors.drawing import drawn
from transports.codec import FRAME_LIMIT_BYTES, Codec
from transports.envelope import Envelope

TEXTS = {"main": "return 1", "日本": "🙂"}
WITH_TEXTS = {
    AddSession: AddSession(name="n", project="p", entry="main", texts=TEXTS),
    SaveSession: SaveSession(session="gs", entry="main", texts=TEXTS),
    SaveGraph: SaveGraph(session="gs", entry="main", texts=TEXTS),
    SavedGraph: SavedGraph(
        session="gs", entry="main", texts=TEXTS, version=2, sha256="a", saved_us=1
    ),
}


@pytest.mark.parametrize("kind", DESKTOP_MESSAGES, ids=lambda kind: kind.__name__)
def test_each_is_the_same_after_the_codec(kind: type[Message]) -> None:
    codec = Codec(DESKTOP_MESSAGES)

    @settings(max_examples=10, deadline=None)
    @given(st.just(WITH_TEXTS[kind]) if kind in WITH_TEXTS else drawn(kind))
    def check(body: Message) -> None:
        envelope = Envelope(1, "owner", "relay", 0, 0, body)
        assert codec.decode(codec.encode(envelope)) == envelope

    check()


def test_all_are_listed_and_say_who_says_them() -> None:
    assert GetGraph in DESKTOP_MESSAGES
    assert len(set(DESKTOP_MESSAGES)) == len(DESKTOP_MESSAGES)
    for kind in DESKTOP_MESSAGES:
        assert (kind.__doc__ or "").split()[0] in {"Owner", "Relay", "Engine", "Uplink"}, kind


def test_the_longest_page_fits_a_frame() -> None:
    run = PastRun(
        number=2**53, command_id="c" * 36, execution_id="e" * 36, session="s" * 35,
        slug="日" * 200, version=2**31, started_us=2**53, finished_us=2**53, status="interrupted",
        total_tokens=2**53, reported_cost=1e300, result_bytes=2**53, truncated=True, kept=True,
        error="日" * ERROR_LIMIT_CHARS,
    )  # fmt: skip
    page = Envelope(1, "relay", "owner", 1, 0, History(runs=(run,) * PAGE_LIMIT, next=1))
    assert len(Codec([History]).encode(page)) < FRAME_LIMIT_BYTES
