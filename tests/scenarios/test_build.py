"""From a scenario to actors, links, faults and an end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.errors import LimitReachedError, SimulationError, WouldSleepForeverError
from logs.write import SectionWriter
from scenarios.build import places_of, session_id
from tests.scenarios.loading import build, load, rows
from tests.scenarios.test_metrics import REPLICATION, WORLD


def records(folder: Path, text: str) -> list[dict[str, Any]]:
    """Return what one replication logs."""
    cell, out = build(folder, text), io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    cell.simulator.run(0, writer)
    writer.close("ended", cell.simulator.now_us)
    return [msgspec.json.decode(line) for line in out.getvalue().splitlines()]


def arrivals(folder: Path, text: str, kind: str) -> list[tuple[str, float]]:
    """Return who got each message of a type, and when in seconds."""
    return [
        (one["actor"], one["t"] / 1e6)
        for one in records(folder, text)
        if one.get("envelope", {}).get("body", {}).get("type") == kind and one["kind"] == "message"
    ]


def ended_s(folder: Path, text: str) -> float:
    cell = build(folder, text)
    cell.simulator.run(0)
    return cell.simulator.now_us / 1e6


def error_of(folder: Path, text: str) -> SimulationError:
    with pytest.raises(SimulationError) as error:
        build(folder, text).simulator.run(0)
    return error.value


# Who stands where

MANY = """
[relay]
count = 3
[[agent]]
count = 3
[[agent]]
name = "eve"
session = "b"
[[session]]
name = "a"
relay = "relay-2"
[[session]]
name = "b"
relay = "relay-3"
[[session]]
name = "c"
relay = "relay-2"
project = "home"
shared = false
[[step]]
at = "5s"
do = "share"
session = "c"
[[step]]
at = "9s"
do = "rename"
"""


def test_places_of_several_relays_and_agents(tmp_path: Path) -> None:
    places = places_of(load(tmp_path, MANY).scenarios[0])
    assert {name: place.relay for name, place in places.items() if name[0] in "reo"} == {
        **{f"{kind}-{n}": f"relay-{n}" for kind in ("relay", "engine", "owner") for n in (1, 2, 3)},
        "eve": "relay-1",
    }
    assert places["relay-2"].engine == "engine-2"
    sessions = {name: [one.name for one in place.sessions] for name, place in places.items()}
    assert sessions["server"] == sessions["agent-1"] == ["a", "b", "c"]
    assert sessions["eve"] == ["b"]
    assert [sessions[f"relay-{n}"] for n in (1, 2, 3)] == [[], ["a", "c"], ["b"]]
    steps = {name: [one.act for one in place.steps] for name, place in places.items()}
    assert steps["owner-2"] == ["share", "rename"], "a step without a session is of the first"
    assert steps["owner-1"] == steps["owner-3"] == []
    [c] = [one for one in places["server"].sessions if one.name == "c"]
    assert (c.project, c.relay, c.shared, c.id) == ("home", "relay-2", False, session_id("c"))


def test_owners_without_steps_are_left_out_but_not_ones_own(tmp_path: Path) -> None:
    assert [name for name in build(tmp_path, MANY).simulator.contexts if "owner" in name] == [
        "owner-2"
    ]
    (tmp_path / "own.py").write_text("from pullcord import Owner\nclass Own(Owner): ...\n")
    cell = build(tmp_path, '[owner]\nuse = "own.py:Own"\n')
    assert "owner" in cell.simulator.contexts


def test_three_relays_and_four_agents_run_all_their_runs(tmp_path: Path) -> None:
    text = """
    [relay]
    count = 3
    [agent]
    count = 4
    runs = 6
    [engine]
    duration = "10s"
    [metrics.ended]
    count = "run.terminal[status=completed]"
    [metrics.by_relay]
    count = "run.started"
    per = "replication"
    """
    text += "".join(
        f'[metrics.r{n}]\ncount = "run.started[device=relay-{n}]"\nper = "replication"\n'
        for n in (1, 2, 3)
    )
    found = rows(tmp_path, text)
    assert found["ended"] == [1] * 24
    assert [found[f"r{n}"] for n in (1, 2, 3)] == [[8], [8], [8]]


def test_an_agent_with_a_session_runs_it_alone(tmp_path: Path) -> None:
    text = '[[session]]\nname = "a"\n[[session]]\nname = "b"\n[workload]\nruns = 4\nsession = "b"\n'
    text += "".join(
        f'[metrics.{name}]\ncount = "run.queued[session={session_id(name)}]"\nper = "replication"\n'
        for name in "ab"
    )
    assert rows(tmp_path, text) == {"a": [0], "b": [4]}


# Ways

LINK = '[[link]]\nfrom = "{}"\nto = "{}"\nlatency = "{}"\n'


def test_latency_holds_both_ways_unless_it_is_said(tmp_path: Path) -> None:
    late = LINK.format("agent", "server", "1s")
    text = WORLD + late
    assert arrivals(tmp_path, text, "GetGraphRun")[0] == ("server", 10.0)  # ticket 2 s, 7 s, 1 s
    assert arrivals(tmp_path, text, "GraphRun")[:2] == [("agent", 2.0), ("agent", 11.0)]
    one_way = f"{text}both = false\n"
    assert arrivals(tmp_path, one_way, "GraphRun")[:2] == [("agent", 1.0), ("agent", 9.0)]


def test_of_several_links_the_first_counts(tmp_path: Path) -> None:
    links = LINK.format("agent", "*", "1s") + LINK.format("*", "*", "2s")
    assert arrivals(tmp_path, WORLD + links, "GraphRun")[0] == ("agent", 2.0)
    assert arrivals(tmp_path, WORLD + links, "Commands")[0] == ("relay", 9.0)


def test_jitter_never_lets_messages_overtake(tmp_path: Path) -> None:
    """Twenty runs are queued within two seconds, on a way that takes up to ten."""
    text = 'runs = 20\nevery = "100ms"\ntimeout = "1h"\n[run]\nuntil = "1m"\n'
    text = f"{WORLD}{text}{LINK.format('agent', 'server', 'uniform(0s, 10s)')}both = false\n"
    log = records(tmp_path, text)
    asked = [
        (one["t"], one["envelope"]["id"])
        for one in log
        if one["kind"] == "message"
        and one["actor"] == "server"
        and one["envelope"]["source"] == "agent"
    ]
    assert len(asked) > 20
    assert asked == sorted(asked)
    assert len({time for time, _ in asked}) > 3, "they are not all held back to the last"


def test_ways_have_chance_of_their_own(tmp_path: Path) -> None:
    """A link more changes nothing of another's draws."""
    link = LINK.format("agent", "server", "uniform(0s, 1s)")
    other = LINK.format("relay", "engine", "uniform(0s, 1s)")
    text = WORLD + link
    assert (
        arrivals(tmp_path, text, "RunGraphSession")
        == arrivals(tmp_path, text + other, "RunGraphSession")
        != arrivals(
            tmp_path,
            text.replace("[agent]", "[agent]\nname = 'a'").replace('"agent"', '"a"'),
            "RunGraphSession",
        )
    )


def test_a_fault_stands_on_its_way_alone(tmp_path: Path) -> None:
    fault = '[[fault]]\nkind = "drop"\nfrom = "agent-1"\nto = "server"\n'
    cell = build(tmp_path, f'[agent]\ncount = 2\n{fault}[run]\nuntil = "1h"\n')
    cell.simulator.run(0)
    assert cell.faults[0].fired > 100
    actors: dict[str, Any] = {name: one.actor for name, one in cell.simulator.contexts.items()}
    assert (len(actors["agent-1"].active), len(actors["agent-2"].active)) == (1, 0)


# Owners


def test_a_relay_syncs_right_after_its_owners_step(tmp_path: Path) -> None:
    """The second desktop's session is unshared at 7 s: its run ends then, the other's goes on."""
    text = """
    [relay]
    count = 2
    phase = "19s"
    [engine]
    duration = "25s"
    [agent]
    runs = 2
    [run]
    until = ["done", "run.terminal"]
    [[step]]
    at = "7s"
    do = "unshare"
    session = "demo-relay-2"
    [metrics.cancelled]
    from = "start"
    to = "run.terminal[status=cancelled]"
    per = "replication"
    [metrics.completed]
    count = "run.terminal[status=completed]"
    per = "replication"
    """
    assert rows(tmp_path, text) == {"cancelled": [7], "completed": [1]}
    syncs = [one for one in records(tmp_path, text) if one["kind"] == "message"]
    first = [
        (one["envelope"]["source"], one["t"] / 1e6)
        for one in syncs
        if one["envelope"]["body"]["type"] == "Sync"
    ]
    assert first[0] == ("relay-2", 7.0)


# The end


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ('"done"', 35),
        ('"run.terminal"', 30),
        ('"run.started"', 5),
        ('"agent.ticket"', 0),
        ('"agent.noticed"', 35),
        ('"engine.started"', 5),
        ('"12s"', 12),
        ('"0s"', 0),
        ('["done", "1m"]', 60),
        ('["run.started", "2s"]', 5),
        ('["10s", "40s", "20s"]', 40),
        ('["run.terminal", "run.terminal", "run.queued"]', 30),
    ],
)
def test_until(tmp_path: Path, until: str, expected: float) -> None:
    assert ended_s(tmp_path, f"{WORLD}[run]\nuntil = {until}\n") == expected
    cell = build(tmp_path, f"{WORLD}[run]\nuntil = {until}\n")
    for replication in range(2):
        cell.simulator.run(replication)
        assert cell.simulator.now_us / 1e6 == expected


def test_until_an_event_means_each_run_and_counts_it_once(tmp_path: Path) -> None:
    text = WORLD + 'runs = 2\n[run]\nuntil = "{}"\n'
    assert ended_s(tmp_path, text.format("engine.started")) == 30
    lost = '[[fault]]\nkind = "drop"\nmessage = "Commands"\nnth = 1\n'
    offered = ended_s(tmp_path, text.format("run.offered") + lost)
    assert offered == 5, "offered to nobody, but offered"
    assert ended_s(tmp_path, text.format("run.started") + lost) > 30


@pytest.mark.parametrize("until", ['"done"', '"run.terminal"', '["done", "run.terminal"]'])
def test_without_runs_a_replication_ends_at_once(tmp_path: Path, until: str) -> None:
    assert ended_s(tmp_path, f"{WORLD}runs = 0\n[run]\nuntil = {until}\n") == 0
    assert ended_s(tmp_path, f"agent = []\n[run]\nuntil = {until}\n") == 0


def test_a_limit_tells_what_is_missing_in_words(tmp_path: Path) -> None:
    text = '[agent]\ncount = 2\nruns = 3\n[engine]\nduration = "1h"\n[run]\nlimit = "90m"\n'
    error = error_of(tmp_path, text + 'until = ["done", "run.terminal"]\n')
    assert isinstance(error, LimitReachedError)
    assert str(error) == (
        "it did not end within 1h30m of scenario time: it waits for run.terminal of 5 runs, "
        "agent-1 to be done and agent-2 to be done"
    )


def test_a_limit_shows_some_of_many(tmp_path: Path) -> None:
    text = '[agent]\ncount = 40\n[engine]\nduration = "1h"\n[run]\nlimit = "1h"\n'
    assert str(error_of(tmp_path, text)).endswith("agent-5 to be done and 35 more")


def test_what_would_sleep_for_ever(tmp_path: Path) -> None:
    actor = """
class Asleep:
    def __init__(self, config, place):
        self.handlers = {}
    def on_start(self, context): ...
    def on_timer(self, context, timer): ...
"""
    (tmp_path / "own.py").write_text(actor)
    kinds = "".join(f'[{kind}]\nuse = "own.py:Asleep"\n' for kind in ("agent", "relay"))
    error = error_of(tmp_path, kinds)
    assert isinstance(error, WouldSleepForeverError)
    assert str(error) == (
        "it waits for agent to be done, but nothing is due: no timer is set, no message under way"
    )


def test_an_agent_of_ones_own_without_runs_counts_for_one(tmp_path: Path) -> None:
    actor = """
from pullcord import messages
class Own:
    def __init__(self, config, place):
        self.handlers = {}
        self.session = place.sessions[0].id
    def on_start(self, context):
        context.set_timer("x", 3_000_000)
    def on_timer(self, context, timer):
        context.log("run.queued", run="of its own words, which don't count")
        run = messages.RunGraphSession(graph_session_id=self.session, idempotency_key="k" * 8)
        context.send("server", run)
        context.done()
"""
    (tmp_path / "own.py").write_text(actor)
    text = '[agent]\nuse = "own.py:Own"\n[run]\nuntil = ["done", "run.queued"]\n'
    assert ended_s(tmp_path, text) == 3
    assert rows(tmp_path, f'{text}[metrics.m]\ncount = "run.queued"{REPLICATION}\n') == {"m": [1]}
