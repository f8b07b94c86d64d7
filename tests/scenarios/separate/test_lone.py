"""One actor alone in its process: what it reports of each turn, and how its clocks go."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.actor import Commit, Context, Handler, TableSpec, Unanswered
from actors.errors import ActorFailedError, SimulationError, UnknownActorError
from actors.messages import Accepted, Commands, Sync
from actors.stores.sqlite import StoreFailedError
from scenarios.separate.lone import ACTOR_SERIALS, LoneWorld
from scenarios.separate.report import (
    Asking,
    Begin,
    Delivery,
    Done,
    Meddle,
    Report,
    Said,
    State,
    Struck,
    Tell,
    Verdict,
    Writable,
    pieces,
    receive_report,
    state_of,
)
from scenarios.separate.store import DurableStore
from tests.scenarios.separate.jobs import job_for
from transports.codec import FrameError
from transports.connection import BrokenLinkError
from transports.envelope import SERIAL_BITS, Envelope
from transports.wire import WireCodec

COMMANDS = TableSpec("commands", Accepted)
CODEC = WireCodec([Sync, Commands, Accepted])
SPEED = 1000.0  # a second of the world is a millisecond
QUESTION = Sync(boot="b", sessions=(), open=(), capacity=0, poll_us=1)


class Scripted:
    """An actor whose turns do what a test gives it to do."""

    def __init__(self, start: Callable[[Context], Any], **turns: Callable[..., Any]) -> None:
        self.start, self.turns = start, turns
        self.handlers: Mapping[type[Any], Handler] = {
            Accepted: self.on_accepted,
            Commands: self.on_accepted,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        self.start(context)

    def on_timer(self, context: Context, timer: str) -> None:
        self.turns["timer"](context)

    def on_accepted(self, context: Context, envelope: Envelope[Any]) -> Any:
        return self.turns["message"](context, envelope)

    def on_unanswered(self, context: Context, envelope: Envelope[Any]) -> None:
        self.turns["unanswered"](context, envelope)


class Line:
    """The connection of the process: orders come from a test, and reports go to it."""

    def __init__(self) -> None:
        self._orders, self._next_order = trio.open_memory_channel[bytes](1000)
        self._told, self.told = trio.open_memory_channel[bytes](1000)

    async def receive(self) -> bytes:
        try:
            return await self._next_order.receive()
        except trio.EndOfChannel:
            raise BrokenLinkError("over") from None

    async def send(self, frame: bytes) -> None:
        await self._told.send(frame)

    def order(self, order: Any) -> None:
        for frame in pieces(order):
            self._orders.send_nowait(frame)

    def deliver(self, number: int, body: Any, reply_to: int = 0) -> None:
        frame = CODEC.encode(Envelope(number, "server", "relay", reply_to, 0, body))
        self.order(Delivery("server", frame))

    async def report(self) -> Any:
        class Told:
            receive = staticmethod(self.told.receive)

        with trio.fail_after(5):
            return await receive_report(Told())

    def hang_up(self) -> None:
        self._orders.close()


def play(
    folder: Path, actor: Scripted, act: Callable[[Line], Awaitable[None]], **job: Any
) -> LoneWorld:
    """Let the actor live while a test acts; raise what its turns raise."""
    since_s = job.pop("since_s", 0.0)
    store = DurableStore(folder / "store")
    world = LoneWorld(job_for("relay", speed=SPEED, **job), store)
    world.take(actor)

    async def converse() -> None:
        line = Line()
        line.order(Begin(time.monotonic() - since_s))

        async def acts() -> None:
            await act(line)
            line.hang_up()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(acts)
            await world.play(line)  # type: ignore[arg-type]  # what is used of a connection

    try:
        with pytest.raises(BrokenLinkError):
            world.live(converse)
    finally:
        store.close()
    return world


def nothing(_context: Context, *_: Any) -> None:
    pass


def test_a_start_is_reported_with_what_it_says_and_sends_in_that_order(tmp_path: Path) -> None:
    def start(context: Context) -> None:
        context.log("first", run="r")
        context.send("server", QUESTION)
        context.done()

    async def act(line: Line) -> None:
        told = await line.report()
        assert (told.number, told.input, told.what, told.undone) == (1, "start", 0, "")
        said, sent, done = told.effects
        assert said == Said("first", {"run": "r"})
        envelope = CODEC.decode(sent.frame, "relay")
        assert (sent.kind, envelope.target, envelope.body) == ("Sync", "server", QUESTION)
        assert envelope.id == 1 + 3 * ACTOR_SERIALS
        assert done == Done()

    play(tmp_path, Scripted(start), act, index=3)


def test_a_message_a_late_answer_a_timer_and_a_time_out_each_have_their_report(
    tmp_path: Path,
) -> None:
    asked: list[int] = []

    def start(context: Context) -> None:
        asked.append(context.request("server", QUESTION, 20_000_000))
        context.set_timer("soon", 1_000_000)

    def message(_context: Context, envelope: Envelope[Any]) -> Any:
        return Accepted(command_id="a") if not envelope.reply_to else None

    async def act(line: Line) -> None:
        assert (await line.report()).number == 1
        timer = await line.report()
        assert (timer.input, timer.what, timer.cause) == ("timer", "soon", 1)
        out = await line.report()
        assert (out.input, out.what, out.cause) == ("unanswered", asked[0], 1)
        line.deliver(7, Commands(commands=()), reply_to=asked[0])
        late = await line.report()
        assert (late.input, late.what, late.effects) == ("late", 7, [])
        line.deliver(8, Accepted(command_id="x"))
        told = await line.report()
        assert (told.number, told.input, told.what) == (5, "message", 8)
        [answer] = told.effects
        assert CODEC.decode(answer.frame, "relay").reply_to == 8

    turns = {"timer": nothing, "unanswered": nothing, "message": message}
    play(tmp_path, Scripted(start, **turns), act)


@pytest.mark.parametrize("heard", [True, False])
def test_what_is_committed_outlives_the_process_and_chance_goes_on(
    tmp_path: Path, heard: bool
) -> None:
    seen: list[Any] = []
    told: list[Report] = []

    def start(context: Context) -> None:
        table, stream = context.store.table(COMMANDS), context.random("x")
        draws = [stream.random() for _ in range(3)]
        seen.append((table.get("k"), context.new_id(), draws, context.now_us))
        table.put("k", Accepted(command_id="kept"))
        context.send("server", QUESTION)

    async def act(line: Line) -> None:
        told.append(await line.report())

    play(tmp_path, Scripted(start), act, since_s=1000.0)
    assert (told[0].ids, told[0].draws) == (1, {"x": 3})
    used = {"ids": told[0].ids, "draws": told[0].draws} if heard else {}
    play(tmp_path, Scripted(start), act, boot=1, since_s=1000.0, **used)
    (first, one_id, one_draws, _), (second, other_id, other_draws, now_us) = seen
    assert (first, second) == (None, Accepted(command_id="kept"))
    assert [one.what for one in told] == [0, 1]
    numbers = [CODEC.decode(one.effects[0].frame, "relay").id >> SERIAL_BITS for one in told]  # type: ignore[union-attr]  # a message
    assert numbers == [0, 1]
    # How many ids it made its store knows, if nobody else does.
    assert int(other_id[-8:], 16) - int(one_id[-8:], 16) == 1
    assert (one_draws == other_draws) is not heard
    assert now_us < 500_000_000_000  # its monotonic clock begins anew, half way at the latest


def test_a_failed_commit_undoes_its_turn_and_the_same_boot_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[Any] = []

    def start(context: Context) -> None:
        starts.append(context.store.table(COMMANDS).get("k"))

    def message(context: Context, _envelope: Envelope[Any]) -> Any:
        context.store.table(COMMANDS).put("k", Accepted(command_id="lost"))
        context.log("never")
        return Accepted(command_id="never")

    commit = DurableStore.commit

    def fail_once(store: DurableStore) -> None:
        if store.table(COMMANDS).get("k") is not None:
            store.roll_back()
            raise StoreFailedError(store.path, "the disk is full")
        commit(store)

    monkeypatch.setattr(DurableStore, "commit", fail_once)

    async def act(line: Line) -> None:
        await line.report()
        line.deliver(8, Accepted(command_id="x"))
        undone, again = await line.report(), await line.report()
        assert (undone.input, undone.what, undone.effects) == ("message", 8, [])
        assert undone.undone == f"{Commit.FAILED.value}: the disk is full"
        assert (again.input, again.what, again.number) == ("start", 0, 3)

    play(tmp_path, Scripted(start, message=message), act)
    assert starts == [None, None]


def test_a_store_that_can_t_be_written_at_a_start_ends_the_replication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(store: DurableStore) -> None:
        raise StoreFailedError(store.path, "the disk is full")

    async def act(_line: Line) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(DurableStore, "commit", fail)
    words = "relay can't write its store at its start: the disk is full"
    with pytest.raises(SimulationError, match=words):
        play(tmp_path, Scripted(nothing), act)


def test_frames_that_belong_together_have_no_others_between_them(tmp_path: Path) -> None:
    large = "x" * (3 << 20)

    def start(context: Context) -> None:
        context.log("large", text=large)

    async def act(line: Line) -> None:
        line.order(Tell())
        told = [await line.report() for _ in range(2)]
        assert [type(one) for one in told] == [Report, State]

    class Slow(Line):
        async def send(self, frame: bytes) -> None:
            await trio.sleep(0.002)
            await super().send(frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.Line", Slow)
        play(tmp_path, Scripted(start), act)


def test_a_turn_that_asks_commits_or_is_taken_back_as_it_is_told(tmp_path: Path) -> None:
    seen: list[Any] = []

    def start(context: Context) -> None:
        seen.append((context.store.table(COMMANDS).get("k"), context.store.writable))

    def message(context: Context, envelope: Envelope[Any]) -> Any:
        if envelope.body.command_id != "only reads":
            context.store.table(COMMANDS).put("k", envelope.body)
        return Accepted(command_id="answer")

    async def act(line: Line) -> None:
        assert (await line.report()).what == 0  # a start commits unasked
        for number, command, wrote in ((7, "only reads", False), (8, "kept", True)):
            line.deliver(number, Accepted(command_id=command))
            asking = await line.report()
            assert isinstance(asking, Asking)
            assert (asking.turn.what, asking.turn.effects, asking.wrote) == (number, [], wrote)
            line.order(Verdict())
            assert len((await line.report()).effects) == 1
        line.deliver(9, Accepted(command_id="lost"))
        await line.report()
        line.order(Writable(False))
        line.order(Verdict("it is said so"))
        undone, again = await line.report(), await line.report()
        assert (undone.what, undone.undone, undone.effects) == (9, "it is said so", [])
        assert (again.input, again.what) == ("start", 0)

    play(tmp_path, Scripted(start, message=message), act, asks=True)
    assert seen == [(None, True), (Accepted(command_id="kept"), False)]


def test_its_state_is_told_once_it_takes_no_more_turns(tmp_path: Path) -> None:
    def start(context: Context) -> None:
        context.store.table(COMMANDS).put("k", Accepted(command_id="c"))
        context.set_timer("later", 3_600_000_000)
        context.set_timer("soon", 1_000_000_000)

    async def act(line: Line) -> None:
        await line.report()
        line.order(Tell())
        state = await line.report()
        assert isinstance(state, State)
        tables, timers = state_of(state)
        assert tables == {"commands": {"k": Accepted(command_id="c")}}
        assert timers["later"] - timers["soon"] == 2_600_000_000
        line.deliver(8, Accepted(command_id="x"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.WouldBlock):
            line.told.receive_nowait()

    play(tmp_path, Scripted(start), act)


def test_a_look_tells_what_a_start_would_find_and_changes_nothing(tmp_path: Path) -> None:
    def start(context: Context) -> None:
        table = context.store.table(COMMANDS)
        table.put("old" if table.get("old") is None else "new", Accepted(command_id="c"))
        context.log("started")

    async def live(line: Line) -> None:
        await line.report()

    async def look(line: Line) -> None:
        line.order(Begin(time.monotonic(), look=True))
        tables, timers = state_of(await line.report())
        assert set(tables["commands"]) == {"old"}
        assert timers == {}

    play(tmp_path, Scripted(start), live)
    store = DurableStore(tmp_path / "store")
    world = LoneWorld(job_for("relay", speed=SPEED, boot=1), store)
    world.take(Scripted(start))

    async def converse() -> None:
        line = Line()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.play, line)  # type: ignore[arg-type]  # what is used of a connection
            await look(line)
            nursery.cancel_scope.cancel()

    world.live(converse)
    store.close()


def test_while_its_clock_stood_still_nothing_came_due(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def start(context: Context) -> None:
        seen.append((context.now_us, context.stamp_us))
        context.set_timer("soon", 20_000_000)  # 20 ms of real time
        world[0].naps += [30_000_000, 10_000_000]  # as the signal's handler does

    def timer(context: Context) -> None:
        seen.append((context.now_us, context.stamp_us))

    async def act(line: Line) -> None:
        await line.report()
        assert (await line.report()).input == "timer"

    world: list[LoneWorld] = []
    make = LoneWorld.take

    def take(self: LoneWorld, actor: Any) -> None:
        world.append(self)
        make(self, actor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LoneWorld, "take", take)
        play(tmp_path, Scripted(start, timer=timer), act)
    (now_us, stamp_us), (later_us, later_stamp_us) = seen
    assert later_us - now_us >= 20_000_000
    assert later_stamp_us - stamp_us >= 60_000_000
    assert (later_stamp_us - stamp_us) - (later_us - now_us) == 40_000_000


def test_a_clock_that_is_meddled_with_is_told_of_when_it_was(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def start(context: Context) -> None:
        seen.append((context.now_us, context.stamp_us))

    async def act(line: Line) -> None:
        await line.report()
        line.order(Meddle("step", by_us=-60_000_000))
        line.order(Meddle("jump", by_us=7_200_000_000))
        line.order(Meddle("drift", rate_ppm=500_000))
        told = [await line.report() for _ in range(3)]
        assert [type(one) for one in told] == [Struck] * 3
        assert [one.act for one in told] == ["clock -1m", "clock +2h", "rate 0.5"]
        assert told[0].jumped_us == told[2].jumped_us == 0
        assert told[1].jumped_us > 7_000_000_000
        assert [one.t for one in told] == sorted(one.t for one in told)

    play(tmp_path, Scripted(start), act)


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        (lambda _context: 1 / 0, ActorFailedError, "relay failed on its start"),
        (
            lambda context: context.send("nobody", QUESTION),
            UnknownActorError,
            "relay sent to 'nobody' on its start, but there are only server, relay, engine",
        ),
        (
            lambda context: context.log("odd", value=object()),
            SimulationError,
            "relay said odd with a value that can't leave its process",
        ),
        (
            lambda context: context.send("server", Accepted(command_id="\ud800")),
            ActorFailedError,
            "relay failed on its Accepted to server",
        ),
    ],
)
def test_what_a_turn_does_wrong_is_raised(
    tmp_path: Path, start: Any, error: type[Exception], words: str
) -> None:
    async def act(_line: Line) -> None:
        await trio.sleep_forever()

    with pytest.raises(error) as raised:
        play(tmp_path, Scripted(start), act)
    assert type(raised.value) is error
    assert words in str(raised.value)


def test_an_order_before_the_one_to_begin_is_refused(tmp_path: Path) -> None:
    store = DurableStore(tmp_path / "store")
    world = LoneWorld(job_for("relay"), store)
    world.take(Scripted(nothing))

    async def converse() -> None:
        line = Line()
        line.order(Tell())
        await world.play(line)  # type: ignore[arg-type]  # what is used of a connection

    with pytest.raises(FrameError, match="before the one to begin"):
        world.live(converse)
    store.close()
