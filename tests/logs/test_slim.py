"""Records without payloads: what stays, and that it can still be read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.accounts.messages import Authenticate
from actors.messages import Command, Commands, Complete, Completion, GraphRun, SessionMeta, Sync
from logs.record import EventRecord, MessageRecord
from logs.slim import PAYLOADS, slim, slim_body
from tests.actors.drawing import MESSAGES, drawn
from transports.envelope import Envelope

COMMAND = Command(
    command_id="c", delivery=1, session="gs_1", slug="s", generation=0, arguments={"a": "private"}
)
SAID = {"run": "r", "error": "e", "x": "y" * 999}
DONE = Completion(execution_id="e", status="failed", result="private", error="private")


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (Commands(commands=(COMMAND,)), "gs_1"),
        (Complete(command_id="c-1", boot="b", delivery=1, completion=DONE), "c-1"),
        (GraphRun(command_id="c-1", status="completed", result={"a": "private"}), "completed"),
        (Authenticate(token_hash="private", name="agt_1"), "agt_1"),  # noqa: S106  a test's
        (
            Sync(
                boot="b",
                sessions=(
                    SessionMeta(id="gs_1", project="p", name="n", slug="s", description="private"),
                ),
                open=("c-1",),
                capacity=1,
                poll_us=1,
            ),
            "c-1",
        ),
    ],
)
def test_payloads_go_and_ids_stay(body: Any, kept: str) -> None:
    text = msgspec.json.encode(slim_body(body)).decode()
    assert "private" not in text
    assert kept in text


def test_an_event_keeps_its_ids_and_no_long_text() -> None:
    record = EventRecord(
        1, 0, "engine", 0, "agent.failed", {"run": "r", "error": "e", "x": "y" * 999}
    )
    found = slim(record)
    assert isinstance(found, EventRecord)
    assert found.fields == {"run": "r", "x": "y" * 200}


@given(st.sampled_from(MESSAGES).flatmap(drawn))
def test_what_is_left_can_be_read_as_the_same_message(body: Any) -> None:
    small = slim(MessageRecord(1, 0, "a", 0, Envelope(1, "b", "a", 0, 0, body)))
    assert isinstance(small, MessageRecord)
    told = small.envelope.body
    assert type(told) is type(body)
    again = msgspec.json.decode(msgspec.json.encode(told), type=type(body))
    for name in body.__struct_fields__:
        if name not in PAYLOADS and isinstance(getattr(body, name), str | int):
            assert getattr(again, name) == getattr(body, name)
