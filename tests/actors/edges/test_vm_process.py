"""The port of child processes: the same turns, limits that hold, and nothing left behind."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.edges import vm_process
from actors.edges.vm_process import ProcessVmPort, Worker
from actors.graphs.script import ScriptVmPort
from actors.graphs.seam import (
    STOPPED,
    Settlement,
    VmLimitError,
    VmLimits,
    VmMissingError,
    VmPort,
)
from tests.actors.graphs.driver import CEILING, FAILED, LOW, PORT, SEED, STATE, drive

ROOT = Path(__file__).parents[3]
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")


@pytest.fixture(scope="module")
def port() -> Iterator[ProcessVmPort]:
    with ProcessVmPort() as opened:
        yield opened


def children() -> set[int]:
    """The processes that this one has started and not yet waited for."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts as ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(process: int, limit_s: float) -> bool:
    end_s = time.monotonic() + limit_s
    while not is_gone(process) and time.monotonic() < end_s:
        time.sleep(0.01)
    return is_gone(process)


def first_turn(port: VmPort, source: str, limits: VmLimits = LOW, args: Any = None) -> Any:
    vm = port.open(limits)
    try:
        return vm.start(source, args, SEED, STATE)
    finally:
        vm.close()


SCRIPTS = {
    "everything": """
    export const meta = {name: 'all'};
    phase('p');
    const ask = i => () => retry(() => agent(`${i} ${Math.random()}`, {label: 'é'}));
    const all = await parallel([1, 2, 3].map(ask), {settle: true});
    log(new Date(), all);
    setTimeout(() => log('timer'), 5);
    await sleep(10 * Math.random());
    return {all, at: Date.now(), sub: await graph('g', {a: [1, null]}), args}""",
    "ceiling": "return parallel([1, 2, 3].map(i => () => agent('c' + i)))",
    "error": "const f = async () => {\\n await agent('e');\\n};\\nawait f()",
    "syntax": "let a = ;",
    "meta": "export const meta = {a: f()}",
    "forgotten": "agent('x')",
    "large": """
    const all = await parallel(Array.from({length: 500}, (_, i) => () => agent('x' + i)));
    return all.join()""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_turns_are_equal_to_those_in_this_process(name: str, port: ProcessVmPort) -> None:
    def answer(request: Any) -> Any:
        if request.prompt == "c2":
            return CEILING
        return FAILED if request.prompt == "e" else {"to": request.prompt or request.args}

    options: dict[str, Any] = {"answer": answer, "args": {"ü": [1.5]}, "total": 100}
    here = drive(SCRIPTS[name], **options)[1].turns
    there = drive(SCRIPTS[name], vm=port.open(LOW), **options)[1].turns
    assert repr(here) == repr(there)


# Processes


@needs_proc
def test_nothing_is_left_behind() -> None:
    before, files = children(), set(Path("/proc/self/fd").iterdir())
    with ProcessVmPort() as port:
        vms = [port.open(LOW) for _ in range(3)]
        for vm in vms:
            vm.start("await agent('a')", None, SEED, STATE)
        with pytest.raises(VmLimitError, match="killed"):
            first_turn(port, "[].concat(new Array(2 ** 31)).indexOf(1)")
        assert len(children() - before) == 1  # the spare one
    assert children() == before
    assert set(Path("/proc/self/fd").iterdir()) == files


@needs_proc
def test_a_port_that_is_forgotten_ends_its_processes() -> None:
    before = children()
    port = ProcessVmPort()
    first_turn(port, "return 1")
    assert len(children() - before) == 2
    del port
    gc.collect()
    assert children() == before


def test_a_killed_process_fails_its_other_scripts_once_told_why() -> None:
    with ProcessVmPort() as port:
        neighbour = port.open(LOW)
        neighbour.start("await agent('a')", None, SEED, STATE)
        with pytest.raises(VmLimitError) as caught:
            first_turn(port, "[].concat(new Array(2 ** 31)).indexOf(1)")
        assert caught.value.kind == "wall"
        assert str(caught.value) == "the script did not come back within 0.5 s and was killed"
        with pytest.raises(VmLimitError, match="another script in the same process") as caught:
            neighbour.settle([Settlement(id=1, ok=True)], STATE)
        assert caught.value.kind == "died"
        assert first_turn(port, "return 1").finished.value == 1


def test_a_limit_leaves_the_neighbours_alone_and_retires_the_process() -> None:
    with ProcessVmPort() as port:
        neighbour = port.open(LOW)
        neighbour.start("return await agent('a')", None, SEED, STATE)
        first = neighbour.worker
        with pytest.raises(VmLimitError, match="promise reactions"):
            first_turn(port, "const f = () => { Promise.resolve().then(f) }; f(); await sleep(1)")
        other = port.open(LOW)
        assert other.worker is not first
        turn = neighbour.settle([Settlement(id=1, ok=True, value=7)], STATE)
        assert turn.finished is not None
        assert turn.finished.value == 7
        neighbour.close()
        assert first.death is not None


@pytest.mark.parametrize("shared", [False, True])
def test_a_hurried_script_that_computes_for_ever_is_ended(shared: bool) -> None:
    endless = VmLimits(cpu_us=60_000_000, wall_us=60_000_000)
    with ProcessVmPort() as port:
        vm = port.open(endless)
        vm.start("await agent('a'); for (;;);", None, SEED, STATE)
        others = [port.open(LOW)] if shared else []
        for other in others:
            other.start("await agent('a')", None, SEED, STATE)
        caller = threading.Thread(target=hurry_once_it_computes, args=(vm,))
        caller.start()
        with pytest.raises(VmLimitError, match=STOPPED) as caught:
            vm.settle([Settlement(id=1, ok=True)], STATE)
        caller.join()
        assert caught.value.kind == "died"
        for other in others:
            with pytest.raises(VmLimitError, match="was cancelled as it computed"):
                other.settle([Settlement(id=1, ok=True)], STATE)
        assert first_turn(port, "return 1").finished.value == 1


def hurry_once_it_computes(vm: vm_process.ProcessVm) -> None:
    end_s = time.monotonic() + 30
    while not vm.worker.calling and time.monotonic() < end_s:
        time.sleep(0.001)
    vm.hurry()


def test_a_hurried_script_that_waits_harms_nobody_and_goes_on_no_more() -> None:
    with ProcessVmPort() as port:
        vm, other = port.open(LOW), port.open(LOW)
        for each in (vm, other):
            each.start("return await agent('a')", None, SEED, STATE)
        vm.hurry()
        vm.worker.break_off(vm.number)
        with pytest.raises(VmLimitError, match=STOPPED):
            vm.settle([Settlement(id=1, ok=True)], STATE)
        turn = other.settle([Settlement(id=1, ok=True, value=7)], STATE)
        assert turn.finished is not None
        assert turn.finished.value == 7


def test_a_process_that_someone_ends_is_replaced() -> None:
    with ProcessVmPort() as port:
        vm = port.open(LOW)
        vm.start("await agent('a')", None, SEED, STATE)
        os.kill(vm.worker.process.pid, signal.SIGKILL)
        with pytest.raises(VmLimitError, match="broke off") as caught:
            vm.settle([], STATE)
        assert caught.value.kind == "died"
        idle = port.workers[-1]
        os.kill(idle.process.pid, signal.SIGKILL)
        idle.process.wait()
        assert first_turn(port, "return 1").finished.value == 1


def test_a_stopped_process_does_not_stop_its_host() -> None:
    with ProcessVmPort() as port:
        vm = port.open(VmLimits(wall_us=100_000))
        vm.start("await agent('a')", None, SEED, STATE)
        os.kill(vm.worker.process.pid, signal.SIGSTOP)
        with pytest.raises(VmLimitError) as caught:
            vm.settle([Settlement(id=1, ok=True, value="x" * 1_000_000)], STATE)
        assert caught.value.kind == "wall"


def test_processes_are_shared_and_one_is_kept_ready() -> None:
    with ProcessVmPort(vms_per_worker=2) as port:
        vms = [port.open(LOW) for _ in range(3)]
        workers = [vm.worker for vm in vms]
        assert workers[0] is workers[1] is not workers[2]
        assert len(port.workers) == 3
        vms[0].close()
        assert port.open(LOW).worker is workers[0]


@needs_proc
def test_a_closed_script_gives_its_memory_back() -> None:
    limits = VmLimits()
    with ProcessVmPort() as port:
        before_kb = after_kb = 0
        for number in range(30):
            vm = port.open(limits)
            vm.start("globalThis.x = new Array(1e6).fill(1); await agent('a')", None, SEED, STATE)
            vm.close()
            status = Path(f"/proc/{vm.worker.process.pid}/status").read_text()
            after_kb = int(status.partition("VmRSS:")[2].split()[0])
            before_kb = before_kb or after_kb
            assert number == 0 or len(port.workers) == 2
        assert after_kb < before_kb + 40_000  # each holds 16 MB


def test_threads_may_share_a_port() -> None:
    results: list[Any] = []

    def work(number: int, port: ProcessVmPort) -> None:
        source = "return parallel([1, 2, 3].map(i => () => agent(args + ' ' + i)))"
        finished, _ = drive(source, vm=port.open(VmLimits()), args=f"t{number}")
        results.append(finished.value)

    with ProcessVmPort(vms_per_worker=2) as port:
        threads = [threading.Thread(target=work, args=(n, port)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == [[f"t{n} {i}" for i in (1, 2, 3)] for n in range(8)]


async def test_a_script_in_a_worker_thread_leaves_trio_free(port: ProcessVmPort) -> None:
    vm = port.open(VmLimits(cpu_us=100_000))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await trio.sleep(0.01)
            ticks += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        with pytest.raises(VmLimitError, match="computed"):
            await trio.to_thread.run_sync(vm.start, "for (;;);", None, SEED, STATE)
        nursery.cancel_scope.cancel()
    assert ticks > 2


def test_an_interrupted_call_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessVmPort() as port:
        vm = port.open(LOW)
        vm.start("await agent('a')", None, SEED, STATE)

        def interrupt(*_: object) -> bytes:
            raise KeyboardInterrupt

        monkeypatch.setattr(vm.worker, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            vm.settle([], STATE)
        with pytest.raises(VmLimitError, match="interrupted"):
            vm.settle([], STATE)


@needs_proc
def test_a_child_has_no_environment_no_files_and_its_own_session(port: ProcessVmPort) -> None:
    first_turn(port, "return 1")
    process = port.workers[0].process.pid
    assert Path(f"/proc/{process}/environ").read_bytes() == b""
    assert Path(f"/proc/{process}/cwd").readlink() == Path("/")
    assert os.getsid(process) == process
    assert {each.name for each in Path(f"/proc/{process}/fd").iterdir()} == {"0", "1", "2"}
    limits = Path(f"/proc/{process}/limits").read_text()
    for name, limit in (
        ("core file size", 0),
        ("file size", 0),
        ("open files", 16),
        ("processes", 0),
    ):
        assert f"Max {name}".ljust(26) + str(limit).ljust(21) in limits
    assert f"{vm_process.WORKER_BYTES}" in limits


@needs_proc
@pytest.mark.parametrize("source", ["await agent('a')", "[].concat(new Array(2**31)).indexOf(1)"])
def test_no_child_outlives_a_killed_host(source: str) -> None:
    """Neither one that waits nor one in a native loop that holds the interpreter's lock."""
    program = textwrap.dedent(
        f"""
        import os, sys, threading
        from actors.edges.vm_process import ProcessVmPort
        from actors.graphs.seam import VmLimits, VmState
        port = ProcessVmPort()
        vm = port.open(VmLimits(wall_us=300_000))
        start = lambda: vm.start({source!r}, None, (1, 2, 3, 4), VmState(0.0, 0, None, 0))
        threading.Thread(target=start, daemon=True).start()
        print(*[worker.process.pid for worker in port.workers], flush=True)
        sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as host:
        assert host.stdout is not None
        workers = [int(word) for word in host.stdout.readline().split()]
        time.sleep(0.1)
        host.kill()
    assert len(workers) == 2
    for worker in workers:
        assert wait_until_gone(worker, 3)


@needs_proc
@pytest.mark.parametrize("end", ["raise SystemError", "sys.exit(3)", "os._exit(4)", "pass"])
def test_no_child_outlives_its_host_however_that_ends(end: str) -> None:
    program = textwrap.dedent(
        f"""
        import os, sys
        from actors.edges.vm_process import ProcessVmPort
        from actors.graphs.seam import VmLimits, VmState
        port = ProcessVmPort()
        vm = port.open(VmLimits())
        vm.start("await agent('a')", None, (1, 2, 3, 4), VmState(0.0, 0, None, 0))
        print(*[worker.process.pid for worker in port.workers], flush=True)
        {end}
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Warning" not in done.stderr
    workers = [int(word) for word in done.stdout.split()]
    assert len(workers) == 2
    assert all(wait_until_gone(worker, 2) for worker in workers)


def test_a_shells_limit_of_the_stack_ends_no_script() -> None:
    program = textwrap.dedent(
        """
        import resource
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, hard))
        from actors.edges.vm_process import ProcessVmPort
        from actors.graphs.seam import VmLimits, VmState
        source = "let n = 0; const f = () => { n++; f() }; try { f() } catch { return n }"
        with ProcessVmPort() as port:
            vm = port.open(VmLimits())
            turn = vm.start(source, None, (1, 2, 3, 4), VmState(0.0, 0, None, 0))
        print(turn.finished.value)
        """
    )
    done = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)
    assert int(done) > 2_000


def test_a_fork_gets_processes_of_its_own() -> None:
    program = textwrap.dedent(
        """
        import os
        from actors.edges.vm_process import ProcessVmPort
        from actors.graphs.seam import Settlement, VmLimitError, VmLimits, VmState
        state = VmState(0.0, 0, None, 0)
        port = ProcessVmPort()
        vm = port.open(VmLimits())
        vm.start("return agent('a')", None, (1, 2, 3, 4), state)
        child = os.fork()
        if child == 0:
            try:
                vm.settle([], state)
            except VmLimitError as error:
                assert "fork" in str(error), error
            else:
                raise SystemExit(1)
            other = port.open(VmLimits())
            assert other.start("return 5", None, (1, 2, 3, 4), state).finished.value == 5
            port.close()
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
        turn = vm.settle([Settlement(id=1, ok=True, value=6)], state)
        assert turn.finished.value == 6
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_engine_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vm_process, "find_spec", lambda _: None)
    with pytest.raises(VmMissingError, match=r"pip install 'pullcord\[graphs\]'"):
        ProcessVmPort().open(LOW)


def test_an_engine_that_does_not_load_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vm_process, "engine_folder", lambda: tmp_path)
    with ProcessVmPort() as port, pytest.raises(VmMissingError, match="pip install") as caught:
        first_turn(port, "return 1")
    assert "doesn't load: No module named '_quickjs'" in str(caught.value)


def test_where_no_process_can_start_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(VmLimitError, match="no process for scripts can be started") as caught:
        ProcessVmPort().open(LOW)
    assert caught.value.kind == "died"


@pytest.mark.parametrize("program", ["import sys", "import time; time.sleep(9)"])
def test_a_process_that_does_not_serve_is_told(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm_process, "BOOT", program)
    with ProcessVmPort() as port, pytest.raises(VmLimitError) as caught:
        first_turn(port, "return 1", VmLimits(wall_us=150_000))
    assert caught.value.kind in {"died", "wall"}


def test_an_answer_that_is_too_long_ends_the_process() -> None:
    nothing = VmLimits(output_bytes=-vm_process.CHUNK_BYTES)  # not even a limit's own sentence
    with ProcessVmPort() as port, pytest.raises(VmLimitError, match="broke off"):
        first_turn(port, "return 'x'", nothing)


def test_an_answer_that_is_no_turn_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, words in ((b"={}x", "answered no turn"), (b'={"pending":"x"}', "no turn")):
        with ProcessVmPort() as port:
            vm = port.open(LOW)
            monkeypatch.setattr(Worker, "call", lambda *_, answer=answer: answer)
            with pytest.raises(VmLimitError, match=words):
                vm.start("return 1", None, SEED, STATE)
            monkeypatch.undo()


def test_both_ports_are_ports_of_the_seam() -> None:
    ports: list[VmPort] = [ScriptVmPort(), ProcessVmPort()]
    assert PORT.prelude == ports[0].prelude == ports[1].prelude  # type: ignore[attr-defined]  # both have it
