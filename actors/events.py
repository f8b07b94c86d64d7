"""The events that a scenario may measure: what the server and the engine say, and what a host sees.

A replaceable relay's or agent's own log events are not among them: a metric must not depend on
the honesty of what it measures. `agent.ticket` and `agent.noticed` are seen by the host, in the
messages that reach an agent. The agents of `agent.started`, `agent.refused` and `agent.finished`
are others: a Graph's own, which the fleet engine tells of.
"""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True):
    """An event's fields (`run` is the run that it belongs to), and what it means."""

    fields: tuple[str, ...]
    meaning: str


EVENTS: dict[str, Event] = {
    "run.queued": Event(("run", "agent", "session"), "the server has committed a new run"),
    "run.replayed": Event(("run",), "a key that was used before got its ticket again"),
    "run.offered": Event(("run", "delivery"), "a sync's answer carries the run"),
    "run.started": Event(("run", "device"), "the server let the run start"),
    "run.cancel_asked": Event(("run", "status"), "an agent asked to cancel a run in this status"),
    "run.terminal": Event(
        ("run", "status", "cause", "was", "tokens", "cost", "truncated", "chars", "bytes"),
        "the run has its final status; `was` is the one before",
    ),
    "run.late": Event(("run", "status"), "a completion came after the run was closed"),
    "run.completion_unknown": Event(("run",), "a completion came for a run that nobody knows"),
    "engine.started": Event(("run", "execution"), "the engine began to execute the run's Graph"),
    "engine.stopping": Event(("run",), "the engine was told to stop"),
    "engine.finished": Event(("run", "status", "tokens", "cost"), "an execution has ended"),
    "fleet.started": Event(("run", "execution", "graph"), "a run's Graph began, or waits no more"),
    "fleet.phase": Event(("run", "graph", "text"), "a Graph's script named its phase"),
    "fleet.log": Event(("run", "graph", "text", "level"), "a Graph's script logged a line"),
    "fleet.retry": Event(
        ("run", "graph", "text", "attempt", "delay_ms"), "a Graph's script tries again, later"
    ),
    "fleet.finished": Event(
        ("run", "status", "tokens", "cost", "agents", "refused"),
        "a run's Graph has ended, and all that its agents used is counted",
    ),
    "graph.started": Event(("run", "graph", "depth"), "a Graph called another one"),
    "graph.finished": Event(("run", "graph", "status"), "a Graph that was called has ended"),
    "agent.started": Event(
        ("run", "graph", "agent", "label", "phase"), "a Graph's agent was given to the model"
    ),
    "agent.refused": Event(
        ("run", "graph", "agent", "code"), "a Graph's agent was not started, for this reason"
    ),
    "agent.finished": Event(
        ("run", "graph", "agent", "status", "code", "tokens", "cost", "spent"),
        "a Graph's agent has ended; expired is one that took too long",
    ),
    "tool.withheld": Event(
        ("run", "graph", "agent", "tool"), "an agent doesn't get a tool that its script asks for"
    ),
    "tool.asked": Event(
        ("run", "graph", "agent", "call", "tool", "permission", "chars"),
        "an agent wants a tool call: allow, ask or deny; its arguments have so many characters",
    ),
    "tool.started": Event(("run", "graph", "agent", "call", "tool"), "a tool call is made"),
    "tool.finished": Event(
        ("run", "graph", "agent", "call", "tool", "status", "chars", "took_us"),
        "a call has ended: ok, failed, cancelled, or it is unknown what became of it",
    ),
    "approval.waiting": Event(
        ("run", "graph", "agent", "call", "tool", "timeout_us"), "a tool call waits for its owner"
    ),
    "approval.decided": Event(
        ("run", "graph", "agent", "call", "tool", "allow", "by", "waited_us"),
        "a call waits no more, by its owner, by a timeout, or because its agent was cancelled",
    ),
    "fleet.resumed": Event(
        ("run", "turns", "waiting"), "a run goes on after a restart, and so many calls wait"
    ),
    "fleet.unresumable": Event(("run", "why"), "a run could not go on after a restart any more"),
    "agent.ticket": Event(("run",), "a ticket reached its agent for the first time"),
    "agent.noticed": Event(("run", "status"), "an agent first saw its run's final status"),
}
