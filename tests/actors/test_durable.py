"""Turns on durable stores: what is heard was committed, and conflicts leave no trace.

Messages wait while their actor is suspended, so which turns share a commit is no matter of chance.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Commit
from actors.durable import BEHIND, CONFLICT_TRIES, GROUP_TURNS, DurableWorld
from actors.errors import ActorFailedError, SimulationError
from actors.stores.failures import DamagedStoreError
from actors.stores.memory import MemoryTable
from actors.supervisor import RestartPolicy
from tests.actors.harness import S, Trace
from tests.actors.hosts import Hosted, by_actor
from tests.actors.puppet_store import (
    HERE,
    PuppetStore,
    SharedPuppetStore,
    conflict,
    failed,
    texts,
)
from tests.actors.puppets import NOTES, Note, Say, say
from transports.envelope import Envelope

SPEED = 100.0  # ten milliseconds a second


def threads(seed: int, cell: str) -> DurableWorld:
    return DurableWorld(seed, cell, clock=None, speed=SPEED)


def forgiving(seed: int, cell: str) -> DurableWorld:
    return DurableWorld(seed, cell, restart=RestartPolicy())


EVERY = pytest.mark.parametrize("host", [DurableWorld, threads], ids=["virtual", "threads"])


def keeps(context: Any, envelope: Envelope[Say]) -> None:
    """Keep the text, and tell it on."""
    text = envelope.body.text
    context.store.table(NOTES).put(text, Note(text))
    say("b", text)(context)


class Group:
    """Three or more messages that wait for `a` together, and what becomes of them."""

    def __init__(
        self,
        store: PuppetStore,
        host: Callable[[int, str], Any] = DurableWorld,
        count: int = 3,
        act: Callable[[Any, Envelope[Say]], Any] = keeps,
        **acts: Any,
    ) -> None:
        self.store, self.trace = store, Trace()
        sent = [str(number) for number in range(count)]
        self.starts = 0

        def start(context: Any) -> None:
            self.starts += 1
            context.store.table(NOTES)

        def send(context: Any, _timer: str) -> None:
            for text in sent:
                say("a", text)(context)

        self.world = Hosted(
            host,
            until_us=5_000 * S,
            a={"start": start, "say": act} | acts,
            b={},
            c={"start": lambda context: context.set_timer("send", 2 * S), "timer": send},
        )
        self.world.sim.keep("a", store)
        self.world.at(1 * S, self.world.sim.suspend, "a", "test", False)
        self.world.at(5 * S, self.world.sim.resume, "a", "test")

        self.world.at(20 * S, self.end)

    def end(self) -> None:
        """End it once `a` has nothing left to do, however slow the machine is."""
        sim = self.world.sim
        a = sim.contexts["a"]
        if a.busy or len(a.mailbox) or a.timers:
            sim.at(sim.now_us + S, self.end)
        else:
            sim.finish()

    def run(self) -> list[str]:
        """What `b` heard."""
        seen = self.world.run(0, self.trace)
        return [what for _, what in by_actor(seen, "b")]

    @property
    def kept(self) -> list[str]:
        return texts(self.store.table(NOTES))

    @property
    def undone(self) -> list[str]:
        return [record[5] for record in self.trace.kinds("undone")]


@EVERY
def test_turns_that_wait_together_share_a_commit(host: Any) -> None:
    group = Group(PuppetStore(), host)
    assert group.run() == group.kept == ["0", "1", "2"]
    assert group.store.commits == [1, 3], "the first is the start's"


def test_nothing_leaves_before_the_shared_commit() -> None:
    group = Group(PuppetStore())
    commit, heard = group.store.commit, []

    def looked_at() -> None:
        heard.append(len(by_actor(group.world.seen, "b")))
        commit()

    group.store.commit = looked_at  # type: ignore[method-assign]  # to look when it is called
    assert len(group.run()) == 3
    assert heard == [0, 0]


@EVERY
def test_a_turn_that_takes_long_by_itself_keeps_no_other_one_waiting(host: Any) -> None:
    def make(seed: int, cell: str) -> Any:
        made = host(seed, cell)
        add = made.add

        def blocking(name: str, actor: Any) -> None:
            actor.blocking = True
            add(name, actor)

        made.add = blocking
        return made

    group = Group(PuppetStore(), make)
    assert group.run() == group.kept == ["0", "1", "2"]
    assert group.store.commits == [1, 1, 1, 1]


def test_no_more_than_so_many_turns_share_a_commit() -> None:
    group = Group(PuppetStore(), count=GROUP_TURNS + 6)
    assert len(group.run()) == GROUP_TURNS + 6
    assert group.store.commits == [1, GROUP_TURNS, 6]


@EVERY
def test_a_failed_commit_undoes_all_of_its_turns(host: Any) -> None:
    group = Group(PuppetStore({2: failed()}), host)
    assert group.run() == group.kept == []
    assert group.starts == 2
    assert [record[4] for record in group.trace.kinds("start") if record[3] == "a"] == [0, 0]
    assert group.undone == [f"{Commit.FAILED.value}: the disk is full"] * 3
    turns = [n for n, kind, *_ in group.trace.records if kind == "message"]
    assert [record[4] for record in group.trace.kinds("undone")] == turns


@EVERY
def test_a_disk_that_fails_in_a_turn_takes_those_before_it_along(host: Any) -> None:
    group = Group(PuppetStore(at_turn={3: failed()}), host)  # the start, "0", and then "1"
    assert group.run() == group.kept == ["2"]
    assert group.starts == 2
    assert len(group.undone) == 2


@pytest.mark.parametrize("bad", ["0", "1", "2"])
def test_a_turn_that_raises_undoes_itself_alone(bad: str) -> None:
    def act(context: Any, envelope: Envelope[Say]) -> None:
        keeps(context, envelope)
        if envelope.body.text == bad:
            raise ValueError("a bug")

    group = Group(PuppetStore(), forgiving, act=act)
    assert group.run() == group.kept == [text for text in "012" if text != bad]
    assert group.undone == ["the turn failed: ValueError: a bug"]


def test_without_a_policy_a_turn_that_raises_ends_the_world() -> None:
    def act(context: Any, envelope: Envelope[Say]) -> None:
        keeps(context, envelope)
        assert envelope.body.text != "1", "a bug"

    group = Group(PuppetStore(), act=act)
    with pytest.raises(ActorFailedError, match="a failed on Say from c"):
        group.run()
    assert group.kept == ["0"]


def test_damage_ends_the_actor_with_its_own_words() -> None:
    group = Group(PuppetStore(at_turn={2: DamagedStoreError(HERE, "the file is damaged")}))
    with pytest.raises(DamagedStoreError, match="the file is damaged; restore a backup"):
        group.run()


def test_a_timer_joins_no_group_since_a_turn_before_it_may_take_it_back() -> None:
    def act(context: Any, envelope: Envelope[Say]) -> None:
        keeps(context, envelope)
        if envelope.body.text == "1":
            context.set_timer("late", 0)
        if envelope.body.text == "2":
            context.cancel_timer("late")

    group = Group(PuppetStore(), act=act, timer=lambda context, _: say("b", "timer")(context))
    assert group.run() == ["0", "1", "2"]
    assert group.store.commits == [1, 3]


@EVERY
def test_hooks_are_asked_turn_by_turn_and_each_commits_alone(host: Any) -> None:
    group = Group(PuppetStore(), host)
    asked: list[str] = []

    def hook(name: str, _wrote: bool) -> Commit | None:
        if name == "a":
            asked.append(name)
        return Commit.FAILED if name == "a" and len(asked) == 2 else None

    group.world.sim.add_commit_hook(hook)
    assert group.run() == group.kept == ["0", "2"]
    assert group.store.commits == [1, 1, 1, 1], "two starts and two turns"


def test_a_turn_that_dies_behind_its_commit_is_kept_and_never_heard_of() -> None:
    group = Group(PuppetStore())
    group.world.sim.add_commit_hook(lambda name, _: Commit.SILENCED if name == "a" else None)
    assert group.run() == []
    assert group.kept == ["0"]


# Turns that wait for a database are taken all in one call of a thread


def test_turns_of_a_shared_store_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(SharedPuppetStore(), threads)
    calls: list[str] = []
    away = DurableWorld._away

    async def counted(world: Any, actor: Any, call: Any) -> None:
        calls.append(actor.name)
        await away(world, actor, call)

    monkeypatch.setattr(DurableWorld, "_away", counted)
    assert group.run() == group.kept == ["0", "1", "2"]
    assert group.store.commits == [1, 3]
    assert len(calls) == 2, "the start, and all else"


@pytest.mark.parametrize("bad", ["0", "1", "2"])
def test_one_that_raises_undoes_itself_and_those_behind_it_never_were(bad: str) -> None:
    def act(context: Any, envelope: Envelope[Say]) -> None:
        keeps(context, envelope)
        if envelope.body.text == bad:
            raise ValueError("a bug")

    def host(seed: int, cell: str) -> DurableWorld:
        return DurableWorld(seed, cell, clock=None, speed=SPEED, restart=RestartPolicy())

    group = Group(SharedPuppetStore(), host, act=act)
    assert group.run() == group.kept == list("012"[: int(bad)])
    assert group.undone == [BEHIND] * (2 - int(bad)) + ["the turn failed: ValueError: a bug"]


def test_damage_ends_the_actor_there_too() -> None:
    damage = DamagedStoreError(HERE, "the file is damaged")
    for store in (SharedPuppetStore(at_turn={2: damage}), SharedPuppetStore({2: damage})):
        group = Group(store, threads)
        with pytest.raises(DamagedStoreError, match="the file is damaged; restore a backup"):
            group.run()
        assert len(group.undone) == 3


def test_a_bug_of_a_store_is_told_as_it_is() -> None:
    group = Group(SharedPuppetStore(), threads)
    commit = group.store.commit

    def buggy() -> None:
        if group.store.tried == 1:
            raise ZeroDivisionError
        commit()

    group.store.commit = buggy  # type: ignore[method-assign]  # to fail at the second commit
    with pytest.raises(ZeroDivisionError):
        group.run()
    assert len(group.undone) == 3


@pytest.mark.parametrize("bad", [2, 3, 4])
def test_a_database_that_fails_in_one_of_them_undoes_all(bad: int) -> None:
    group = Group(SharedPuppetStore(at_turn={bad: failed()}), threads)
    assert group.run() == group.kept == []
    assert len(group.undone) == 3
    assert group.starts == 2


# Conflicts


def draws(context: Any, envelope: Envelope[Say]) -> None:
    """Use all of which a second try must find nothing: chance, ids, attributes, timers, words."""
    text = envelope.body.text
    actor = context.actor
    actor.count = getattr(actor, "count", 0) + 1
    actor.lists = getattr(actor, "lists", ())
    said = f"{text} {actor.count} {context.random('x').random():.6f} {context.new_id()}"
    context.store.table(NOTES).put(text, Note(said))
    context.log("a.said", text=said)
    context.set_timer(f"t{text}", S)
    say("b", said)(context)


def told(store: PuppetStore, host: Any) -> tuple[list[str], Group]:
    group = Group(store, host, act=draws, timer=lambda context, t: say("b", t)(context))
    return group.run(), group


@EVERY
@pytest.mark.parametrize("where", ["commit", "turn"])
def test_a_conflict_leaves_no_trace(host: Any, where: str) -> None:
    heard, plain = told(SharedPuppetStore(), host)
    kinds = {"commit": {"at_commit": {2: conflict()}}, "turn": {"at_turn": {3: conflict()}}}
    again, group = told(SharedPuppetStore(**kinds[where]), host)
    assert again == heard
    assert len(heard) == 6
    assert group.store.snapshot() == plain.store.snapshot()
    assert len(group.trace.events("a.said")) == 3
    assert group.undone == []
    assert group.starts == 1
    # Behind a conflict each turn commits by itself; what was no part of it may share one.
    assert group.store.commits[1:4] == [1, 1, 1]


def test_a_conflict_at_a_start_is_tried_again() -> None:
    heard, group = told(SharedPuppetStore({1: conflict(), 2: conflict()}), DurableWorld)
    assert len(heard) == 6
    assert group.starts == 3


@pytest.mark.parametrize("conflicts", [CONFLICT_TRIES - 1, CONFLICT_TRIES])
def test_a_turn_is_tried_so_many_times_and_then_has_failed(conflicts: int) -> None:
    at = {2 + number: conflict() for number in range(conflicts)}
    group = Group(SharedPuppetStore(at))
    gave_up = conflicts == CONFLICT_TRIES
    assert group.run() == group.kept == (["1", "2"] if gave_up else ["0", "1", "2"])
    assert group.undone == ["the commit failed: another process was first"] * gave_up
    assert group.starts == 1 + gave_up


def test_an_actor_that_can_t_be_copied_is_built_anew_and_takes_its_turns_again() -> None:
    def act(context: Any, envelope: Envelope[Say]) -> None:
        context.actor.lock = threading.Lock()
        keeps(context, envelope)

    group = Group(SharedPuppetStore({3: conflict()}), act=act)
    group.world.at(1, lambda: group.world.sim.deliver_now(first()))
    assert group.run() == ["first", "0", "1", "2"]
    assert group.starts == 2


def first() -> Envelope[Say]:
    return Envelope(1 << 30, "c", "a", 0, 0, Say("first"), "")


def test_the_second_try_may_fail_too() -> None:
    group = Group(SharedPuppetStore({2: conflict(), 4: failed()}))
    assert group.run() == group.kept == ["0", "2"]
    assert len(group.undone) == 1


def test_a_shared_store_has_its_own_clock() -> None:
    stamps: list[int] = []
    group = Group(SharedPuppetStore(), act=lambda context, _: stamps.append(context.stamp_us))
    group.run()
    assert stamps == [SharedPuppetStore.clock_us] * 3


# Whatever fails

FATES = st.dictionaries(st.integers(2, 12), st.sampled_from([failed, conflict]), max_size=5)


@settings(max_examples=60, deadline=None)
@given(at_commit=FATES, at_turn=FATES, count=st.integers(1, 6))
def test_what_is_heard_is_what_was_committed(
    at_commit: dict[int, Any], at_turn: dict[int, Any], count: int
) -> None:
    store = SharedPuppetStore(
        {at: make() for at, make in at_commit.items()},
        {at: make() for at, make in at_turn.items()},
    )
    group = Group(store, count=count)
    try:
        heard = group.run()
    except SimulationError:  # a start that failed: what was sent is on its way for ever
        heard = [what for _, what in by_actor(group.world.seen, "b")]
        assert heard == group.kept[: len(heard)]
    else:
        assert heard == group.kept
        assert len(heard) + len(group.undone) >= count


@pytest.mark.parametrize("act", [keeps, lambda _context, _envelope: None])
def test_a_commit_with_nothing_to_do_takes_no_thread(act: Any) -> None:
    group = Group(PuppetStore(), threads, act=act)
    commit, away = group.store.commit, []

    def looked_at() -> None:
        away.append(threading.current_thread() is not threading.main_thread())
        commit()

    group.store.commit = looked_at  # type: ignore[method-assign]  # to look when it is called
    group.run()
    assert away == [False, act is keeps]


# Kills and starts


def test_an_actor_that_is_killed_in_a_turn_has_not_taken_it() -> None:
    gate = threading.Event()

    def act(context: Any, envelope: Envelope[Say]) -> None:
        keeps(context, envelope)
        gate.wait(10)

    group = Group(SharedPuppetStore(), threads, act=act)

    def kill() -> None:
        group.world.sim.kill("a", "test")
        group.world.sim.revive("a", "test")
        gate.set()

    group.world.at(8 * S, kill)
    assert group.run() == group.kept == []
    assert group.starts == 2
    assert group.undone == ["the actor was killed during its turn"] * 3


def test_an_actor_that_is_killed_at_its_commit_is_not_heard_but_has_committed() -> None:
    group = Group(PuppetStore(), threads)
    gate, commit = threading.Event(), group.store.commit

    def slow() -> None:
        if group.store.tried == 1:
            gate.wait(10)
        commit()

    group.store.commit = slow  # type: ignore[method-assign]  # to be killed meanwhile

    def kill() -> None:
        group.world.sim.kill("a", "test")
        gate.set()

    group.world.at(8 * S, kill)
    assert group.run() == []
    assert group.kept == ["0", "1", "2"]


def test_a_start_that_can_t_be_written_is_tried_again_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.durable.RETRY_S", (0.001,))
    group = Group(PuppetStore({1: failed(), 2: failed()}), threads)
    assert group.run() == ["0", "1", "2"]
    assert group.starts == 3
    assert [record[-1] for record in group.trace.kinds("fault")].count("unwritable") == 2


def test_where_no_time_goes_by_a_start_that_can_t_be_written_is_an_error() -> None:
    group = Group(PuppetStore({1: failed()}))
    with pytest.raises(SimulationError, match="a can't write its store at its start: the disk is"):
        group.run()


def test_a_durable_store_outlives_a_replication_and_others_do_not() -> None:
    group = Group(PuppetStore())
    assert group.run() == ["0", "1", "2"]
    assert group.run() == ["0", "1", "2"]
    assert isinstance(group.store.table(NOTES), MemoryTable)
    assert group.world.sim.contexts["a"].store is group.store
    assert group.world.sim.contexts["b"].store.snapshot() == {}
