"""One run of a Graph on the trio host: an engine, its model, and a caller who waits for its end.

With a model outside, time is the machine's own. With chance or recorded answers nothing needs to be
waited for, so time is virtual and jumps, unless a speed is given. The first Ctrl-C cancels the run
as a cancel from a relay does: its agents are stopped and what they used is counted. A second one
ends it as it stands.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import trio
from msgspec import Struct

from actors.actor import Actor, Context, Handler, Place, Unanswered
from actors.edges.models.live import LiveModel
from actors.edges.outside import close_outside, open_outside
from actors.edges.tools.runner import ToolRunner
from actors.edges.vm_process import ProcessVmPort
from actors.errors import ActorFailedError
from actors.events import EVENTS
from actors.graph_engine import GraphEngine, graph_name
from actors.host import HostContext
from actors.mailbox import MAILBOX_LIMIT
from actors.messages import (
    CHANNEL,
    Completion,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetRun,
    FleetStarted,
    Message,
)
from actors.network import Network
from actors.world import TrioWorld, virtual_clock
from scenarios.graph_owner import Asker, Nobody, Settled, TerminalOwner
from scenarios.toolbox import Toolbox
from transports.clock import EPOCH_US
from transports.envelope import Envelope

Look = Callable[[int], None]  # the time
Told = Callable[[int, str, dict[str, Any]], None]  # the time, an event, its fields

START_LIMIT_US = 3_600_000_000  # an engine that says nothing for an hour is broken
HEARD = (
    "fleet.", "graph.", "agent.started", "agent.refused", "agent.finished", "tool.", "approval.",
)  # fmt: skip
MESSAGES_PER_AGENT = 8  # a question, a cancel, an answer, what a model tells itself; with tools too
OUTSIDE = (LiveModel, ToolRunner, TerminalOwner)  # actors whose waiting is done by tasks
TICK_S = 0.1  # real time between two looks at a run that goes on


class StopRun(Message, frozen=True, kw_only=True):
    """The terminal tells its caller to cancel the run."""


class Caller:
    """Has the engine run one Graph. `completion` is its end, once there is one."""

    def __init__(self, slug: str, arguments: dict[str, Any]) -> None:
        self.slug = slug
        self.arguments = arguments
        self.completion: Completion | None = None
        self.handlers: Mapping[type[Any], Handler] = {
            FleetStarted: self.on_started,
            FleetFinished: self.on_finished,
            StopRun: self.on_stop,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Start the Graph."""
        self.execution_id: str | None = None
        self.stopping = False
        body = FleetRun(
            channel=CHANNEL + context.new_id("run"),
            session=self.slug,
            slug=self.slug,
            arguments=self.arguments,
        )
        context.request("engine", body, START_LIMIT_US)

    def on_timer(self, context: Context, timer: str) -> None:
        """Nothing: it sets none."""

    def on_started(self, context: Context, envelope: Envelope[FleetStarted]) -> None:
        """Note under which id it runs."""
        self.execution_id = envelope.body.execution_id
        if self.stopping:
            self.cancel(context, self.execution_id)

    def on_stop(self, context: Context, envelope: Envelope[StopRun]) -> None:
        """Cancel the run, as soon as its id is known."""
        self.stopping = True
        if self.execution_id is not None:
            self.cancel(context, self.execution_id)

    def cancel(self, context: Context, execution_id: str) -> None:
        """Cancel the run."""
        context.send("engine", FleetCancel(execution_id=execution_id))

    def on_finished(self, context: Context, envelope: Envelope[FleetFinished]) -> FleetAcknowledged:
        """Keep the run's end."""
        self.completion = envelope.body.completion
        context.done()
        return FleetAcknowledged(channel=envelope.body.channel)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """End: nothing will come any more."""
        context.done()


class Plan(Struct, frozen=True, kw_only=True):
    """What is to be run.

    `files` has the sources of all Graphs and what else `config` names. Without a `speed` time is
    virtual, which a model or a tool outside can't have; `epoch_us` is the wall time at the start.
    `asker` decides of tool calls that wait.
    """

    config: GraphEngine.Config
    files: Mapping[str, str]
    arguments: dict[str, Any] = {}
    seed: int = 1
    speed: float | None = None
    epoch_us: int = EPOCH_US
    toolbox: Toolbox = Toolbox()
    asker: Asker = Nobody()


class GraphWorld(TrioWorld):
    """A trio host with a model outside, a terminal's Ctrl-C, and somebody who looks on.

    Its few actors trust one another and nothing breaks here, so messages go from mailbox to
    mailbox. There is room for every agent's, however many end at one instant.
    """

    def __init__(self, plan: Plan, look: Look) -> None:
        super().__init__(
            plan.seed,
            "graph",
            clock=virtual_clock if plan.speed is None else None,
            speed=plan.speed or 1.0,
            epoch_us=plan.epoch_us,
            mailbox_limit=MAILBOX_LIMIT + MESSAGES_PER_AGENT * plan.config.max_concurrency,
        )
        self.interrupts = 0
        self._look = look

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Put a message into its target's mailbox."""
        self._offer(envelope)

    async def _turn(self, actor: HostContext, turn: Any, take: Callable[[], Any]) -> None:
        # Scripts run in an engine's timers alone: an answer that is only noted needs no thread.
        actor.blocking = actor.name == "engine" and type(turn) is str and ":" in turn
        await super()._turn(actor, turn, take)

    async def _main(self) -> None:
        try:
            await super()._main()
        finally:
            await close_outside(self.contexts.values(), OUTSIDE)

    async def _open(self, network: Network, nursery: trio.Nursery) -> None:
        await super()._open(network, nursery)
        await open_outside(self.contexts.values(), OUTSIDE, nursery, self.deliver_now)
        if threading.current_thread() is threading.main_thread():
            await nursery.start(self._heed_signals, nursery)
        if not self._virtual:  # there, a task that sleeps would move the clock
            nursery.start_soon(self._look_on)

    def settled(self, now_us: int, fields: dict[str, Any]) -> None:
        """Tell the owner at the terminal that a call waits no more."""
        self._tell("owner", Settled(run=fields["run"], call=fields["call"]))

    def _tell(self, name: str, body: Any) -> None:
        """Put a message into an actor's own mailbox, as from itself."""
        self.deliver_now(Envelope(0, name, name, 0, 0, body))

    async def _heed_signals(
        self, nursery: trio.Nursery, task_status: trio.TaskStatus[None]
    ) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                self.interrupts += 1
                if self.interrupts > 1:
                    nursery.cancel_scope.cancel()
                    return
                self._tell("caller", StopRun())

    async def _look_on(self) -> None:
        while True:
            self._look(self.now_us)
            await trio.sleep(TICK_S)


class Ended(Struct, frozen=True, kw_only=True):
    """How a run ended; without a completion it was broken off. `interrupted` by a signal."""

    completion: Completion | None
    interrupted: bool


def _look_away(_now_us: int) -> None:
    """Let nobody look on."""


def run_graph(plan: Plan, model: Actor, told: Told, look: Look = _look_away) -> Ended:
    """Run a Graph to its end, and call `told` with every event on the way.

    On a real clock `look` is called every 0.1 s. OSError if a model's recording can't be written.
    Whatever happens, no process, task or connection is left.
    """
    world = GraphWorld(plan, look)
    place = Place(name="engine", relay="caller", files=plan.files, approver="owner")
    caller = Caller(graph_name(plan.config.graph), plan.arguments)
    world.add("engine", GraphEngine(plan.config, place))
    world.add("model", model)
    world.add("caller", caller)
    world.add("tools", ToolRunner(plan.toolbox.tools, plan.toolbox.connections))
    world.add("owner", TerminalOwner(plan.asker))
    world.watch("approval.decided", world.settled)
    for event in EVENTS:
        if event.startswith(HEARD):
            world.watch(event, partial(_told, told, event))
    world.connect(lambda _source, _target: None)
    world.on_done = lambda _name: world.finish()
    with ProcessVmPort() as port:
        world.vm = port
        try:
            world.run(0)
        except ActorFailedError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise
    return Ended(completion=caller.completion, interrupted=world.interrupts > 0)


def _told(told: Told, event: str, now_us: int, fields: dict[str, Any]) -> None:
    told(now_us, event, fields)
