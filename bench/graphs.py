"""Measure what running a Graph's script costs, in this process and in a pooled child.

A call of an agent is answered at once, so only the VM's own part is measured: the script asks, the
turn is read, the answer is written and the script goes on. In parallel a script asks for many at a
time; in sequence each call is a turn of its own, and in a child a round trip between processes. The
ways take turns, so that a slow spell of the machine falls on all of them; the median of a way's
rounds is shown beside what the prototype of this design needed.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from actors.edges.vm_process import ProcessVmPort
from actors.graphs.script import ScriptVmPort
from actors.graphs.seam import Seed, Settlement, VmLimits, VmPort, VmState, VmTurn

AGENTS = 2_000  # of a round: under a second for each way
STARTS = 50
PROCESSES = 5
HELD = 20
ROUNDS = 7
PAUSE_S = 0.005  # between starts: a child prepares the next script's context meanwhile
SEED: Seed = (1, 2, 3, 4)
STATE = VmState(0.0, 0, None, 0)
LIMITS = VmLimits(jobs=1_000_000)

PARALLEL = """
const asks = Array.from({length: args}, (_, i) => () => agent(`a${i}`));
return (await parallel(asks)).length"""
ONE_BY_ONE = "for (let i = 0; i < args; i++) await agent(`a${i}`); return args"


class Measured(NamedTuple):
    """One row: what it is, its unit, what the prototype needed, and how to measure it once."""

    name: str
    unit: str
    prototype: float
    measure: Callable[[], float]


def answer(turn: VmTurn) -> list[Settlement]:
    """Answer everything that a turn asks for."""
    return [Settlement(id=request.id, ok=True, value="done") for request in turn.requests]


def call_us(port: VmPort, source: str, agents: int) -> float:
    """What an agent's call takes, in microseconds."""
    vm = port.open(LIMITS)
    begin = time.perf_counter()
    turn = vm.start(source, agents, SEED, STATE)
    while turn.finished is None:
        turn = vm.settle(answer(turn), STATE)
    took_s = time.perf_counter() - begin
    vm.close()
    if turn.finished.value != agents:
        raise SystemExit(f"the script answered {turn.finished}")
    return took_s * 1e6 / agents


def start_ms(port: VmPort, times: int, pause_s: float = 0.0) -> float:
    """What a script from its opening to its end takes, in milliseconds, without the pauses."""
    took_s = 0.0
    for _ in range(times):
        time.sleep(pause_s)
        begin = time.perf_counter()
        vm = port.open(LIMITS)
        vm.start("return 1", None, SEED, STATE)
        vm.close()
        took_s += time.perf_counter() - begin
    return took_s * 1e3 / times


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
    agents, starts, processes, held = (
        max(1, int(usual * share)) for usual in (AGENTS, STARTS, PROCESSES, HELD)
    )
    return [
        Measured("parallel agent, in process", "us", 60, lambda: call_us(inside, PARALLEL, agents)),
        Measured("parallel agent, pooled", "us", 60, lambda: call_us(pooled, PARALLEL, agents)),
        Measured(
            "agent in turn, in process", "us", 103, lambda: call_us(inside, ONE_BY_ONE, agents)
        ),
        Measured("agent in turn, pooled", "us", 228, lambda: call_us(pooled, ONE_BY_ONE, agents)),
        Measured("start, in process", "ms", 1.1, lambda: start_ms(inside, starts)),
        Measured("start, pooled", "ms", 1.1, lambda: start_ms(pooled, starts, PAUSE_S)),
        Measured("start, pooled, at once", "ms", 1.1, lambda: start_ms(pooled, starts)),
        Measured("start, its own process", "ms", 29, lambda: fresh_ms(processes)),
        Measured("memory of a process", "MB", 13.5, process_mb),
        Measured("memory of one more script", "KB", 180, lambda: context_kb(held)),
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
    print(f"Python {platform.python_version()}, {sys.platform}, median of {rounds} rounds")
    print(f"{'':30}{'here':>12}{'prototype':>14}")
    for row, result in zip(table, results, strict=True):
        print(f"{row.name:30}{median(result):9.4g} {row.unit}{row.prototype:11.4g} {row.unit}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual amount of each")
    options = parser.parse_args()
    compare(options.rounds, options.share)


if __name__ == "__main__":
    main()
