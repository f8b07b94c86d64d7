"""Mailboxes: bounded, in order, alarms first."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from actors.mailbox import Mailbox
from transports.envelope import Envelope


def mail(number: int, source: str = "a") -> Envelope[Any]:
    return Envelope(number, source, "me", 0, 0, None)


async def take(box: Mailbox, count: int) -> list[int]:
    """The numbers of the next messages."""
    return [(await box.get()).id for _ in range(count)]


async def test_messages_come_in_order_and_alarms_before_them() -> None:
    box = Mailbox()
    for number in (1, 2):
        assert await box.put(mail(number))
    first, second = [5, 1], [6, 2]
    box.alarm(first)
    box.alarm(second)
    assert len(box) == 4
    assert [await box.get(), await box.get()] == [first, second]
    assert await take(box, 2) == [1, 2]
    assert len(box) == 0


async def test_an_alarm_that_waits_is_not_told_twice() -> None:
    box = Mailbox()
    due, equal = [5, 1], [5, 1]
    for alarm in (due, due, equal):
        box.alarm(alarm)
    assert len(box) == 2
    assert await box.get() is due
    box.alarm(due)
    assert len(box) == 2


async def test_a_full_one_refuses_an_offer_and_lets_putters_wait_in_their_order() -> None:
    box = Mailbox(limit=2)
    assert [box.offer(mail(number)) for number in (1, 2, 3)] == [True, True, False]

    async def put(number: int) -> None:
        assert await box.put(mail(number))

    async with trio.open_nursery() as nursery:
        for number in (4, 5):
            nursery.start_soon(put, number)
            await wait_all_tasks_blocked()
        assert len(box) == 2
        assert await take(box, 2) == [1, 2]
        await wait_all_tasks_blocked()
    assert await take(box, 2) == [4, 5]


async def test_alarms_have_room_in_a_full_one() -> None:
    box = Mailbox(limit=1)
    box.offer(mail(1))
    box.alarm([1, 1])
    assert len(box) == 2


async def test_who_takes_waits_for_mail() -> None:
    box, got = Mailbox(), []

    async def taker() -> None:
        got.extend(await take(box, 1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(taker)
        await wait_all_tasks_blocked()
        assert got == []
        box.offer(mail(7))
    assert got == [7]


async def test_a_paused_one_takes_in_and_gives_nothing_out() -> None:
    box = Mailbox()
    box.paused = True
    box.offer(mail(1))
    box.alarm([1, 1])
    with trio.move_on_after(0.01) as scope:
        await box.get()
    assert scope.cancelled_caught
    box.resume()
    assert await box.get() == [1, 1]
    assert await take(box, 1) == [1]


async def test_a_closed_one_gives_back_its_mail_and_takes_none() -> None:
    box = Mailbox(limit=1)
    box.offer(mail(1))
    box.alarm([1, 1])
    told = []

    async def put() -> None:
        told.append(await box.put(mail(2)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(put)
        await wait_all_tasks_blocked()
        assert [envelope.id for envelope in box.close()] == [1]
    assert told == [False]
    assert not box.offer(mail(3))
    assert not await box.put(mail(4))
    assert len(box) == 0


@given(limit=st.integers(1, 4), counts=st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_it_never_holds_more_than_its_limit_and_keeps_each_sources_order(
    limit: int, counts: list[int]
) -> None:
    got: list[Envelope[Any]] = []

    async def main() -> None:
        box = Mailbox(limit)

        async def put(source: str, count: int) -> None:
            for number in range(count):
                assert await box.put(mail(number, source))

        async with trio.open_nursery() as nursery:
            for place, count in enumerate(counts):
                nursery.start_soon(put, str(place), count)
            for _ in range(sum(counts)):
                assert len(box) <= limit
                got.append(await box.get())

    trio.run(main)
    for place, count in enumerate(counts):
        assert [one.id for one in got if one.source == str(place)] == list(range(count))


async def test_an_actor_that_never_runs_dry_lets_others_have_turns() -> None:
    box = Mailbox()
    for number in range(50):
        box.offer(mail(number))
    with pytest.raises(trio.TooSlowError):
        with trio.fail_after(0):  # only a task that reaches a checkpoint is cancelled
            await take(box, 50)


async def test_it_is_idle_only_while_who_takes_waits_for_mail_that_may_come() -> None:
    box, got = Mailbox(), []
    told: list[tuple[str, bool]] = [("nobody takes", box.idle)]

    async def taker() -> None:
        while True:
            got.append(await box.get())
            told.append(("a turn", box.idle))

    async def tell(what: str) -> None:
        told.append((what, box.idle))
        await wait_all_tasks_blocked()
        told.append(("then", box.idle))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(taker)
        await tell("nobody takes yet")
        box.offer(mail(1))
        await tell("one waits")
        box.paused = True
        await tell("paused")
        box.offer(mail(2))
        await tell("paused, and one waits")
        box.resume()
        await tell("going on")
        box.alarm([1, 9])
        await tell("a timer comes before the mail")
        box.close()
        await tell("closed")
        nursery.cancel_scope.cancel()
    assert len(got) == 3
    assert [what for what in told if what[1]] == [("then", True)] * 4
    assert told[-1] == told[-9] == ("then", False), "closed, and paused"


async def test_the_next_message_is_taken_at_once_if_nothing_is_to_come_before_it() -> None:
    box = Mailbox(2)
    assert box.next_message() is None
    for number in (1, 2):
        assert box.offer(mail(number))
    box.alarm([5, 1])
    assert box.next_message() is None, "an alarm comes first"
    await box.get()
    box.paused = True
    assert box.next_message() is None
    box.paused = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.put, mail(3))
        await wait_all_tasks_blocked()
        taken = box.next_message()
        assert taken is not None
        assert taken.id == 1
    assert await take(box, 2) == [2, 3], "and whoever waited for room has it"
