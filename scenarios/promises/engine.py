"""What an engine promises besides: one start a channel, an end that is told, a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from actors.messages import (
    CHANNEL,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
)
from scenarios.promises.stage import SESSION, TURNS_TRIED, Death, Play, Promise, S, Script, Subject

ONE: Final = CHANNEL + "11111111-1111-4111-8111-111111111111"
NONE: Final = CHANNEL + "22222222-2222-4222-8222-222222222222"
RUN: Final = FleetRun(channel=ONE, session=SESSION.id, slug=SESSION.slug, arguments={})
STOP_AT_US: Final = 2 * S


def acknowledged(body: Any) -> FleetAcknowledged:
    """Return a relay's answer to an end that it has on disk."""
    return FleetAcknowledged(channel=body.channel)


def relay(*lines: tuple[float, Any], silent: bool = False) -> Script:
    """Return a relay that says these lines, and acknowledges ends unless it is silent."""
    replies: dict[type[Any], Callable[[Any], Any]] = {FleetFinished: acknowledged}
    return Script(
        *((at_s, "engine", body) for at_s, body in lines), replies={} if silent else replies
    )


def starts_once(subject: Subject) -> Iterator[str]:
    """The channel's Graph runs under one id, whatever turn the engine was killed in."""
    count = Death("engine")
    again = tuple((float(at_s), RUN) for at_s in (1, 10, 600, 3000))
    Play(scripts={"relay": relay(*again)}, death=count).run(subject)
    for turn in range(min(count.turns, TURNS_TRIED) + 1):
        peer = relay(*again)
        record = Play(scripts={"relay": peer}, death=Death("engine", turn)).run(subject)
        ids = {each.execution_id for each in record.of(FleetStarted)}
        ids |= {each.completion.execution_id or "" for each in record.of(FleetFinished)}
        when = f"when it was killed in its turn {turn}, " if turn else ""
        if len(ids) > 1:
            yield f"{when}one channel had {len(ids)} executions"
        if not ids:
            yield f"{when}a Graph never started"


def a_query_starts_nothing(subject: Subject) -> Iterator[str]:
    """It is answered with what is known."""
    peer = relay((1, RUN), (2, FleetQuery(channel=ONE)), (3, FleetQuery(channel=NONE)))
    record = Play(scripts={"relay": peer}).run(subject)
    if not isinstance(peer.answers.get(1), FleetStarted):
        yield f"a query for what runs was answered with {peer.answers.get(1)!r}"
    if not isinstance(peer.answers.get(2), FleetUnknown):
        yield f"a query for what never ran was answered with {peer.answers.get(2)!r}"
    if any(each.channel == NONE for each in record.of(FleetFinished)):
        yield "a query started a Graph"


def tells_an_end_until_it_is_kept(subject: Subject) -> Iterator[str]:
    """Again and again to a silent relay, and no more to one that has acknowledged it."""
    told = len(Play(scripts={"relay": relay((1, RUN), silent=True)}).run(subject).of(FleetFinished))
    if told < 3:
        yield f"a silent relay was told {told} times in an hour"
    told = len(Play(scripts={"relay": relay((1, RUN))}).run(subject).of(FleetFinished))
    if told != 1:
        yield f"a relay that acknowledged the end was told {told} times"


def stops(subject: Subject) -> Iterator[str]:
    """An execution that is told to stop ends as cancelled, unless it ended by itself first."""
    whole = Play(scripts={"relay": relay((1, RUN))}).run(subject).when(FleetFinished)
    peer = relay((1, RUN))

    def cancel(heard: list[Any]) -> FleetCancel:
        ids = [each.execution_id for each in heard if isinstance(each, FleetStarted)]
        return FleetCancel(execution_id=ids[0] if ids else "")

    peer.lines += ((STOP_AT_US / S, "engine", cancel),)
    record = Play(scripts={"relay": peer}).run(subject)
    ends = record.of(FleetFinished)
    if not ends:
        yield "it never ended"
    elif ends[0].completion.status != "cancelled" and (not whole or whole[0] > 2 * STOP_AT_US):
        yield f"it ended as {ends[0].completion.status} at {record.when(FleetFinished)[0] / S:g} s"


PROMISES: Final = (
    Promise("A channel's Graph starts once for ever", starts_once),
    Promise("A query starts nothing", a_query_starts_nothing),
    Promise("An end is told until the relay has it on disk", tells_an_end_until_it_is_kept),
    Promise("An execution that is told to stop is stopped", stops),
)
