"""Measure how long the stepper takes to answer, in one long replication.

A thousand runs and more go through one server, relay and agent, so that every actor has a long way
behind it and the server a full store. One goes to records here and there, and a step back from
each, and asks for all that the screen shows. What counts is the longest answer, in CPU seconds: it
waits for nothing. Before that everything is re-executed once, as the screen does by itself.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from logs.read import RawSection, Section
from scenarios.load import load_plan
from scenarios.runner import Options, job_of
from scenarios.step_files import stepper_of
from scenarios.step_text import Words, causes, changed, mailbox, state, timers
from scenarios.stepper import Stepper
from scenarios.watchdog import PATIENCE_S
from scenarios.work import log_one

RECORDS = 100_000
RECORDS_A_RUN = 24
VISITS = 300
BAR_S = 0.2
SCENARIO = """
schema = 1
name = "many-runs"
profile = "recommended"
[run]
limit = "90d"
[server]
retention = "90d"
[engine]
duration = "1s"
[workload]
runs = {runs}
every = "5s"
[relay]
poll = "5s"
"""


def section_of(records: int) -> Section:
    """Run one replication of so many records at least, and return its section."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.toml"
        path.write_text(SCENARIO.format(runs=-(-records // RECORDS_A_RUN)), encoding="utf-8")
        job = job_of(load_plan(path), 0, Options())
        log_one(job, 0, out, PATIENCE_S)
        # What is run again later looks for its folder, and finds none: it needs none.
    return RawSection(str(path), 1, out.getvalue().splitlines(keepends=True)).section()


def answer(stepper: Stepper, words: Words) -> int:
    """Ask for all that the screen shows at the position; return how many lines that is."""
    turn, actor = stepper.turn(), stepper.record.actor
    moment = stepper.moment(actor)
    if moment is None:
        return 0
    views = (
        changed(turn, stepper, words),
        state(stepper, moment, turn),
        mailbox(stepper, actor),
        timers(moment),
        causes(stepper, words),
    )
    return sum(1 for view in views for _ in view)


def visits(stepper: Stepper, count: int) -> Iterator[float]:
    """Go here and there, and back a step from each; yield the CPU seconds of each answer."""
    words, chance = Words(stepper), random.Random(1)
    for _ in range(count):
        stepper.at = chance.randrange(1, len(stepper.records))
        for back in (False, True):
            begun = time.process_time()
            if back:
                stepper.back()
            answer(stepper, words)
            yield time.process_time() - begun


def main(arguments: list[str] | None = None) -> None:
    """Print the median and the longest answer."""
    parser = argparse.ArgumentParser(description="Measure how long the stepper takes to answer.")
    parser.add_argument("--records", type=int, default=RECORDS, help="at least so many")
    parser.add_argument("--visits", type=int, default=VISITS, help="how many records are gone to")
    options = parser.parse_args(arguments)
    section = section_of(options.records)
    gc.collect()
    gc.freeze()  # as the command does
    begun = time.process_time()
    stepper = stepper_of(section)
    opened = time.process_time()
    found = len(stepper.violations)
    judged = time.process_time()
    stepper.explore(section.records[-1].n)
    explored = time.process_time()
    times = list(visits(stepper, options.visits))
    print(f"Stepping through {len(section.records):,} records of {len(stepper.lanes)} actors\n")
    print(f"opened          {opened - begun:>8.3f} s")
    print(f"judged          {judged - opened:>8.3f} s, {found} violations")
    print(f"explored        {explored - judged:>8.3f} s, once, between the keys")
    print(f"median answer   {median(times):>8.3f} s of {len(times):,}")
    print(f"longest answer  {max(times):>8.3f} s (bar: {BAR_S})")


if __name__ == "__main__":
    main()
