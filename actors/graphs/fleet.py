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
from typing import Any

import msgspec

from actors.actor import Context
from actors.graphs.admission import Admission, Slots
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel
from actors.graphs.operations import Limits, Operation, Script
from actors.graphs.schemas import SchemaError, read_answer
from actors.graphs.seam import (
    Finished,
    Request,
    ScriptFailure,
    Seed,
    Settlement,
    VmLimitError,
    VmLimits,
    VmMissingError,
    VmState,
    VmTurn,
)
from actors.messages import Completion, Ending
from actors.text import clean_text, clean_value

DEPTH_LIMIT = 4  # Graphs below the root; a Graph that calls itself ends here
OPEN_GRAPHS_LIMIT = 256  # sub-graphs of a run at once: each has a VM of some 200 KB
OPERATIONS_LIMIT = 100_000  # of a run; a script that asks for more is in a loop
REFUSALS_LIMIT = 10_000  # of a run; a script that catches every refusal and asks on is in a loop
SLEEP_LIMIT_MS = 1e12  # thirty years; every deadline comes before
ASKS_LIMIT = 2  # a model may repair an answer once
_TOLD = frozenset({"token_ceiling", "agent_limit", "graph_not_found", "graph_depth", "graph_limit"})


class Fleet:
    """See the module's docstring.

    `run` names it in events, `execution_id` in timers; `model` is the actor that answers agents,
    `library` has the sources of all Graphs by name. When `ended` is not None and nothing flies, the
    run is over.
    """

    def __init__(
        self,
        run: str,
        execution_id: str,
        model: str,
        limits: Limits,
        slots: Slots,
        library: Mapping[str, str],
    ) -> None:
        self.run = run
        self.execution_id = execution_id
        self.model = model
        self.limits = limits
        self.library = library
        self.scripts: dict[int, Script] = {}  # those that run, by number
        self.dirty: set[int] = set()  # those whose VM has something to do
        self.admission = Admission(limits, slots)
        self.sleeping: dict[int, Operation] = {}
        self.noted: list[tuple[Operation, AgentAnswer | None]] = []
        self.stopped: Completion | None = None  # what a cancel or a deadline wants the end to be
        self.ended: Completion | None = None
        self.dropped = False  # whether its end waits for no agent
        self.armed = False  # whether a turn is due
        self.begun = self.operations = 0

    # What is noted, to be looked at in the next turn

    def begin(self, context: Context, name: str, args: Any) -> None:
        """Start the root Graph; a run of one that there is not fails."""
        if name in self.library:
            self.add_script(name, args, None)
        else:
            self.stop_with(context, "failed", self.not_found(name))
        if self.limits.deadline_us:
            context.set_timer("deadline:" + self.execution_id, self.limits.deadline_us)
        context.log("fleet.started", run=self.run, execution=self.execution_id, graph=name)
        self.arm(context)

    def note(self, context: Context, agent: int, question: int, answer: AgentAnswer | None) -> None:
        """Note what a model answered to an open question, None for nothing; to others nothing."""
        operation = self.admission.flying.get(agent)
        if operation is not None and operation.question == question:
            self.noted.append((operation, answer))
            self.arm(context)

    def wake(self, context: Context, number: int) -> None:
        """Note that a sleep is over."""
        self.noted.append((self.sleeping.pop(number), None))
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
        for operation, answer in sorted(noted, key=_by_number):
            self.conclude(context, operation, answer)
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
                turn = script.vm.start(script.source, script.args, seed_of(context), state)
            else:
                batch, script.batch = script.batch, []
                turn = script.vm.settle(batch, state)
        except (VmLimitError, VmMissingError) as error:
            failure = ScriptFailure(name="GraphError", message=str(error), code="graph_limit")
            self.finish_script(context, script, Finished(error=failure))
            return
        self.take(context, script, turn)

    def take(self, context: Context, script: Script, turn: VmTurn) -> None:
        """Do what a script asks for, say what it says, and end it if it has ended."""
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
        return f"there is no Graph {name!r}: there is {', '.join(sorted(self.library))}"

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
            elif operation.state == "flying":
                self.stop(context, operation)
            elif operation.state == "waiting":
                operation.state = "dropped"
                if self.sleeping.pop(operation.number, None) is not None:
                    context.cancel_timer(f"sleep:{self.execution_id}:{operation.number}")

    # Agents

    def admit(self, context: Context) -> None:
        """Start agents from the head of the queue, as long as there are slots and tokens."""
        while self.ended is None:
            head = self.admission.head()
            if head is None:
                return
            operation, refusal = head
            if refusal is None:
                self.launch(context, operation)
            else:
                self.refuse(context, operation, refusal)

    def refuse(self, context: Context, operation: Operation, refusal: Settlement) -> None:
        """Tell a script that an agent is not started."""
        assert refusal.error is not None, "a refusal is a failure"
        context.log(
            "agent.refused",
            run=self.run,
            graph=operation.script.path,
            agent=operation.number,
            code=refusal.error.code,
        )
        self.settle(operation, refusal)
        if self.admission.refusals > REFUSALS_LIMIT:
            self.give_up(context, f"more than {REFUSALS_LIMIT:,} agents of the run were refused")

    def launch(self, context: Context, operation: Operation) -> None:
        """Start an agent."""
        options, timeout_us = operation.request.options, self.limits.agent_timeout_us
        if options.timeout_ms is not None:
            timeout_us = max(1, min(timeout_us, round(options.timeout_ms * 1000)))
        operation.due_us = context.now_us + timeout_us
        context.log(
            "agent.started",
            run=self.run,
            graph=operation.script.path,
            agent=operation.number,
            label=options.label,
            phase=options.phase,
        )
        self.ask(context, operation, None)

    def ask(self, context: Context, operation: Operation, problem: str | None) -> None:
        """Ask the model for an agent's answer; a second time with what was wrong with the first."""
        options = operation.request.options
        timeout_us = operation.due_us - context.now_us
        operation.state = "flying"
        operation.asks += 1
        body = AgentAsk(
            run=self.run,
            agent=operation.number,
            prompt=clean_text(operation.request.prompt),
            timeout_us=timeout_us,
            model=options.model,
            schema=options.schema,
            max_tokens=options.max_tokens,
            tools=options.tools or (),
            problem=problem,
        )
        operation.question = context.request(self.model, body, timeout_us)

    def stop(self, context: Context, operation: Operation) -> None:
        """Have the model stop an agent, and say what it used."""
        operation.state = "stopping"
        body = AgentCancel(run=self.run, agent=operation.number)
        operation.question = context.request(self.model, body, self.limits.stop_us)

    def conclude(self, context: Context, operation: Operation, answer: AgentAnswer | None) -> None:
        """Take the end of a sleep, or what a model said of an agent, which may not be the end."""
        if operation.request.op == "sleep":
            self.settle(operation, operation.succeed(None))
            return
        if answer is not None:
            self.admission.count(operation, answer)
        if operation.state == "stopping":
            self.land(context, operation)
        elif answer is None:
            message = "the agent did not answer in its time"
            operation.verdict = operation.fail("agent", "agent_timeout", message)
            self.stop(context, operation)
        elif answer.outcome != "ok":
            operation.verdict = operation.of_answer(answer)
            self.land(context, operation)
        else:
            self.judge(context, operation, answer)

    def judge(self, context: Context, operation: Operation, answer: AgentAnswer) -> None:
        """Take an answer that fits its schema; have one that does not repaired once."""
        schema, problem, retryable = operation.request.options.schema, None, True
        try:
            value = clean_value(answer.value)
            if schema is not None:
                value, problem = read_answer(schema, value)
        except SchemaError as error:
            value, problem, retryable = None, str(error), False
        except ValueError as error:
            value, problem = None, str(error)
        if problem is None:
            operation.verdict = operation.succeed(value)
        elif (
            retryable
            and operation.asks < ASKS_LIMIT
            and context.now_us < operation.due_us
            and self.admission.may_repair()
        ):
            self.ask(context, operation, problem)
            return
        else:
            message = f"the answer does not fit: {problem}" if retryable else problem
            operation.verdict = operation.fail(
                "agent", "agent_failed", message, retryable=retryable
            )
        self.land(context, operation)

    def land(self, context: Context, operation: Operation) -> None:
        """End an agent: its slot is free, its usage counted, its script told."""
        self.admission.release(operation)
        verdict = operation.verdict
        status, code = "cancelled", None
        if verdict is not None:
            error = verdict.error
            code = None if error is None else error.code
            status = "completed" if error is None else "failed"
            status = "expired" if code == "agent_timeout" else status
            self.settle(operation, verdict)
        context.log(
            "agent.finished",
            run=self.run,
            graph=operation.script.path,
            agent=operation.number,
            status=status,
            code=code,
            tokens=operation.tokens,
            cost=operation.cost,
            spent=self.admission.spent,
        )

    def land_all(self, context: Context) -> None:
        """Wait for no agent any more, and say so if that is how the run ends."""
        for operation in list(self.admission.flying.values()):
            self.land(context, operation)
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

    def completion(self) -> Completion:
        """Return the end of a run that is over, with all that it used."""
        assert self.ended is not None, "it is asked for once the run is over"
        return msgspec.structs.replace(
            self.ended, total_tokens=self.admission.spent, reported_cost=self.admission.cost
        )


def _by_number(noted: tuple[Operation, AgentAnswer | None]) -> int:
    return noted[0].number


def seed_of(context: Context) -> Seed:
    """Return the seed of a script's own chance."""
    stream = context.random("graph")
    one, two, three, four = (int(stream.random() * 2**32) for _ in range(4))
    return one, two, three, four


def words_of(failure: ScriptFailure) -> str:
    """Return a script's failure in one line, with its place in the source."""
    place = f" (line {failure.line}, column {failure.column})" if failure.line else ""
    return f"{failure.name}: {failure.message}{place}"
