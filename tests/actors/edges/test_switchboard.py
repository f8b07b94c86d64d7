"""The switchboard: each connection gets the answers to what it asked, and no other ones."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.edges.gateway import SERVER
from actors.edges.line import QUEUE_LIMIT
from actors.edges.switchboard import LINES_LIMIT, PENDING_LIMIT
from actors.messages import (
    GetGraphRun,
    GraphRun,
)
from tests.actors.edges.hall import (
    TIMINGS,
    hall,
    hear,
    is_over,
    say,
    ticket,
)
from transports.envelope import Envelope
from transports.handshake import Hello, RefusedError, greet

# Answers


async def test_each_connection_of_a_principal_gets_its_own_answers(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        first, second = await it.enter(), await it.enter()
        for number, connection in enumerate((first, second)):
            await say(connection, GetGraphRun(command_id=f"c-{number}"), number=1)
        await wait_all_tasks_blocked()
        for asked in reversed(it.inside.heard[-2:]):
            it.inside.reply(asked, ticket(asked))
        assert (await hear(first)).body.command_id == "c-0"
        assert (await hear(second)).body.command_id == "c-1"
        assert (it.inside.lost, it.gateway.board.connections) == ([], {"agt_1": 2})


async def test_an_answer_to_a_connection_that_is_gone_is_lost_and_not_given_to_another(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        first, second = await it.enter(), await it.enter()
        await say(first, GetGraphRun(command_id="c-0"))
        await wait_all_tasks_blocked()
        asked = it.inside.heard[-1]
        await first.aclose()
        await wait_all_tasks_blocked()
        it.inside.reply(asked, ticket(asked))
        assert [fault for _, fault in it.inside.lost] == ["disconnected"]
        with trio.move_on_after(1) as scope:
            await second.receive()
        assert scope.cancelled_caught


async def test_what_nobody_asked_for_goes_to_the_newest_connection(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        old, new = await it.enter(), await it.enter()
        run = GraphRun(command_id="c", status="running")
        assert it.gateway.take(Envelope(5, SERVER, "agt_1", 0, 0, run))
        assert (await hear(new)).body == run
        await new.aclose()
        await wait_all_tasks_blocked()
        assert it.gateway.take(Envelope(6, SERVER, "agt_1", 0, 0, run))
        assert (await hear(old)).body == run
        assert not it.gateway.take(Envelope(7, SERVER, "agt_2", 0, 0, run)), "it is not here"


async def test_who_does_not_read_loses_what_goes_beyond_the_queue(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        await it.enter()
        big = GraphRun(command_id="c", status="completed", result="x" * 100_000)
        for number in range(QUEUE_LIMIT + 20):
            it.gateway.take(Envelope(number, SERVER, "agt_1", 0, 0, big))
            await wait_all_tasks_blocked()
        assert {fault for _, fault in it.inside.lost} == {"queue full"}
        assert not it.gateway.board.idle


async def test_only_so_many_questions_are_remembered(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        connection = await it.enter()
        for number in range(PENDING_LIMIT + 5):
            await say(connection, GetGraphRun(command_id=f"c-{number}"), number=number)
        await wait_all_tasks_blocked()
        assert len(it.gateway.board._questions) == PENDING_LIMIT
        asked = it.inside.heard[-1]
        it.inside.reply(asked, ticket(asked))
        assert (await hear(connection)).reply_to == PENDING_LIMIT + 4
        await connection.aclose()
        await wait_all_tasks_blocked()
        assert (
            it.gateway.board._questions,
            it.gateway.board._pending,
            it.gateway.board.connections,
        ) == ({}, {}, {})


# Bounds and ends


async def test_the_oldest_connection_of_a_principal_gives_way(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        connections = [await it.enter() for _ in range(LINES_LIMIT + 1)]
        await wait_all_tasks_blocked()
        assert it.gateway.board.connections == {"agt_1": LINES_LIMIT}
        assert await is_over(connections[0])
        assert not await is_over(connections[1])


async def test_there_is_a_limit_for_all_and_another_for_the_local_socket(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        for name in ("agt_1", "agt_2"):
            for _ in range(20):
                await it.enter(name)
        with pytest.raises(RefusedError, match="40 connections, which is its limit"):
            await it.enter("dev_1")
        await greet(it.local.connect(), Hello(name="owner", boot="b"), TIMINGS)
        assert it.doors[0]._guests == {}, "who had no room is forgotten"
