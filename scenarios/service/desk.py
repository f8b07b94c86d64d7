"""The commands of a desktop's owner: what is shared, what ran, what waits, how it stands."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from actors.desktop.messages import (
    AddSession,
    DesktopStatus,
    EngineStatus,
    GetDesktopStatus,
    GetEngineStatus,
    GetHistory,
    History,
    HistoryOf,
    ListHistory,
    ListOutbox,
    ListSessions,
    Outbox,
    PastRun,
    RemoveSession,
    SaveSession,
    SessionList,
    SessionSaved,
    SessionState,
)
from actors.graphs.messages import Approvals, Decided, ListApprovals
from actors.graphs.meta import read_script
from actors.messages import Disable, Enable, Message, Noted, Rename, Share, Unshare
from actors.text import slug_of
from scenarios.graph_check import problems_of
from scenarios.graph_files import Graph, find_graph, library_of, meta_of, refusal
from scenarios.json_text import indented
from scenarios.problems import ScenarioError, printable, quote, suggest
from scenarios.service.client import BOOT, LocalCaller, plain
from scenarios.service.listing import print_rows
from scenarios.service.process import say
from transports.handshake import Hello
from transports.tcp import connect_unix
from transports.units import Duration

RELAY, ENGINE = "relay", "engine"
SUFFIX: Final = ".js"
NO_DESKTOP: Final = "start it: pullcord desktop run"


class Desk(LocalCaller):
    """The owner at the desktop's local socket."""

    heard = (
        SessionSaved, SessionList, History, HistoryOf, Outbox, DesktopStatus, EngineStatus, Noted,
        Approvals, Decided,
    )  # fmt: skip
    absent = ("no desktop runs here", NO_DESKTOP)

    def __init__(self, socket: Path) -> None:
        hello = Hello(name="owner", boot=BOOT)
        super().__init__(str(socket), partial(connect_unix, socket), hello)

    def sessions(self) -> Iterator[SessionState]:
        """Yield every session, in the order of their slugs."""
        after = ""
        while True:
            page: SessionList = self.ask(ListSessions(after=after), RELAY)
            yield from page.sessions
            if page.next is None:
                return
            after = page.next

    def session(self, named: str) -> SessionState:
        """Return the session of an id, a slug or a name; ScenarioError if there is none."""
        every = list(self.sessions())
        for one in every:
            if named in (one.meta.id, one.meta.slug, one.meta.name):
                return one
        near = suggest(named, [one.meta.slug for one in every])
        cure = f"did you mean {quote(near)}?" if near else "see: pullcord desktop sessions"
        raise refusal(named, "there is no such session on this desktop", cure)


def share(desk: Desk, target: str, project: str | None, name: str | None, *, json: bool) -> int:
    """Share a session that is there; or add a Graph as one, and share it."""
    if project is None:
        state = desk.session(target)
    else:
        state = _added(desk, find_graph(target), project, name)
    desk.ask(Share(session=state.meta.id), RELAY)
    if json:
        sys.stdout.write(indented(plain(desk.session(state.meta.id))))
        return 0
    meta = state.meta
    sys.stdout.write(f"{meta.id}\n")
    say(f"{meta.name} is shared with {meta.project}, as {meta.slug}, version {meta.version}")
    if not state.enabled:
        say(f"but the project {meta.project} is disabled on this desktop")
    return 0


def _added(desk: Desk, graph: Graph, project: str, name: str | None) -> SessionState:
    """Return the session of a Graph, added if it is new, with its texts as they are now.

    One that is there is saved anew, which changes nothing if its texts are the same.
    """
    library = library_of(graph)
    problems = problems_of(graph, library)
    if problems:
        raise ScenarioError(problems)
    called = name or str(meta_of(graph.text).get("name") or graph.name)
    texts = {key.removesuffix(SUFFIX): text for key, text in _used(graph, library).items()}
    body: AddSession | SaveSession = AddSession(
        name=called, project=project, entry=graph.name, texts=texts
    )
    for one in desk.sessions():
        if (one.meta.project, one.meta.slug) == (project, slug_of(called)):
            body = SaveSession(session=one.meta.id, entry=graph.name, texts=texts)
    saved: SessionSaved = desk.ask(body, RELAY)
    return saved.session


def _used(graph: Graph, library: Any) -> dict[str, str]:
    """Return a Graph's text and those of the library that it may call, directly or not."""
    found = {graph.path.name: graph.text}
    waiting = [graph.text]
    while waiting:
        source = read_script(waiting.pop()).source
        for key, text in library.items():
            if key not in found and key.removesuffix(SUFFIX) in source:
                found[key] = text
                waiting.append(text)
    return found


def unshare(desk: Desk, target: str, *, json: bool) -> int:
    """Share a session no more."""
    state = desk.session(target)
    desk.ask(Unshare(session=state.meta.id), RELAY)
    if json:
        sys.stdout.write(indented(plain(desk.session(state.meta.id))))
    else:
        say(f"{state.meta.name} is not shared any more")
    return 0


def remove(desk: Desk, target: str, *, json: bool) -> int:
    """Remove a session and its Graph; its history stays."""
    meta = desk.session(target).meta
    return _noted(desk, RemoveSession(session=meta.id), f"{meta.name} is removed", json=json)


def rename(desk: Desk, target: str, name: str, *, json: bool) -> int:
    """Give a session another name, and the slug that goes with it."""
    meta = desk.session(target).meta
    words = f"{meta.name} is called {name} now"
    return _noted(desk, Rename(session=meta.id, name=name), words, json=json)


def enable(desk: Desk, project: str, *, enabled: bool, json: bool) -> int:
    """Enable a project on this desktop, or disable it with all its sessions."""
    if all(one.meta.project != project for one in desk.sessions()):
        raise refusal(
            project, "no session here is of this project", "see: pullcord desktop sessions"
        )
    body = Enable(project=project) if enabled else Disable(project=project)
    words = f"{project} is {'enabled' if enabled else 'disabled'} on this desktop"
    return _noted(desk, body, words, json=json)


def _noted(desk: Desk, body: Message, words: str, *, json: bool) -> int:
    """Have the relay write a change; print that it has, or the sessions as they are now."""
    desk.ask(body, RELAY)
    if json:
        return show_sessions(desk, json=True)
    say(words)
    return 0


def show_sessions(desk: Desk, *, json: bool) -> int:
    """Print the sessions."""
    found = list(desk.sessions())
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    rows = []
    for one in found:
        meta = one.meta
        how = "shared" if one.uploaded else "shared, no room" if one.shared else "not shared"
        if one.shared and not one.enabled:
            how = "project disabled"
        rows.append((meta.id, meta.slug, meta.project, f"{how}, version {meta.version}"))
    print_rows(("session", "slug", "project", "state"), rows)
    if not found:
        say("there is no session: pullcord desktop share GRAPH --project NAME")
    return 0


def show_history(desk: Desk, run: str | None, limit: int, *, json: bool) -> int:
    """Print the last runs, or one with its result."""
    if run is not None:
        told: HistoryOf = desk.ask(GetHistory(id=run), RELAY)
        sys.stdout.write(indented(plain(told)))
        return 0
    found: list[Any] = []
    before: int | None = None
    while len(found) < limit:
        size = min(50, limit - len(found))
        page: History = desk.ask(ListHistory(before=before, limit=size), RELAY)
        found += page.runs
        if page.next is None:
            break
        before = page.next
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    rows = []
    for one in found:
        what = f"{one.status}, {one.total_tokens:,} tokens"
        error = one.error.splitlines()[0][:60] if one.error else ""
        rows.append((_when(one), one.command_id, one.slug, what, error))
    print_rows(("ended", "run", "slug", "state", ""), rows)
    if not found:
        say("nothing has run yet")
    return 0


def _when(run: PastRun) -> str:
    """Return when a run ended, by this machine's clock."""
    if run.finished_us is None:
        return "still running"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.finished_us / 1e6))


def show_outbox(desk: Desk, *, json: bool) -> int:
    """Print the results that the server has not accepted."""
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        page: Outbox = desk.ask(ListOutbox(after=after), RELAY)
        found += page.unsent
        after = page.next
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    rows = [(one.command_id, f"{one.status}, for {_words(one.age_us)}") for one in found]
    print_rows(("run", "state"), rows)
    if not found:
        say("every result is with the server")
    return 0


def show_status(desk: Desk, *, json: bool) -> int:
    """Print how the desktop stands."""
    relay: DesktopStatus = desk.ask(GetDesktopStatus(), RELAY)
    engine: EngineStatus = desk.ask(GetEngineStatus(), ENGINE)
    asks: Approvals = desk.ask(ListApprovals(), ENGINE)
    if json:
        waiting = len(asks.waiting)
        shown = {"relay": plain(relay), "engine": plain(engine), "approvals": waiting}
        sys.stdout.write(indented(shown))
        return 0
    lines = _status_lines(relay, engine, len(asks.waiting))
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    return 0


def _status_lines(relay: DesktopStatus, engine: EngineStatus, asks: int) -> Iterator[str]:
    synced = "never" if relay.synced_us is None else f"{_words(relay.synced_us)} ago"
    silent = f", {relay.silent} since without an answer" if relay.silent else ""
    yield f"synced     {synced}{silent}"
    yield f"takes work {'yes' if relay.refuses is None else f'no: {relay.refuses}'}"
    for run in relay.running:
        yield f"{run.phase:10} {run.command_id}  {run.slug}, for {_words(run.for_us)}"
    if asks:
        calls = "1 tool call waits" if asks == 1 else f"{asks} tool calls wait"
        yield f"asks you   {calls} for your answer: pullcord desktop approvals"
    yield f"waiting    {relay.waiting} of the server's runs, {engine.waiting} at the engine"
    age = f", the oldest for {_words(relay.outbox_age_us)}" if relay.outbox else ""
    yield f"outbox     {relay.outbox} results{age}"
    left_out = f", {relay.left_out} for want of room not" if relay.left_out else ""
    yield f"sessions   {relay.uploaded} of {relay.sessions} shared{left_out}"
    disks = "fine" if relay.writable and engine.writable else "full, or can't be written"
    yield f"disk       {disks}"
    if relay.adopted:
        yield f"adopted    {relay.adopted} results of runs that the journal did not know"


def _words(age_us: int | None) -> str:
    """Return a duration in whole seconds, as people read it."""
    return "an unknown time" if age_us is None else str(Duration(age_us // 1_000_000 * 1_000_000))
