"""What a server promises besides: keys, tickets, leave, and ends that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from actors.messages import (
    CancelGraphRun,
    Command,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    Failure,
    GetGraphRun,
    GraphRun,
    RunGraphSession,
    SessionMeta,
    Start,
    StartAnswer,
    Sync,
)
from scenarios.promises.stage import SESSION, Death, Play, Promise, S, Script, Subject

META: Final = SessionMeta(
    id=SESSION.id, project=SESSION.project, name=SESSION.name, slug=SESSION.slug
)
NOBODY: Final = "00000000-0000-4000-8000-000000000000"
Line = Callable[[list[Any]], Any]


def run(key: str = "key-0000", **arguments: Any) -> RunGraphSession:
    """Return what an agent says to queue a run."""
    return RunGraphSession(graph_session_id=SESSION.id, idempotency_key=key, arguments=arguments)


def sync(*held: str, boot: str = "boot-1") -> Sync:
    """Return what a relay says to get commands."""
    return Sync(boot=boot, sessions=(META,), open=held, capacity=10, poll_us=20 * S)


def ticket(agent: Script) -> str:
    """Return the run that an agent was given first."""
    return next((each.command_id for each in agent.heard if isinstance(each, GraphRun)), NOBODY)


def offered(relay: Script) -> Command | None:
    """Return the command that a relay was given first."""
    commands = [
        command for each in relay.heard if isinstance(each, Commands) for command in each.commands
    ]
    return commands[0] if commands else None


def start(relay: Script, boot: str = "boot-1", ahead: int = 0) -> Line:
    """Return how a relay asks leave for its first command."""

    def line(_heard: list[Any]) -> Start:
        command = offered(relay)
        run_id, delivery = (command.command_id, command.delivery) if command else (NOBODY, 1)
        return Start(command_id=run_id, boot=boot, delivery=delivery + ahead)

    return line


def complete(relay: Script, status: Any) -> Line:
    """Return how a relay posts the end of its first command."""

    def line(_heard: list[Any]) -> Complete:
        command = offered(relay)
        return Complete(
            command_id=command.command_id if command else NOBODY,
            boot="boot-1",
            delivery=1,
            completion=Completion(execution_id="x", status=status, result=status),
        )

    return line


def about_run(agent: Script, question: type[Any]) -> Line:
    """Return how somebody asks about an agent's run."""
    return lambda _heard: question(command_id=ticket(agent))


def control(agent: Script) -> Line:
    """Return how a relay asks whether to stop an agent's run."""
    return lambda _heard: Control(command_id=ticket(agent), boot="boot-1")


def script(*lines: tuple[float, Any]) -> Script:
    """Return somebody who says these lines to the server."""
    return Script(*((at_s, "server", body) for at_s, body in lines))


def same_key_same_ticket(subject: Subject) -> Iterator[str]:
    """While it is queued, after its end, and whatever turn the server was killed in."""
    for turn in range(5):
        agent = script((1, run()), (10, run()), (20, run()), (41, run(to="other")), (50, run()))
        agent.lines = (*agent.lines, (40, "server", about_run(agent, CancelGraphRun)))
        Play(scripts={"agent": agent}, death=Death("server", turn)).run(subject)
        when = f"when it was killed in its turn {turn}, " if turn else ""
        tickets = {
            answer.command_id
            for line, answer in agent.answers.items()
            if line != 3 and isinstance(answer, GraphRun)
        }
        if len(tickets) != 1:
            yield f"{when}one key stood for {len(tickets)} runs"
        other = agent.answers.get(3)
        if other is not None and not isinstance(other, Failure):
            yield f"{when}the key was accepted for a request with other arguments"


def tells_strangers_nothing(subject: Subject) -> Iterator[str]:
    """Another agent's run and none are one answer, in every byte."""
    agent = script((1, run()))
    questions: tuple[type[Any], ...] = (GetGraphRun, CancelGraphRun)
    for question in questions:
        thief = script((2, about_run(agent, question)), (3, question(command_id=NOBODY)))
        Play(scripts={"agent": agent, "thief": thief}).run(subject)
        answers = [msgspec.msgpack.encode(thief.answers.get(line)) for line in (0, 1)]
        if not isinstance(thief.answers.get(0), Failure):
            yield f"it answered a stranger's {question.__name__} with {thief.answers.get(0)!r}"
        elif answers[0] != answers[1]:
            yield f"its answers to {question.__name__} tell what exists"


def gives_leave_once(subject: Subject) -> Iterator[str]:
    """To one delivery, again when that asks again, and to no other."""
    agent, relay = script((1, run())), script()
    ask, other_boot, ahead = start(relay), start(relay, "boot-2"), start(relay, ahead=1)
    lines = (sync(), ask, ask, other_boot, ahead, ask)
    relay.lines = tuple((2.0 + number, "server", line) for number, line in enumerate(lines))
    Play(scripts={"agent": agent, "relay": relay}).run(subject)
    if offered(relay) is None:
        yield "it offered no command"
        return
    for line, go in ((1, True), (2, True), (3, False), (4, False), (5, True)):
        answer = relay.answers.get(line)
        if not isinstance(answer, StartAnswer) or answer.go is not go:
            want = "leave" if go else "no leave"
            yield f"its question number {line} was to get {want} and got {answer!r}"


def gives_no_leave_to_an_old_offer(subject: Subject) -> Iterator[str]:
    """A delivery that was followed by another is superseded."""
    agent, relay = script((1, run())), script()
    old = start(relay)
    lines = (sync(), sync(boot="boot-2"), old)
    relay.lines = tuple((2.0 + number, "server", line) for number, line in enumerate(lines))
    Play(scripts={"agent": agent, "relay": relay}).run(subject)
    answer = relay.answers.get(2)
    if isinstance(answer, StartAnswer) and answer.go:
        yield "the first of two deliveries was let start"


def keeps_an_end(subject: Subject) -> Iterator[str]:
    """What comes after the end changes nothing that the agent sees."""
    agent, relay = script((1, run())), script()
    get, cancel = about_run(agent, GetGraphRun), about_run(agent, CancelGraphRun)
    agent.lines += ((10, "server", get), (12, "server", cancel), (15, "server", get))
    lines = (sync(), start(relay), complete(relay, "completed"))
    relay.lines = (
        *((2.0 + number, "server", line) for number, line in enumerate(lines)),
        (11, "server", complete(relay, "failed")),
    )
    Play(scripts={"agent": agent, "relay": relay}).run(subject)
    first, last = agent.answers.get(1), agent.answers.get(3)
    if not isinstance(first, GraphRun) or (first.status, first.result) != (
        "completed",
        "completed",
    ):
        yield f"a completed run was shown as {first!r}"
    elif first != last:
        yield f"after its end a run changed from {first!r} to {last!r}"


def cancels(subject: Subject) -> Iterator[str]:
    """A queued run at once, a running one by the next control poll."""
    agent, relay = script((1, run())), script((3, sync()))
    agent.lines += ((2, "server", about_run(agent, CancelGraphRun)),)
    Play(scripts={"agent": agent, "relay": relay}).run(subject)
    answer = agent.answers.get(1)
    if not isinstance(answer, GraphRun) or answer.status != "cancelled":
        yield f"a queued run that was cancelled is {answer!r}"
    if offered(relay) is not None:
        yield "a cancelled run was offered"
    agent, relay = script((1, run())), script((2, sync()))
    agent.lines += ((5, "server", about_run(agent, CancelGraphRun)),)
    relay.lines += ((3, "server", start(relay)), (6, "server", control(agent)))
    Play(scripts={"agent": agent, "relay": relay}).run(subject)
    told = relay.answers.get(2)
    if not isinstance(told, ControlAnswer) or not told.stop:
        yield f"a control poll after the cancel was answered with {told!r}"


PROMISES: Final = (
    Promise("The same key with the same meaning is the same ticket", same_key_same_ticket),
    Promise('"Not yours" and "does not exist" are one answer', tells_strangers_nothing),
    Promise("Leave to start is given to one delivery, as often as it asks", gives_leave_once),
    Promise("A superseded delivery gets no leave", gives_no_leave_to_an_old_offer),
    Promise("An end stays as it is", keeps_an_end),
    Promise("A cancel takes effect at once or by the control poll", cancels),
)
