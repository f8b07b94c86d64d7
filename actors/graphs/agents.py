"""The agents of one run, from the head of the queue to their end.

An agent is asked of the model; what it answers is its end, or is repaired once, or wants tools. For
tools it is asked again with what came of them, as often as it may. While a call waits for its owner
the agent is parked: it gives its slot back, and its time stands still.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from actors.actor import Context, Place
from actors.graphs.admission import Admission
from actors.graphs.calls import RESTARTED, UNKNOWN, Calls, bounded_text
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel, Round
from actors.graphs.operations import Limits, Operation
from actors.graphs.schemas import SchemaError, read_answer
from actors.graphs.seam import Settlement
from actors.graphs.trail import Noted
from actors.text import clean_text, clean_value

REPAIRS_LIMIT = 1  # a model may repair an answer once
ROUNDS_LIMIT = 50  # of tools an agent; one that is not done by then goes round in circles
ANSWER_CALLS_LIMIT = 256  # each is told of and answered, also if it is denied
TALK_LIMIT_BYTES = 1_000_000  # of prompt, options and rounds together, as a frame has 1 MiB
LOST = "the engine was restarted while the agent worked"
_encode = msgspec.json.Encoder().encode


class Agents:
    """See the module's docstring. `settle` tells a script its end; `begun` are those at work."""

    def __init__(
        self,
        run: str,
        place: Place,
        limits: Limits,
        admission: Admission,
        calls: Calls,
        settle: Callable[[Operation, Settlement], None],
    ) -> None:
        self.run = run
        self.model = place.model
        self.limits = limits
        self.admission = admission
        self.calls = calls
        self.settle = settle
        self.begun: dict[int, Operation] = {}  # by number

    # Asking

    def admit(self, context: Context, operation: Operation, refusal: Settlement | None) -> None:
        """Start the agent at the head of the queue, ask it again, or tell why not."""
        if operation.rounds:
            self.ask_again(context, operation, refusal)
        elif refusal is None:
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

    def launch(self, context: Context, operation: Operation) -> None:
        """Start an agent."""
        options, timeout_us = operation.request.options, self.limits.agent_timeout_us
        if options.timeout_ms is not None:
            timeout_us = max(1, min(timeout_us, round(options.timeout_ms * 1000)))
        operation.due_us = self.calls.clock.now_us(context) + timeout_us
        self.begun[operation.number] = operation
        context.log(
            "agent.started",
            run=self.run,
            graph=operation.script.path,
            agent=operation.number,
            label=options.label,
            phase=options.phase,
        )
        for tool in self.calls.withheld(operation) if options.tools else ():
            context.log(
                "tool.withheld",
                run=self.run,
                graph=operation.script.path,
                agent=operation.number,
                tool=tool,
            )
        self.ask(context, operation, None)

    def ask(self, context: Context, operation: Operation, problem: str | None) -> None:
        """Ask the model for an agent's answer; with what was wrong with the one before."""
        options = operation.request.options
        timeout_us = operation.due_us - self.calls.clock.now_us(context)
        # Most agents have no tools and one round: what is for others costs them nothing.
        offered = self.calls.offered(operation) if options.tools else ()
        operation.state = "flying"
        body = AgentAsk(
            run=self.run,
            agent=operation.number,
            prompt=clean_text(operation.request.prompt),
            timeout_us=timeout_us,
            model=options.model,
            schema=options.schema,
            max_tokens=operation.tokens_left,
            tools=offered,
            rounds=operation.rounds,
            problem=problem,
        )
        operation.question = context.request(self.model, body, timeout_us)

    def stop(self, context: Context, operation: Operation) -> None:
        """Have the model stop an agent, and say what it used."""
        operation.state = "stopping"
        body = AgentCancel(run=self.run, agent=operation.number)
        operation.question = context.request(self.model, body, self.limits.stop_us)

    # What is heard

    def conclude(self, context: Context, noted: Noted) -> None:
        """Take what a model said of an agent, or what came of one of its calls."""
        operation = self.begun.get(noted.operation)
        if operation is None:
            return
        if noted.call:
            self.conclude_call(context, operation, noted)
            return
        answer, operation.question = noted.answer, -1
        if answer is not None:
            self.admission.count(operation, answer)
        if operation.state == "stopping":
            self.land(context, operation)
        elif answer is None:
            self.time_out(operation)
            self.stop(context, operation)
        elif answer.outcome == "tools":
            self.begin_round(context, operation, answer)
        elif answer.outcome != "ok":
            operation.verdict = operation.of_answer(answer)
            self.land(context, operation)
        else:
            self.judge(context, operation, answer)

    def time_out(self, operation: Operation) -> None:
        """Note that an agent's time is up."""
        message = "the agent did not answer in its time"
        operation.verdict = operation.fail("agent", "agent_timeout", message)

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
        elif retryable and self.may_repair(context, operation):
            operation.repairs += 1
            self.ask(context, operation, problem)
            return
        else:
            message = f"the answer does not fit: {problem}" if retryable else problem
            self.fail(operation, message, retryable=retryable)
        self.land(context, operation)

    def may_repair(self, context: Context, operation: Operation) -> bool:
        """Whether an answer may be repaired: once, in time, and with tokens left."""
        left = operation.tokens_left
        return (
            operation.repairs < REPAIRS_LIMIT
            and operation.time_left_us(self.calls.clock.now_us(context)) > 0
            and (left is None or left > 0)
            and self.admission.may_repair()
        )

    def fail(self, operation: Operation, message: str, *, retryable: bool = False) -> None:
        """Note that an agent has failed."""
        operation.verdict = operation.fail("agent", "agent_failed", message, retryable=retryable)

    # Tools

    def begin_round(self, context: Context, operation: Operation, answer: AgentAnswer) -> None:
        """Take an answer that wants tools."""
        if not answer.calls:
            self.fail(operation, "the agent asked for tools and named none", retryable=True)
            self.land(context, operation)
        elif len(answer.calls) > ANSWER_CALLS_LIMIT:
            message = f"the agent asked for {len(answer.calls):,} tool calls at once"
            self.fail(operation, message, retryable=True)
            self.land(context, operation)
        elif len(operation.rounds) >= ROUNDS_LIMIT:
            self.fail(operation, f"an agent has at most {ROUNDS_LIMIT} rounds of tools")
            self.land(context, operation)
        else:
            operation.said = bounded_text(answer.value) if isinstance(answer.value, str) else ""
            operation.state = "calling"
            self.calls.begin(context, operation, answer.calls)
            self.proceed(context, operation)

    def conclude_call(self, context: Context, operation: Operation, noted: Noted) -> None:
        """Take what was decided or came of a call; what is closed already changes nothing."""
        call = self.calls.open.get(noted.call)
        if call is None or call.operation is not operation:
            return
        if noted.decision is None:
            self.calls.take(context, call, noted.told, UNKNOWN)
        elif call.waits:
            if not any(one.waits for one in operation.calls if one is not call):
                operation.start_time(self.calls.clock.now_us(context))
            self.calls.decide(context, call, noted.decision)
        self.proceed(context, operation)

    def proceed(self, context: Context, operation: Operation) -> None:
        """Park an agent that waits for its owner; ask it again once its round is complete."""
        if any(call.waits for call in operation.calls):
            operation.stop_time(self.calls.clock.now_us(context))
            operation.state = "parked"
            if operation.number in self.admission.flying:
                self.admission.release(operation)
        elif any(call.result is None for call in operation.calls):
            operation.state = "calling"
        else:
            self.end_round(context, operation)

    def end_round(self, context: Context, operation: Operation) -> None:
        """Ask an agent again with what came of its calls: at once, or when it has a slot again."""
        results = tuple(call.result for call in operation.calls if call.result is not None)
        calls = tuple(call.asked for call in operation.calls)
        done = Round(text=operation.said, calls=calls, results=results)
        operation.rounds = (*operation.rounds, done)
        operation.calls = ()
        left = operation.tokens_left
        if operation.time_left_us(self.calls.clock.now_us(context)) <= 0:
            self.time_out(operation)
        elif left is not None and left <= 0:
            self.fail(operation, "the agent's maxTokens were used before it was done")
        elif _talk_bytes(operation) > TALK_LIMIT_BYTES:
            message = f"prompt, calls and their results have more than {TALK_LIMIT_BYTES:,} bytes"
            self.fail(operation, message)
        elif operation.number in self.admission.flying:
            self.admission.reserve(operation)
            self.ask_again(context, operation, self.admission.refusal(operation))
            return
        else:
            operation.stop_time(self.calls.clock.now_us(context))
            operation.state = "returning"
            self.admission.back.append(operation)
            return
        self.land(context, operation)

    def ask_again(self, context: Context, operation: Operation, refusal: Settlement | None) -> None:
        """Ask an agent that has been through a round, unless the run's tokens are used up."""
        if refusal is None:
            operation.start_time(self.calls.clock.now_us(context))
            self.ask(context, operation, None)
        else:
            operation.verdict = refusal
            self.land(context, operation)

    # The end

    def drop(self, context: Context, operation: Operation) -> None:
        """End an agent that nobody waits for any more, wherever it stands."""
        if operation.state == "flying":
            self.stop(context, operation)
        elif operation.state in ("calling", "parked", "returning"):
            self.calls.drop(context, operation)
            self.land(context, operation)
        elif operation.state == "waiting":
            operation.state = "over"

    def land(self, context: Context, operation: Operation) -> None:
        """End an agent: its slot is free, its usage counted, its script told."""
        if operation.number in self.admission.flying:
            self.admission.release(operation)
        self.begun.pop(operation.number, None)
        operation.state = "over"
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

    def resume(self, context: Context) -> None:
        """Give up what was under way when the engine died: nobody knows how far it came.

        What waits for its owner goes on waiting.
        """
        for operation in [self.begun[number] for number in sorted(self.begun)]:
            if operation.state == "flying":
                self.fail(operation, LOST, retryable=True)
                self.stop(context, operation)
            elif operation.state == "stopping":
                self.stop(context, operation)
            else:
                made = [call for call in operation.calls if call.result is None and not call.waits]
                for call in made:
                    self.calls.take(context, call, None, RESTARTED)
                if made:
                    self.proceed(context, operation)


def _talk_bytes(operation: Operation) -> int:
    """Return how much an agent's model is told, beside the fixed parts of the question."""
    request = operation.request
    return len(_encode((clean_text(request.prompt), request.options, operation.rounds)))
