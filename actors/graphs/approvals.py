"""Tool calls that wait for their owner, on disk until their run's end.

What was decided stays there too, so that a decision that is said again changes nothing, and one
that was made before a restart counts after it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.actor import Context, Table, TableSpec
from actors.graphs.messages import Approval, Decide
from actors.graphs.trail import Decision

RUN_LIMIT = 20_000  # rows of one run that are forgotten with it; it may make fewer calls
LISTED_LIMIT = 200  # more than that no owner looks through
LISTED_LIMIT_BYTES = 900_000  # together, as a frame has 1 MiB; the longest waiting come first


class Waiting(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that waits for its owner, or has. `open` is None once it is decided.

    `asked_us` and `due_us` are wall time: since when it waits, and when it is denied.
    """

    run: str
    graph: str
    agent: int
    label: str | None
    call: int
    tool: str
    arguments: Any
    asked_us: int
    due_us: int
    open: bool | None = True
    decision: Decision | None = None


APPROVALS = TableSpec("approvals", Waiting, open=("open", "asked_us", "run", "call"), run=("run",))
Approvable = Table[Waiting]


def approval_key(run: str, call: int) -> tuple[str, str]:
    """Return what a call's row is stored under."""
    return run, str(call)


def listed(context: Context) -> tuple[Approval, ...]:
    """Return the calls that wait, the longest waiting first, as far as they fit into a message."""
    rows = context.store.table(APPROVALS).scan("open", limit=LISTED_LIMIT)
    now_us, size, found = context.stamp_us, 0, []
    for row in rows:
        one = Approval(
            run=row.run,
            graph=row.graph,
            agent=row.agent,
            label=row.label,
            call=row.call,
            tool=row.tool,
            arguments=row.arguments,
            waited_us=max(0, now_us - row.asked_us),
            left_us=max(0, row.due_us - now_us),
        )
        size += len(msgspec.json.encode(one))
        if size > LISTED_LIMIT_BYTES:
            break
        found.append(one)
    return tuple(found)


def decide(context: Context, said: Decide) -> Decision | None:
    """Write what an owner decided, and return it if it is new.

    None if that call does not wait: it never did, its time is up, or it was decided before.
    """
    table = context.store.table(APPROVALS)
    row = table.get(approval_key(said.run, said.call))
    if row is None or row.decision is not None or row.due_us <= context.stamp_us:
        return None
    decision = Decision(allow=said.allow, by="owner")
    settle(table, row, decision)
    return decision


def expire(context: Context, run: str, call: int) -> Decision:
    """Write that a call was denied since nobody decided in time; return what was decided of it."""
    table = context.store.table(APPROVALS)
    row = table.get(approval_key(run, call))
    if row is not None and row.decision is not None:
        return row.decision
    decision = Decision(allow=False, by="timeout")
    if row is not None:
        settle(table, row, decision)
    return decision


def was_decided(context: Context, said: Decide) -> bool:
    """Whether the owner decided so before, and it counted."""
    row = context.store.table(APPROVALS).get(approval_key(said.run, said.call))
    return row is not None and row.decision == Decision(allow=said.allow, by="owner")


def settle(table: Approvable, row: Waiting, decision: Decision) -> None:
    """Write what was decided of a call."""
    row = msgspec.structs.replace(row, open=None, decision=decision)
    table.put(approval_key(row.run, row.call), row)


def forget(context: Context, run: str) -> None:
    """Remove what was written of a run."""
    table = context.store.table(APPROVALS)
    for row in table.scan("run", (run,), limit=RUN_LIMIT):
        table.delete(approval_key(row.run, row.call))
