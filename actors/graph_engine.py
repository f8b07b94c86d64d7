"""The fleet engine that runs real Graphs: JavaScript programs whose agents are asked of a model.

What it says to its relay is what the synthetic engine says: a channel starts once for ever, its end
is repeated until the relay has it on disk, and what was under way when the engine died is reported
as interrupted, with the tokens that it had used; but a run that waits for its owner goes on waiting
in the next boot. Each run is a `Fleet`; here it meets the world.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated, Any

import msgspec

from actors.actor import Context, Handler, Place, TableSpec, Unanswered
from actors.engine import DROPPED_TEXT, Engine, Execution, run_of
from actors.graphs import approvals
from actors.graphs.admission import FLYING_LIMIT, Slots
from actors.graphs.fleet import Fleet
from actors.graphs.messages import (
    AgentAnswer,
    AgentAsk,
    AgentCancel,
    Approvals,
    Decide,
    Decided,
    ListApprovals,
    ToolAnswer,
    ToolAsk,
)
from actors.graphs.operations import Limits
from actors.graphs.permissions import Rights
from actors.graphs.resume import CannotResumeError, resume, traced_turn
from actors.graphs.seam import STOPPED
from actors.graphs.tools import ToolsConfig
from actors.graphs.trail import Beginning, Trail
from actors.messages import (
    Completion,
    FleetAcknowledged,
    FleetCancel,
    FleetDrop,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
)
from actors.text import bounded
from transports.envelope import Envelope
from transports.units import Duration
from transports.version import VERSION

SUFFIX = ".js"  # of a Graph's file
PARKED_LIMIT = 64  # runs that others don't wait for: each has a VM, and an owner answers one by one
_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder(order="sorted").encode


class Spending(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run has used so far, which must not be forgotten when its engine dies."""

    tokens: int
    cost: float


SPENDINGS = TableSpec("spendings", Spending)


class GraphEngine(Engine):
    """See the module's docstring."""

    blocking = True  # a script computes within a turn, in a process of its own

    class Config(ToolsConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of an engine that runs Graphs, and of the model behind it.

        The model's keys are those of its agents: how long one takes, what it uses, how often it
        fails or answers what does not fit its schema.
        """

        graph: Annotated[
            str, "the JavaScript file that runs; or a folder, with a file for each session's slug"
        ]
        args: Annotated[
            dict[str, Any], "what the Graph is given, below the run's own arguments"
        ] = msgspec.field(default_factory=dict)
        max_concurrency: Annotated[
            int, msgspec.Meta(ge=1, le=FLYING_LIMIT), "how many agents of a run work at once"
        ] = 8
        token_ceiling: Annotated[
            Annotated[int, msgspec.Meta(ge=1)] | None,
            "no agent starts once a run has used so many tokens; without it any number",
        ] = None
        max_agents: Annotated[
            int, msgspec.Meta(ge=1, le=100_000), "how many agents a run may start"
        ] = 1_000
        max_runs: Annotated[
            int,
            msgspec.Meta(ge=1, le=10_000),
            "how many runs go at once, less those that wait for their owner; others wait",
        ] = 1
        agent_timeout_us: Annotated[Duration, "how long an agent may take"] = msgspec.field(
            name="agent_timeout", default=Duration(600_000_000)
        )
        deadline_us: Annotated[Duration, "how long a run may take; 0s for ever"] = msgspec.field(
            name="deadline", default=Duration(86_400_000_000)
        )
        stop_us: Annotated[Duration, "how long a model may take to stop an agent"] = msgspec.field(
            name="stop", default=Duration(5_000_000)
        )
        report_us: Annotated[Duration, "how often it tells a silent relay of a Graph's end"] = (
            msgspec.field(name="report", default=Duration(10_000_000))
        )

        def __post_init__(self) -> None:
            """Refuse times of 0, which would go round at one instant, and a model's mistakes."""
            super().__post_init__()
            for name in ("agent_timeout", "stop", "report"):
                if not getattr(self, f"{name}_us"):
                    raise ValueError(f"{name} must be longer than 0s")

    config: Config  # type: ignore[assignment]  # a real Graph takes what its agents take

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        self.fleets: dict[str, Fleet] = {}  # by execution id
        # None where each session has a Graph of its own, called as its slug.
        self.graph = graph_name(config.graph) if config.graph.endswith(SUFFIX) else None
        self.library = {
            graph_name(name): text for name, text in place.files.items() if name.endswith(SUFFIX)
        }
        self.limits = Limits(
            max_concurrency=config.max_concurrency,
            token_ceiling=config.token_ceiling,
            max_agents=config.max_agents,
            agent_timeout_us=int(config.agent_timeout_us),
            deadline_us=int(config.deadline_us),
            stop_us=int(config.stop_us),
            tool_timeout_us=int(config.tool_timeout_us),
            approval_timeout_us=int(config.approval_timeout_us),
        )
        self.rights = Rights(config.permissions)
        # Without permissions no run waits for its owner, and none goes on.
        marked = (self.library, self.limits, config.permissions) if config.permissions else ()
        self.settings = blake2b(_encode((VERSION, marked)), digest_size=16).hexdigest()
        self.handlers: Mapping[type[Any], Handler] = {
            FleetRun: self.on_run,
            FleetQuery: self.on_query,
            FleetCancel: self.on_cancel,
            FleetDrop: self.on_drop,
            FleetAcknowledged: self.on_acknowledged,
            AgentAnswer: self.on_answer,
            ToolAnswer: self.on_tool_answer,
            ListApprovals: self.on_list,
            Decide: self.on_decide,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Drop the scripts of a former boot, and report what it left."""
        for fleet in self.fleets.values():
            fleet.abandon()
        self.fleets = {}
        self.hurried: set[str] = set()  # the executions whose scripts must compute no more
        self.by_run: dict[str, Fleet] = {}
        self.told: dict[str, int] = {}  # how many calls wait, as relays know it, by execution id
        self.trails: dict[str, Trail] = {}  # of runs that may come to wait for their owner
        self.slots = Slots()
        self.starved: dict[str, Fleet] = {}  # those that wait for a slot, by execution id
        self.parked: set[str] = set()  # the executions that do nothing but wait for their owner
        self.waiting: deque[tuple[Execution, FleetRun]] = deque()
        self.spendings = context.store.table(SPENDINGS)
        super().on_start(context)

    def interrupted(self, execution: Execution) -> Completion:
        """Return the end of an execution that a former boot left, with what it had used."""
        done, spending = super().interrupted(execution), self.spendings.get(execution.channel)
        if spending is None:
            return done
        return _replace(done, total_tokens=spending.tokens, reported_cost=spending.cost)

    def hurry(self, body: Any) -> None:
        """End what a script computes, for good, if its run is to be cancelled.

        A host calls it from another thread for what comes during a turn; the message is handled
        after that.
        """
        fleet = self.fleets.get(body.execution_id) if isinstance(body, FleetCancel) else None
        if fleet is not None:
            self.hurried.add(fleet.execution_id)
            for script in list(fleet.scripts.values()):
                if script.vm is not None:
                    script.vm.hurry()

    # Runs

    def begin(self, context: Context, execution: Execution, run: FleetRun) -> None:
        """Let an execution's Graph run, or wait for its turn."""
        if self.has_room():
            self.launch(context, execution, run)
        else:
            self.waiting.append((execution, run))

    def has_room(self) -> bool:
        """Whether one more run may go. One that waits for its owner holds up nobody."""
        return len(self.fleets) - min(len(self.parked), PARKED_LIMIT) < self.config.max_runs

    def launch_waiting(self, context: Context) -> None:
        """Let runs go that waited for their turn, as long as there is room."""
        while self.waiting and self.has_room():
            self.launch(context, *self.waiting.popleft())

    def launch(self, context: Context, execution: Execution, run: FleetRun) -> None:
        """Let an execution's Graph run."""
        fleet = self.new_fleet(execution)
        graph, args = self.graph_of(run), {**self.config.args, **run.arguments}
        if self.rights.may_ask(graph, fleet.library):
            beginning = Beginning(
                execution_id=fleet.execution_id,
                graph=graph,
                args=args,
                settings=self.settings,
                begun_us=context.stamp_us,
                now_us=context.now_us,
            )
            trail = self.trails[fleet.execution_id] = Trail(execution.channel, fleet.execution_id)
            trail.begin(context, beginning)
        self.keep(fleet)
        fleet.begin(context, graph, args)

    def new_fleet(self, execution: Execution) -> Fleet:
        """Make the fleet of an execution."""
        execution_id = execution.execution_id
        assert execution_id is not None, "a tombstone never begins"
        return Fleet(
            run_of(execution.channel),
            execution_id,
            self.place,
            self.limits,
            self.slots,
            self.library_of(execution),
            self.rights,
        )

    def graph_of(self, run: FleetRun) -> str:
        """Return the name of the Graph that runs."""
        return self.graph or run.slug

    def library_of(self, execution: Execution) -> Mapping[str, str]:
        """Return the texts of all Graphs that an execution may call, by name."""
        return self.library

    def keep(self, fleet: Fleet) -> None:
        """Have a fleet at work."""
        self.fleets[fleet.execution_id] = self.by_run[fleet.run] = fleet

    def recover(self, context: Context, execution: Execution) -> None:
        """Go on with a run that waits for its owner; report any other as interrupted."""
        fleet = self.new_fleet(execution)
        trail = Trail(execution.channel, fleet.execution_id)
        try:
            waiting = resume(context, fleet, trail, self.settings)
        except CannotResumeError as error:
            trail.forget(context)
            approvals.forget(context, fleet.run)
            done = self.interrupted(execution)
            if str(error):
                context.log("fleet.unresumable", run=fleet.run, why=str(error))
                done = _replace(done, error=f"{done.error}, and can't go on: {error}")
            self.finish(context, execution, done)
            return
        self.running[fleet.execution_id] = execution
        self.trails[fleet.execution_id] = trail
        self.keep(fleet)
        self.told[fleet.execution_id] = waiting
        self.see_parked(fleet)
        context.log("fleet.resumed", run=fleet.run, turns=trail.rows, waiting=waiting)
        self.tell_approver(context)

    def stop(self, context: Context, execution_id: str) -> None:
        """Stop an execution: at once while it waits, else as soon as its agents have stopped."""
        fleet = self.fleets.get(execution_id)
        if fleet is not None:
            if execution_id in self.trails:
                self.trails[execution_id].cancel(context)
            fleet.cancel(context)
            return
        self.waiting = deque(one for one in self.waiting if one[0].execution_id != execution_id)
        execution = self.running.pop(execution_id)
        self.finish(context, execution, Completion(execution_id=execution_id, status="cancelled"))

    def drop(self, context: Context, execution_id: str) -> None:
        """End an execution now, whatever its agents do; what they still use is not counted."""
        fleet = self.fleets.get(execution_id)
        if fleet is None:
            self.stop(context, execution_id)
        else:
            fleet.drop(context, DROPPED_TEXT)

    def on_answer(self, context: Context, envelope: Envelope[AgentAnswer]) -> None:
        """Note an agent's end."""
        self.note(context, envelope.body.run, envelope.body.agent, envelope.reply_to, envelope.body)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Note that a model or the tools said nothing; report again to a relay that did."""
        question = envelope.body.question
        if isinstance(question, AgentAsk | AgentCancel):
            self.note(context, question.run, question.agent, envelope.reply_to, None)
        elif isinstance(question, ToolAsk):
            self.note_call(context, question.run, question.call, envelope.reply_to, None)
        else:
            super().on_unanswered(context, envelope)

    def note(
        self, context: Context, run: str, agent: int, question: int, answer: AgentAnswer | None
    ) -> None:
        """Note what became of a question to the model, unless its run is over."""
        fleet = self.by_run.get(run)
        if fleet is not None:
            fleet.note(context, agent, question, answer)

    def on_tool_answer(self, context: Context, envelope: Envelope[ToolAnswer]) -> None:
        """Note what came of a tool call."""
        body = envelope.body
        self.note_call(context, body.run, body.call, envelope.reply_to, body)

    def note_call(
        self, context: Context, run: str, call: int, question: int, told: ToolAnswer | None
    ) -> None:
        """Note what became of a question to the tools, unless its run is over."""
        fleet = self.by_run.get(run)
        if fleet is not None:
            fleet.note_call(context, call, question, told)

    # The owner

    def on_list(self, context: Context, envelope: Envelope[ListApprovals]) -> Approvals:
        """Tell which calls wait for their owner."""
        if self.is_owner(envelope.source):
            return Approvals(waiting=approvals.listed(context))
        return Approvals(waiting=())

    def on_decide(self, context: Context, envelope: Envelope[Decide]) -> Decided:
        """Write down what the owner decided of a call, and let its run go on."""
        body = envelope.body
        fleet, known = self.by_run.get(body.run), False
        if fleet is not None and self.is_owner(envelope.source):
            decision = approvals.decide(context, body)
            if decision is not None:
                fleet.note_decision(context, body.call, decision)
            known = decision is not None or approvals.was_decided(context, body)
        return Decided(run=body.run, call=body.call, known=known)

    def is_owner(self, source: str) -> bool:
        """Whether one who is linked to this engine speaks for its owner.

        The connection says who it is. Everybody does but those who do what agents say.
        """
        return source not in (self.place.model, self.place.tools)

    def tell_approver(self, context: Context) -> None:
        """Tell at once what waits, where somebody wants to know it."""
        if self.place.approver:
            context.send(self.place.approver, Approvals(waiting=approvals.listed(context)))

    def tell_relay(self, context: Context, fleet: Fleet) -> None:
        """Tell the relay how many calls of a run wait, when that has changed."""
        waiting = fleet.calls.waiting
        if waiting == self.told.get(fleet.execution_id, 0):
            return
        self.told[fleet.execution_id] = waiting
        execution = self.running[fleet.execution_id]
        if execution.traceparent != context.traceparent:
            context.trace(execution.traceparent)
        context.send(execution.relay, self.standing(execution))

    def standing(self, execution: Execution) -> FleetStarted | FleetUnknown:
        """Return how a channel stands, with what waits if anything ever did."""
        standing = super().standing(execution)
        if isinstance(standing, FleetStarted) and standing.execution_id in self.told:
            return _replace(standing, waiting=self.told[standing.execution_id])
        return standing

    def on_timer(self, context: Context, timer: str) -> None:
        """Take a run's turn, wake its script, end it at its deadline; or report an end again."""
        what, _, rest = timer.partition(":")
        if what == "report":
            self.report_again(context, rest)
            return
        execution_id, _, number = rest.partition(":")
        fleet = self.fleets[execution_id]
        if what == "sleep":
            fleet.wake(context, int(number))
        elif what == "approval":
            decision = approvals.expire(context, fleet.run, int(number))
            fleet.note_decision(context, int(number), decision)
        elif what == "deadline":
            fleet.expire(context)
        else:
            self.take_turn(context, fleet)
            if fleet.admission.starved and not fleet.over:
                self.starved.setdefault(execution_id, fleet)
            self.feed(context)

    def feed(self, context: Context) -> None:
        """Let those runs have a turn that the free slots may be for, the longest waiting first."""
        for execution_id in list(self.starved)[: self.slots.free]:
            self.starved.pop(execution_id).arm(context)

    def see_parked(self, fleet: Fleet) -> None:
        """See whether a run does nothing but wait for its owner."""
        if fleet.is_parked:
            self.parked.add(fleet.execution_id)
        else:
            self.parked.discard(fleet.execution_id)

    def take_turn(self, context: Context, fleet: Fleet) -> None:
        """Take a run's turn; keep what it has used, and its end if it is over."""
        accounts = fleet.admission
        counted, asked = len(accounts.costs), fleet.calls.asked
        trail = self.trails.get(fleet.execution_id)
        if trail is None:
            fleet.turn(context)
        else:
            traced_turn(context, fleet, trail)
        if fleet.calls.asked > asked:
            self.tell_approver(context)
        if fleet.ended is None:
            self.tell_relay(context, fleet)
        execution = self.running[fleet.execution_id]
        if not fleet.over:
            if len(accounts.costs) > counted:
                spending = Spending(tokens=accounts.spent, cost=accounts.cost)
                self.spendings.put(execution.channel, spending)
            if trail is not None:
                self.see_parked(fleet)
                self.launch_waiting(context)
            return
        del self.running[fleet.execution_id], self.fleets[fleet.execution_id]
        del self.by_run[fleet.run]
        self.starved.pop(fleet.execution_id, None)
        self.told.pop(fleet.execution_id, None)
        self.parked.discard(fleet.execution_id)
        self.spendings.delete(execution.channel)
        if self.trails.pop(fleet.execution_id, None) is not None:
            approvals.forget(context, fleet.run)
        whole = fleet.completion()
        if fleet.execution_id in self.hurried and STOPPED in (whole.error or ""):
            whole = _replace(whole, status="cancelled", result=None, error=None)
        self.hurried.discard(fleet.execution_id)
        done = _replace(
            bounded(whole), total_tokens=whole.total_tokens, reported_cost=whole.reported_cost
        )
        context.log(
            "fleet.finished",
            run=fleet.run,
            status=done.status,
            tokens=done.total_tokens,
            cost=done.reported_cost,
            agents=accounts.agents,
            refused=accounts.refusals,
        )
        self.finish(context, execution, done)
        self.launch_waiting(context)


def graph_name(file: str) -> str:
    """Return what scripts call the Graph in a file: its name without folder and ending."""
    return file.rpartition("/")[2].removesuffix(SUFFIX)
