"""What an engine and its model say goes over the wire as it is."""

from __future__ import annotations

from actors.graphs.messages import GRAPH_MESSAGES, AgentAnswer, AgentAsk, AgentCancel
from actors.messages import Message
from transports.codec import Codec
from transports.envelope import Envelope

SAID = [
    AgentAsk(
        run="r", agent=1, prompt="日本 🙂", timeout_us=5, model="m", schema={"type": "null"},
        max_tokens=3, tools=("search",), problem="no",
    ),
    AgentCancel(run="r", agent=1),
    AgentAnswer(
        run="r", agent=1, outcome="failed", value={"a": [1, None, 2.5]}, error="x",
        retryable=False, tokens=2, cost=0.5,
    ),
]  # fmt: skip


def test_each_is_the_same_after_the_codec() -> None:
    assert [type(one) for one in SAID] == list(GRAPH_MESSAGES)
    codec = Codec(GRAPH_MESSAGES)
    for body in SAID:
        assert isinstance(body, Message)
        envelope = Envelope(1, "engine", "model", 0, 0, body)
        assert codec.decode(codec.encode(envelope)) == envelope
