"""How a run goes on in another boot: its turns are taken again, muted, from what was written.

Scripts are deterministic, so the run then stands where it stood: the same calls wait for the same
owner. A run whose scripts do something else is not gone on with.
"""

from __future__ import annotations

from actors.actor import Context
from actors.graphs import approvals
from actors.graphs.admission import Slots
from actors.graphs.fleet import Fleet
from actors.graphs.muted import MutedContext
from actors.graphs.trail import BEGINNINGS, Beginning, Trail, Turn, Witness
from actors.messages import Completion

PAUSE_US = 10_000_000  # before a run goes on that can't be written about
OTHER_SETTINGS = "its Graphs or settings are not what they were"
WENT_OTHERWISE = "its scripts did not do the same again"


class CannotResumeError(Exception):
    """A run can't go on: the text says why, to follow a colon."""


def traced_turn(context: Context, fleet: Fleet, trail: Trail) -> None:
    """Take a run's turn, and write what another boot needs to take it again."""
    noted, resumed, free = tuple(fleet.noted), fleet.resumed, fleet.admission.slots.free
    stopped: Completion | None = fleet.stopped
    witness = fleet.witness = Witness()
    fleet.turn(context)
    if fleet.ended is not None:
        trail.forget(context)  # nobody waits any more, and what flies needs no script
        return
    turn = Turn(
        execution_id=fleet.execution_id,
        number=trail.rows,
        now_us=fleet.calls.clock.now_us(context),
        stamp_us=context.stamp_us,
        free=free,
        noted=noted,
        stopped=stopped,
        resumed=resumed,
        seeds=tuple(witness.seeds),
        mark=witness.mark,
    )
    trail.write(context, turn)


def resume(context: Context, fleet: Fleet, trail: Trail, settings: str) -> int:
    """Let a new fleet stand where a former boot's stood, and go on; return how many calls wait.

    Raises CannotResumeError, with its VMs closed; also where nothing waits for the owner, since
    then there is nothing to go on for.
    """
    beginning = context.store.table(BEGINNINGS).get(trail.channel)
    slots = fleet.admission.slots
    rows = context.store.table(approvals.APPROVALS).scan("run", (fleet.run,), limit=1)
    if beginning is None or not rows:
        raise CannotResumeError("")
    if beginning.settings != settings:
        raise CannotResumeError(OTHER_SETTINGS)
    try:
        again(context, fleet, beginning, trail.read(context))
    except Exception as error:  # whatever it runs into must not keep the engine from starting
        fleet.abandon()
        raise CannotResumeError(WENT_OTHERWISE) from error
    if not fleet.calls.waiting:
        fleet.abandon()
        raise CannotResumeError("")
    fleet.admission.slots = slots
    slots.free -= len(fleet.admission.flying)
    go_on(context, fleet, beginning)
    return fleet.calls.waiting


def again(context: Context, fleet: Fleet, beginning: Beginning, turns: list[Turn]) -> None:
    """Take the turns of a run again. CannotResumeError if they don't come to the same."""
    muted = MutedContext(context)
    muted.at(beginning.now_us, beginning.begun_us)
    fleet.begin(muted, beginning.graph, beginning.args)
    for turn in turns:
        muted.at(turn.now_us, turn.stamp_us)
        fleet.admission.slots = Slots(turn.free)
        fleet.noted, fleet.stopped, fleet.resumed = list(turn.noted), turn.stopped, turn.resumed
        witness = fleet.witness = Witness(turn.seeds)
        fleet.turn(muted)
        if witness.mark != turn.mark or fleet.ended is not None:
            raise CannotResumeError(WENT_OTHERWISE)
    fleet.calls.clock.go_on_from(context, muted.now_us)


def go_on(context: Context, fleet: Fleet, beginning: Beginning) -> None:
    """Set the timers of a run anew, by the wall clock, and take what was decided meanwhile."""
    stamp_us = context.stamp_us
    # Where nothing can be written, turn, failed commit and new start would go round at one time.
    pause_us = 0 if context.store.writable else PAUSE_US
    if fleet.limits.deadline_us:
        due_us = beginning.begun_us + fleet.limits.deadline_us
        context.set_timer("deadline:" + fleet.execution_id, max(pause_us, due_us - stamp_us))
    for number, operation in sorted(fleet.sleeping.items()):
        timer = f"sleep:{fleet.execution_id}:{number}"
        context.set_timer(timer, max(pause_us, operation.due_us - stamp_us))
    fleet.resumed = fleet.armed = True
    context.set_timer("turn:" + fleet.execution_id, pause_us)
    table = context.store.table(approvals.APPROVALS)
    for number, call in sorted(fleet.calls.open.items()):
        row = table.get(approvals.approval_key(fleet.run, number)) if call.waits else None
        if row is None:
            continue
        if row.decision is not None:
            fleet.note_decision(context, number, row.decision)
        else:
            context.set_timer(fleet.calls.timer(call), max(pause_us, row.due_us - stamp_us))
    if beginning.cancelled:
        fleet.cancel(context)
