"""Agents answered by a command: what it gets, what it gives, and that nothing of it is left."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.command import CommandBackend, environment, read_output
from actors.edges.models.failures import BackendError
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk
from tests.actors.edges.leftovers import wait_until_gone
from tests.actors.edges.models.stub_server import KEY, ask


async def answer(script: str, asked: AgentAsk | None = None, spent: Spent | None = None) -> Any:
    """What a shell script answers."""
    backend = CommandBackend(["sh", "-c", script], [KEY])
    try:
        return await backend.answer(asked or ask(), spent or Spent())
    finally:
        await backend.close()


async def failure(script: str) -> BackendError:
    with pytest.raises(BackendError) as error:
        await answer(script)
    return error.value


async def test_the_prompt_is_on_stdin_and_stdout_is_the_answer() -> None:
    spent = Spent()
    assert await answer("cat; echo", ask("äöü " * 20_000), spent) == "äöü " * 20_000
    assert spent.tokens > 50_000


async def test_a_command_that_reads_nothing_answers_as_well() -> None:
    assert await answer("echo yes", ask("x" * 1_000_000)) == "yes"


async def test_a_report_is_the_answer_with_its_usage() -> None:
    spent = Spent()
    script = """echo '{"value": {"a": 1}, "tokens": 812, "cost": 0.004}'"""
    assert await answer(script, spent=spent) == {"a": 1}
    assert (spent.tokens, spent.reported_cost) == (812, 0.004)


def test_another_form_of_report() -> None:
    spent = Spent()
    report = {
        "type": "result",
        "result": "[1, 2]",
        "is_error": False,
        "usage": {"input_tokens": 700, "cache_read_input_tokens": 50, "output_tokens": 112},
        "total_cost_usd": 0.25,
    }
    asked = ask(schema={"type": "array"})
    assert read_output(asked, msgspec.json.encode(report), spent) == [1, 2]
    assert (spent.tokens, spent.reported_cost) == (862, 0.25)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (b"two\nlines\n", "two\nlines"),
        (b'{"value": 3}\n', '{"value": 3}'),  # no usage: a JSON answer, and no report
        (b'{"tokens": 3}', '{"tokens": 3}'),
        (b"", ""),
        (b"\xff", "\ufffd"),
    ],
)
def test_any_other_output_is_the_answer_as_it_is(output: bytes, value: str) -> None:
    assert read_output(ask(), output, Spent()) == value


def test_a_report_of_an_error_is_a_failure_that_counts() -> None:
    spent = Spent()
    with pytest.raises(BackendError, match="reports an error: no luck"):
        read_output(ask(), b'{"result": "no luck", "is_error": true, "tokens": 5}', spent)
    assert spent.tokens == 5


def test_a_command_is_told_what_its_agent_asked_for() -> None:
    told = environment(ask(model="m", tools=("a", "b"), max_tokens=7, schema={"type": "null"}))
    assert told == {
        "PULLCORD_MODEL": "m",
        "PULLCORD_TOOLS": "a,b",
        "PULLCORD_MAX_TOKENS": "7",
        "PULLCORD_SCHEMA": '{"type":"null"}',
    }
    assert environment(ask()) == {}


def test_a_schema_that_fits_no_variable_is_in_the_prompt_alone() -> None:
    assert environment(ask(schema={"description": "x" * 200_000})) == {}


def test_an_answer_that_is_too_deep_is_refused() -> None:
    deep = b'{"tokens": 1, "value": ' + b"[" * 65 + b"]" * 65 + b"}"
    with pytest.raises(BackendError, match="nested 64 levels") as error:
        read_output(ask(), deep, Spent())
    assert error.value.code == "malformed"


async def test_a_machine_without_room_may_have_some_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(trio.lowlevel, "open_process", full)
    assert (await failure("cat")).retryable


async def test_the_environment_reaches_it() -> None:
    assert await answer('printf "$PULLCORD_MODEL"', ask(model="m")) == "m"


async def test_a_failure_has_the_last_words_without_secrets() -> None:
    error = await failure(f"echo first >&2; echo bad key {KEY} >&2; exit 3")
    assert str(error) == "failed: the command ended with exit code 3: bad key [key]"
    assert error.retryable
    assert "signal 9" in str(await failure("kill -9 $$"))


async def test_a_command_that_is_not_there_is_not_tried_again() -> None:
    backend = CommandBackend(["no-such-command-anywhere"])
    with pytest.raises(BackendError, match="can't be started: No such file") as error:
        await backend.answer(ask(), Spent())
    assert not error.value.retryable


async def test_a_huge_answer_is_refused_and_its_command_ended() -> None:
    assert (await failure("cat /dev/zero")).code == "too_large"
    over = f"head -c {ANSWER_LIMIT_CHARS + 1} /dev/zero"
    assert (await failure(over)).code == "too_large"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whether a process is there")
@pytest.mark.parametrize("how", ["cancelled", "ended"])
async def test_nothing_that_it_started_is_left(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 100 & sleep 100 >/dev/null 2>&1 & echo $! $$ > {pids}; "
    script += "wait" if how == "cancelled" else "echo done"
    if how == "ended":
        assert await answer(script) == "done"
    else:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, script)
            while not (pids.exists() and pids.read_text().endswith("\n")):  # noqa: ASYNC110  a file
                await trio.sleep(0.005)
            nursery.cancel_scope.cancel()
    await wait_until_gone(*map(int, pids.read_text().split()))


async def test_a_cancelled_command_has_used_its_prompt_and_what_it_wrote() -> None:
    spent = Spent()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer, "printf %400s x; exec sleep 100", ask("x" * 400), spent)
        while not spent.pieces:  # noqa: ASYNC110  a count, which tells nobody of its changes
            await trio.sleep(0.005)
        nursery.cancel_scope.cancel()
    assert spent.tokens == 200


async def test_it_does_not_get_the_terminals_interrupt() -> None:
    assert await answer(f"{sys.executable} -c 'import os; print(os.getpgrp())'") != str(
        os.getpgrp()
    )
