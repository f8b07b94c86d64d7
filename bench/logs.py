"""Measure how fast a log is read and replayed.

The log is one that `pullcord run --logs all` writes, a thousand replications and more in one file.
Reading is compared with `json.loads` of each line in the same process, as a script of one's own
would do it: that makes dictionaries where the reader makes typed records, checked. Replaying is
compared with the time that the same replications take to run and write that log; the bar is twice
that time from the seed. Actor by actor is what a log of real sockets needs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.run import ROOT
from logs.read import log_files, raw_sections, read_sections
from scenarios.replay import EVERYTHING, Window, job_of_header, replay
from scenarios.watchdog import PATIENCE_S
from scenarios.work import LOG_BUFFER_BYTES, build, log_of

RECORDS = 300_000
ROUNDS = 3
RECORDS_A_REPLICATION = 228  # of @published/outbox with its outbox, where nothing is random
MAIN = "from pullcord import main; main()"


def written(folder: Path, records: int) -> Path:
    """Write a log of so many records at least, and return its file; LogError if there is none."""
    replications = -(-records // RECORDS_A_REPLICATION)
    command = [sys.executable, "-c", MAIN, "run", "@published/outbox", "--cell", "true"]
    options = ["-n", str(replications), "--logs", "all", "--out", str(folder / "results"), "-q"]
    # Its expectations are of one replication, so with many some fail: that is exit 1.
    subprocess.run([*command, *options], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    [log] = log_files(folder / "results")
    return log


def read(path: Path) -> int:
    """Read a log's sections and return how many records they have."""
    return sum(len(section.records) for section in read_sections(path))


def parse(path: Path) -> int:
    """Parse each line by itself and return how many are records."""
    with path.open("rb") as file:
        return sum("n" in json.loads(line) for line in file)


def rerun(path: Path) -> int:
    """Run a log's replications, writing the log again, and return how many records that is."""
    raws = list(raw_sections(path))
    job = job_of_header(raws[0].header())
    cell = build(job)
    with (path.parent / "again.jsonl").open("wb", buffering=LOG_BUFFER_BYTES) as out:
        for raw in raws:
            log_of(job, cell, raw.header().replication, out, PATIENCE_S)
    return sum(len(raw.lines) - 2 for raw in raws)


def from_seed(path: Path) -> int:
    """Replay a log from its seed and return how many records were compared."""
    return _replayed(path, EVERYTHING)


def by_actor(path: Path) -> int:
    """Replay a log actor by actor and return how many records were compared."""
    return _replayed(path, Window(first=1))


def _replayed(path: Path, window: Window) -> int:
    done = replay(raw_sections(path), window=window)
    if done.divergence is not None:
        raise SystemExit(f"the log diverges: {done.divergence.why}")
    return done.records


def rate(work: Callable[[Path], int], path: Path, rounds: int) -> tuple[int, float]:
    """Return how many records there are, and the median of how many were done in a CPU second."""
    count, rates = 0, []
    for _ in range(rounds):
        begun = time.process_time()
        count = work(path)
        rates.append(count / (time.process_time() - begun))
    return count, median(rates)


def main(arguments: list[str] | None = None) -> None:
    """Print the rates and their ratios."""
    parser = argparse.ArgumentParser(description="Measure how fast logs are read.")
    parser.add_argument("--records", type=int, default=RECORDS, help="at least so many")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="their median counts")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        log = written(Path(folder), options.records)
        size_mb = log.stat().st_size / 1e6
        count, ours = rate(read, log, options.rounds)
        _, plain = rate(parse, log, options.rounds)
        _, ran = rate(rerun, log, options.rounds)
        _, seed = rate(from_seed, log, options.rounds)
        _, actors = rate(by_actor, log, options.rounds)
    print(f"A log of {count:,} records, {size_mb:.0f} MB, median of {options.rounds} rounds\n")
    print(f"read_sections  {ours:>12,.0f} records a CPU second")
    print(f"json.loads     {plain:>12,.0f} records a CPU second")
    print(f"ratio          {ours / plain:>12.2f}\n")
    print(f"run, with log  {ran:>12,.0f} records a CPU second")
    print(f"from its seed  {seed:>12,.0f} records, {ran / seed:.2f} times the time (bar: 2)")
    print(f"by actor       {actors:>12,.0f} records, {ran / actors:.2f} times the time")


if __name__ == "__main__":
    main()
