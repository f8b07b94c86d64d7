"""A program run to its end: what it gets, how it ended, and that nothing of it is left."""

import os
import sys
from pathlib import Path

import pytest
import trio

from actors.edges.processes import Ran, StartError, ending, run_process
from tests.actors.edges.leftovers import wait_until_gone

PATH = {"PATH": os.environ["PATH"]}


async def shell(script: str, limit_bytes: int = 1_000, given: bytes = b"") -> Ran:
    """What a shell script came to."""
    return await run_process(
        ["sh", "-c", script], given=given, environment=PATH, limit_bytes=limit_bytes
    )


async def test_a_program_gets_its_input_and_its_environment_alone() -> None:
    ran = await shell("cat; echo error >&2; env | grep -c HOME; exit 3", given=b"hello\n")
    assert (ran.status, ran.output, ran.errors) == (3, b"hello\n0\n", b"error\n")
    assert not ran.flooded
    assert (ending(3), ending(-9)) == ("exit code 3", "signal 9")


async def test_a_program_runs_in_its_folder(tmp_path: Path) -> None:
    ran = await run_process(["pwd"], environment=PATH, folder=tmp_path, limit_bytes=1_000)
    assert Path(ran.output.decode().strip()).name == tmp_path.name


async def test_a_flood_is_stopped_and_its_beginning_kept() -> None:
    ran = await shell("cat /dev/zero")
    assert ran.flooded
    assert ran.output == b"\0" * 1_000
    assert not (await shell("head -c 1000 /dev/zero")).flooded


async def test_what_is_no_program_is_told() -> None:
    with pytest.raises(StartError, match="'no-such-program' can't be started: No such") as error:
        await run_process(["no-such-program"], environment=PATH, limit_bytes=1)
    assert not error.value.scarce


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whether a process is there")
@pytest.mark.parametrize("how", ["cancelled", "ended", "flooded"])
async def test_nothing_that_it_started_is_left(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 100 & sleep 100 >/dev/null 2>&1 & echo $! $$ > {pids}; "
    script += {"cancelled": "wait", "ended": "echo done", "flooded": "cat /dev/zero"}[how]
    if how != "cancelled":
        await shell(script)
    else:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shell, script)
            while not (pids.exists() and pids.read_text().endswith("\n")):  # noqa: ASYNC110  a file
                await trio.sleep(0.005)
            nursery.cancel_scope.cancel()
    await wait_until_gone(*map(int, pids.read_text().split()))
