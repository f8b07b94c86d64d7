"""The scripted model: recorded answers by the prompt's hash and in order, and nothing else."""

from __future__ import annotations

import pytest

from actors.actor import Place
from actors.graphs.messages import AgentAnswer, Round, ToolCall, ToolResult
from actors.graphs.scripted import AnswersError, ScriptedModel, prompt_hash, read_answers
from tests.actors.graphs.fake_vm import Api, RejectedError
from tests.actors.graphs.graph_world import config_of, play
from tests.actors.graphs.test_model import ask
from tests.actors.harness import Bench, S

FILE = f"""
{{"prompt": "one", "value": "first", "tokens": 7, "cost": 0.25, "latency": "3s"}}
{{"prompt": "two", "value": {{"n": 2}}}}

{{"hash": "{prompt_hash("one").upper()}", "value": "second"}}
{{"prompt": "bad", "error": "overloaded", "retryable": false, "tokens": 3}}
"""
CONFIG = config_of(model="scripted", answers="a.jsonl", latency="20s")
PLACE = Place(name="model", files={"a.jsonl": FILE})


def answer(model: Bench, prompt: str) -> AgentAnswer:
    model.deliver("engine", ask(prompt=prompt))
    (sent,) = model.fire("r:1")
    assert isinstance(sent.body, AgentAnswer)
    return sent.body


def test_answers_come_in_the_order_of_the_file() -> None:
    model = Bench(ScriptedModel(CONFIG, PLACE), "model")
    first = answer(model, "one")
    assert (first.value, first.tokens, first.cost) == ("first", 7, 0.25)
    assert model.context.now_us == 3 * S
    assert answer(model, "two").value == {"n": 2}
    assert model.context.now_us == 23 * S  # the engine's latency, where none was recorded
    assert answer(model, "one").value == "second"
    bad = answer(model, "bad")
    assert (bad.outcome, bad.error, bad.retryable, bad.tokens) == ("failed", "overloaded", False, 3)


def test_a_miss_is_an_error_and_never_anything_else() -> None:
    model = Bench(ScriptedModel(CONFIG, PLACE), "model")
    missed = answer(model, "three")
    assert (missed.outcome, missed.retryable, missed.tokens) == ("failed", False, 0)
    assert missed.error == f"a.jsonl has no answer to this prompt (hash {prompt_hash('three')})"
    answer(model, "two")
    again = answer(model, "two")
    assert (
        again.error
        == f"a.jsonl has no answer after the first 1 to this prompt (hash {prompt_hash('two')})"
    )
    assert [one["hash"] for one in model.events("model.missed")] == [
        prompt_hash("three"),
        prompt_hash("two"),
    ]


def test_a_restart_does_not_begin_the_file_anew() -> None:
    model = Bench(ScriptedModel(CONFIG, PLACE), "model")
    answer(model, "one")
    model.start()
    assert answer(model, "one").value == "second"


def test_a_script_gets_a_miss_as_a_failed_agent() -> None:
    async def main(api: Api, _: object) -> object:
        found = [await api.agent("two")]
        try:
            await api.agent("unheard of")
        except RejectedError as error:
            found.append([error.code, error.failure.info])
        return found

    world = play(main, model=ScriptedModel(CONFIG, PLACE))
    assert world.end.result == [{"n": 2}, ["agent_failed", {"retryable": False}]]


ROUNDS = """
{"prompt": "look", "value": "Well", "calls": [{"id": "c1", "tool": "read_file", "arguments": 5}]}
{"prompt": "look", "round": 1, "value": "it is empty"}
"""


def test_rounds_of_tools_are_played_one_after_the_other() -> None:
    place = Place(name="model", files={"a.jsonl": ROUNDS})
    model = Bench(ScriptedModel(CONFIG, place), "model")
    wants = answer(model, "look")
    call = ToolCall(id="c1", tool="read_file", arguments=5)
    assert (wants.outcome, wants.value, wants.calls) == ("tools", "Well", (call,))
    result = ToolResult(id="c1", ok=True, text="")
    once = Round(text="Well", calls=(call,), results=(result,))
    model.deliver("engine", ask(prompt="look", rounds=(once,)))
    (sent,) = model.fire("r:1")
    assert (sent.body.outcome, sent.body.value) == ("ok", "it is empty")
    model.deliver("engine", ask(prompt="look", rounds=(once, once)))
    (sent,) = model.fire("r:1")
    assert "no answer to this prompt" in sent.body.error
    assert sent.body.error.endswith(f"(hash {prompt_hash('look')}, round 2)")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "line 2: JSON is malformed"),
        ('{"value": 1}', 'line 2: an answer has either "prompt" or "hash"'),
        ('{"prompt": "a", "hash": "b"}', 'line 2: an answer has either "prompt" or "hash"'),
        ('{"hash": "abc"}', "line 2: a hash has 32 hex digits"),
        ('{"prompt": "a", "tokens": -1}', r"line 2: Expected `int` >= 0 - at `\$.tokens`"),
        (
            '{"prompt": "a", "error": "x", "calls": [{"id": "c", "tool": "t"}]}',
            'line 2: an answer has either "calls" or "error"',
        ),
        ('{"prompt": "a", "latency": "soon"}', 'line 2: "soon"'),
        ('{"prompt": "a", "answer": 1}', "line 2: .*unknown field `answer`"),
        ("[" * 100_000, "line 2: "),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_line(line: str, words: str) -> None:
    with pytest.raises(AnswersError, match=words) as caught:
        read_answers('{"prompt": "a"}\n' + line)
    assert caught.value.line == 2


def test_equal_prompts_have_equal_hashes() -> None:
    assert prompt_hash("a") == prompt_hash("a") != prompt_hash("b")
    assert prompt_hash("\ud800") == prompt_hash("\ufffd")  # as it would be sent
    assert len(prompt_hash("")) == 32
