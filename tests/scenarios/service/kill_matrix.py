"""The kill matrix: a deployment of real processes is struck, again and again, and judged.

    python -m tests.scenarios.service.kill_matrix --cycles 500 --store sqlite --seed 1

One cycle queues some runs, strikes while they are under way, waits until all of them have ended,
and judges. A run leaves its marks in a file outside of the system: that it ran once, or never, is
seen there and not in the system's own books. Exit code 1 if anything was not as it must be; then
the deployment's folder is kept, and named.

What covers what: here each of a store's next sixteen commits, in turn, is the last thing that its
real process does, just before it and just after it, and everything else is struck at random moments
from outside. That *every* write and commit of every turn of a whole run may be the last one is
tried in one process, by generated crash points: tests/actors/test_durable_crashes.py.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from actors.accounts.messages import AuditEntry
from tests.scenarios.service import verdict
from tests.scenarios.service.calls import Wish
from tests.scenarios.service.databases import Database, open_database
from tests.scenarios.service.members import LOOK_S
from tests.scenarios.service.plant import Plant, open_plant
from tests.scenarios.service.restoring import restored
from tests.scenarios.service.strikes import Strikes
from tests.scenarios.service.tally import Tally

RUNS: Final = 6  # of a cycle
END_S: Final = 90.0  # for a cycle; a busy machine takes some seconds
RESTORED: Final = "restore a backup"  # what a server forgot by it contradicts what it said before
RARE: Final = 40  # cycles between two of what takes long
COMPLAINTS_LIMIT: Final = 20
WEIGHTS: Final = {"kill at a commit": 4}  # of each round of kinds; the others are there once


@dataclass
class Matrix:
    """A run of the matrix: what it has struck, and what it has found."""

    plant: Plant
    chance: random.Random
    database: Database
    tally: Tally = field(default_factory=Tally)
    wishes: list[Wish] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)  # by member, as of the last cycle
    stopped: bool = False  # by a signal: the cycle that runs is the last one
    newest: str = ""  # the audit's newest row, as of the last cycle

    async def run(self, cycles: int, say: Callable[[str], None]) -> None:
        """Strike so often, unless too much is found."""
        strikes = Strikes(self.plant, self.chance)
        kinds = {**strikes.kinds(), **self.database.strikes(self.chance)}
        order = self._rounds(list(kinds))
        for number in range(1, cycles + 1):
            if not self.plant.store and number % RARE == RARE // 2:
                kind = RESTORED
                found = await self._restore()
            else:
                kind = next(order)
                found = await self.cycle(kind, kinds[kind], strikes)
            self.complaints += [f"cycle {number}, {kind}: {what}" for what in found]
            for what in found:
                say(f"cycle {number}, {kind}: {what}")
            if number % 25 == 0:
                say(f"{number} cycles")
            if self.stopped or len(self.complaints) > COMPLAINTS_LIMIT:
                break
        self.tally.points = strikes.points
        self.tally.unreached = strikes.unreached
        self.complaints += await self._at_the_end()

    def _rounds(self, kinds: list[str]) -> Iterator[str]:
        """Yield every kind once, and then as often as it weighs."""
        yield from self.chance.sample(kinds, len(kinds))
        while True:
            batch = [kind for kind in kinds for _ in range(WEIGHTS.get(kind, 1))]
            self.chance.shuffle(batch)
            yield from batch

    def wish(self) -> Wish:
        """A run to be wished for, of which there was none before."""
        some, chance = self.chance.random, self.chance
        wish = Wish(
            mark=f"m{len(self.wishes) + 1}",
            steps=chance.choice((1, 1, 2)),
            before_s=some() * 0.1,
            after_s=some() * 0.1,
            delay_s=some() * 0.6,
            cancel_s=some() * 0.6 if some() < 0.2 else None,
        )
        self.wishes.append(wish)
        return wish

    async def cycle(
        self, kind: str, strike: Callable[[], Awaitable[None]], strikes: Strikes
    ) -> list[str]:
        """Queue runs, strike, wait until everything has ended; return what is not as it must be."""
        plant = self.plant
        strikes.interrupts = False
        wishes = [self.wish() for _ in range(RUNS)]
        healed_s = trio.current_time() + END_S
        with trio.move_on_after(END_S):
            async with trio.open_nursery() as nursery:
                for wish in wishes:
                    nursery.start_soon(wish.live, plant.calls, plant.session)
                await strike()
                healed_s = trio.current_time()
        await self._outbox_empty()
        self.tally.add(kind, wishes, trio.current_time() - healed_s)
        marks = verdict.read_marks(plant.marks)
        return [
            *verdict.ends(wishes, marks, interrupts=strikes.interrupts),
            *verdict.twice(self.wishes, marks),
            *verdict.audited(wishes, marks, await self._new_entries()),
            *verdict.sound(plant.databases),
            *self._tracebacks(),
        ]

    async def _restore(self) -> list[str]:
        wishes = [self.wish() for _ in range(2 * RUNS)]
        with trio.move_on_after(2 * END_S) as scope:
            found = await restored(self.plant, self.chance, wishes[:RUNS], wishes[RUNS:])
            await self._outbox_empty()
        if scope.cancelled_caught:
            return [f"no end: {[wish.told[-1:] for wish in wishes]}"]
        self.tally.add(RESTORED, wishes, 0.0)
        await self._new_entries()
        marks = verdict.read_marks(self.plant.marks)
        found += verdict.twice(self.wishes, marks)
        return [*found, *verdict.sound(self.plant.databases), *self._tracebacks()]

    async def _outbox_empty(self) -> None:
        """Wait for it; what stays there is a complaint."""
        with trio.move_on_after(END_S) as scope:
            while (await self.plant.outbox()).unsent:  # noqa: ASYNC110  it is another process's
                await trio.sleep(LOOK_S)
        if scope.cancelled_caught:
            self.complaints.append("the outbox has not become empty")

    async def _new_entries(self) -> list[AuditEntry]:
        """Return the audit's rows that are newer than those of the last cycle."""
        found: list[AuditEntry] = []
        cursor, newest = "", self.newest
        while True:
            page = await self.plant.audit_page(cursor)
            for entry in page.entries:
                named = f"{entry.at_us} {entry.act} {entry.subject}"
                if not found:
                    self.newest = named
                if named == newest:
                    return found
                found.append(entry)
            if not page.cursor:
                return found
            cursor = page.cursor

    def _tracebacks(self) -> Iterator[str]:
        for member in self.plant.members:
            failures = member.words.read_text(errors="replace").count("Traceback")
            if failures > self.failures.get(member.name, 0):
                self.failures[member.name] = failures
                yield f"{member.name} has failed: see {member.words}"

    async def _at_the_end(self) -> list[str]:
        """Judge what can be seen best when nothing is struck any more."""
        plant, found = self.plant, []
        self.tally.unanswered = plant.calls.unanswered
        self.tally.starts = {member.name: member.starts for member in plant.members}
        for wish in self.wishes:
            if wish.run is not None:
                before = len(wish.complaints)
                await wish.look(plant.calls)
                found += wish.complaints[before:]
        for member in plant.members:
            member.signal(signal.SIGTERM)
            code = await member.end()
            if code != 0:
                found.append(f"{member.name} ended with {code} when it was asked to: {member.said}")
        await trio.sleep(1.0)  # a command that lost its desktop sleeps for 0.2 s at most
        if left := plant.left_over():
            found.append(f"processes are left: {left}")
        if not self.tally.cycles[RESTORED]:
            found += verdict.logged(plant.logs)
        marks = verdict.read_marks(plant.marks)
        self.tally.marks = sum(map(len, marks.values()))
        return [*found, *verdict.twice(self.wishes, marks)]


@asynccontextmanager
async def open_matrix(home: Path, seed: int, store: str) -> AsyncIterator[Matrix]:
    """Have a deployment that is ready to be struck; `store` is "sqlite" or "postgres"."""
    async with AsyncExitStack() as stack:
        database = stack.enter_context(open_database(store))
        servers = 2 if database.address else 1
        plant = await stack.enter_async_context(open_plant(home, seed, database.address, servers))
        await plant.prepare()
        yield Matrix(plant, random.Random(seed), database)


async def matrix(
    home: Path, cycles: int, store: str, seed: int, say: Callable[[str], None]
) -> tuple[Tally, list[str]]:
    """Run the matrix; return its figures and its complaints."""
    async with open_matrix(home, seed, store) as made:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signals, made)
            await made.run(cycles, say)
            nursery.cancel_scope.cancel()
        return made.tally, made.complaints


async def _stop_on_signals(made: Matrix) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            made.stopped = True


def main() -> int:
    """Run it as a command; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="pullcord-kill-"))

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    tally, complaints = trio.run(matrix, home, told.cycles, told.store, told.seed, say)
    words = [tally.table(), ""]
    if complaints:
        words += [f"{len(complaints)} complaints; everything is kept in {home}", *complaints]
    else:
        words.append("nothing was lost, and nothing ran twice")
        shutil.rmtree(home)
    sys.stdout.write("\n".join(words) + "\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
