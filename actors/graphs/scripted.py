"""The scripted model: agents answer what a file has recorded, and nothing else.

The file has a JSON object a line. Answers are matched by the hash of the prompt, those of one
prompt in the order of the file. A prompt that has no answer left is an error and never a live call,
so an experiment on recorded answers costs nothing and can't drift. An answer with `calls` wants
tools; what came of them is asked on as `round` 1, and so on, and has answers of its own.

    {"prompt": "Summarise: ...", "value": "...", "tokens": 812, "cost": 0.004, "latency": "3.2s"}
    {"hash": "0f63...", "error": "overloaded", "retryable": true}
    {"hash": "77a1...", "calls": [{"id": "c1", "tool": "read_file", "arguments": {"path": "a.md"}}]}
    {"hash": "77a1...", "round": 1, "value": "It is a list of names."}
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from actors.actor import Context, Place, TableSpec
from actors.config import decode_hook
from actors.graphs.messages import AgentAnswer, AgentAsk, Outcome, ToolCall
from actors.graphs.model import Model, ModelConfig, Planned, drawn
from actors.messages import Natural
from actors.text import clean_text
from transports.units import Duration

HASH_DIGITS = 32  # of BLAKE2b, 128 bits: two prompts never have the same


class Recorded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the file: an answer to a prompt, by its text or its hash.

    `round` counts the rounds of tools that its agent had been through; with `calls` it wants more,
    and `value` is what it said beside.
    """

    prompt: str | None = None
    hash: str | None = None
    round: Natural = 0
    calls: tuple[ToolCall, ...] = ()
    value: Any = None
    error: str | None = None
    retryable: bool = True
    tokens: Natural = 0
    cost: float = 0.0
    latency: Duration | None = None

    @property
    def outcome(self) -> Outcome:
        """How the agent ended, or that it has not."""
        if self.error is not None:
            return "failed"
        return "tools" if self.calls else "ok"


class Served(msgspec.Struct, frozen=True, gc=False):
    """How many answers to a prompt were given; a model that was restarted goes on from there."""

    count: int


SERVED = TableSpec("served", Served)


class AnswersError(ValueError):
    """A file of recorded answers has a mistake: its line, and one sentence."""

    def __init__(self, line: int, sentence: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {sentence}")


def prompt_hash(prompt: str) -> str:
    """Return what a prompt is known by in a file of answers, 32 hex digits."""
    return blake2b(clean_text(prompt).encode(), digest_size=HASH_DIGITS // 2).hexdigest()


def answer_key(hashed: str, rounds: int) -> str:
    """Return what the answers to a prompt are found by, after so many rounds of tools."""
    return f"{hashed}:{rounds}" if rounds else hashed


def read_answers(text: str) -> Mapping[str, tuple[Recorded, ...]]:
    """Return a file's answers by `answer_key`; AnswersError if it has a mistake."""
    found: dict[str, list[Recorded]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            one = msgspec.convert(msgspec.json.decode(line), Recorded, dec_hook=decode_hook)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise AnswersError(number, str(error)) from None
        if (one.prompt is None) == (one.hash is None):
            raise AnswersError(number, 'an answer has either "prompt" or "hash"')
        if one.hash is not None and len(one.hash) != HASH_DIGITS:
            raise AnswersError(number, f"a hash has {HASH_DIGITS} hex digits")
        key = one.hash.lower() if one.prompt is None and one.hash else prompt_hash(one.prompt or "")
        if one.calls and one.error is not None:
            raise AnswersError(number, 'an answer has either "calls" or "error"')
        found.setdefault(answer_key(key, one.round), []).append(one)
    return {key: tuple(answers) for key, answers in found.items()}


class ScriptedModel(Model):
    """See the module's docstring. AnswersError if the file that its place has is not right."""

    def __init__(self, config: ModelConfig, place: Place) -> None:
        super().__init__(config, place)
        self.recorded = read_answers(place.files[config.answers or ""])

    def on_start(self, context: Context) -> None:
        """Go on after the last answer that was given."""
        super().on_start(context)
        self.served = context.store.table(SERVED)

    def plan(self, context: Context, ask: AgentAsk) -> Planned:
        """Return the next recorded answer, or an error that says what is missing."""
        hashed, rounds = prompt_hash(ask.prompt), len(ask.rounds)
        key = answer_key(hashed, rounds)
        served = self.served.get(key) or Served(0)
        answers = self.recorded.get(key, ())
        if served.count >= len(answers):
            context.log("model.missed", run=ask.run, agent=ask.agent, hash=hashed)
            which = f"no answer after the first {len(answers)}" if answers else "no answer"
            after = f", round {rounds}" if rounds else ""
            sentence = f"{self.config.answers} has {which} to this prompt (hash {hashed}{after})"
            return Planned(
                AgentAnswer(
                    run=ask.run, agent=ask.agent, outcome="failed", error=sentence, retryable=False
                ),
                0,
            )
        self.served.put(key, Served(served.count + 1))
        one = answers[served.count]
        answer = AgentAnswer(
            run=ask.run,
            agent=ask.agent,
            outcome=one.outcome,
            value=one.value,
            calls=one.calls,
            error=one.error,
            retryable=one.retryable,
            tokens=one.tokens,
            cost=one.cost,
        )
        latency_us = one.latency
        if latency_us is None:
            latency_us = drawn(context, "latency", self.config.latency_us)
        return Planned(answer, int(latency_us))
