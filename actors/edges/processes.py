"""A program run to its end, in a process group of its own that is killed with it.

Nothing that stays in the group is left, whether the program ends, floods its pipe or is cancelled.
No shell is ever asked: a program is a list of words.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

SCARCE = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)  # it may start later
ERROR_LIMIT_BYTES = 64 << 10  # of stderr, whose end is kept


class StartError(Exception):
    """A program can't be started: one sentence; `scarce` if it may start later."""

    def __init__(self, sentence: str, *, scarce: bool) -> None:
        self.scarce = scarce
        super().__init__(sentence)


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended: its exit status, below 0 the signal that ended it, and what it wrote.

    A program that has `flooded` was killed: `output` is the beginning of what it wrote.
    """

    status: int
    output: bytes
    errors: bytes  # their end
    flooded: bool


def ending(status: int) -> str:
    """Return an exit status in words."""
    return f"signal {-status}" if status < 0 else f"exit code {status}"


def _not_heeded(_size_bytes: int) -> None:
    """Let nobody know how much was written."""


async def run_process(
    words: Sequence[str],
    *,
    given: bytes = b"",
    environment: Mapping[str, str],
    folder: Path | None = None,
    limit_bytes: int,
    wrote: Callable[[int], None] = _not_heeded,
) -> Ran:
    """Run a program, give it `given` on stdin, and return how it ended. StartError if it can't.

    `wrote` is told how many bytes of output there are whenever there are more.
    """
    try:
        process = await trio.lowlevel.open_process(
            list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        scarce = isinstance(error, OSError) and error.errno in SCARCE
        sentence = f"the command {words[0]!r} can't be started: {why}"
        raise StartError(sentence, scarce=scarce) from None
    try:
        output, errors = await _talk(process, given, limit_bytes, wrote)
    finally:
        await _end(process)
    assert process.returncode is not None, "it has ended"
    return Ran(
        status=process.returncode,
        output=output[:limit_bytes],
        errors=errors,
        flooded=len(output) > limit_bytes,
    )


async def _talk(
    process: trio.Process, given: bytes, limit_bytes: int, wrote: Callable[[int], None]
) -> tuple[bytes, bytes]:
    """Return stdout and the end of stderr of a process that has ended, or writes too much."""
    output, errors = bytearray(), bytearray()

    async def write() -> None:
        assert process.stdin is not None, "it was asked for"
        with suppress(trio.BrokenResourceError):  # it did not want to know all of it
            await process.stdin.send_all(given)
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
            wrote(len(output))
            if len(output) > limit_bytes:
                nursery.cancel_scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        for part in (write, listen, read):
            nursery.start_soon(part)
        await process.wait()
        # What it left behind would hold the pipes open.
        _kill_group(process)
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
