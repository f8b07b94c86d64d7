"""What is said: frozen, keyword-only, tagged, and its docstring says who says it to whom."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.agent import Agent
from actors.engine import Engine
from actors.messages import NOT_FOUND_TEXT, NOT_SHARED_TEXT, TERMINAL, Completion, Message
from actors.owner import Owner
from actors.relay import Relay
from actors.server import Server
from tests.actors.drawing import MESSAGES, drawn

# Parts of messages: they are said within others, never alone.
PARTS = {"SessionListing", "SessionMeta", "Completion", "Command"}
TO_EDGES = {"GraphSessions"}  # the synthetic agent is given its sessions and never lists them
ALL = pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
SAID = pytest.mark.parametrize(
    "kind",
    [kind for kind in MESSAGES if kind.__name__ not in PARTS],
    ids=lambda kind: kind.__name__,
)


@ALL
def test_a_message_is_frozen_keyword_only_and_untracked(kind: type[Message]) -> None:
    config: Any = kind.__struct_config__
    assert config.frozen
    assert not config.gc

    @settings(max_examples=1, deadline=None)
    @given(drawn(kind))
    def check(message: Message) -> None:
        for field in kind.__struct_fields__ or ("type",):
            with pytest.raises((AttributeError, TypeError)):
                setattr(message, field, None)
        assert not gc.is_tracked(message)
        if kind.__struct_fields__:
            first = getattr(message, kind.__struct_fields__[0])
            with pytest.raises(TypeError):
                kind(first)

    check()


@ALL
def test_a_message_carries_its_type_s_name_as_its_tag(kind: type[Message]) -> None:
    config: Any = kind.__struct_config__
    assert (config.tag_field, config.tag) == ("type", kind.__name__)


SENDERS = ("Agent", "Server", "Relay", "Engine", "Owner", "An agent")


@SAID
def test_a_docstring_says_who_says_it_and_to_whom(kind: type[Message]) -> None:
    text = (kind.__doc__ or "").strip()
    sender = next((name for name in SENDERS if text.startswith(name + " ")), None)
    assert sender is not None, f"{kind.__name__}: {text!r} doesn't begin with its sender"
    assert text.endswith(".")


@ALL
def test_a_message_as_json_is_one_object_with_its_type_first(kind: type[Message]) -> None:
    @settings(max_examples=5, deadline=None)
    @given(drawn(kind))
    def check(message: Message) -> None:
        text = msgspec.json.encode(message)
        assert text.startswith(b'{"type":"' + kind.__name__.encode() + b'"')
        assert msgspec.json.decode(text, type=kind) == message

    check()


@SAID
def test_somebody_understands_it(kind: type[Message]) -> None:
    understood = {
        name
        for actor in (Agent, Server, Relay, Engine, Owner)
        for name in actor.__init__.__code__.co_names  # the handlers' keys are named there
    }
    assert kind.__name__ in understood | TO_EDGES


def test_the_account_s_two_texts_are_its_words() -> None:
    assert NOT_FOUND_TEXT == "Graph run not found or access removed"
    assert NOT_SHARED_TEXT == "Graph session is no longer shared with this project"


def test_an_ending_is_a_terminal_status_that_a_relay_may_say() -> None:
    status: Any = next(f for f in msgspec.structs.fields(Completion) if f.name == "status").type
    endings = set(status.__args__)
    assert endings < TERMINAL
    assert TERMINAL - endings == {"expired"}, "only the server's clock says that"


@given(st.data())
def test_equal_messages_are_equal_and_hash_when_their_fields_do(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(MESSAGES))
    message = data.draw(drawn(kind))
    assert msgspec.structs.replace(message) == message
    assert type(msgspec.structs.replace(message)) is kind
