"""One run of a Graph: its scripts, their agents, and what keeps them within bounds.

Inputs (answers, sleeps that are over, a cancel) are noted as they come; the run then takes one
*turn* at the end of that instant. A turn has a fixed order, so that one seed has one log on every
host: completions in the order of their operations, with accounting and events; then the VMs in the
order of their scripts; then admission from one queue. That goes round until no script has anything
to do.

At the token ceiling no agent starts any more. Those that fly finish and count, so a run overshoots
by less than one wave; an agent with `maxTokens` has them reserved and does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import msgspec

from actors.actor import Context, Place
from actors.graphs.admission import Admission, Slots
from actors.graphs.agents import Agents
from actors.graphs.calls import Calls
from actors.graphs.messages import AgentAnswer, ToolAnswer
from actors.graphs.operations import Limits, Operation, Script
from actors.graphs.permissions import Rights
from actors.graphs.seam import (
    Finished,
    Request,
    ScriptFailure,
    Settlement,
    VmLimitError,
    VmLimits,
    VmMissingError,
    VmState,
    VmTurn,
)
from actors.graphs.trail import Decision, Noted, Witness, seed_of
from actors.messages import Completion, Ending

DEPTH_LIMIT = 4  # Graphs below the root; a Graph that calls itself ends here
OPEN_GRAPHS_LIMIT = 256  # sub-graphs of a run at once: each has a VM of some 200 KB
OPERATIONS_LIMIT = 100_000  # of a run; a script that asks for more is in a loop
REFUSALS_LIMIT = 10_000  # of a run; a script that catches every refusal and asks on is in a loop
SLEEP_LIMIT_MS = 1e12  # thirty years; every deadline comes before
_ORDER = attrgetter("operation", "call")  # of what was noted in one instant
_TOLD = frozenset({"token_ceiling", "agent_limit", "graph_not_found", "graph_depth", "graph_limit"})


class Fleet:
    """See the module's docstring.

    `run` names it in events, `execution_id` in timers; `place` names the model and the tools,
    `library` has the sources of all Graphs by name. When `ended` is not None and nothing flies, the
    run is over.
    """

    def __init__(
        self,
        run: str,
        execution_id: str,
        place: Place,
        limits: Limits,
        slots: Slots,
        library: Mapping[str, str],
        rights: Rights,
    ) -> None:
        self.run = run
        self.execution_id = execution_id
        self.limits = limits
        self.library = library
        self.scripts: dict[int, Script] = {}  # those that run, by number
        self.dirty: set[int] = set()  # those whose VM has something to do
        self.admission = Admission(limits, slots)
        self.calls = Calls(run, execution_id, place, rights, limits)
        self.agents = Agents(run, place, limits, self.admission, self.calls, self.settle)
        self.sleeping: dict[int, Operation] = {}
        self.noted: list[Noted] = []
        self.stopped: Completion | None = None  # what a cancel or a deadline wants the end to be
        self.ended: Completion | None = None
        self.dropped = False  # whether its end waits for no agent
        self.armed = False  # whether a turn is due
        self.resumed = False  # whether the next turn is the first after a restart
        self.witness: Witness | None = None  # of a run that another boot could go on with
        self.begun = self.operations = 0
        self.begun_us = 0  # when, in wall time

    # What is noted, to be looked at in the next turn

    def begin(self, context: Context, name: str, args: Any) -> None:
        """Start the root Graph; a run of one that there is not fails."""
        if name in self.library:
            self.add_script(name, args, None)
        else:
            self.stop_with(context, "failed", self.not_found(name))
        self.begun_us = context.stamp_us
        if self.limits.deadline_us:
            context.set_timer("deadline:" + self.execution_id, self.limits.deadline_us)
        context.log("fleet.started", run=self.run, execution=self.execution_id, graph=name)
        self.arm(context)

    def note(self, context: Context, agent: int, question: int, answer: AgentAnswer | None) -> None:
        """Note what a model answered to an open question, None for nothing; to others nothing."""
        operation = self.agents.begun.get(agent)
        if operation is not None and operation.question == question:
            self.take_note(context, Noted(operation=agent, answer=answer))

    def note_call(
        self, context: Context, number: int, question: int, told: ToolAnswer | None
    ) -> None:
        """Note what came of a call that is made, None for nothing; of others nothing."""
        call = self.calls.open.get(number)
        if call is not None and call.question == question:
            self.take_note(context, Noted(operation=call.operation.number, call=number, told=told))

    def note_decision(self, context: Context, number: int, decision: Decision) -> None:
        """Note what was decided of a call that waits; of others nothing."""
        call = self.calls.open.get(number)
        if call is not None and call.waits:
            agent = call.operation.number
            self.take_note(context, Noted(operation=agent, call=number, decision=decision))

    def wake(self, context: Context, number: int) -> None:
        """Note that a sleep is over."""
        self.take_note(context, Noted(operation=number))

    def take_note(self, context: Context, noted: Noted) -> None:
        """Note an input, for the turn at the end of this instant."""
        self.noted.append(noted)
        self.arm(context)

    def cancel(self, context: Context) -> None:
        """Note that the run should stop: scripts see nothing of it."""
        self.stop_with(context, "cancelled", None)

    def drop(self, context: Context, error: str) -> None:
        """Note that the run should end now: its agents are not waited for."""
        self.dropped = True
        self.stop_with(context, "cancelled", error)

    def expire(self, context: Context) -> None:
        """Note that the run's time is up."""
        limit_s = self.limits.deadline_us / 1e6
        self.stop_with(context, "failed", f"the run took longer than its deadline of {limit_s:g} s")

    def stop_with(self, context: Context, status: Ending, error: str | None) -> None:
        """Note how the run should end; it does nothing to one that ends already."""
        self.stopped = Completion(execution_id=self.execution_id, status=status, error=error)
        self.arm(context)

    def arm(self, context: Context) -> None:
        """Have a turn at the end of this instant."""
        if not self.armed:
            self.armed = True
            context.set_timer("turn:" + self.execution_id, 0)

    def abandon(self) -> None:
        """Drop every VM: the engine that ran them is gone."""
        for script in self.scripts.values():
            script.close()

    # A turn

    def turn(self, context: Context) -> None:
        """Take everything that was noted, and let the run go on as far as it can."""
        self.armed = False
        noted, self.noted = self.noted, []
        if self.resumed:
            self.resumed = False
            self.agents.resume(context)
        for one in sorted(noted, key=_ORDER):
            sleeping = self.sleeping.pop(one.operation, None)
            if sleeping is not None:
                self.settle(sleeping, sleeping.succeed(None))
            else:
                self.agents.conclude(context, one)
        if self.stopped is not None:
            self.end(context, self.stopped)
        if self.dropped:
            self.land_all(context)
        while self.ended is None:
            self.run_scripts(context)
            self.admit(context)
            if not self.dirty:
                break

    def run_scripts(self, context: Context) -> None:
        """Let each VM that has something to do go on."""
        dirty, self.dirty = sorted(self.dirty), set()
        for number in dirty:
            script = self.scripts.get(number)
            if script is not None and self.ended is None:
                self.run_script(context, script)

    def run_script(self, context: Context, script: Script) -> None:
        """Let one VM go on; one that goes over its limits, or can't be had, is at its end."""
        assert context.vm is not None, "no Graph is run by a host that has no VM"
        state = VmState(
            now_ms=float(context.stamp_us // 1000),
            spent=self.admission.spent,
            total=self.limits.token_ceiling,
            agents=self.admission.agents,
        )
        try:
            if script.vm is None:
                script.vm = context.vm.open(VmLimits())
                seed = seed_of(context) if self.witness is None else self.witness.seed(context)
                turn = script.vm.start(script.source, script.args, seed, state)
            else:
                batch, script.batch = script.batch, []
                turn = script.vm.settle(batch, state)
        except (VmLimitError, VmMissingError) as error:
            failure = ScriptFailure(name="GraphError", message=str(error), code="graph_limit")
            turn = VmTurn(finished=Finished(error=failure))
        self.take(context, script, turn)

    def take(self, context: Context, script: Script, turn: VmTurn) -> None:
        """Do what a script asks for, say what it says, and end it if it has ended."""
        if self.witness is not None:
            self.witness.saw(turn)
        for notice in turn.notices:
            fields: dict[str, Any] = {"run": self.run, "graph": script.path, "text": notice.text}
            if notice.type == "log":
                fields["level"] = notice.level
            elif notice.type == "retry":
                fields |= {"attempt": notice.attempt, "delay_ms": notice.delay_ms}
            context.log(f"fleet.{notice.type}", **fields)
        for request in turn.requests:
            self.operations += 1
            operation = Operation(self.operations, script, request)
            script.open[operation.number] = operation
            if request.op == "agent":
                self.admission.queue.append(operation)
            elif request.op == "sleep":
                self.sleep(context, operation, request)
            else:
                self.call(context, operation, request)
        if turn.finished is not None:
            self.finish_script(context, script, turn.finished)
        if self.ended is None and self.operations > OPERATIONS_LIMIT:
            self.give_up(context, f"the run asked for more than {OPERATIONS_LIMIT:,} things")

    def sleep(self, context: Context, operation: Operation, request: Request) -> None:
        """Let a script sleep; it holds no slot."""
        self.sleeping[operation.number] = operation
        delay_us = round(min(request.ms, SLEEP_LIMIT_MS) * 1000)
        operation.due_us = context.stamp_us + delay_us
        context.set_timer(f"sleep:{self.execution_id}:{operation.number}", delay_us)

    def settle(self, operation: Operation, settlement: Settlement) -> None:
        """Tell a script, at its next turn, what became of an operation; nothing if it is closed."""
        script = operation.script
        if script.open.pop(operation.number, None) is not None:
            script.batch.append(settlement)
            self.dirty.add(script.number)

    # Graphs

    def add_script(self, name: str, args: Any, parent: Operation | None) -> Script:
        """Make a script that starts in this turn."""
        self.begun += 1
        script = Script(self.begun, name, self.library[name], args, parent)
        self.scripts[script.number] = script
        self.dirty.add(script.number)
        return script

    def call(self, context: Context, operation: Operation, request: Request) -> None:
        """Start a sub-graph, or say why not. It waits for no slot, so nesting can't block."""
        name, depth = request.name, operation.script.depth + 1
        if name not in self.library:
            code, message = "graph_not_found", self.not_found(name)
        elif depth > DEPTH_LIMIT:
            code = "graph_depth"
            message = f"Graphs may be nested {DEPTH_LIMIT} deep, and {name!r} would be below that"
        elif len(self.scripts) > OPEN_GRAPHS_LIMIT:
            code = "graph_limit"
            message = f"{OPEN_GRAPHS_LIMIT} sub-graphs may be open at once in a run"
        else:
            script = self.add_script(name, request.args, operation)
            context.log("graph.started", run=self.run, graph=script.path, depth=script.depth)
            return
        self.settle(operation, operation.fail("graph", code, message, retryable=False))

    def not_found(self, name: str) -> str:
        """Return what is said of a Graph that there is not."""
        return f"there is no Graph {name!r}: there is {', '.join(sorted(self.library)) or 'none'}"

    def finish_script(self, context: Context, script: Script, finished: Finished) -> None:
        """End a script: what it waits for is dropped, its caller or the run gets its end."""
        failure = finished.error
        self.close(context, script)
        status: Ending = "completed" if failure is None else "failed"
        if script.parent is None:
            self.end(
                context,
                Completion(
                    execution_id=self.execution_id,
                    status=status,
                    result=finished.value if failure is None else failure.partial,
                    error=None if failure is None else words_of(failure),
                ),
            )
            return
        context.log("graph.finished", run=self.run, graph=script.path, status=status)
        parent = script.parent
        if failure is None:
            self.settle(parent, parent.succeed(finished.value))
            return
        code = failure.code if failure.code in _TOLD else "graph_failed"
        info: dict[str, Any] = {} if failure.partial is None else {"partial": failure.partial}
        if code == "token_ceiling":
            told = parent.fail("budget", code, failure.message, **self.admission.account(), **info)
        else:
            told = parent.fail("graph", code, f"{script.path}: {words_of(failure)}", **info)
        self.settle(parent, told)

    def close(self, context: Context, script: Script) -> None:
        """Drop a script, its sub-graphs and all that they wait for."""
        script.close()
        self.scripts.pop(script.number, None)
        self.dirty.discard(script.number)
        operations, script.open = list(script.open.values()), {}
        for operation in operations:
            if operation.request.op == "graph":
                for child in [one for one in self.scripts.values() if one.parent is operation]:
                    self.close(context, child)
                    context.log(
                        "graph.finished", run=self.run, graph=child.path, status="cancelled"
                    )
            elif self.sleeping.pop(operation.number, None) is not None:
                context.cancel_timer(f"sleep:{self.execution_id}:{operation.number}")
            elif operation.request.op == "agent":
                self.agents.drop(context, operation)

    def admit(self, context: Context) -> None:
        """Start agents from the head of the queue, as long as there are slots and tokens."""
        while self.ended is None:
            head = self.admission.head()
            if head is None:
                return
            self.agents.admit(context, *head)
            if self.admission.refusals > REFUSALS_LIMIT:
                self.give_up(
                    context, f"more than {REFUSALS_LIMIT:,} agents of the run were refused"
                )

    def land_all(self, context: Context) -> None:
        """Wait for no agent any more, and say so if that is how the run ends."""
        for operation in list(self.admission.flying.values()):
            self.agents.land(context, operation)
        if self.ended is not None and self.ended.status == "cancelled":
            self.ended = self.stopped

    # The end

    def give_up(self, context: Context, error: str) -> None:
        """End a run that is in a loop."""
        done = Completion(execution_id=self.execution_id, status="failed", error=error)
        self.end(context, done)

    def end(self, context: Context, done: Completion) -> None:
        """Let the run end so: no script goes on, and what flies is stopped, to be counted."""
        if self.ended is not None:
            return
        self.ended = done
        context.cancel_timer("deadline:" + self.execution_id)
        for script in list(self.scripts.values()):
            self.close(context, script)

    @property
    def over(self) -> bool:
        """Whether the run has ended and everything that it used is counted."""
        return self.ended is not None and not self.admission.flying

    @property
    def is_parked(self) -> bool:
        """Whether nothing of the run goes on by itself: all that is open waits for its owner."""
        calls, admission = self.calls.open, self.admission
        idle = not (self.sleeping or self.noted or admission.flying or admission.is_queued)
        return self.ended is None and idle and bool(calls) and all(c.waits for c in calls.values())

    def completion(self) -> Completion:
        """Return the end of a run that is over, with all that it used."""
        assert self.ended is not None, "it is asked for once the run is over"
        return msgspec.structs.replace(
            self.ended, total_tokens=self.admission.spent, reported_cost=self.admission.cost
        )


def words_of(failure: ScriptFailure) -> str:
    """Return a script's failure in one line, with its place in the source."""
    place = f" (line {failure.line}, column {failure.column})" if failure.line else ""
    return f"{failure.name}: {failure.message}{place}"
