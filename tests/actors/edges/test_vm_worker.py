"""The child process by itself: what it reads and writes, and that it ends."""

import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from actors.edges import vm_worker
from actors.edges.vm_process import BOOT, WORKER, engine_folder, packages_folder
from actors.edges.vm_worker import BURST_MS, LENGTH_BYTES, SPARES, Worker, pack
from tests.actors.graphs.driver import PORT

START = (
    '{"source":%s,"args":null,"seed":[1,2,3,4],"room":1000000,"now_ms":0,"spent":0,"total":null}'
)
LIMITS = "{wall} 100000 16000000 262144 10000 1000000"


class Child:
    """A worker that runs, with its prelude read."""

    def __init__(self, python: str = sys.executable) -> None:
        command = [python, "-I", "-S", "-B", "-c", BOOT]
        folders = [str(packages_folder()), str(engine_folder())]
        self.process = subprocess.Popen(
            [*command, *folders, WORKER, str(1 << 30), "16"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self.write(PORT.prelude)

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(pack(text.encode()))

    def read(self) -> str:
        assert self.process.stdout is not None
        size = int.from_bytes(self.process.stdout.read(LENGTH_BYTES), "little")
        return self.process.stdout.read(size).decode()

    def start(self, number: int, source: str, *, dropped: str = "-", wall_us: int = 10**6) -> None:
        limits = LIMITS.format(wall=wall_us)
        self.write(f"start {number} {dropped} {limits}\n" + START % f'"{source}"')

    def close(self) -> int:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        return self.process.wait(5)


@pytest.fixture
def child() -> Iterator[Child]:
    opened = Child()
    yield opened
    opened.process.kill()
    opened.close()


def test_a_frame_is_its_length_and_its_text() -> None:
    assert pack(b"ab" * 200) == b"\x90\x01\x00\x00" + b"ab" * 200


def test_scripts_are_kept_by_number_until_they_are_dropped(child: Child) -> None:
    for number in (1, 2):
        child.start(number, "return await agent(1 + '')")
        assert '"op":"agent"' in child.read()
    settled = '{"settlements":[[1,true,"x"]],"now_ms":0,"spent":0,"total":null}'
    child.write(f"settle 1 - {LIMITS.format(wall=10**6)}\n{settled}")
    assert child.read() == '={"requests":[],"notices":[],"finished":{"value":"x"},"pending":0}'
    child.write("drop 0 1,2 0 0 0 0 0 0\n")
    child.start(3, "return 3", dropped="9")
    assert '"value":3' in child.read()
    child.write(f"settle 2 - {LIMITS.format(wall=10**6)}\n{settled}")
    assert child.read() == ""  # no number that was dropped is ever used again: a host that errs
    assert child.process.wait(5) == 1


def test_a_limit_is_told_with_its_kind(child: Child) -> None:
    child.start(1, "for (;;);")
    assert child.read() == "!cpu the script computed for 0.1 s without waiting for the host"


def test_the_end_of_its_input_ends_it(child: Child) -> None:
    assert child.close() == 0


def test_it_ends_when_nobody_reads_its_answer(child: Child) -> None:
    assert child.process.stdout is not None
    child.process.stdout.close()
    child.start(1, "return 1")
    assert child.process.wait(5) == 0


def test_an_alarm_of_the_kernel_ends_a_native_loop(child: Child) -> None:
    """Its host may have died: nobody else would end it."""
    child.start(1, "[].concat(new Array(2**31)).indexOf(1)", wall_us=-900_000)
    assert child.process.wait(5) == -signal.SIGALRM


def test_a_parents_masks_and_handlers_do_not_keep_the_alarm_away() -> None:
    ignored = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        child = Child()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.signal(signal.SIGALRM, ignored)
    child.start(1, "[].concat(new Array(2**31)).indexOf(1)", wall_us=-900_000)
    assert child.process.wait(5) == -signal.SIGALRM
    child.close()


def test_no_alarm_goes_off_between_calls(child: Child) -> None:
    child.start(1, "return 1", wall_us=-900_000)  # 0.1 s, with the margin
    assert '"value":1' in child.read()
    assert child.process.stdout is not None
    assert select.select([child.process.stdout], [], [], 0.15)[0] == []
    assert child.process.poll() is None


class Silence:
    """In a poll's place: the host says nothing, but for as often as it is told to."""

    def __init__(self, *calls: bool) -> None:
        self.calls = list(calls)
        self.waits_ms: list[float] = []

    def poll(self, wait_ms: float) -> bool:
        self.waits_ms.append(wait_ms)
        return bool(self.calls) and self.calls.pop(0)


@pytest.mark.parametrize(("room", "made"), [(16, SPARES), (2, 2), (0, 0)])
def test_isolates_are_made_ahead_for_those_that_may_still_come(room: int, made: int) -> None:
    worker: Any = Worker(PORT.prelude, 16)
    worker.calls = Silence()
    worker.isolates = dict.fromkeys(range(16 - room))
    worker.prepare()
    assert len(worker.spares) == made
    worker.prepare()
    assert len(worker.spares) == made


def test_a_call_that_waits_comes_before_what_is_made_ahead() -> None:
    worker: Any = Worker(PORT.prelude, 16)
    silence = Silence(False, True)
    worker.calls = silence
    worker.prepare()
    assert (len(worker.spares), silence.waits_ms) == (1, [0, BURST_MS])
    worker.calls = Silence(True)
    worker.spares.clear()
    worker.prepare()
    assert not worker.spares


def test_it_imports_little() -> None:
    """Or a script in a process of its own would start much later."""
    program = "import sys; import actors.edges.vm_worker; print(*sys.modules)"
    done = subprocess.check_output(
        [sys.executable, "-S", "-c", program], cwd=Path(vm_worker.__file__).parents[2], text=True
    )
    loaded = set(done.split())
    assert loaded.isdisjoint({"typing", "msgspec", "json", "re", "contextlib", "pathlib", "trio"})


def other_pythons() -> list[str]:
    """The interpreters of this machine that can load the engine of this one, which is for any."""
    if "abi3" not in str(find_spec("_quickjs")):
        return []
    found = []
    for minor in (11, 12, 13, 14):
        homes = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
        found += [str(path) for path in homes][:1] or [shutil.which(f"python3.{minor}") or ""]
    return [path for path in found if path]


@pytest.mark.parametrize("python", other_pythons())
def test_every_python_gives_the_same_bytes(python: str, child: Child) -> None:
    source = (
        "phase('p'); const x = await parallel([1, 2, 3].map(i => () => agent(`${i} "
        "${Math.random()} ${0.1 * i} ${1e21 * i}`))); log(new Date(), x, Math.sin(1), [3, 1, 2]"
        ".sort(), 'ÄÖ'.normalize('NFD')); await sleep(1.5); null.x"
    )
    settled = '{"settlements":%s,"now_ms":1234.5,"spent":1,"total":9}'
    told = []
    for each in (child, Child(python)):
        each.start(1, source)
        turns = [each.read()]
        for answers in ('[[2,true,{"a":1.0}],[1,true,"é"],[3,true,null]]', "[[4,true,null]]"):
            each.write(f"settle 1 - {LIMITS.format(wall=10**6)}\n" + settled % answers)
            turns.append(each.read())
        told.append(turns)
        assert each.close() == 0
    assert told[0] == told[1]
    assert '"finished":{"error":{"name":"TypeError"' in told[0][2]
