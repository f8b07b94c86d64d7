"""An agent's calls: list, run, get, cancel, wait; each one connection, and again if it breaks."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import trio

from actors.accounts.messages import ExplainRun, RunExplained
from actors.messages import (
    TERMINAL,
    CancelGraphRun,
    Failure,
    GetGraphRun,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    Message,
    RunGraphSession,
)
from scenarios.graph_files import refusal
from scenarios.json_text import indented
from scenarios.problems import ScenarioError, printable, quote
from scenarios.service.client import (
    CALL_ERRORS,
    Caller,
    NoAnswerError,
    call_problem,
    calling,
    hello_with,
    plain,
)
from scenarios.service.config import AgentSettings, Resolved
from scenarios.service.files import home, warn_of_readers
from scenarios.service.keys import Kept, kept_key
from scenarios.service.process import say
from scenarios.service.reach import Reach, reach_of
from scenarios.service.why import words_of
from transports.codec import FrameError
from transports.envelope import Envelope
from transports.wire import WireCodec

ANSWERS: Final[Mapping[type[Message], type[Message]]] = {
    ListGraphSessions: GraphSessions,
    ExplainRun: RunExplained,
}
WAIT_US: Final = 20_000_000  # how long a server may hold back an answer
PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0)  # between connections while one waits; the last one again
POLL_S: Final = 2.0  # between two looks where the server answers at once and gives no hint
ASK_OWNER: Final = "ask the server's owner for a token: pullcord agents add NAME"
INTERRUPTED: Final = 130
T = TypeVar("T")


class Agent:
    """Who calls, and where to."""

    def __init__(self, resolved: Resolved[AgentSettings]) -> None:
        settings, origins = resolved.settings, resolved.origins
        self.reach: Reach = reach_of(settings, origins)
        if not settings.token:
            raise refusal("PULLCORD_TOKEN", "which agent calls?", ASK_OWNER)
        self._hello = hello_with(settings.token, "agent", origins["token"])
        file = resolved.source.path  # empty without one
        if file and origins["token"].startswith(f"{file}:"):
            warn_of_readers(Path(file), say)

    @property
    def place(self) -> str:
        """The server, as errors name it."""
        return str(self.reach.address)

    async def call(self, body: Message) -> Any:
        """Ask one question; NoAnswerError, RefusedError or FrameError if there is no answer."""
        kind = ANSWERS.get(type(body), GraphRun)
        async with calling(self.reach.connect, self._hello, (kind, Failure)) as caller:
            return await caller.ask(body)

    def problem(self, error: Exception) -> ScenarioError:
        """Return what to tell of a call without an answer."""
        return call_problem(self.place, error, ASK_OWNER)

    async def watch(self, ticket: str) -> GraphRun | Failure:
        """Wait for a run's end; over a new connection as often as one breaks."""
        tries = 0
        while True:
            try:
                async with calling(self.reach.connect, self._hello, (GraphRun, Failure)) as caller:
                    tries = 0
                    return await _end_of(caller, ticket)
            except NoAnswerError as error:
                if not tries:
                    say(f"{self.place}: {error.reason}; waiting for it to come back")
                await trio.sleep(PAUSES_S[min(tries, len(PAUSES_S) - 1)])
                tries += 1


async def _end_of(caller: Caller, ticket: str) -> GraphRun | Failure:
    before: GraphRun | None = None
    while True:
        asked_s = trio.current_time()
        answer: GraphRun | Failure = await caller.ask(
            GetGraphRun(command_id=ticket, wait_us=WAIT_US), WAIT_US / 1e6 + 10
        )
        if isinstance(answer, Failure) or answer.status in TERMINAL:
            return answer
        # The same again at once: the server is not one that holds answers back.
        if answer == before and trio.current_time() - asked_s < POLL_S:
            hint_us = answer.poll_after_us
            await trio.sleep(POLL_S if hint_us is None else max(hint_us / 1e6, POLL_S))
        before = answer


def _run(work: Callable[[], Awaitable[T]], agent: Agent) -> T:
    """Run a call to its end; ScenarioError if there is no answer."""
    try:
        return trio.run(work)
    except CALL_ERRORS as error:
        raise agent.problem(error) from None


def _checked(answer: Any, place: str) -> Any:
    """Return an answer that is no refusal; ScenarioError for one."""
    if isinstance(answer, Failure):
        raise refusal(place, f"{answer.error} ({answer.code})")
    return answer


def _run_of(agent: Agent, body: Message, place: str) -> GraphRun:
    run: GraphRun = _checked(_run(partial(agent.call, body), agent), place)
    return run


# The commands


def list_sessions(agent: Agent, project: str, limit: int, *, json: bool) -> int:
    """Print what a project shares."""
    body = ListGraphSessions(project_id=project, limit=limit)
    found: GraphSessions = _checked(_run(partial(agent.call, body), agent), quote(project))
    if json:
        sys.stdout.write(indented(plain(found)))
        return 0
    width = max((len(one.slug) for one in found.sessions), default=0)
    for one in found.sessions:
        words = f"{one.graph_session_id}  {one.slug:{width}}  {one.name}"
        sys.stdout.write(printable(f"{words}  (version {one.version}, {one.status})") + "\n")
    if not found.sessions:
        say(f"nothing is shared with {quote(project)}")
    return 0


def run_session(
    agent: Agent,
    session: str,
    arguments: dict[str, Any],
    key: str | None,
    *,
    wait: bool,
    json: bool,
) -> int:
    """Queue a run, and with `wait` wait for its end; return the exit code."""
    body = RunGraphSession(graph_session_id=session, arguments=arguments, idempotency_key=key or "")
    _check_sendable(body)  # before a key is kept for it
    meaning = msgspec.json.encode((session, arguments), order="deterministic").decode()
    if key is not None:
        ticket = _run_of(agent, body, session)
        return _queued(agent, ticket, wait=wait, json=json)
    with keys_of(agent, meaning) as kept:
        if kept.again:
            say("this call was made before and its answer was lost: asking again for the same run")
        body = msgspec.structs.replace(body, idempotency_key=kept.key)
        try:
            answer = _run(partial(agent.call, body), agent)
        except ScenarioError:
            say("if it was queued: the same command again asks for the same run, and no other")
            raise
        kept.done = True  # refused or not: it is answered
    return _queued(agent, _checked(answer, session), wait=wait, json=json)


def _check_sendable(body: RunGraphSession) -> None:
    try:
        WireCodec([RunGraphSession]).encode(Envelope(1, "", "server", 0, 0, body))
    except FrameError as error:
        raise refusal("pullcord agent run", f"this call can't be sent: {error}") from None


@contextmanager
def keys_of(agent: Agent, meaning: str) -> Iterator[Kept]:
    """Give the key of a call; ScenarioError if it can't be kept."""
    folder = home() / "agent"
    try:
        with kept_key(folder, agent.place, meaning) as kept:
            yield kept
    except OSError as error:
        what = f"the call's key can't be kept: {error.strerror or error}"
        cure = "free some space, or set PULLCORD_HOME to another folder"
        raise refusal(str(folder), what, cure) from None


def _queued(agent: Agent, ticket: GraphRun, *, wait: bool, json: bool) -> int:
    if wait:
        return wait_for(agent, ticket.command_id, None, json=json)
    show(ticket, json=json)
    return code_of(ticket)


def get_run(agent: Agent, ticket: str, *, json: bool) -> int:
    """Print how a run stands, and why it has not begun if it hasn't."""
    found = _run_of(agent, GetGraphRun(command_id=ticket), ticket)
    if found.status != "queued":
        show(found, json=json)
        return code_of(found)
    why = _run(partial(agent.call, ExplainRun(command_id=ticket)), agent)
    told = why if isinstance(why, RunExplained) else None  # it may have been forgotten meanwhile
    if json:
        reason = None if told is None else told.reason
        sys.stdout.write(indented({**plain(found), "why": reason}))
        return 0
    show(found, json=False)
    if told is not None:
        say(words_of(told))
    return 0


def cancel_run(agent: Agent, ticket: str, *, json: bool) -> int:
    """Cancel a run; 0 if that was asked, whatever becomes of it."""
    found = _run_of(agent, CancelGraphRun(command_id=ticket), ticket)
    show(found, json=json)
    return 0


def wait_for(agent: Agent, ticket: str, limit_s: float | None, *, json: bool) -> int:
    """Wait for a run's end, and print it; it goes on if nobody waits any more."""
    say(f"waiting for {ticket}")

    async def watch() -> GraphRun | Failure | None:
        with trio.move_on_after(float("inf") if limit_s is None else limit_s):
            return await agent.watch(ticket)
        return None

    try:
        found = _run(watch, agent)
    except KeyboardInterrupt:
        say(f"the run goes on; wait again: pullcord agent wait {ticket}")
        return INTERRUPTED
    if found is None:
        raise refusal(ticket, f"it has not ended within {limit_s:g} s", "it goes on: wait again")
    show(_checked(found, ticket), json=json)
    return code_of(_checked(found, ticket))


def code_of(run: GraphRun) -> int:
    """Return a run's exit code: 1 if it ended otherwise than by being completed."""
    return int(run.status in TERMINAL and run.status != "completed")


def _asks(run: GraphRun) -> str:
    """Return for whom a run waits, if it waits for its desktop's owner."""
    calls = run.awaiting_approval
    if calls is msgspec.UNSET or not calls:
        return ""
    waiting = "1 tool call waits" if calls == 1 else f"{calls} tool calls wait"
    return f", {waiting} for the desktop's owner"


def show(run: GraphRun, *, json: bool) -> None:
    """Print a run: its result alone on stdout if it has one, all else on stderr; or all as JSON."""
    if json:
        sys.stdout.write(indented(plain(run)))
        return
    if run.status not in TERMINAL:
        sys.stdout.write(f"{run.command_id}  {run.status}{_asks(run)}\n")
        return
    error = f": {run.error}" if run.error else ""
    say(f"{run.command_id} is {run.status}{error}, {run.total_tokens:,} tokens")
    if run.result is not None:
        text = run.result if isinstance(run.result, str) else indented(run.result)
        if sys.stdout.isatty():  # a result may be anybody's words, and a terminal obeys some
            text = "\n".join(map(printable, text.split("\n")))
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
