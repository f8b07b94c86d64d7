"""Tools in experiments: what may be set of them, calls that take a time, an owner who decides.

The real ones are edges; they understand the same messages. Here a call comes to a text by itself,
and the owner answers each approval after a while, with yes or with no, by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from actors.actor import Context, Handler, Place, Unanswered
from actors.chance import Durations, Numbers
from actors.graphs.messages import (
    Approvals,
    Decide,
    Decided,
    ListApprovals,
    ToolAnswer,
    ToolAsk,
    ToolCancel,
)
from actors.graphs.model import ModelConfig, drawn
from actors.graphs.permissions import Permission, check_permissions
from transports.envelope import Envelope
from transports.units import Duration

REPEAT_US = 10_000_000  # how long an owner waits for an engine before saying it again


class ToolsConfig(ModelConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario may set of the tools of an engine's agents, in the engine's table."""

    permissions: Annotated[
        dict[str, dict[str, Permission]],
        'by Graph, or "*": which tools its agents may use: "allow", "ask" or "deny"; others none',
    ] = msgspec.field(default_factory=dict)
    tool_timeout_us: Annotated[Duration, "how long a tool call may take"] = msgspec.field(
        name="tool_timeout", default=Duration(120_000_000)
    )
    approval_timeout_us: Annotated[
        Duration, "how long a call waits for its owner; then it is denied"
    ] = msgspec.field(name="approval_timeout", default=Duration(900_000_000))
    tool_latency_us: Annotated[Durations, "how long a tool call takes"] = msgspec.field(
        name="tool_latency", default=Durations.parse("lognormal(median=500ms, sigma=1, min=50ms)")
    )
    approval_delay_us: Annotated[
        Durations | None, "how long the owner takes to decide; without it nobody decides"
    ] = msgspec.field(name="approval_delay", default=None)
    approves: Annotated[Numbers, "the probability that the owner allows a call, 0 to 1"] = (
        Numbers.parse(1)
    )

    def __post_init__(self) -> None:
        """Refuse times of 0, what is no probability, and permissions that never match."""
        super().__post_init__()
        for name in ("tool_timeout", "approval_timeout"):
            if not getattr(self, f"{name}_us"):
                raise ValueError(f"{name} must be longer than 0s")
        low, high = self.approves.support
        if low < 0 or high > 1:
            raise ValueError("approves must be a probability, 0 to 1")
        check_permissions(self.permissions)


class SyntheticTools:
    """Makes calls that do nothing but take a time; one that takes longer than it may fails."""

    def __init__(self, config: ToolsConfig, place: Place) -> None:
        self.config = config
        self.place = place
        self.handlers: Mapping[type[Any], Handler] = {
            ToolAsk: self.on_ask,
            ToolCancel: self.on_cancel,
        }

    def on_start(self, context: Context) -> None:
        """Begin a boot: calls that a former one made are lost, and never answered."""
        self.working: dict[str, tuple[Envelope[ToolAsk], ToolAnswer]] = {}

    def on_ask(self, context: Context, envelope: Envelope[ToolAsk]) -> None:
        """Begin a call."""
        ask = envelope.body
        latency_us = drawn(context, "tool_latency", self.config.tool_latency_us)
        ok, text = True, f"{ask.tool} was called"
        if latency_us > ask.timeout_us:
            ok, text = False, f"{ask.tool} took longer than {ask.timeout_us / 1e6:g} s"
        key = f"{ask.run}:{ask.call}"
        answer = ToolAnswer(run=ask.run, call=ask.call, ok=ok, text=text)
        self.working[key] = envelope, answer
        context.set_timer(key, min(latency_us, ask.timeout_us))

    def on_timer(self, context: Context, timer: str) -> None:
        """End a call."""
        context.reply(*self.working.pop(timer))

    def on_cancel(self, context: Context, envelope: Envelope[ToolCancel]) -> None:
        """Stop a call; nobody waits for its answer."""
        key = f"{envelope.body.run}:{envelope.body.call}"
        if self.working.pop(key, None) is not None:
            context.cancel_timer(key)


class Approver:
    """An owner who sees at once what waits, and decides after a while."""

    def __init__(self, config: ToolsConfig, place: Place) -> None:
        self.config = config
        self.place = place
        self.handlers: Mapping[type[Any], Handler] = {
            Approvals: self.on_approvals,
            Decided: self.on_decided,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Begin a boot: look what waits."""
        self.deciding: dict[str, Decide] = {}  # by the timer that says it
        context.request(self.place.engine, ListApprovals(), REPEAT_US)

    def on_approvals(self, context: Context, envelope: Envelope[Approvals]) -> None:
        """Begin to think about each call that is new."""
        for one in envelope.body.waiting:
            key = f"{one.run}:{one.call}"
            if key in self.deciding:
                continue
            share = drawn(context, "approves", self.config.approves)
            allow = share >= 1 or context.random("decisions").random() < share
            self.deciding[key] = Decide(run=one.run, call=one.call, allow=allow)
            delay = self.config.approval_delay_us
            assert delay is not None, "without a delay there is no approver"
            context.set_timer(key, drawn(context, "approval_delay", delay))

    def on_timer(self, context: Context, timer: str) -> None:
        """Say what was decided."""
        context.request(self.place.engine, self.deciding[timer], REPEAT_US)

    def on_decided(self, context: Context, envelope: Envelope[Decided]) -> None:
        """Forget it: the engine has it on disk, or needs it no more."""
        self.deciding.pop(f"{envelope.body.run}:{envelope.body.call}", None)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Say it again, or look again."""
        context.request(self.place.engine, envelope.body.question, REPEAT_US)
