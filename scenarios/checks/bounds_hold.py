"""Bounds: nothing grows without a limit, and no peer has to take more than it was promised."""

from __future__ import annotations

from collections.abc import Iterator

from actors.journal import OUTBOX
from actors.messages import (
    Commands,
    Complete,
    Completion,
    Failure,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    Sync,
)
from actors.relay import CAPACITY, OUTBOX_LIMIT
from actors.server import KEY_CHARS, LIST_LIMIT, OFFER_LIMIT
from actors.text import ERROR_LIMIT_CHARS, RESULT_LIMIT_CHARS, bounded, clean_text, units
from logs.record import EventRecord
from scenarios.checks.history import History, Said, Violation

_NAME = "bounds_hold"
_OUTBOX_ROWS = OUTBOX_LIMIT + CAPACITY  # a pass that begins below the limit may add so many


def bounds_hold(history: History) -> Iterator[Violation]:
    """Texts, results, lists, offers, open runs and outboxes stay within their bounds.

    Reads `Complete`, `Failure`, `GraphRun`, `GraphSessions`, `Commands` and the questions that they
    answer, the events of runs, the servers' configs, and the relays' outboxes at the end.
    """
    yield from _completions(history)
    yield from _answers(history)
    yield from _lists(history)
    yield from _offers(history)
    yield from _open_runs(history)
    yield from _outboxes(history)


def _violation(words: str, *records: Said | EventRecord) -> Violation:
    return Violation(_NAME, words, tuple(record.n for record in records))


def _completions(history: History) -> Iterator[Violation]:
    """What a relay posts has clean text, a bounded error and a bounded result."""
    for each in history.said_by("relay", Complete):
        done: Completion = each.envelope.body.completion
        allowed = bounded(done)
        if allowed is done or allowed == done:
            continue
        if allowed.result_truncated and not done.result_truncated:
            what = f"a completion of more than {RESULT_LIMIT_CHARS} characters"
        elif done.error is not None and _is_long(done.error):
            what = f"an error of more than {ERROR_LIMIT_CHARS} characters"
        else:
            what = "text that can't be stored and sent as it is"
        run = each.envelope.body.command_id
        yield _violation(f"{each.envelope.source} posted for run {run} {what}", each)


def _is_long(error: str) -> bool:
    return units(clean_text(error)) > ERROR_LIMIT_CHARS


def _answers(history: History) -> Iterator[Violation]:
    """What an agent reads is bounded, and a key that is too short or too long queues nothing."""
    for answer in (*history.said_by("server", GraphRun), *history.said_by("server", Failure)):
        error = answer.envelope.body.error
        if error is not None and _is_long(error):
            who = f"{answer.envelope.source} told {answer.envelope.target}"
            yield _violation(f"{who} an error of more than {ERROR_LIMIT_CHARS} characters", answer)
    least, most = KEY_CHARS
    for story in history.stories.values():
        question = None if story.ticket is None else history.question(story.ticket)
        if story.ticket is None or question is None:
            continue
        chars = len(question.envelope.body.idempotency_key)
        if not least <= chars <= most:
            words = f"a key of {chars} characters got a ticket, {least} to {most} are allowed"
            yield _violation(words, question, story.ticket)


def _lists(history: History) -> Iterator[Violation]:
    """A listing has no more sessions than were asked for."""
    for answer in history.said_by("server", GraphSessions):
        question = history.question(answer)
        if question is None or not isinstance(question.envelope.body, ListGraphSessions):
            continue
        limit = min(question.envelope.body.limit, LIST_LIMIT)
        listed = len(answer.envelope.body.sessions)
        if listed > limit:
            who = f"{answer.envelope.source} listed {listed} sessions to {answer.envelope.target}"
            yield _violation(f"{who}, {limit} at most", question, answer)


def _offers(history: History) -> Iterator[Violation]:
    """A relay is offered no more commands than it has room for."""
    for answer in history.said_by("server", Commands):
        offered = len(answer.envelope.body.commands)
        question = history.question(answer) if offered else None
        if question is None or not isinstance(question.envelope.body, Sync):
            continue
        room = min(question.envelope.body.capacity, OFFER_LIMIT)
        if offered > room:
            who = f"{answer.envelope.source} offered {offered} commands to {answer.envelope.target}"
            yield _violation(f"{who}, which had room for {room}", question, answer)


def _open_runs(history: History) -> Iterator[Violation]:
    """No agent and no desktop has more runs open than the server's config allows."""
    config = next((history.configs.get(name) for name in history.actors("server")), None)
    limits = {
        "agent": getattr(config, "agent_limit", None),
        "device": getattr(config, "device_limit", None),
    }
    if len(history.stories) <= min(limit or 0 for limit in limits.values()):
        return  # there never were so many
    events = [*history.events("run.queued"), *history.events("run.terminal")]
    events.sort(key=lambda event: event.n)
    devices = _devices(history)
    opened: dict[tuple[str, str], int] = {}  # how many by (whose, name)
    owners: dict[str, list[tuple[str, str]]] = {}  # of each open run
    for event in events:
        run = event.fields["run"]
        if event.event == "run.terminal":
            for owner in owners.pop(run, ()):
                opened[owner] -= 1
            continue
        owners[run] = [("agent", str(event.fields.get("agent")))]
        device = devices.get(event.fields.get("session", ""))
        if device is not None:
            owners[run].append(("device", device))
        for owner in owners[run]:
            opened[owner] = count = opened.get(owner, 0) + 1
            limit = limits[owner[0]]
            if limit is not None and count == limit + 1:
                words = f"{owner[1]} has {count} runs open, {limit} are allowed"
                yield _violation(words, event)


def _devices(history: History) -> dict[str, str]:
    """The desktop that has each session, as the relays' syncs say."""
    found: dict[str, str] = {}
    for sync in history.sent(Sync):
        for meta in sync.envelope.body.sessions:
            found.setdefault(meta.id, sync.envelope.source)
    return found


def _outboxes(history: History) -> Iterator[Violation]:
    """An outbox never holds more than a pass may bring beyond its limit."""
    counts: dict[str, int] = {}
    for relay, _ in history.rows("relay", OUTBOX.name):
        counts[relay] = counts.get(relay, 0) + 1
    for relay, count in counts.items():
        if count > _OUTBOX_ROWS:
            words = f"{relay}'s outbox holds {count} results, {_OUTBOX_ROWS} at most"
            yield Violation(_NAME, words)
