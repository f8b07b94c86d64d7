"""The gateway: who may come in, what they may say, and to whom an answer goes."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.accounts.messages import (
    GATEWAY,
    AddAgent,
    Authenticate,
    AuthenticateLocal,
    BeginRotation,
    Changed,
    Denied,
    ListAgents,
    Pair,
    Paired,
    PrincipalAdded,
    PrincipalRevoked,
    Rotation,
)
from actors.edges.door import (
    MakeLink,
    NewToken,
    PairDevice,
    SignInLink,
    hash_code,
    hash_token,
    make_token,
)
from actors.edges.gateway import DENIAL_S, NO_PAGES, PAIRING_LIMIT, SERVER, Guest
from actors.messages import (
    Commands,
    GetGraphRun,
    Start,
)
from tests.actors.edges.hall import (
    CHOSEN,
    CODEC,
    KEY,
    SYNC,
    TIMINGS,
    UNKNOWN,
    Hall,
    hall,
    hear,
    is_over,
    say,
    ticket,
    token_of,
)
from transports.connection import BrokenLinkError
from transports.envelope import Envelope
from transports.handshake import Hello, RefusedError, greet

# Coming in


async def test_the_source_is_who_the_token_belongs_to(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock, ticket) as it:
        nameless = await it.enter("agent", token_of("agt_2"))
        await say(nameless, GetGraphRun(command_id="c-1"), number=7)
        told = await hear(nameless)
        assert (told.reply_to, told.body.command_id) == (7, "c-1")
        [body] = it.inside.bodies("agt_2")
        assert body == GetGraphRun(command_id="c-1")
        asked = it.inside.heard[0].body
        assert asked == Authenticate(token_hash=hash_token(token_of("agt_2")), name="", address="")
        assert it.log.told("link.admitted", "principal") == ["agt_2"]


@pytest.mark.parametrize(
    ("name", "token"),
    [("agt_1", "a guess"), ("agt_1", token_of("agt_2")), ("nobody", token_of("nobody")), ("x", "")],
)
async def test_who_is_not_known_is_told_so_and_not_sooner_than_anybody(
    name: str, token: str, autojump_clock: MockClock
) -> None:
    async with hall(autojump_clock) as it:
        since_s = trio.current_time()
        with pytest.raises(RefusedError, match=UNKNOWN.error):
            await it.enter(name, token)
        assert trio.current_time() - since_s == pytest.approx(DENIAL_S)
        assert token not in repr(it.log.records) or not token


async def test_a_server_that_does_not_answer_refuses_nobody_for_good(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        it.inside.room = trio.Event()
        with pytest.raises(RefusedError, match="try again"):
            await it.enter()
        it.inside.room.set()
        await it.enter()


async def test_the_local_socket_needs_no_token_and_tells_who_comes(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock, lambda _envelope: Changed(subject="x")) as it:
        connection = await greet(it.local.connect(), Hello(name="owner", boot="b"), TIMINGS)
        await say(connection, ListAgents())
        assert (await hear(connection)).body == Changed(subject="x")
        assert it.inside.bodies("own_1") == [ListAgents()]


# What may be said


@pytest.mark.parametrize(
    ("name", "body", "target"),
    [
        ("agt_1", SYNC, SERVER),
        ("agt_1", ListAgents(), SERVER),
        ("agt_1", AuthenticateLocal(), SERVER),
        ("dev_1", GetGraphRun(command_id="c"), SERVER),
        ("dev_1", ListAgents(), SERVER),
        ("own_1", SYNC, SERVER),
        ("agt_1", GetGraphRun(command_id="c"), "gateway"),
        ("agt_1", GetGraphRun(command_id="c"), "agt_2"),
    ],
)
async def test_what_a_kind_may_not_say_ends_its_connection_and_comes_to_nobody(
    name: str, body: Any, target: str, autojump_clock: MockClock
) -> None:
    async with hall(autojump_clock) as it:
        connection, other = await it.enter(name), await it.enter("agt_2")
        before = len(it.inside.heard)
        await say(connection, body, target=target)
        assert await is_over(connection)
        assert len(it.inside.heard) == before
        it.inside.answer = ticket
        await say(other, GetGraphRun(command_id="c-2"))
        assert (await hear(other)).body.command_id == "c-2"


async def test_a_cause_in_another_log_is_none_in_ours(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        connection = await it.enter()
        envelope = Envelope(1, "", SERVER, 0, 77, GetGraphRun(command_id="c"))
        await connection.send(CODEC.encode(envelope))
        await wait_all_tasks_blocked()
        assert it.inside.heard[-1].cause == 0
        assert it.inside.heard[-1].id != 1


# Ends


async def test_a_revoked_principal_has_no_connection_any_more(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        revoked, also, other = await it.enter(), await it.enter(), await it.enter("agt_2")
        notice = PrincipalRevoked(principal="agt_1", reason="removed by its owner")
        it.gateway.take(Envelope(9, SERVER, GATEWAY, 0, 0, notice))
        assert await is_over(revoked)
        assert await is_over(also)
        assert not await is_over(other)
        reasons = it.log.told("link.down")
        assert reasons == ["revoked: removed by its owner"] * 2


async def test_a_revocation_whose_notice_was_lost_answers_the_next_message(
    autojump_clock: MockClock,
) -> None:
    notice = PrincipalRevoked(principal="dev_1", reason="removed by its owner")
    async with hall(autojump_clock, lambda _envelope: notice) as it:
        connection = await it.enter("dev_1")
        await say(connection, SYNC)
        assert await is_over(connection)


async def test_a_gateway_that_stops_hears_nothing_and_still_writes(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        connection = await it.enter()
        await say(connection, GetGraphRun(command_id="c"))
        await wait_all_tasks_blocked()
        asked = it.inside.heard[-1]
        it.gateway.board.stop_reading()
        await say(connection, GetGraphRun(command_id="d"))
        await wait_all_tasks_blocked()
        assert it.inside.heard[-1] is asked
        it.inside.reply(asked, ticket(asked))
        assert (await hear(connection)).body.command_id == "c"
        with pytest.raises(RefusedError, match="shutting down"):
            await it.enter("agt_2")


# Secrets


async def test_an_agents_token_is_made_here_and_told_once(autojump_clock: MockClock) -> None:
    added = PrincipalAdded(principal="agt_9", name="bot")
    async with hall(autojump_clock, lambda _envelope: added) as it:
        connection = await it.enter("own_1")
        await say(connection, AddAgent(name="bot", token_hash=CHOSEN))
        told = (await hear(connection)).body
        [asked] = it.inside.bodies("own_1")
        assert asked.token_hash == hash_token(told.token) != CHOSEN


def rotating(envelope: Envelope[Any]) -> Any:
    """A server that keeps each new token, and has no work."""
    is_rotation = isinstance(envelope.body, BeginRotation)
    return Rotation(begun=True) if is_rotation else Commands(commands=())


async def test_an_old_token_is_replaced_with_the_next_sync(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock, rotating) as it:
        it.rotate_in_us = 0
        connection = await it.enter("dev_1")
        await say(connection, Start(command_id="c", boot="b", delivery=1))
        assert isinstance((await hear(connection)).body, Commands)
        await wait_all_tasks_blocked()
        kinds = [type(body) for body in it.inside.bodies(GATEWAY)]
        assert BeginRotation not in kinds, "not before a sync: who has none has no use for it"
        for _ in range(2):
            await say(connection, SYNC)
        told = [(await hear(connection)).body for _ in range(3)]
        [new] = [one for one in told if isinstance(one, NewToken)]
        [asked] = [one for one in it.inside.bodies(GATEWAY) if isinstance(one, BeginRotation)]
        assert asked == BeginRotation(device="dev_1", token_hash=hash_token(new.token))


async def test_a_token_grows_old_on_a_connection_that_lasts(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock, rotating) as it:
        it.rotate_in_us = 5_000_000
        connection = await it.enter("dev_1")
        for _ in range(2):
            await say(connection, SYNC)
            assert isinstance((await hear(connection)).body, Commands)
            await trio.sleep(4)
        asked = [type(body) for body in it.inside.bodies(GATEWAY)]
        assert BeginRotation not in asked, "it is not old yet"
        await say(connection, SYNC)
        assert {type((await hear(connection)).body) for _ in range(2)} == {Commands, NewToken}


async def test_a_token_that_the_server_could_not_keep_is_not_sent(
    autojump_clock: MockClock,
) -> None:
    def answer(envelope: Envelope[Any]) -> Any:
        if isinstance(envelope.body, BeginRotation):
            return Rotation(begun=False)
        return Commands(commands=())

    async with hall(autojump_clock, answer) as it:
        it.rotate_in_us = 0
        connection = await it.enter("dev_1")
        await say(connection, SYNC)
        assert isinstance((await hear(connection)).body, Commands)
        assert not await is_over(connection)


# Pairing

PAIR = PairDevice(code="WXYZ-2345", name="laptop", token=make_token("device"))


async def paired(it: Hall, body: Any = PAIR) -> Any:
    hello = Hello(name="pairing", boot="b")
    connection = await greet(it.outside.connect(), hello, TIMINGS)
    await say(connection, body)
    told = await hear(connection)
    await connection.aclose()
    return told.body


async def test_a_desktop_is_paired_by_a_code_and_the_token_that_it_brings(
    autojump_clock: MockClock,
) -> None:
    done = Paired(device="dev_9", name="laptop", owner="own_1")
    async with hall(autojump_clock, lambda _envelope: done) as it:
        assert await paired(it) == done
        [asked] = it.inside.bodies(GATEWAY)
        assert asked == Pair(
            code_hash=hash_code(KEY, "WXYZ-2345"), name="laptop", token_hash=hash_token(PAIR.token)
        )


async def test_a_wrong_code_takes_as_long_as_a_right_one(autojump_clock: MockClock) -> None:
    no = Denied(reason="bad_code", error="this code is not good")
    async with hall(autojump_clock, lambda _envelope: no) as it:
        since_s = trio.current_time()
        assert await paired(it) == no
        assert trio.current_time() - since_s == pytest.approx(DENIAL_S)


async def test_a_stranger_may_say_nothing_but_a_code(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        with pytest.raises(BrokenLinkError):
            await paired(it, SYNC)
        assert it.inside.heard == []
        with pytest.raises(RefusedError):
            await greet(it.local.connect(), Hello(name="pairing", boot="b", token=CHOSEN), TIMINGS)


async def test_a_strangers_tries_are_counted_whatever_its_port_is(
    autojump_clock: MockClock,
) -> None:
    async with hall(autojump_clock) as it:
        hello = Hello(name="pairing", boot="b")
        guests = [await it.gateway.admit(hello, f"10.0.0.1:{port}", False) for port in (5, 6)]
        assert [guest.address for guest in guests if isinstance(guest, Guest)] == ["10.0.0.1"] * 2


async def test_no_more_strangers_than_a_few_are_heard_at_a_time(autojump_clock: MockClock) -> None:
    hello = Hello(name="pairing", boot="b")
    ends: list[str] = []

    async def knock(it: Hall) -> None:
        try:
            connection = await greet(it.outside.connect(), hello, TIMINGS)
            with trio.move_on_after(1):
                await connection.receive()
                return
            ends.append("heard")
        except BrokenLinkError as error:
            ends.append(type(error).__name__)

    async with hall(autojump_clock) as it, trio.open_nursery() as nursery:
        for _ in range(30):  # greeted all at once, before the first of them is counted
            nursery.start_soon(knock, it)
    assert len(ends) == 30
    assert ends.count("heard") == PAIRING_LIMIT


# Links to pages


async def test_a_server_without_pages_has_no_links(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        owner = await it.enter("own_1")
        await say(owner, MakeLink(), number=3)
        told = await hear(owner)
        assert (told.reply_to, told.body) == (3, NO_PAGES)
        assert it.inside.bodies("own_1") == []


async def test_a_link_is_for_the_owner_who_asks(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        it.gateway.make_link = lambda principal, name: SignInLink(
            url=f"{principal} {name}", expires_in_us=1
        )
        owner = await it.enter("own_1")
        await say(owner, MakeLink())
        assert (await hear(owner)).body == SignInLink(url="own_1 n", expires_in_us=1)
        agent = await it.enter("agt_1")
        await say(agent, MakeLink())
        assert await is_over(agent)


# Owners who came in by another way


async def test_an_owner_who_came_in_by_another_way_is_asked_for(
    autojump_clock: MockClock,
) -> None:
    def answer(envelope: Envelope[Any]) -> Any:
        return PrincipalAdded(principal="agt_9", name=envelope.body.name)

    async with hall(autojump_clock, answer) as it:
        connected = await it.enter("own_1")
        told = await it.gateway.ask(AddAgent(name="x", token_hash=CHOSEN), "own_1")
        [asked] = it.inside.bodies("own_1")
        assert asked.token_hash == hash_token(told.token) != CHOSEN
        assert it.inside.lost == []
        await say(connected, AddAgent(name="y"), number=5)
        assert (await hear(connected)).reply_to == 5  # the answer before was not for it


async def test_an_answer_that_comes_too_late_is_nobody_elses(autojump_clock: MockClock) -> None:
    async with hall(autojump_clock) as it:
        connected = await it.enter("own_1")
        since_s = trio.current_time()
        assert await it.gateway.ask(ListAgents(), "own_1", 2.0) is None
        assert trio.current_time() - since_s == pytest.approx(2.0)
        it.inside.reply(it.inside.heard[-1], Changed(subject="late"))
        assert it.inside.lost == [(Changed(subject="late"), "disconnected")]
        await say(connected, ListAgents())
        await wait_all_tasks_blocked()
        it.inside.reply(it.inside.heard[-1], Changed(subject="its own"))
        assert (await hear(connected)).body == Changed(subject="its own")


@pytest.mark.parametrize("asked", [True, False])
async def test_other_ways_in_hear_who_is_revoked(autojump_clock: MockClock, asked: bool) -> None:
    notice = PrincipalRevoked(principal="own_1", reason="removed")
    async with hall(autojump_clock, lambda _envelope: notice) as it:
        heard: list[str] = []
        it.gateway.on_revoked.append(heard.append)
        connected = await it.enter("own_1")
        if asked:
            assert await it.gateway.ask(ListAgents(), "own_1") == notice
        else:
            it.gateway.take(Envelope(1, SERVER, GATEWAY, 0, 0, notice))
        assert heard == ["own_1"]
        assert await is_over(connected)
