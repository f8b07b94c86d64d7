"""From the server's answers to what a page shows: pure, and all that a page decides is here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from actors.accounts.messages import (
    AgentListing,
    Agents,
    Audit,
    DeviceListing,
    Devices,
    RunExplained,
    RunListing,
    Runs,
    RunShown,
    ServerStatus,
)
from actors.messages import TERMINAL, Completion
from scenarios.json_text import indented
from scenarios.service.http.words import (
    S,
    ago,
    counted,
    machine_moment,
    moment,
    plain,
    plain_lines,
    span,
)
from scenarios.service.why import words_of

STATUSES = ("queued", "running", "completed", "failed", "cancelled", "expired", "interrupted")
RESULT_LIMIT_CHARS = 20_000  # the whole is the agent's; a page is looked at
ARGUMENTS_LIMIT_CHARS = 4_000
ERROR_LIMIT_CHARS = 2_000  # what is stored of an error
LATE_POLLS = 3  # polls that a desktop may miss before it counts as away
LATE_US = 60_000_000  # and how exactly the server knows the last one
KINDS = {"completed": "good", "failed": "bad", "interrupted": "bad", "expired": "bad"}

Names = Mapping[str, str]  # what to call a principal, by its id


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a list. `kind` is one of open, good, bad and stopped."""

    href: str
    session: str
    status: str
    kind: str
    agent: str
    device: str
    when: str
    note: str


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A device in a list; `revoke` is where it can be removed, empty once it is."""

    name: str
    id: str
    synced: str
    kind: str
    poll: str
    sessions: str
    open_runs: str
    warning: str
    revoke: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One way to filter a list."""

    text: str
    href: str
    count: int | None
    chosen: bool


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The first page: how much waits, the devices, and the runs."""

    summary: str
    warnings: tuple[str, ...]
    devices: tuple[DeviceRow, ...]
    more_devices: str
    runs: tuple[Row, ...]
    more_runs: str
    choices: tuple[Choice, ...]
    no_runs: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run's life; `at` is empty where nobody wrote down when."""

    name: str
    at: str
    machine: str
    ago: str
    note: str
    kind: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution gave."""

    facts: tuple[tuple[str, str], ...]
    result: str
    error: str


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One run, with its timeline. `cancel` and `forget` are empty where it can't be done.

    `why` is what it waits for, empty where it has ended.
    """

    id: str
    session: str
    status: str
    kind: str
    sentence: str
    why: str
    facts: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    arguments: str
    outcome: Outcome | None
    late: Outcome | None
    error: str
    cancel: str
    forget: str


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """An agent in a list."""

    name: str
    id: str
    may: str
    added: str
    seen: str
    open_runs: str
    kind: str
    renew: str
    revoke: str


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody did; `href` is that of the run it was done to, if it was one."""

    at: str
    machine: str
    who: str
    act: str
    subject: str
    href: str
    outcome: str
    kind: str
    address: str


def home(
    status: ServerStatus, devices: Devices, runs: Runs, names: Names, chosen: str, at: str
) -> Home:
    """Return the first page; `chosen` is the status that the runs have, `at` the devices' page."""
    counts = status.counts
    open_runs = [f"{counts.get(one, 0):,} {one}" for one in STATUSES[:2]]
    oldest = status.oldest_queued_us
    waits = "" if oldest is None else f"; the oldest has waited {span(oldest)}"
    more = {"status": chosen} if chosen else {}
    return Home(
        summary=f"{' and '.join(open_runs)}{waits}.",
        warnings=tuple(_warnings(status)),
        devices=tuple(device_row(one) for one in devices.devices),
        more_devices=_where("/", more | {"devices": devices.cursor}) if devices.cursor else "",
        runs=tuple(run_row(one, names) for one in runs.runs),
        more_runs=_where("/", _given(more | {"devices": at}) | {"cursor": runs.cursor}, "runs")
        if runs.cursor
        else "",
        choices=tuple(_choices(counts, chosen)),
        no_runs=f"No run is {chosen}." if chosen else "No run was queued yet.",
    )


def _warnings(status: ServerStatus) -> Iterator[str]:
    if not status.writable:
        yield (
            "The server can't write its store, so it takes no new work: free disk space, and it "
            "goes on by itself."
        )
    if any(one.open_runs and _away(one.synced_ago_us, None) for one in status.devices):
        yield "Runs wait for a desktop that has not synced for a while: is it on?"


def _choices(counts: Mapping[str, int], chosen: str) -> Iterator[Choice]:
    yield Choice(text="all", href="/#runs", count=None, chosen=not chosen)
    for status in STATUSES:
        href = _where("/", {"status": status}, "runs")
        yield Choice(text=status, href=href, count=counts.get(status), chosen=status == chosen)


def _away(synced_ago_us: int | None, poll_us: int | None) -> bool:
    limit_us = LATE_POLLS * (poll_us or LATE_US) + LATE_US
    return synced_ago_us is None or synced_ago_us > limit_us


def device_row(device: DeviceListing) -> DeviceRow:
    """Return a device as a list shows it."""
    away = _away(device.synced_ago_us, device.poll_us)
    kind = "stopped" if device.revoked or device.synced_ago_us is None else "bad" if away else ""
    warning = ""
    if device.reused:
        warning = "an old token of it was used: somebody may have a copy. Revoke it and pair again."
    return DeviceRow(
        name=_name(device.name),
        id=device.device,
        synced="revoked" if device.revoked else ago(device.synced_ago_us),
        kind=kind or "good",
        poll="" if device.poll_us is None else span(device.poll_us),
        sessions=f"{device.sessions:,}",
        open_runs=_open(device),
        warning=warning,
        revoke="" if device.revoked else _path("devices", device.device, "revoke"),
    )


def run_row(run: RunListing, names: Names) -> Row:
    """Return a run as a list shows it."""
    started, ended = run.started_ago_us, run.finished_ago_us
    note = run.error or ""
    if run.status == "queued":
        when = f"queued {ago(run.queued_ago_us)}"
        note = f"offered {_times(run.delivery)}" if run.delivery else ""
    elif ended is None:
        when = f"started {ago(started)}"
        note = "asked to stop" if run.cancel_requested else ""
    else:
        when = f"ended {ago(ended)}"
    return Row(
        href=_path("runs", run.command_id),
        session=_name(run.slug),
        status=run.status,
        kind=kind_of(run.status),
        agent=_called(run.agent, names),
        device=_called(run.device, names),
        when=when,
        note=plain(note, 120),
    )


def kind_of(status: str) -> str:
    """Return what kind of status it is: open, good, bad or stopped."""
    return KINDS.get(status, "stopped" if status in TERMINAL else "open")


def run_page(
    shown: RunShown, names: Names, now_us: int, told: RunExplained | None = None
) -> RunPage:
    """Return a run's own page; `now_us` is the time since 1970 at which ages were told."""
    why = "" if told is None else plain(words_of(told), ERROR_LIMIT_CHARS)
    run = shown.run
    ended = run.status in TERMINAL
    done = shown.completion
    error = run.error or (done.error if done is not None else None) or ""
    return RunPage(
        id=run.command_id,
        session=_name(run.slug),
        status=run.status,
        kind=kind_of(run.status),
        sentence=_sentence(run),
        why=f"{why[:1].upper()}{why[1:]}." if why else "",
        facts=(
            ("Agent", _called(run.agent, names)),
            ("Desktop", _called(run.device, names)),
            ("Graph session", plain(run.session)),
            ("Run", plain(run.command_id)),
        ),
        steps=tuple(_steps(run, now_us)),
        arguments=plain_lines(indented(shown.arguments), ARGUMENTS_LIMIT_CHARS)
        if shown.arguments
        else "",
        outcome=None if done is None else _outcome(done),
        late=None if shown.late is None else _outcome(shown.late),
        error=plain_lines(error, ERROR_LIMIT_CHARS),
        cancel="" if ended or run.cancel_requested else _path("runs", run.command_id, "cancel"),
        forget=_path("runs", run.command_id, "forget") if ended else "",
    )


def _sentence(run: RunListing) -> str:
    queued_us, started_us, ended_us = run.queued_ago_us, run.started_ago_us, run.finished_ago_us
    if run.status == "queued":
        offers = f"was offered {_times(run.delivery)}" if run.delivery else "was not offered yet"
        return f"It has waited {span(queued_us)}, and {offers}."
    if ended_us is None:
        asked = " It was asked to stop." if run.cancel_requested else ""
        return f"It has run for {span(started_us or 0)}.{asked}"
    if started_us is None:
        return f"It waited {span(queued_us - ended_us)} and never started."
    return f"It waited {span(queued_us - started_us)} and ran for {span(started_us - ended_us)}."


def _steps(run: RunListing, now_us: int) -> Iterator[Step]:
    yield _step("Queued", run.queued_ago_us, now_us)
    if run.delivery:
        yield _step("Offered to the desktop", None, now_us, _times(run.delivery))
    if run.started_ago_us is not None:
        waited_us = run.queued_ago_us - run.started_ago_us
        yield _step("Started", run.started_ago_us, now_us, _after(waited_us))
    if run.cancel_requested:
        yield _step("Asked to stop", None, now_us, "the desktop hears of it within seconds")
    if run.finished_ago_us is not None:
        began_us = run.queued_ago_us if run.started_ago_us is None else run.started_ago_us
        note = _after(began_us - run.finished_ago_us)
        name = run.status.capitalize()
        yield _step(name, run.finished_ago_us, now_us, note, kind_of(run.status))


def _after(us: int) -> str:
    return f"after {span(us)}" if us >= S else "at once"


def _step(name: str, ago_us: int | None, now_us: int, note: str = "", kind: str = "open") -> Step:
    if ago_us is None:
        return Step(name=name, at="", machine="", ago="", note=note, kind=kind)
    at_us = now_us - ago_us
    return Step(
        name=name,
        at=moment(at_us),
        machine=machine_moment(at_us),
        ago=ago(ago_us),
        note=note,
        kind=kind,
    )


def _outcome(done: Completion) -> Outcome:
    facts = [("Execution", plain(done.execution_id or "none"))]
    if done.total_tokens:
        facts.append(("Tokens", f"{done.total_tokens:,}"))
    if done.reported_cost:
        facts.append(("Reported cost", f"{done.reported_cost:,.4f}"))
    if done.result_truncated:
        facts.append(("Result", "left out by the desktop: it was too large"))
    result = "" if done.result is None else _value(done.result)
    return Outcome(
        facts=(("Reported as", done.status), *facts),
        result=plain_lines(result, RESULT_LIMIT_CHARS),
        error=plain_lines(done.error or "", ERROR_LIMIT_CHARS),
    )


def _value(value: Any) -> str:
    return value if isinstance(value, str) else indented(value)


def agent_rows(agents: Agents) -> tuple[AgentRow, ...]:
    """Return agents as a list shows them."""
    return tuple(_agent_row(one) for one in agents.agents)


def _agent_row(agent: AgentListing) -> AgentRow:
    may = {"graphs:read": "look", "graphs:run": "run"}
    here = not agent.revoked
    return AgentRow(
        name=_name(agent.name),
        id=agent.principal,
        may=" and ".join(may.get(scope, scope) for scope in agent.scopes) or "nothing",
        added=ago(agent.added_ago_us),
        seen=ago(agent.seen_ago_us) if here else "revoked",
        open_runs=_open(agent),
        kind="open" if here else "stopped",
        renew=_path("agents", agent.principal, "renew") if here else "",
        revoke=_path("agents", agent.principal, "revoke") if here else "",
    )


def audit_rows(audit: Audit, names: Names) -> tuple[AuditRow, ...]:
    """Return a page of the audit."""
    return tuple(
        AuditRow(
            at=moment(entry.at_us),
            machine=machine_moment(entry.at_us),
            who=_called(entry.who, names) if entry.who else "",
            act=plain(entry.act + (f", {_times(entry.count)}" if entry.count > 1 else "")),
            subject=_called(entry.subject, names) if entry.subject else "",
            href=_path("runs", entry.subject) if entry.act.startswith("run.") else "",
            outcome=plain(entry.outcome),
            kind="open" if entry.outcome in ("", "ok", "done") else "bad",
            address=plain(entry.address),
        )
        for entry in audit.entries
    )


def names_of(devices: Iterable[DeviceListing], agents: Iterable[AgentListing]) -> dict[str, str]:
    """Return what to call each principal."""
    return {one.device: one.name for one in devices} | {one.principal: one.name for one in agents}


def more(path: str, cursor: str) -> str:
    """Return where a list goes on; empty if it doesn't."""
    return _where(path, {"cursor": cursor}) if cursor else ""


def _open(one: DeviceListing | AgentListing) -> str:
    full = ", its limit" if one.open_runs >= one.open_limit else ""
    return f"{one.open_runs:,}{full}"


def _called(principal: str, names: Names) -> str:
    return _name(names.get(principal, principal))


def _name(name: str) -> str:
    return plain(name) if name.strip() else "(no name)"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, counted(count, "time"))


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _given(query: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in query.items() if text}


def _where(path: str, query: Mapping[str, str], part: str = "") -> str:
    return f"{path}?{urlencode(query)}{'#' if part else ''}{part}"
