"""The uplink: a desktop's way to its server breaks and comes back, and its token changes."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from anyio.abc import ByteStream
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.desktop.messages import Connected
from actors.edges.door import NewToken, make_token
from actors.edges.line import QUEUE_LIMIT
from actors.edges.uplink import LOOK_S, SLEPT_S, UPLINK, Dialling, Uplink
from actors.messages import Commands, GraphRun, StartAnswer, Sync
from tests.actors.edges.fake_inside import FakeInside
from tests.transports.test_acceptor import Log, PipeListener
from transports.acceptor import serve
from transports.codec import FRAME_LIMIT_BYTES
from transports.connection import BrokenLinkError, Connection, Peer
from transports.envelope import Envelope
from transports.handshake import NOT_KNOWN, PROTOCOL, Hello
from transports.wire import WireCodec

SERVER = Peer(protocol=PROTOCOL, name="server", boot="s1")
SYNC = Sync(boot="b", sessions=(), open=(), capacity=1, poll_us=1)
ANSWER = Commands(commands=())
CODEC = WireCodec([Sync, Commands, StartAnswer, NewToken, GraphRun])


class Desk:
    """An uplink, and a server that takes it in while its token is good."""

    def __init__(self) -> None:
        self.inside, self.log, self.listener = FakeInside(), Log(), PipeListener()
        self.token = self.good = make_token("device")
        self.up, self.full, self.slept_s = trio.Event(), False, 0.0
        self.server: Connection | None = None
        self.uplink = Uplink(
            self.inside,
            Dialling(self.connect, self.hello, self.keep),
            "relay",
            "server",
            [Commands, StartAnswer],
            self.log,
            lambda: 0.5,
            lambda: trio.current_time() + self.slept_s,
        )

    async def connect(self) -> ByteStream:
        return self.listener.connect()

    def hello(self) -> Hello:
        return Hello(name="dev_1", boot="b", token=self.token)

    def keep(self, token: str) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.token = token

    async def handle(self, connection: Connection) -> None:
        self.server = connection
        self.up.set()
        await trio.sleep_forever()

    async def serve(self) -> None:
        await serve(
            self.listener,
            SERVER,
            accept=lambda hello: None if hello.token == self.good else NOT_KNOWN,
            handle=self.handle,
            log=Log(),
        )

    @property
    def far(self) -> Connection:
        assert self.server is not None
        return self.server

    async def say(self, body: Any, target: str = "dev_1", reply_to: int = 0) -> None:
        await self.far.send(CODEC.encode(Envelope(1, "", target, reply_to, 9, body)))

    async def hear(self) -> Envelope[Any]:
        return CODEC.decode(await self.far.receive(), "dev_1")


@asynccontextmanager
async def linked(clock: MockClock) -> AsyncIterator[Desk]:
    assert clock.autojump_threshold == 0, "a pause between two connections takes its time"
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.serve)
        await desk.uplink.open()
        nursery.start_soon(desk.uplink.live)
        await desk.up.wait()
        await wait_all_tasks_blocked()
        [told] = desk.inside.heard
        assert (told.source, told.target, told.body) == (UPLINK, "relay", Connected())
        desk.inside.heard.clear()
        desk.inside.came = trio.Event()
        yield desk
        nursery.cancel_scope.cancel()


def ask(number: int = 5) -> Envelope[Any]:
    return Envelope(number, "relay", "server", 0, 0, SYNC)


async def test_questions_go_out_and_answers_come_in(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        assert it.uplink.take(ask())
        asked = await it.hear()
        assert (asked.id, asked.body, asked.target) == (5, SYNC, "server")
        await it.say(ANSWER, reply_to=5)
        await wait_all_tasks_blocked()
        [told] = it.inside.heard
        assert (told.source, told.target, told.reply_to) == ("server", "relay", 5)
        assert (told.body, told.cause) == (ANSWER, 0)
        assert it.uplink.idle


async def test_it_takes_nothing_that_is_for_others(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        assert not it.uplink.take(Envelope(1, "relay", "engine", 0, 0, SYNC))


async def test_without_a_link_a_message_is_lost_and_the_link_comes_back(
    autojump_clock: MockClock,
) -> None:
    async with linked(autojump_clock) as it:
        it.up = trio.Event()
        await it.far.aclose()
        await wait_all_tasks_blocked()
        assert not it.uplink.take(ask())
        assert it.uplink.idle
        await it.up.wait()
        await wait_all_tasks_blocked()
        assert it.uplink.take(ask(6))
        assert (await it.hear()).id == 6


async def test_a_new_token_is_kept_and_used_from_the_next_connection_on(
    autojump_clock: MockClock,
) -> None:
    async with linked(autojump_clock) as it:
        new = make_token("device")
        await it.say(NewToken(token=new))
        await it.say(ANSWER)
        await it.inside.came.wait()
        assert it.token == new, "it was kept before anything else was heard"
        assert [one.body for one in it.inside.heard] == [ANSWER]
        it.good, it.up = new, trio.Event()
        await it.far.aclose()
        await it.up.wait()
        assert new not in repr(it.log.records)


async def test_a_token_that_can_not_be_written_is_not_used(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        it.full = True
        await it.say(NewToken(token=make_token("device")))
        await it.say(ANSWER)
        await it.inside.came.wait()
        assert it.token == it.good
        assert it.log.told("token.not_kept") == ["No space left on device"]


async def test_the_actor_is_told_of_each_new_connection_before_it_hears_of_it(
    autojump_clock: MockClock,
) -> None:
    async with linked(autojump_clock) as it:
        it.up = trio.Event()
        await it.far.aclose()
        await it.up.wait()
        await it.say(ANSWER)
        await wait_all_tasks_blocked()
        assert [one.body for one in it.inside.heard] == [Connected(), ANSWER]


async def test_a_machine_that_slept_dials_anew_within_two_seconds(
    autojump_clock: MockClock,
) -> None:
    async with linked(autojump_clock) as it:
        it.up = trio.Event()
        it.slept_s += SLEPT_S
        await trio.sleep(3 * LOOK_S)
        assert it.log.told("link.down") == [], "a busy machine may stand still for so long"
        it.slept_s += SLEPT_S + 0.1
        with trio.fail_after(2 * LOOK_S):
            await it.up.wait()
        assert it.log.told("link.down") == ["this machine has slept"]


async def test_one_that_slept_without_a_link_waits_no_longer(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        it.good = "another"
        await it.far.aclose()
        await trio.sleep(300)  # the pauses are half a minute by now
        before = len(it.log.told("link.refused"))
        it.slept_s += 8 * 3600
        await trio.sleep(5)
        assert len(it.log.told("link.refused")) - before >= 3, "it begins with short ones anew"


async def test_who_is_refused_tries_later_and_later(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        it.good = "another"
        await it.far.aclose()
        await trio.sleep(300)
        pauses = it.log.told("link.refused", "retry_s")
        assert 10 <= len(pauses) <= 20
        assert pauses[0] < 2 < max(pauses) <= 30
        assert set(it.log.told("link.refused")) == {f"refused: {NOT_KNOWN}"}


async def test_what_a_server_may_not_say_ends_the_connection(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        for body, target in ((GraphRun(command_id="c", status="x"), "dev_1"), (ANSWER, "dev_2")):
            it.up = trio.Event()
            await it.say(body, target)
            try:
                await it.far.receive()
            except BrokenLinkError:
                await it.up.wait()
        await wait_all_tasks_blocked()
        assert [one.body for one in it.inside.heard] == [Connected()] * 2
        first, second = it.log.told("link.down")
        assert first.startswith("not an envelope")
        assert second == "a message to dev_2, but this is dev_1"


async def test_what_no_frame_can_hold_is_lost_and_the_link_stays(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        large = Sync(boot="b" * FRAME_LIMIT_BYTES, sessions=(), open=(), capacity=1, poll_us=1)
        assert it.uplink.take(Envelope(5, "relay", "server", 0, 0, large))
        [(_, fault)] = it.inside.lost
        assert fault.startswith("it can't be sent: frame of")
        assert it.uplink.take(ask(6))
        assert (await it.hear()).id == 6


async def test_what_goes_beyond_the_queue_is_lost(autojump_clock: MockClock) -> None:
    async with linked(autojump_clock) as it:
        for number in range(1, QUEUE_LIMIT + 5):
            assert it.uplink.take(ask(number))
        assert [fault for _, fault in it.inside.lost] == ["queue full"] * 4
        assert not it.uplink.idle


async def test_an_uplink_that_stops_hears_nothing_and_still_writes(
    autojump_clock: MockClock,
) -> None:
    async with linked(autojump_clock) as it:
        it.uplink.stop_reading()
        await wait_all_tasks_blocked()
        await it.say(ANSWER)
        assert it.uplink.take(ask())
        assert (await it.hear()).body == SYNC
        assert it.inside.heard == []
