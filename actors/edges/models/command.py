"""Agents answered by a command: the prompt on its stdin, the answer on its stdout.

The command gets a process group of its own, which is killed when the agent is stopped and when the
command has ended: nothing that it started is left. Its environment is ours, and
`PULLCORD_MODEL`, `PULLCORD_SCHEMA`, `PULLCORD_TOOLS` (with commas) and `PULLCORD_MAX_TOKENS` say
what the script asked for; a schema stands in the prompt, too.

Its output is the answer as it is. If it is a JSON object with `tokens` or `usage` beside `value` or
`result`, that is the answer and the rest what it used, as in `claude -p --output-format json`:

    {"value": "...", "tokens": 812, "cost": 0.004}
    {"result": "...", "usage": {"input_tokens": 700, "output_tokens": 112}, "total_cost_usd": 0.004}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.failures import DETAIL_LIMIT_CHARS, BackendError, without
from actors.edges.models.openai import check_size
from actors.edges.models.structured import question_of, value_of
from actors.edges.models.usage import Spent
from actors.edges.processes import StartError, ending, run_process
from actors.graphs.messages import AgentAsk
from actors.text import clean_text, clean_value, units

OUTPUT_LIMIT_BYTES = 6 * ANSWER_LIMIT_CHARS + (64 << 10)  # escaped, and the usage beside it
VARIABLE_LIMIT_BYTES = 100_000  # Linux takes 128 KiB


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class _Report(msgspec.Struct, frozen=True):
    """What a command says of its answer."""

    value: Any = msgspec.UNSET
    result: Any = msgspec.UNSET
    tokens: int | None = None
    usage: _Usage | None = None
    cost: float | None = None
    total_cost_usd: float | None = None
    is_error: bool = False


class CommandBackend:
    """Answers agents by a command; `secrets` are hidden in what it says of its errors."""

    def __init__(self, command: Sequence[str], secrets: Sequence[str] = ()) -> None:
        self.command = command
        self._secrets = secrets

    async def close(self) -> None:
        """See Backend: it holds nothing."""

    async def answer(self, ask: AgentAsk, spent: Spent) -> Any:
        """See Backend."""
        prompt = question_of(ask, with_schema=True).encode()
        spent.ask(len(prompt))
        try:
            ran = await run_process(
                self.command,
                given=prompt,
                environment={**os.environ, **environment(ask)},
                limit_bytes=OUTPUT_LIMIT_BYTES,
                wrote=spent.wrote,
            )
        except StartError as error:
            spent.nothing()
            raise BackendError("failed", str(error), retryable=error.scarce) from None
        if ran.flooded:
            sentence = f"the command wrote more than {OUTPUT_LIMIT_BYTES:,} bytes"
            raise BackendError("too_large", sentence, retryable=False)
        if ran.status != 0:
            raise self.failure(ran.status, ran.errors)
        return read_output(ask, ran.output, spent)

    def failure(self, status: int, errors: bytes) -> BackendError:
        """Return the failure of a command that ended with an error: its last words."""
        lines = clean_text(errors.decode(errors="replace")).strip().split("\n")
        words = without(lines[-1].strip(), self._secrets)[:DETAIL_LIMIT_CHARS]
        said = f": {words}" if words else ""
        sentence = f"the command ended with {ending(status)}{said}"
        return BackendError("failed", sentence, retryable=True)


def environment(ask: AgentAsk) -> Mapping[str, str]:
    """Return what a command is told of its agent besides the prompt."""
    told = {"PULLCORD_TOOLS": ",".join(map(str, ask.tools)) or None, "PULLCORD_MODEL": ask.model}
    if ask.schema is not None:
        schema = msgspec.json.encode(ask.schema).decode()
        # A larger one stands in the prompt alone.
        told["PULLCORD_SCHEMA"] = schema if len(schema) <= VARIABLE_LIMIT_BYTES else None
    if ask.max_tokens is not None:
        told["PULLCORD_MAX_TOKENS"] = str(ask.max_tokens)
    return {key: value for key, value in told.items() if value is not None and "\0" not in value}


def read_output(ask: AgentAsk, output: bytes, spent: Spent) -> Any:
    """Return the answer that a command's output holds, and count what it says that it used."""
    text = output.decode(errors="replace")
    answer: Any = text.removesuffix("\n").removesuffix("\r")
    try:
        report = msgspec.json.decode(output, type=_Report)
    except (msgspec.DecodeError, RecursionError):
        report = _Report()
    given = report.value if report.value is not msgspec.UNSET else report.result
    if given is not msgspec.UNSET and (report.tokens is not None or report.usage is not None):
        _count(report, spent)
        if report.is_error:
            sentence = f"the command reports an error: {given}"[:DETAIL_LIMIT_CHARS]
            raise BackendError("failed", sentence, retryable=True)
        try:
            answer = clean_value(given)
        except ValueError as error:
            sentence = f"the command's answer can't be used: {error}"
            raise BackendError("malformed", sentence, retryable=True) from None
    check_size(units(answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()))
    return value_of(ask, answer, wrapped=False) if isinstance(answer, str) else answer


def _count(report: _Report, spent: Spent) -> None:
    if report.usage is not None:
        usage = report.usage
        read = (
            usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        )
        spent.report(read, usage.output_tokens, final=True)
    else:
        spent.report(0, report.tokens, final=True)
    spent.costs(report.cost if report.cost is not None else report.total_cost_usd)
