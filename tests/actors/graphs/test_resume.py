"""Runs that wait for their owner when the engine dies: they go on, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Commit, Place
from actors.graph_engine import GraphEngine
from actors.graphs import trail
from actors.graphs.agents import LOST
from actors.graphs.approvals import APPROVALS
from actors.graphs.calls import RESTARTED
from actors.graphs.messages import AgentAnswer, AgentAsk, Decide, Decided, ToolAsk
from actors.graphs.resume import OTHER_SETTINGS, WENT_OTHERWISE
from actors.graphs.trail import BEGINNINGS, TURNS
from actors.messages import CHANNEL, FleetFinished, FleetRun, FleetStarted
from actors.stores.sqlite.store import SqliteStore
from tests.actors.graphs.fake_vm import Api, FakeVmPort, RejectedError
from tests.actors.graphs.graph_world import GraphWorld, config_of
from tests.actors.graphs.models import Fixed
from tests.actors.graphs.tool_world import ASK, Calling, Counting, Owner, wants
from tests.actors.harness import Bench, FakeContext, S, Sent, body_of, only, rows

TOOLS = ("shell", "read_file")
UNTIL_US = 2_000 * S


async def part(api: Api, _: Any) -> Any:
    return await api.agent("in the part", tools=TOOLS)


async def main(api: Api, _: Any) -> Any:
    await api.sleep(500)
    first = await api.agent("in the root", tools=TOOLS)
    return [first, await api.graph("part")]


class World(GraphWorld):
    """A run with two calls that wait and a sub-graph, on a host where the engine may die."""

    def __init__(self, owner: Owner | None = None, **how: Any) -> None:
        self.tools = how.pop("tools", None) or Counting()
        self.owner = owner or Owner({1: (20, True), 2: (20, True)})
        fields: dict[str, Any] = {
            "model": Calling(("shell",)),
            "mains": {"main": main, "part": part},
            "permissions": ASK,
            **how,
        }
        super().__init__(guarded=True, tools=self.tools, owner=self.owner, **fields)
        self.at(UNTIL_US, self.sim.finish)

    def dies(self, at_us: int, for_us: int = 5 * S) -> World:
        """Let the engine die at a time, and start again."""
        sim = self.guarded
        self.at(at_us, lambda: sim.kill("engine", "test"))
        self.at(at_us + for_us, lambda: sim.revive("engine", "test"))
        return self

    def complaints(self) -> list[str]:
        """What is not as it must be once the run is over."""
        assert isinstance(self.port, FakeVmPort)
        made = [ask.call for ask in self.tools.made]
        left = {
            spec.name: len(rows(self.sim, "engine", spec.name))
            for spec in (APPROVALS, BEGINNINGS, TURNS)
            if spec.name in self.sim.contexts["engine"].store.tables
        }
        holds = {
            f"{len(self.desk.ends)} ends": len(self.desk.ends) == 1,
            f"{made} were made": len(made) == len(set(made)),
            f"{self.port.left_open} VMs are open": not self.port.left_open,
            f"{left} is left": not any(left.values()),
            "slots are missing": self.engine.slots.free == 200,
            "fleets are left": not (self.engine.fleets or self.engine.trails),
        }
        return [complaint for complaint, true in holds.items() if not true]


def test_without_a_death_the_run_takes_its_time() -> None:
    world = World()
    world.run()
    assert world.end.result == [["shell was called"], ["shell was called"]]
    assert world.ended_s == 0.5 + 2 * (1 + 20 + 1 + 1)
    assert world.complaints() == []


def test_a_run_that_waits_goes_on_after_a_restart() -> None:
    world = World().dies(5 * S)
    world.run()
    assert (world.end.status, world.end.result) == ("completed", [["shell was called"]] * 2)
    assert world.end.total_tokens == 400
    assert world.ended_s == 0.5 + 2 * (1 + 20 + 1 + 1)
    assert world.events("fleet.resumed") == [{"run": "r1", "turns": 3, "waiting": 1}]
    assert len(world.events("engine.started")) == 1
    assert len(world.events("agent.started")) == 2
    assert world.complaints() == []


def test_it_may_be_restarted_again_and_again() -> None:
    world = World(Owner({1: (100, True), 2: (100, True)}))
    for at_s in (5, 15, 30, 60, 90, 120, 150, 190):
        world.dies(at_s * S)
    world.run()
    assert world.end.result == [["shell was called"]] * 2
    assert len(world.events("fleet.resumed")) == 8
    assert world.complaints() == []


def test_a_decision_that_was_made_before_a_restart_counts_after_it() -> None:
    """The engine dies between the decision and the turn that would have acted on it."""
    world = World()
    verdicts = iter([Commit.SILENCED])

    def hook(actor: str, _wrote: bool) -> Commit | None:
        row = [one for one in rows(world.sim, "engine", APPROVALS.name) if one.call == 1]
        decided = bool(row) and row[0].decision is not None
        return next(verdicts, None) if actor == "engine" and decided else None

    world.guarded.add_commit_hook(hook)
    world.at(60 * S, lambda: world.guarded.revive("engine", "test"))
    world.run()
    assert world.end.result == [["shell was called"]] * 2
    assert world.events("approval.decided")[0]["by"] == "owner"
    assert world.complaints() == []


def test_the_owner_may_decide_after_a_restart() -> None:
    world = World(Owner({1: (300, False), 2: (20, True)})).dies(5 * S, 200 * S)
    world.run()
    assert world.end.result == [["denied: the owner did not allow this call"], ["shell was called"]]
    assert [ask.call for ask in world.tools.made] == [2]


def test_what_was_not_decided_while_the_engine_was_down_is_denied_at_once() -> None:
    world = World(Owner({2: (20, True)}), approval_timeout="60s").dies(5 * S, 200 * S)
    world.run()
    denied = world.events("approval.decided")[0]
    assert (denied["by"], denied["waited_us"]) == ("timeout", 205 * S - 1_500_000)
    assert world.end.result[0] == ["denied: nobody allowed this call within 60 s"]
    assert world.complaints() == []


def test_a_deadline_that_passed_meanwhile_ends_the_run() -> None:
    world = World(deadline="60s").dies(5 * S, 200 * S)
    world.run()
    assert (world.end.status, world.ended_s) == ("failed", 205)
    assert world.complaints() == []


async def three(api: Api, _: Any) -> Any:
    """One agent waits for its owner, one has a call made, one works; and the script sleeps."""
    sleep = api.sleep(100_000)
    found = await api.settled([api.agent(name, tools=TOOLS) for name in ("ask", "call", "work")])
    await sleep
    return [
        [one.code, str(one), one.failure.info] if isinstance(one, RejectedError) else one
        for one in found
    ]


def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
    if ask.prompt == "work":
        return 60, {"value": "done"}
    if not ask.rounds:
        return 1, wants("shell" if ask.prompt == "ask" else "read_file")
    return 1, {"value": ask.rounds[0].results[0].text}


def test_what_was_under_way_is_unknown_and_not_done_again() -> None:
    tools = Counting(lambda ask: None if ask.tool == "read_file" else {"text": "made"})
    model = Fixed(plan)
    world = World(model=model, mains={"main": three}, tools=tools).dies(11 * S)
    world.run()
    ask, call, work = world.end.result
    assert (ask, call) == ("made", RESTARTED)
    assert work == ["agent_failed", LOST, {"retryable": True}]
    assert world.ended_s == 100, "the sleep goes on by the wall clock"
    assert [one.tool for one in tools.made] == ["read_file", "shell"]
    assert tools.cancelled == [2]
    (again,) = [ask for ask in model.asks if ask.prompt == "call" and ask.rounds]
    assert again.timeout_us == 599 * S, "its time goes on where it was last seen"
    # The first agents' rounds, the one that was stopped as far as it came, two last answers.
    assert world.end.total_tokens == 100 + 100 + 27 + 100 + 100
    assert world.complaints() == []


def test_a_cancel_that_came_before_a_restart_is_not_forgotten() -> None:
    world = World(cancels={"r1": 5 * S})
    verdicts = iter([Commit.SILENCED])

    def hook(actor: str, _wrote: bool) -> Commit | None:
        stored = rows(world.sim, "engine", BEGINNINGS.name)
        cancelled = bool(stored) and stored[0].cancelled
        return next(verdicts, None) if actor == "engine" and cancelled else None

    world.guarded.add_commit_hook(hook)
    world.at(60 * S, lambda: world.guarded.revive("engine", "test"))
    world.run()
    assert world.end.status == "cancelled"
    assert next(verdicts, None) is None, "the engine was killed"
    assert len(world.events("fleet.resumed")) == 1
    assert world.complaints() == []


@pytest.mark.parametrize("verdict", [Commit.FAILED, Commit.CRASHED, Commit.SILENCED, Commit.KILLED])
def test_the_engine_may_die_at_any_commit(verdict: Commit) -> None:
    """It ends once, nothing is made twice, and what waited at the time goes on."""
    resumed = 0
    for failing in range(40):
        world = World()
        turns = iter(range(1_000))

        def hook(actor: str, _wrote: bool, turns: Any = turns, failing: int = failing) -> Any:
            return verdict if actor == "engine" and next(turns) == failing else None

        world.guarded.add_commit_hook(hook)
        for at_s in range(1, 100, 3):
            world.at(at_s * S, partial(world.guarded.revive, "engine", "test"))
        world.run()
        if world.desk.ends or world.events("engine.started"):
            assert world.complaints() == [], failing
            assert world.end.status in ("completed", "interrupted"), failing
        resumed += len(world.events("fleet.resumed"))
    assert resumed >= 4, "while either call waits, and when its decision is on disk"


@pytest.mark.parametrize("who", ["model", "tools", "approver"])
def test_those_beside_the_engine_may_die_at_any_commit(who: str) -> None:
    """What they don't answer is unknown or denied, never made again."""
    for failing in range(12):
        world = World(approval_timeout="100s", tool_timeout="30s", agent_timeout="200s")
        turns = iter(range(1_000))

        def hook(actor: str, _wrote: bool, turns: Any = turns, failing: int = failing) -> Any:
            return Commit.CRASHED if actor == who and next(turns) == failing else None

        world.guarded.add_commit_hook(hook)
        world.run()
        assert world.complaints() == [], failing
        assert world.end.status in ("completed", "failed"), failing


# Where a run can't go on


def interrupted(world: GraphWorld, why: str) -> None:
    assert world.end.status == "interrupted"
    assert world.end.error == f"the engine stopped while the Graph ran{why}"
    assert world.events("fleet.resumed") == []


def test_a_run_that_waits_for_nobody_is_interrupted_as_ever() -> None:
    world = World().dies(1 * S)
    world.run()
    interrupted(world, "")
    assert world.complaints() == []


def test_no_run_goes_on_under_other_settings() -> None:
    world = World()
    other = GraphEngine(world.config_with(permissions={"*": {"shell": "deny"}}), world.engine.place)
    world.at(6 * S, lambda: setattr(world.engine, "settings", other.settings))
    world.dies(5 * S).run()
    interrupted(world, f", and can't go on: {OTHER_SETTINGS}")
    assert world.events("fleet.unresumable") == [{"run": "r1", "why": OTHER_SETTINGS}]
    assert world.tools.made == []
    assert world.complaints() == []


def test_a_run_that_has_ended_does_not_go_on_while_its_agents_stop() -> None:
    """A script that fails while a call waits and an agent works: both are over with it."""

    async def fails(api: Api, _: Any) -> Any:
        api.agent("ask", tools=TOOLS)
        api.agent("work")
        await api.sleep(5_000)
        raise RuntimeError("enough")

    world = World(model=Fixed(plan), mains={"main": fails})
    sim = world.guarded
    killed: list[int] = []

    def hook(actor: str, _wrote: bool) -> Commit | None:
        decided = [one.decision for one in rows(sim, "engine", APPROVALS.name)]
        if actor == "engine" and any(decided) and not killed:
            killed.append(sim.now_us)
            return Commit.SILENCED
        return None

    sim.add_commit_hook(hook)
    world.at(60 * S, lambda: sim.revive("engine", "test"))
    world.run()
    assert killed == [5 * S]
    interrupted(world, "")
    assert world.complaints() == []


def other_main() -> Callable[..., Any]:
    async def changed(api: Api, _: Any) -> Any:
        await api.sleep(500)
        return await api.agent("something else", tools=TOOLS)

    return changed


def broken_main() -> Callable[..., Any]:
    async def changed(_api: Api, _: Any) -> Any:
        raise RuntimeError("not what it was")

    return changed


@pytest.mark.parametrize("changed", [other_main, broken_main])
def test_scripts_that_do_not_do_the_same_again_are_noticed(changed: Any) -> None:
    world = World()
    port = world.port
    assert isinstance(port, FakeVmPort)
    world.at(6 * S, lambda: setattr(port, "mains", {"main": changed(), "part": part}))
    world.dies(5 * S).run()
    interrupted(world, f", and can't go on: {WENT_OTHERWISE}")
    assert world.complaints() == []


def test_a_host_that_can_run_scripts_no_more_is_no_reason_to_fail() -> None:
    world = World()
    world.at(6 * S, lambda: setattr(world.sim, "vm", None))
    world.dies(5 * S).run()
    interrupted(world, f", and can't go on: {WENT_OTHERWISE}")


@pytest.mark.parametrize(("limit", "value"), [("ROWS_LIMIT", 2), ("BYTES_LIMIT", 600)])
def test_a_run_whose_turns_are_too_many_says_that_it_can_not_go_on(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(trail, limit, value)
    world = World().dies(5 * S)
    world.run()
    interrupted(world, "")
    assert len(world.events("fleet.unresumable")) == 1
    assert world.complaints() == []
    assert World().run().end.status == "completed", "without a death it makes no difference"


# On a real store, with real scripts

SCRIPT = """
await sleep(500);
const dice = [Math.random(), Date.now() % 1000];
const first = await agent(`first ${dice}`, { tools: ["shell"] });
return [first, dice, Math.random(), await graph("part")];
"""
PART_SCRIPT = 'return await agent(`second ${Math.random()}`, { tools: ["shell"] })'


def test_real_scripts_go_on_with_their_own_chance_and_time() -> None:
    pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")
    from actors.graphs.script import ScriptVmPort

    def world(*deaths_s: int) -> World:
        files = {"main.js": SCRIPT, "part.js": PART_SCRIPT}
        made = World(port=ScriptVmPort(), files=files, mains=None)
        for at_s in deaths_s:
            made.dies(at_s * S)
        made.run()
        return made

    straight, killed = world(), world(5, 12, 35)
    assert len(killed.events("fleet.resumed")) == 3
    assert killed.end == straight.end
    assert killed.end.status == "completed"


class OnDisk(Bench):
    """An engine on a file that outlives it."""

    def __init__(self, path: Path, now_us: int = 0) -> None:
        port = FakeVmPort(main=main, part=part)
        place = Place(name="engine", files=port.files, approver="terminal")
        self.file = SqliteStore(path)
        self.actor = GraphEngine(config_of(permissions=ASK), place)
        self.context = FakeContext("engine")
        self.context.store = self.file  # type: ignore[assignment]  # one that is on disk
        self.context.vm = port
        self.context.now_us = now_us
        self.asked = 1 << 40
        self.start()

    def take(self) -> list[Sent]:
        self.file.commit()
        return super().take()


def test_a_run_goes_on_from_a_file_on_disk(tmp_path: Path) -> None:
    first = OnDisk(tmp_path / "engine.sqlite")
    run = FleetRun(channel=CHANNEL + "r1", session="s", slug="demo", arguments={"a": [1]})
    execution = body_of(first.deliver("relay", run), FleetStarted).execution_id
    turn = "turn:" + execution
    first.fire(turn)
    first.fire(f"sleep:{execution}:1")
    question = only(first.fire(turn), AgentAsk, "model")
    answer = AgentAnswer(run="r1", agent=2, **wants("shell", arguments={"command": "ls"}))
    first.answer(question, answer)
    first.fire(turn)
    first.file.close()

    second = OnDisk(tmp_path / "engine.sqlite", 60 * S)
    assert second.events("fleet.resumed") == [{"run": "r1", "turns": 3, "waiting": 1}]
    (told,) = [one.body for one in second.started if one.target == "terminal"]
    assert [one.left_us for one in told.waiting] == [840 * S + 500_000]
    decide = Decide(run="r1", call=1, allow=True)
    assert body_of(second.deliver("owner", decide), Decided).known
    second.file.close()  # before the turn that takes it

    third = OnDisk(tmp_path / "engine.sqlite", 90 * S)
    made = [one.body for one in third.fire(turn) if isinstance(one.body, ToolAsk)]
    assert [(one.call, one.arguments) for one in made] == [(1, {"command": "ls"})]
    third.file.close()

    fourth = OnDisk(tmp_path / "engine.sqlite", 95 * S)
    (ended,) = [one.body for one in fourth.started if isinstance(one.body, FleetFinished)]
    assert ended.completion.status == "interrupted", "it waits for nobody any more"
    fourth.file.close()


# Anything at all

OUTCOMES = st.sampled_from([("shell",), ("read_file",), ("http_get",), ("shell", "shell"), ()])


@settings(max_examples=120, deadline=None)
@given(
    rounds=st.lists(OUTCOMES, max_size=3),
    decisions=st.dictionaries(
        st.integers(1, 12), st.tuples(st.sampled_from([0, 1, 5, 30, 70, 200]), st.booleans())
    ),
    deaths=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 90)), max_size=4),
    says=st.integers(1, 2),
    slots=st.integers(1, 3),
    cancel_s=st.none() | st.integers(1, 150),
)
def test_no_denied_call_is_made_and_none_twice(
    rounds: list[tuple[str, ...]],
    decisions: dict[int, tuple[float, bool]],
    deaths: list[tuple[int, int]],
    says: int,
    slots: int,
    cancel_s: int | None,
) -> None:
    async def wide(api: Api, _: Any) -> Any:
        agents = [api.agent(str(n), tools=(*TOOLS, "http_get")) for n in range(2)]
        found = await api.settled([*agents, api.graph("part")])
        return len(found)

    world = World(
        Owner(decisions, says),
        model=Calling(*rounds),
        mains={"main": wide, "part": part},
        approval_timeout="60s",
        max_concurrency=slots,
        cancels={} if cancel_s is None else {"r1": cancel_s * S},
    )
    for at_s, for_s in deaths:
        world.dies(at_s * S, for_s * S)
    world.at(400 * S, lambda: world.guarded.revive("engine", "test"))
    world.run()
    assert world.complaints() == []
    asked = {one["call"]: one["permission"] for one in world.events("tool.asked")}
    allowed = {one["call"] for one in world.events("approval.decided") if one["allow"]}
    for ask in world.tools.made:
        permission = asked[ask.call]
        assert permission == "allow" or (permission == "ask" and ask.call in allowed)
        if permission == "ask":
            assert decisions[ask.call][1], "the owner said so"
