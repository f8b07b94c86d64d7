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

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import trio

from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.failures import DETAIL_LIMIT_CHARS, BackendError, without
from actors.edges.models.openai import check_size
from actors.edges.models.structured import question_of, value_of
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk
from actors.text import clean_text, clean_value, units

OUTPUT_LIMIT_BYTES = 6 * ANSWER_LIMIT_CHARS + (64 << 10)  # escaped, and the usage beside it
VARIABLE_LIMIT_BYTES = 100_000  # Linux takes 128 KiB
SCARCE = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)  # it may start later
ERROR_LIMIT_BYTES = 64 << 10  # of stderr, whose end is kept


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
        try:
            process = await trio.lowlevel.open_process(
                list(self.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **environment(ask)},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            sentence = f"the command {self.command[0]!r} can't be started: {why}"
            scarce = isinstance(error, OSError) and error.errno in SCARCE
            raise BackendError("failed", sentence, retryable=scarce) from None
        spent.ask(len(prompt))
        try:
            output, errors = await _talk(process, prompt, spent)
        finally:
            await _end(process)
        if process.returncode != 0:
            raise self.failure(process.returncode, errors)
        return read_output(ask, output, spent)

    def failure(self, status: int | None, errors: bytes) -> BackendError:
        """Return the failure of a command that ended with an error: its last words."""
        lines = clean_text(errors.decode(errors="replace")).strip().split("\n")
        words = without(lines[-1].strip(), self._secrets)[:DETAIL_LIMIT_CHARS]
        said = f": {words}" if words else ""
        how = f"signal {-status}" if status and status < 0 else f"exit code {status}"
        return BackendError("failed", f"the command ended with {how}{said}", retryable=True)


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


async def _talk(process: trio.Process, prompt: bytes, spent: Spent) -> tuple[bytes, bytes]:
    """Return stdout and the end of stderr of a process that has ended."""
    output, errors = bytearray(), bytearray()

    async def write() -> None:
        assert process.stdin is not None, "it was asked for"
        with suppress(trio.BrokenResourceError):  # it did not want to know all of it
            await process.stdin.send_all(prompt)
        await process.stdin.aclose()

    async def listen() -> None:
        assert process.stderr is not None, "it was asked for"
        async for chunk in process.stderr:
            errors.extend(chunk)
            del errors[:-ERROR_LIMIT_BYTES]

    async def read() -> None:
        assert process.stdout is not None, "it was asked for"
        async for chunk in process.stdout:
            output.extend(chunk)
            spent.wrote(len(output))
            if len(output) > OUTPUT_LIMIT_BYTES:
                nursery.cancel_scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        for part in (write, listen, read):
            nursery.start_soon(part)
        await process.wait()
        # What it left behind would hold the pipes open.
        _kill_group(process)
    if len(output) > OUTPUT_LIMIT_BYTES:
        sentence = f"the command wrote more than {OUTPUT_LIMIT_BYTES:,} bytes"
        raise BackendError("too_large", sentence, retryable=False)
    return bytes(output), bytes(errors)


async def _end(process: trio.Process) -> None:
    """Kill all that is left of a command, and wait until it is gone."""
    with trio.CancelScope(shield=True):
        _kill_group(process)
        await process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                await pipe.aclose()


def _kill_group(process: trio.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody is left
        os.killpg(process.pid, signal.SIGKILL)
