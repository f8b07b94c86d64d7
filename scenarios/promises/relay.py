"""What a relay promises besides: leave, consent, cancel, and results that are not lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from actors.chance import Durations
from actors.messages import (
    CHANNEL,
    NOT_SHARED_TEXT,
    Accepted,
    Complete,
    FleetAcknowledged,
    FleetCancel,
    FleetRun,
    Start,
    StartAnswer,
)
from actors.polls import parse_polls
from scenarios.promises.stage import TURNS_TRIED, Death, Play, Promise, Record, S, Subject, step
from transports.faults.drop import Drop

ONE: Final = {"poll": parse_polls("every 10s")}
STOP_LIMIT_US: Final = 60 * S  # the published control poll takes 3 s


def asks_for_leave(subject: Subject) -> Iterator[str]:
    """Only an answer `go` lets a run start."""
    record = Play(agent={"runs": 3}).run(subject)
    allowed: set[str] = set()
    asked: dict[int, str] = {}
    for _, envelope in record.said:
        body = envelope.body
        if isinstance(body, Start):
            asked[envelope.id] = body.command_id
        elif isinstance(body, StartAnswer) and body.go:
            allowed.add(asked.get(envelope.reply_to, ""))
        elif isinstance(body, FleetRun) and body.channel.removeprefix(CHANNEL) not in allowed:
            yield f"it handed {body.channel} over without leave"


def told_as_unshared(record: Record) -> Iterator[str]:
    """The published end of a run whose session is no longer shared."""
    if record.of(FleetRun):
        yield "the run was handed to the engine"
    for end in record.endings().values():
        if end.status != "cancelled" or end.error != NOT_SHARED_TEXT:
            yield f"the run ended as {end.status}, {end.error!r}"
    if not record.endings():
        yield "the run never ended"


def checks_consent_before_it_asks(subject: Subject) -> Iterator[str]:
    """The session was unshared while the command was on its way to the relay."""
    late = {("server", "relay"): 4 * S}
    first = Play(agent=ONE, steps=(step(3_000, "share"),), late_us=late).run(subject)
    offered = next(
        (at - 4 * S for at, each in first.said if getattr(each.body, "commands", ())), None
    )
    if offered is None:
        yield "it took no command"
        return
    steps = (step((offered + 2 * S) / S, "unshare"), step(3_000, "share"))
    yield from told_as_unshared(Play(agent=ONE, steps=steps, late_us=late).run(subject))


def checks_consent_again(subject: Subject) -> Iterator[str]:
    """The session was unshared between the question for leave and its answer."""
    late = {("server", "relay"): 4 * S}
    first = Play(agent=ONE, steps=(step(3_000, "share"),), late_us=late).run(subject)
    asked = first.when(Start)
    if not asked:
        yield "it asked for no leave"
        return
    steps = (step((asked[0] + 2 * S) / S, "unshare"), step(3_000, "share"))
    yield from told_as_unshared(Play(agent=ONE, steps=steps, late_us=late).run(subject))


def keeps_results(subject: Subject) -> Iterator[str]:
    """The post or its acceptance is lost, or the relay dies, or both, and the result arrives."""
    count = Death(subject.kind)
    clean = Play(agent=ONE, death=count).run(subject)
    if not clean.of(Complete):
        yield "it posted no result"
    for name in ("", "Complete", "Accepted"):
        lost = Drop(message=name, nth=1) if name else None
        for turn in range(min(count.turns, TURNS_TRIED) + 1):
            record = Play(agent=ONE, lost=lost, death=Death(subject.kind, turn)).run(subject)
            ends = [end for end in record.endings().values() if end.status == "completed"]
            if record.of(FleetAcknowledged) and not (ends and ends[0].result is not None):
                what = [f"the first {name} was lost"] if name else []
                what += [f"it was killed in its turn {turn}"] if turn else []
                when = " and ".join(what) or "nothing else happened"
                yield f"it told the engine that it had the result, and lost it when {when}"


def repeats_until_accepted(subject: Subject) -> Iterator[str]:
    """A result that was accepted is not posted for ever."""
    record = Play(agent=ONE).run(subject)
    if record.when(Accepted) and len(record.of(Complete)) > 1:
        yield f"it posted one result {len(record.of(Complete))} times though it was accepted"


def stops_what_is_cancelled(subject: Subject) -> Iterator[str]:
    """Within the control poll, and the outcome is cancelled."""
    first = Play(agent=ONE, engine={"duration_us": Durations.parse("30m")}).run(subject)
    started = first.when(FleetRun)
    if not started:
        yield "it handed no run over"
        return
    cancel_us = started[0] + 30 * S
    agent = {**ONE, "cancel_us": Durations.parse(f"{cancel_us}us")}
    engine = {"duration_us": Durations.parse("30m")}
    record = Play(agent=agent, engine=engine).run(subject)
    stopped = record.when(FleetCancel)
    if not stopped or stopped[0] > cancel_us + STOP_LIMIT_US:
        yield "it told the engine nothing within a minute of the cancel"
    for end in record.endings().values():
        if end.status != "cancelled":
            yield f"the run ended as {end.status}"


def attempts_a_run_once(subject: Subject) -> Iterator[str]:
    """Nothing is handed over again after its end was posted."""
    ended: set[str] = set()
    for _, envelope in Play(agent={"runs": 3}).run(subject).said:
        body = envelope.body
        if isinstance(body, Complete):
            ended.add(CHANNEL + body.command_id)
        elif isinstance(body, FleetRun) and body.channel in ended:
            yield f"{body.channel} was handed over after its end"


PROMISES: Final = (
    Promise("It starts a run only after leave from the server", asks_for_leave),
    Promise("It refuses a run whose session was unshared before", checks_consent_before_it_asks),
    Promise("It checks consent again in the turn that gets leave", checks_consent_again),
    Promise("It keeps a result until the server has accepted it", keeps_results),
    Promise("It posts a result that was accepted no more", repeats_until_accepted),
    Promise("It stops a run that was cancelled", stops_what_is_cancelled),
    Promise("It hands no run over that has ended", attempts_a_run_once),
)
