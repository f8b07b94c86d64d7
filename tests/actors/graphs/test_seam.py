"""The seam's structs are data: they survive JSON, and errors tell one sentence."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.graphs.seam import (
    AgentOptions,
    Failure,
    Finished,
    Notice,
    Request,
    ScriptFailure,
    Settlement,
    VmLimitError,
    VmLimits,
    VmTurn,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
OPTIONS = st.builds(
    AgentOptions,
    label=st.none() | TEXTS,
    schema=st.none() | st.dictionaries(TEXTS, JSON, max_size=2),
    max_tokens=st.none() | st.integers(1, 2**53),
    timeout_ms=st.none() | st.floats(0.001, 1e9),
    tools=st.none() | st.lists(TEXTS, max_size=2).map(tuple),
)
REQUESTS = st.builds(
    Request,
    id=st.integers(1, 9),
    op=st.sampled_from(["agent", "graph", "sleep"]),
    prompt=TEXTS,
    options=OPTIONS,
    args=JSON,
    ms=st.floats(0, 1e9),
)
NOTICES = st.builds(Notice, type=st.sampled_from(["phase", "log", "retry"]), text=TEXTS)
FAILURES = st.builds(ScriptFailure, name=TEXTS, message=TEXTS, partial=JSON, line=st.integers(0, 9))
ENDS = st.none() | st.builds(Finished, value=JSON) | st.builds(Finished, error=FAILURES)


@given(
    st.lists(REQUESTS, max_size=2).map(tuple),
    st.lists(NOTICES, max_size=2).map(tuple),
    ENDS,
    st.integers(0, 5),
)
def test_a_turn_survives_json(
    requests: tuple[Request, ...], notices: tuple[Notice, ...], end: Finished | None, pending: int
) -> None:
    turn = VmTurn(requests=requests, notices=notices, finished=end, pending=pending)
    assert msgspec.json.decode(msgspec.json.encode(turn), type=VmTurn) == turn


def test_options_have_the_names_that_scripts_use() -> None:
    options = AgentOptions(max_tokens=1, timeout_ms=2.0)
    assert msgspec.json.encode(options) == b'{"maxTokens":1,"timeoutMs":2.0}'


def test_a_settlement_is_an_answer_or_a_failure() -> None:
    failure = Failure(kind="budget", message="spent", code="token_ceiling", info={"spent": 9})
    for settlement in (
        Settlement(id=1, ok=True, value=[1]),
        Settlement(id=2, ok=False, error=failure),
    ):
        text = msgspec.json.encode(settlement)
        assert msgspec.json.decode(text, type=Settlement) == settlement


def test_a_limit_is_a_kind_and_a_sentence() -> None:
    with pytest.raises(VmLimitError, match=r"^too long$") as caught:
        raise VmLimitError("wall", "too long")
    assert (caught.value.kind, caught.value.sentence) == ("wall", "too long")


def test_the_limit_by_the_clock_is_the_looser_one() -> None:
    """Or a busy machine would kill processes whose scripts the engine can still stop."""
    limits = VmLimits()
    assert limits.wall_us > 2 * limits.cpu_us
