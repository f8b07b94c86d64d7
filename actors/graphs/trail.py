"""What a run leaves on disk so that another boot can take its turns again, and go on.

A run's turns depend on its inputs, on the time, on how many slots were free, and on its scripts'
seeds. All of that is written with each turn, in the turn's own transaction; and a mark of what its
scripts did, which shows whether they do the same again.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Literal

import msgspec

from actors.actor import Context, TableSpec
from actors.graphs.messages import AgentAnswer, ToolAnswer
from actors.graphs.seam import Seed, VmTurn
from actors.graphs.turns import json_text
from actors.messages import CHANNEL, Completion

ROWS_LIMIT = 10_000  # turns of a run that may be taken again; it takes a second or two
BYTES_LIMIT = 16 << 20  # of them: a run that hears more than that is no longer worth a disk

Decider = Literal["owner", "timeout", "cancelled"]


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was decided of a call that waited, and by whom."""

    allow: bool
    by: Decider


class Noted(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One input of a run: about a sleep, an agent, or with a `call` one of an agent's calls.

    An agent without an `answer`, and a call with neither `told` nor `decision`, is one that nothing
    was heard of in its time.
    """

    operation: int
    call: int = 0
    answer: AgentAnswer | None = None
    told: ToolAnswer | None = None
    decision: Decision | None = None


class Beginning(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run that another boot can go on with: what began it, and under which settings.

    `begun_us` is wall time, `now_us` the boot's. `cancelled` says that it was told to stop.
    """

    execution_id: str
    graph: str
    args: Any
    settings: str
    begun_us: int
    now_us: int
    cancelled: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One turn of a run: what it depended on, and the mark of what its scripts did.

    `now_us` is the run's own time, `stamp_us` wall time. `resumed` says that it was the first of a
    boot, in which everything that had been under way was given up.
    """

    execution_id: str
    number: int
    now_us: int
    stamp_us: int
    free: int
    noted: tuple[Noted, ...] = ()
    stopped: Completion | None = None
    resumed: bool = False
    seeds: tuple[Seed, ...] = ()
    mark: str = ""


BEGINNINGS = TableSpec("fleet_beginnings", Beginning)
TURNS = TableSpec("fleet_turns", Turn, run=("execution_id", "number"))


class Witness:
    """Sees what the scripts of a run draw and do in one turn; or has them draw the same again."""

    def __init__(self, seeds: tuple[Seed, ...] = ()) -> None:
        self.again = list(reversed(seeds))
        self.seeds: list[Seed] = []
        self._seen = blake2b(digest_size=8)

    def seed(self, context: Context) -> Seed:
        """Return the seed of a script's own chance."""
        seed = self.again.pop() if self.again else seed_of(context)
        self.seeds.append(seed)
        return seed

    def saw(self, turn: VmTurn) -> None:
        """Mark what a script did."""
        self._seen.update(json_text(turn).encode("utf-8", "surrogatepass"))

    @property
    def mark(self) -> str:
        """What all that it saw is known by."""
        return self._seen.hexdigest()


def seed_of(context: Context) -> Seed:
    """Draw the seed of a script's own chance."""
    stream = context.random("graph")
    one, two, three, four = (int(stream.random() * 2**32) for _ in range(4))
    return one, two, three, four


class Trail:
    """Writes the turns of one run. `broken` is why they can't be taken again, if so."""

    def __init__(self, channel: str, execution_id: str) -> None:
        self.channel = channel
        self.execution_id = execution_id
        self.rows = self.size = 0
        self.broken = ""

    def begin(self, context: Context, beginning: Beginning) -> None:
        """Write how the run began."""
        if not self._fits(beginning):
            self._give_up(context)
        else:
            context.store.table(BEGINNINGS).put(self.channel, beginning)

    def cancel(self, context: Context) -> None:
        """Write that the run was told to stop."""
        table = context.store.table(BEGINNINGS)
        beginning = table.get(self.channel)
        if beginning is not None:
            table.put(self.channel, msgspec.structs.replace(beginning, cancelled=True))

    def write(self, context: Context, turn: Turn) -> None:
        """Write a turn; once there is no room for it, forget all of them and say so."""
        if self.broken:
            return
        if self._fits(turn):
            self.rows += 1
            context.store.table(TURNS).put(turn_key(turn), turn)
        else:
            self._give_up(context)

    def _give_up(self, context: Context) -> None:
        """Forget a run that can't be gone on with, and say so."""
        self.forget(context)
        run = self.channel.removeprefix(CHANNEL)
        context.log("fleet.unresumable", run=run, why=self.broken)

    def _fits(self, row: msgspec.Struct) -> bool:
        """Whether a row can be written, and has room; if not, nothing fits any more."""
        try:
            self.size += len(msgspec.json.encode(row))
        except (UnicodeEncodeError, RecursionError):
            self.broken = "an answer can't be written down"
        if self.size > BYTES_LIMIT:
            self.broken = f"its turns have more than {BYTES_LIMIT >> 20} MiB"
        elif self.rows >= ROWS_LIMIT:
            self.broken = f"it has more than {ROWS_LIMIT:,} turns"
        return not self.broken

    def read(self, context: Context) -> list[Turn]:
        """Return the turns that were written, in their order."""
        turns = context.store.table(TURNS).scan("run", (self.execution_id,), limit=ROWS_LIMIT + 1)
        self.rows = len(turns)
        self.size = sum(len(msgspec.json.encode(turn)) for turn in turns)
        return turns

    def forget(self, context: Context) -> None:
        """Remove everything that was written of the run."""
        context.store.table(BEGINNINGS).delete(self.channel)
        table = context.store.table(TURNS)
        for turn in table.scan("run", (self.execution_id,), limit=ROWS_LIMIT + 1):
            table.delete(turn_key(turn))


def turn_key(turn: Turn) -> tuple[str, str]:
    """Return what a turn is stored under."""
    return turn.execution_id, str(turn.number)
