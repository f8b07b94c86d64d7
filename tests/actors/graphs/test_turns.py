"""The text that crosses into JavaScript and back."""

import json
from pathlib import Path

import pytest

from actors.graphs import turns
from actors.graphs.meta import MetaError
from actors.graphs.seam import Failure, ScriptFailure, Settlement, VmLimitError, VmState
from actors.graphs.turns import placed, read_turn, refused, settle_text, start_text

STATE = VmState(1.5, 2, None, 3)


def failure(stack: str) -> ScriptFailure:
    return ScriptFailure(name="Error", message="m", stack=stack)


def test_a_start_carries_source_arguments_seed_and_state() -> None:
    text = start_text("export const meta = {};", {"a": [1]}, (1, 2, 3, 4), STATE, 99)
    assert json.loads(text) == {
        "source": "       const meta = {};",
        "args": {"a": [1]},
        "seed": [1, 2, 3, 4],
        "room": 99,
        "now_ms": 1.5,
        "spent": 2,
        "total": None,
        "agents": 3,
    }


def test_answers_keep_their_order() -> None:
    failed = Failure(kind="agent", message="m", code="agent_failed", info={"x": 1})
    text = settle_text(
        [Settlement(id=2, ok=False, error=failed), Settlement(id=1, ok=True, value=None)], STATE
    )
    assert json.loads(text)["settlements"] == [
        [2, False, {"kind": "agent", "message": "m", "code": "agent_failed", "info": {"x": 1}}],
        [1, True, None],
    ]


def test_stacks_have_the_scripts_frames_alone_and_its_lines() -> None:
    stack = (
        "    at request (<input>:165:70)\n    at ask (<input>:1002:9)\n    at map (native)\n"
        "    at <anonymous> (<input>:1007:3)\n    at start (<input>:507:36)\n"
    )
    told = placed(failure(stack), 7)
    assert told.stack == "    at ask (graph.js:2:9)\n    at graph.js:7:3\n"
    assert (told.line, told.column) == (2, 9)


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        ("    at <input>:1003:5\n    at eval (native)\n", (3, 5)),
        ("    at <input>:1004:2\n", (3, 1)),  # a source that ends too early
        ("    at request (<input>:165:70)\n", (0, 0)),
        ("", (0, 0)),
        ("whatever a script has put there (<input>:1001:1) and on", (0, 0)),
    ],
)
def test_the_place_is_that_of_the_first_frame(stack: str, place: tuple[int, int]) -> None:
    told = placed(failure(stack), 3)
    assert (told.line, told.column) == place


def test_padding_is_the_same_on_both_sides() -> None:
    prelude = Path(turns.__file__).with_name("prelude.js").read_text()
    assert f"var PAD_LINES = {turns.PAD_LINES};" in prelude
    assert prelude.count("\n") < turns.PAD_LINES


def test_a_meta_that_cannot_be_read_is_a_syntax_error_of_the_script() -> None:
    turn = refused(MetaError("no literal", 2, 5))
    assert turn.finished is not None
    assert turn.finished.error == ScriptFailure(
        name="SyntaxError",
        message="no literal",
        stack="    at graph.js:2:5\n",
        line=2,
        column=5,
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}{}",
        b"[]",
        b'{"pending":"1"}',
        b'{"requests":[{"id":1,"op":"exec"}]}',
        b'{"requests":[{"id":1,"op":"agent","options":{"maxTokens":"1"}}]}',
        b'{"finished":{"value":' + b"[" * 100_000,
        b'{"finished":{"value":"\xff"}}',
    ],
)
def test_what_no_honest_vm_says_is_told_as_its_death(text: bytes) -> None:
    with pytest.raises(VmLimitError, match="answered no turn") as caught:
        read_turn(text, 1)
    assert caught.value.kind == "died"
