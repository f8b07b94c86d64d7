"""Measure what running Graphs costs: a script in this process and in a child, and whole runs.

A call of an agent is answered at once, so only the VM's own part is measured: the script asks, the
turn is read, the answer is written and the script goes on. In parallel a script asks for many at a
time; in sequence each call is a turn of its own, and in a child a round trip between processes.

The ways take turns, so that a slow spell of the machine falls on all of them. The best of a way's
rounds is shown beside its bar: what the prototype of this design needed, on its machine. What is
done in this process is counted in computing time, the rest by the clock.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from actors.edges.vm_process import ProcessVmPort
from actors.graphs.script import ScriptVmPort
from actors.graphs.seam import Seed, Settlement, VmLimits, VmPort, VmState, VmTurn
from bench.graph_runs import cancel_ms, simulated_s

AGENTS = 2_000  # of a round: under a second for each way
STARTS = 50
PROCESSES = 5
HELD = 20
ROUNDS = 5
BURST = 4  # scripts that start together
PENDING = 4_000  # agents that a script waits for
MANY_AGENTS, MANY_RUNS = 10_000, 1_000
CANCELLED_AGENTS = 64
PAUSE_S = 0.01  # between starts: a child prepares the next scripts' contexts meanwhile
SEED: Seed = (1, 2, 3, 4)
STATE = VmState(0.0, 0, None, 0)
LIMITS = VmLimits(jobs=1_000_000)

PARALLEL = """
const asks = Array.from({length: args}, (_, i) => () => agent(`a${i}`));
return (await parallel(asks)).length"""
GROWN = """
import os, _quickjs
from bench.graphs import resident_kb
contexts = [_quickjs.Context()]
before_kb = resident_kb(os.getpid())
contexts += [_quickjs.Context() for _ in range({held})]
print((resident_kb(os.getpid()) - before_kb) / {held})
"""
ONE_BY_ONE = "for (let i = 0; i < args; i++) await agent(`a${i}`); return args"


class Measured(NamedTuple):
    """One row: what it is, its unit, its bar if it has one, and how to measure it once."""

    name: str
    unit: str
    bar: float | None
    measure: Callable[[], float]


def answer(turn: VmTurn) -> list[Settlement]:
    """Answer everything that a turn asks for."""
    return [Settlement(id=request.id, ok=True, value="done") for request in turn.requests]


def clock_of(port: VmPort) -> Callable[[], float]:
    """The clock to measure with: computing time where all is done in this process, else wall."""
    return time.process_time if isinstance(port, ScriptVmPort) else time.perf_counter


def call_us(port: VmPort, source: str, agents: int) -> float:
    """What an agent's call takes, in microseconds."""
    vm, clock = port.open(LIMITS), clock_of(port)
    begin = clock()
    turn = vm.start(source, agents, SEED, STATE)
    while turn.finished is None:
        turn = vm.settle(answer(turn), STATE)
    took_s = clock() - begin
    vm.close()
    if turn.finished.value != agents:
        raise SystemExit(f"the script answered {turn.finished}")
    return took_s * 1e6 / agents


def start_ms(port: VmPort, times: int, *, burst: int = 1, pause_s: float = 0.0) -> float:
    """What a script from its opening to its end takes, in milliseconds.

    So many at a time start one behind the other, and stay open until all have; then there is a
    pause, which isn't counted.
    """
    took_s, clock = 0.0, clock_of(port)
    for _ in range(times):
        time.sleep(pause_s)
        begin = clock()
        vms = [port.open(LIMITS) for _ in range(burst)]
        for vm in vms:
            vm.start("return 1", None, SEED, STATE)
        for vm in vms:
            vm.close()
        took_s += clock() - begin
    return took_s * 1e3 / times / burst


def engine_ms(times: int) -> float:
    """What the engine's own context takes to make, with nothing of ours in it, in milliseconds."""
    engine: Any = import_module("_quickjs")
    begin = time.process_time()
    for _ in range(times):
        engine.Context()
    return (time.process_time() - begin) * 1e3 / times


def engine_kb(held: int) -> float:
    """The same in the resident memory of a new process, in kilobytes."""
    command = [sys.executable, "-c", GROWN.format(held=held)]
    return float(subprocess.check_output(command, cwd=Path(__file__).parents[1], text=True))


def pending_kb(agents: int) -> float:
    """What an agent that a script waits for takes of the script's own memory, in kilobytes."""
    vm = ScriptVmPort().open(LIMITS)

    def used_bytes() -> int:
        assert vm.isolate is not None
        used: int = vm.isolate.context.memory()["malloc_size"]
        return used

    before = used_bytes()
    vm.start(PARALLEL, agents, SEED, STATE)
    return (used_bytes() - before) / 1e3 / agents


def fresh_ms(times: int) -> float:
    """The same in a process that has to be started first, and ended."""
    took_s = 0.0
    for _ in range(times):
        begin = time.perf_counter()
        with ProcessVmPort(vms_per_worker=1, spare=False) as port:
            start_ms(port, 1)
        took_s += time.perf_counter() - begin
    return took_s * 1e3 / times


def process_mb() -> float:
    """The resident memory of a child with one script that waits, in megabytes."""
    with ProcessVmPort(spare=False) as port:
        port.open(LIMITS).start("await agent('a')", None, SEED, STATE)
        return resident_kb(port.workers[0].process.pid) / 1e3


def context_kb(held: int) -> float:
    """What one more script that waits takes in a child, in kilobytes of resident memory."""
    with ProcessVmPort(vms_per_worker=held + 1, spare=False) as port:
        vms: list[Any] = []
        sizes_kb: list[int] = []
        for _ in range(held + 1):
            vm = port.open(LIMITS)
            vm.start("await agent('a')", None, SEED, STATE)
            vms.append(vm)
            sizes_kb.append(resident_kb(port.workers[0].process.pid))
        return (sizes_kb[-1] - sizes_kb[0]) / held


def resident_kb(process: int) -> int:
    """A process's resident memory, in kilobytes; 0 where the system has no /proc."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(status.partition("VmRSS:")[2].split()[0])


def rows(inside: VmPort, pooled: VmPort, share: float) -> list[Measured]:
    """The table's rows, each over a share of its usual amount."""
    agents, starts, processes, held, pending, many_agents, many_runs = (
        max(1, int(usual * share))
        for usual in (AGENTS, STARTS, PROCESSES, HELD, PENDING, MANY_AGENTS, MANY_RUNS)
    )
    return [
        Measured("engine's context alone", "ms", 0.15, lambda: engine_ms(starts)),
        Measured("the same, memory", "KB", 180, lambda: engine_kb(held)),
        Measured("parallel agent, in process", "us", 60, lambda: call_us(inside, PARALLEL, agents)),
        Measured("parallel agent, pooled", "us", 60, lambda: call_us(pooled, PARALLEL, agents)),
        Measured(
            "agent in turn, in process", "us", 103, lambda: call_us(inside, ONE_BY_ONE, agents)
        ),
        Measured("agent in turn, pooled", "us", 228, lambda: call_us(pooled, ONE_BY_ONE, agents)),
        Measured("start, in process", "ms", 1.1, lambda: start_ms(inside, starts)),
        Measured("start, pooled", "ms", 1.1, lambda: start_ms(pooled, starts, pause_s=PAUSE_S)),
        Measured(
            f"start, pooled, {BURST} at once",
            "ms",
            1.1,
            lambda: start_ms(pooled, starts, burst=BURST, pause_s=PAUSE_S),
        ),
        Measured("start, pooled, on and on", "ms", 1.1, lambda: start_ms(pooled, starts)),
        Measured("start, its own process", "ms", 29, lambda: fresh_ms(processes)),
        Measured("memory of a process", "MB", 13.5, process_mb),
        # The prototype's, measured as this is; its table has the engine's context alone.
        Measured("memory of one more script", "KB", 217, lambda: context_kb(held)),
        Measured("memory of a pending agent", "KB", 3.3, lambda: pending_kb(pending)),
        Measured(f"{many_agents:,} agents, simulated", "s", 1, lambda: simulated_s(1, many_agents)),
        Measured(f"{many_runs:,} runs at once", "s", None, lambda: simulated_s(many_runs, 1)),
        Measured(
            f"cancel, {CANCELLED_AGENTS} agents at work",
            "ms",
            11,
            lambda: cancel_ms(CANCELLED_AGENTS),
        ),
        Measured("cancel in an endless loop", "ms", 6, lambda: cancel_ms(0)),
    ]


def compare(rounds: int, share: float) -> None:
    """Print the table."""
    with ProcessVmPort() as pooled:
        table = rows(ScriptVmPort(), pooled, share)
        start_ms(pooled, 1)
        results: list[list[float]] = [[] for _ in table]
        for _ in range(rounds):
            for row, result in zip(table, results, strict=True):
                result.append(row.measure())
    print(f"Python {platform.python_version()}, {sys.platform}, best of {rounds} rounds")
    print(f"{'':30}{'here':>12}{'bar':>14}")
    for row, result in zip(table, results, strict=True):
        bar = "" if row.bar is None else f"{row.bar:11.4g} {row.unit}"
        print(f"{row.name:30}{min(result):9.4g} {row.unit:2}{bar}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual amount of each")
    options = parser.parse_args()
    compare(options.rounds, options.share)


if __name__ == "__main__":
    main()
