"""What an engine, its model, its tools and its owner say goes over the wire as it is."""

from __future__ import annotations

from actors.graphs.messages import (
    GRAPH_MESSAGES,
    AgentAnswer,
    AgentAsk,
    AgentCancel,
    Approval,
    Approvals,
    Decide,
    Decided,
    ListApprovals,
    Round,
    ToolAnswer,
    ToolAsk,
    ToolCall,
    ToolCancel,
    ToolResult,
)
from actors.messages import Message
from transports.codec import Codec
from transports.envelope import Envelope

CALL = ToolCall(id="call_1", tool="read_file", arguments={"path": "a"})
RESULT = ToolResult(id="call_1", ok=False, text="denied")
SAID = [
    AgentAsk(
        run="r", agent=1, prompt="日本 🙂", timeout_us=5, model="m", schema={"type": "null"},
        max_tokens=3, tools=("search",), rounds=(Round(text="", calls=(CALL,), results=(RESULT,)),),
        problem="no",
    ),
    AgentCancel(run="r", agent=1),
    AgentAnswer(
        run="r", agent=1, outcome="failed", value={"a": [1, None, 2.5]}, error="x",
        retryable=False, tokens=2, cost=0.5, calls=(CALL,),
    ),
    ToolAsk(run="r", call=7, tool="read_file", arguments={"path": "a"}, timeout_us=5),
    ToolCancel(run="r", call=7),
    ToolAnswer(run="r", call=7, ok=True, text="日本"),
    ListApprovals(),
    Approvals(
        waiting=(
            Approval(
                run="r", graph="g", agent=1, label=None, call=7, tool="shell", arguments=None,
                waited_us=1, left_us=2,
            ),
        )
    ),
    Decide(run="r", call=7, allow=True),
    Decided(run="r", call=7, known=False),
]  # fmt: skip


def test_each_is_the_same_after_the_codec() -> None:
    assert [type(one) for one in SAID] == list(GRAPH_MESSAGES)
    codec = Codec(GRAPH_MESSAGES)
    for body in SAID:
        assert isinstance(body, Message)
        envelope = Envelope(1, "engine", "model", 0, 0, body)
        assert codec.decode(codec.encode(envelope)) == envelope
