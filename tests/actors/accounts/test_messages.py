"""What a deployed server is told and answers: words that the codec carries, each by its sender."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from actors.accounts import messages
from actors.accounts.messages import GATEWAY, LOCAL, MAY_SEND, PAGE_LIMIT, ListRuns
from actors.messages import Message
from tests.actors.drawing import drawn
from transports.codec import Codec
from transports.envelope import Envelope

SAID: list[type[Message]] = [
    kind
    for kind in vars(messages).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == messages.__name__
]
PARTS = {"DeviceListing", "AgentListing", "RunListing", "AuditEntry", "DevicePresence"}
EACH = pytest.mark.parametrize("kind", SAID, ids=lambda kind: kind.__name__)


@EACH
def test_the_codec_carries_it(kind: type[Message]) -> None:
    codec = Codec([kind, Message])

    @settings(max_examples=5, deadline=None)
    @given(drawn(kind))
    def check(message: Message) -> None:
        envelope = Envelope(1, GATEWAY, "server", 0, 0, message)
        assert codec.decode(codec.encode(envelope)) == envelope

    check()


@EACH
def test_a_docstring_says_who_says_it(kind: type[Message]) -> None:
    text = (kind.__doc__ or "").strip()
    senders = ("One ",) if kind.__name__ in PARTS else ("Gateway ", "Server ", "Owner ", "Owner, ")
    assert text.startswith(senders), text


@EACH
def test_it_is_frozen_and_its_name_is_its_tag(kind: type[Message]) -> None:
    config: Any = kind.__struct_config__
    assert config.frozen
    assert config.tag == kind.__name__


def test_every_question_is_for_the_gateway_or_for_one_kind_of_principal() -> None:
    allowed: list[type[Message]] = [
        *LOCAL,
        *(kind for kinds in MAY_SEND.values() for kind in kinds),
    ]
    twice = {kind.__name__ for kind in allowed if allowed.count(kind) > 1}
    # The gateway asks for all owners; a run's agent may know what it waits for.
    assert twice == {"GetServerStatus", "ExplainRun"}
    questions = {kind for kind in SAID if (kind.__doc__ or "").startswith(("Gateway", "Owner"))}
    assert questions <= set(allowed)


def test_a_page_has_a_bound() -> None:
    for limit in (0, PAGE_LIMIT + 1):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"type": "ListRuns", "limit": limit}, ListRuns)
