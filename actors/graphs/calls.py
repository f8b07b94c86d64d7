"""The tool calls of one run: who may make them, who is asked, what their agents are told of them.

Only here a call is made, and only after its Graph's permissions were looked at, once for each call.
A call is made once for ever: whatever is not known of it afterwards is told to its agent as such.
What an agent says (a tool's name, arguments) is looked up and handed on, and never a setting.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.actor import Context, Place
from actors.graphs import approvals
from actors.graphs.messages import ToolAnswer, ToolAsk, ToolCall, ToolCancel, ToolResult
from actors.graphs.operations import Call, Limits, Operation, RunClock
from actors.graphs.permissions import Permission, Rights
from actors.graphs.trail import Decision
from actors.text import clean_text, clean_value, cut, units

CALLS_LIMIT = 10_000  # of a run; one that makes more is in a loop, and each has a number on disk
ROUND_CALLS_LIMIT = 32  # of an answer; models ask for a few at once
# Of a run at once, waiting or made: tools have a mailbox of 256, and what doesn't fit is lost.
OPEN_CALLS_LIMIT = 128
NAME_LIMIT_CHARS = 200  # of a tool's name and of a model's own id; the longest in use have 64
ARGUMENTS_LIMIT_CHARS = 20_000  # as JSON; what is longer no owner can look at
RESULT_LIMIT_CHARS = 50_000  # of what an agent is told of a call; it pays for each of them
ANSWER_GRACE_US = 1_000_000  # so that tools can still say that a call took too long
UNKNOWN = "it is unknown whether this happened: the tools did not answer in time"
RESTARTED = "it is unknown whether this happened: the engine was restarted while the call was made"


class Calls:
    """See the module's docstring. `open` has the calls that wait or are made, by number."""

    def __init__(
        self, run: str, execution_id: str, place: Place, rights: Rights, limits: Limits
    ) -> None:
        self.run = run
        self.execution_id = execution_id
        self.tools = place.tools
        self.rights = rights
        self.limits = limits
        self.clock = RunClock()
        self.open: dict[int, Call] = {}
        self.made = 0  # calls so far, with those that were denied
        self.asked = 0  # of these, how many waited for their owner

    def offered(self, operation: Operation) -> tuple[str, ...]:
        """Return the tools that an agent is offered: what its script asks for and may have."""
        names, asked = operation.script.names, operation.request.options.tools
        if not asked:
            return ()
        wanted = dict.fromkeys(asked)
        return tuple(tool for tool in wanted if self.rights.of(names, tool) != "deny")

    def withheld(self, operation: Operation) -> tuple[str, ...]:
        """Return the tools that its script asks for and may not have."""
        offered = self.offered(operation)
        wanted = dict.fromkeys(operation.request.options.tools or ())
        return tuple(tool for tool in wanted if tool not in offered)

    @property
    def waiting(self) -> int:
        """How many calls wait for their owner."""
        return sum(1 for call in self.open.values() if call.waits)

    # From an answer to its round

    def begin(self, context: Context, operation: Operation, asked: Sequence[ToolCall]) -> None:
        """Begin a round: each call is made, put before its owner, or denied at once."""
        for place, one in enumerate(asked):
            self.made += 1
            cleaned, text = _cleaned(one)
            call = Call(self.made, operation, cleaned)
            operation.calls = (*operation.calls, call)
            permission, why = self.judge(operation, cleaned.tool, place, text)
            self.log(
                context,
                "tool.asked",
                call,
                permission=permission,
                chars=0 if text is None else units(text),
            )
            if permission == "deny":
                call.result = ToolResult(id=cleaned.id, ok=False, text=f"denied: {why}")
            elif permission == "allow":
                self.make(context, call)
            else:
                self.put_before_owner(context, call)

    def judge(
        self, operation: Operation, tool: str, place: int, text: str | None
    ) -> tuple[Permission, str]:
        """Return what may be done with a call, and why not if not."""
        offered = self.offered(operation)
        if tool not in offered:
            those = f"those are {', '.join(offered)}" if offered else "it has none"
            return "deny", f"this is none of the tools that this agent may use: {those}"
        if place >= ROUND_CALLS_LIMIT:
            return "deny", f"at most {ROUND_CALLS_LIMIT} calls are made at once"
        if len(self.open) >= OPEN_CALLS_LIMIT:
            return "deny", f"{OPEN_CALLS_LIMIT} calls of this run wait or are made: try again later"
        if self.made > CALLS_LIMIT:
            return "deny", f"a run may make {CALLS_LIMIT:,} calls"
        if text is None:
            return "deny", "the arguments can't be written as JSON, or are nested too deep"
        if units(text) > ARGUMENTS_LIMIT_CHARS:
            return "deny", f"arguments have at most {ARGUMENTS_LIMIT_CHARS:,} characters"
        return self.rights.of(operation.script.names, tool), ""

    def make(self, context: Context, call: Call) -> None:
        """Have the tools make a call."""
        left_us = call.operation.time_left_us(self.clock.now_us(context))
        timeout_us = max(1, min(self.limits.tool_timeout_us, left_us))
        body = ToolAsk(
            run=self.run,
            call=call.number,
            tool=call.asked.tool,
            arguments=call.asked.arguments,
            timeout_us=timeout_us,
        )
        self.open[call.number] = call
        call.waits, call.begun_us = False, context.stamp_us
        call.question = context.request(self.tools, body, timeout_us + ANSWER_GRACE_US)
        self.log(context, "tool.started", call)

    def put_before_owner(self, context: Context, call: Call) -> None:
        """Let a call wait for its owner, on disk."""
        self.open[call.number] = call
        self.asked += 1
        call.waits, call.begun_us = True, context.stamp_us
        operation = call.operation
        label = operation.request.options.label
        row = approvals.Waiting(
            run=self.run,
            graph=operation.script.path,
            agent=operation.number,
            label=None if label is None else cut(clean_text(label), NAME_LIMIT_CHARS),
            call=call.number,
            tool=call.asked.tool,
            arguments=call.asked.arguments,
            asked_us=context.stamp_us,
            due_us=context.stamp_us + self.limits.approval_timeout_us,
        )
        key = approvals.approval_key(self.run, call.number)
        context.store.table(approvals.APPROVALS).put(key, row)
        context.set_timer(self.timer(call), self.limits.approval_timeout_us)
        self.log(context, "approval.waiting", call, timeout_us=self.limits.approval_timeout_us)

    def timer(self, call: Call) -> str:
        """Return the name of the timer that denies a call."""
        return f"approval:{self.execution_id}:{call.number}"

    # What comes of them

    def decide(self, context: Context, call: Call, decision: Decision) -> None:
        """Take what was decided of a call that waited: it is made, or denied."""
        self.close_approval(context, call, decision)
        if decision.allow:
            self.make(context, call)
            return
        del self.open[call.number]
        if decision.by == "owner":
            text = "denied: the owner did not allow this call"
        else:
            limit_s = self.limits.approval_timeout_us / 1e6
            text = f"denied: nobody allowed this call within {limit_s:g} s"
        call.result = ToolResult(id=call.asked.id, ok=False, text=text)

    def close_approval(self, context: Context, call: Call, decision: Decision) -> None:
        """Write down and tell what became of a call that waited."""
        call.waits = False
        context.cancel_timer(self.timer(call))
        table = context.store.table(approvals.APPROVALS)
        row = table.get(approvals.approval_key(self.run, call.number))
        if row is not None and row.decision is None:
            approvals.settle(table, row, decision)
        self.log(
            context,
            "approval.decided",
            call,
            allow=decision.allow,
            by=decision.by,
            waited_us=max(0, context.stamp_us - call.begun_us),
        )

    def take(self, context: Context, call: Call, told: ToolAnswer | None, why: str) -> None:
        """Take what came of a call that was made; without an answer it is unknown, and `why`."""
        if told is None:
            result = ToolResult(id=call.asked.id, ok=False, text=why)
            context.send(self.tools, ToolCancel(run=self.run, call=call.number))
            status = "unknown"
        else:
            result = ToolResult(id=call.asked.id, ok=told.ok, text=bounded_text(told.text))
            status = "ok" if told.ok else "failed"
        del self.open[call.number]
        call.result = result
        self.tell_end(context, call, status, units(result.text))

    def drop(self, context: Context, operation: Operation) -> None:
        """Stop an agent's calls, and take those back that wait for their owner."""
        for call in operation.calls:
            if self.open.pop(call.number, None) is None:
                continue
            if call.waits:
                self.close_approval(context, call, Decision(allow=False, by="cancelled"))
            else:
                context.send(self.tools, ToolCancel(run=self.run, call=call.number))
                self.tell_end(context, call, "cancelled", 0)
        operation.calls = ()

    def tell_end(self, context: Context, call: Call, status: str, chars: int) -> None:
        """Tell how a call that was made has ended."""
        took_us = max(0, context.stamp_us - call.begun_us)
        self.log(context, "tool.finished", call, status=status, chars=chars, took_us=took_us)

    def log(self, context: Context, event: str, call: Call, **fields: object) -> None:
        """Tell of a call; never its arguments, which may hold secrets."""
        context.log(
            event,
            run=self.run,
            graph=call.operation.script.path,
            agent=call.operation.number,
            call=call.number,
            tool=call.asked.tool,
            **fields,
        )


def bounded_text(text: str) -> str:
    """Return a text as an agent is told it: clean, and cut with a word about it."""
    text = clean_text(text)
    size = units(text)
    if size <= RESULT_LIMIT_CHARS:
        return text
    return f"{cut(text, RESULT_LIMIT_CHARS)}\n(cut: it has {size:,} characters)"


def _cleaned(asked: ToolCall) -> tuple[ToolCall, str | None]:
    """Return a call with clean text, and its arguments as JSON, None if they have no such form."""
    arguments, text = None, None
    try:
        arguments = clean_value(asked.arguments)
        text = msgspec.json.encode(arguments).decode()
    except (ValueError, RecursionError):
        arguments = None
    cleaned = ToolCall(
        id=cut(clean_text(asked.id), NAME_LIMIT_CHARS),
        tool=cut(clean_text(asked.tool), NAME_LIMIT_CHARS),
        arguments=arguments,
    )
    return cleaned, text
