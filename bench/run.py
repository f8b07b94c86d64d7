"""Measure programs of the same experiment against ours: CPU seconds and memory, each in a process.

The programs take turns, so that a slow spell of the machine falls on all of them; the median of a
program's rounds is shown. CPU time is user and system together, so waiting and a second core make
no difference: of the experiment as the program itself counts it, and of the whole process and its
children as the operating system charged them, start-up and imports included.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.experiment import REPLICATIONS, STRATEGIES

ROOT = Path(__file__).resolve().parent.parent

# Name and module. The first is ours: the ratios are against it.
PROGRAMS = (
    ("pullcord", "bench.ours"),
    ("specialised script", "bench.specialised"),
    ("SimPy, simplest model", "bench.simpy_baseline"),
    ("SimPy, our protocol", "bench.simpy_full"),
)

# Who installs a program has its modules compiled once, not at each start: 70 ms that ours would pay
# alone, since it runs from the checkout and SimPy from an installed wheel.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

# The operating system counts the peak in bytes on macOS and in KiB elsewhere.
PEAK_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


class Usage(NamedTuple):
    """What one process cost; its last printed line names the experiment's part of it, if any."""

    experiment_s: float
    cpu_s: float
    peak_bytes: int


def measure(command: list[str]) -> Usage:
    """Run a command to its end in the checkout; raises CalledProcessError with what it printed.

    Linux counts a child's peak from the size of the process that starts it, so this one must stay
    smaller than any program it measures: it imports nothing but the standard library.
    """
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        # Instead of wait(), which would throw the usage away.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=printed)
    cpu_s = usage.ru_utime + usage.ru_stime
    own = re.search(r"^experiment (\S+) s of CPU$", printed, re.MULTILINE)
    experiment_s = cpu_s if own is None else float(own[1])
    return Usage(experiment_s, cpu_s, usage.ru_maxrss * PEAK_UNIT_BYTES)


def compare(programs: dict[str, list[str]], rounds: int) -> dict[str, Usage]:
    """The median usage of each command by its name, after `rounds` rounds in turn."""
    measured: dict[str, list[Usage]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, command in programs.items():
            measured[name].append(measure(command))
    return {
        name: Usage(
            median(usage.experiment_s for usage in usages),
            median(usage.cpu_s for usage in usages),
            int(median(usage.peak_bytes for usage in usages)),
        )
        for name, usages in measured.items()
    }


def table(usages: dict[str, Usage]) -> str:
    """One line a program, its CPU times also as multiples of the first one's."""
    ours = next(iter(usages.values()))
    columns = "{:24} {:>10} {:>7} {:>8} {:>7} {:>6}"
    lines = [columns.format("CPU seconds", "experiment", "ratio", "process", "ratio", "MB")]
    lines += [
        f"{name:24} {usage.experiment_s:10.2f} {usage.experiment_s / ours.experiment_s:6.2f}x"
        f" {usage.cpu_s:8.2f} {usage.cpu_s / ours.cpu_s:6.2f}x {usage.peak_bytes / 1e6:6.1f}"
        for name, usage in usages.items()
    ]
    return "\n".join(lines)


def timed(flags: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one `pullcord run` from a shell, its results thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        code = "from pullcord import main; main()"
        command = [sys.executable, "-c", code, "run", *flags, "-q", "--no-progress"]
        begun = time.perf_counter()
        usage = measure([*command, "--out", f"{folder}/out"])
        return time.perf_counter() - begun, usage.cpu_s


def whole_set(rounds: int) -> str:
    """The published set from a shell on all cores, and what writing every log costs."""
    wall_s = median(timed(["@published"])[0] for _ in range(rounds))
    one = ["@published/poll_strategies", "-j", "1"]
    without_s = median(timed(one)[1] for _ in range(rounds))
    with_s = median(timed([*one, "--logs", "all"])[1] for _ in range(rounds))
    return (
        f"pullcord run @published: {wall_s:.2f} s of wall time, imports included\n"
        f"--logs all against --logs none: {with_s / without_s:.2f} times the CPU time"
    )


def main() -> int:
    """Measure every program and print the table; 1 when one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="processes for each program")
    rounds: int = parser.parse_args().rounds
    programs = {name: [sys.executable, "-m", module] for name, module in PROGRAMS}
    try:
        usages = compare(programs, rounds)
    except subprocess.CalledProcessError as failed:
        print(f"{' '.join(failed.cmd)} failed:\n{failed.stderr}", file=sys.stderr)
        return 1
    python = ".".join(map(str, sys.version_info[:3]))
    total = len(STRATEGIES) * REPLICATIONS
    print(f"Poll strategies, {total:,} replications, Python {python}, median of {rounds} rounds\n")
    print(table(usages))
    print()
    print(whole_set(rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
