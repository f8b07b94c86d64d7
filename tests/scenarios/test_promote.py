"""Promotion: what came over sockets comes in the same order in the simulator."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.actor import Commit
from actors.commits import MEANWHILE
from actors.replayer import Script
from logs.read import LogError, RawSection
from logs.record import FaultRecord, MessageRecord, StartRecord, TimerRecord, UndoneRecord
from scenarios.load import Plan, load_plan
from scenarios.promote import AFTER_US, arrivals_of, compare, heard, promote, strikes
from scenarios.results import Exit
from scenarios.run import run
from scenarios.runner import Options, job_of
from scenarios.work import log_one
from tests.scenarios.commandline import ROOT, command

TCP: dict[str, Any] = {"driver": "trio", "transport": "tcp", "speed": 400.0}


def plan(name: str) -> Plan:
    return load_plan(ROOT / "scenarios" / f"{name}.toml")


def written(name: str, replication: int = 0, cell: int = 0, **options: Any) -> RawSection:
    out = io.BytesIO()
    log_one(job_of(plan(name), cell, Options(**options)), replication, out, 60.0)
    return RawSection("a.jsonl", 1, out.getvalue().splitlines(keepends=True))


# Messages that are lost, connections that break, killed and sleeping actors, clocks, crashes at
# commits; a swept cell.
@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("chaos/hotel_wifi", 0),
        ("chaos/both_restart", 0),
        ("chaos/crashing_commits", 0),
        ("chaos/set_back", 0),
        ("chaos/slow_clocks", 0),
        ("chaos/flaky_router", 0),
        ("chaos/bad_middlebox", 0),
        ("published/outbox", 1),
    ],
)
def test_what_came_over_sockets_comes_in_the_same_order(name: str, cell: int) -> None:
    raw = written(name, 3, cell, **TCP)
    made = promote(raw)
    section = raw.section()
    assert made.parted is None
    assert made.messages == sum(map(len, arrivals_of(section.records).values()))
    assert made.messages > 50
    run = made.data["run"]
    assert (run["first"], run["replications"]) == (3, 1)
    assert run.get("chance", "") == section.header.cell
    kinds = {table["kind"] for table in made.data["fault"]}
    assert kinds >= {"schedule", "timer_schedule"}
    assert kinds.isdisjoint({"drop", "delay", "partition", "reset", "throttle"})


MIXED = """schema = 1
name = "mixed"
profile = "recommended"
[engine]
duration = "uniform(5s, 20s)"
[workload]
runs = 5
every = "15s"
[agent]
poll = "every 5s"
"""
FAULT = """[[fault]]
kind = "{kind}"
actor = "server"
for = "2m"
"""
CRASH = (
    FAULT.format(kind="crash") + 'probability = 0.1\ndown = "uniform(0s, 5s)"\npoint = "{point}"\n'
)
WRITE = FAULT.format(kind="failed_write") + "probability = 0.2\n"
FULL = FAULT.format(kind="disk_full").replace("2m", "20s") + 'at = "20s"\n'


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("faults", [(CRASH, WRITE), (WRITE, CRASH, WRITE), (CRASH, FULL, WRITE)])
def test_crashes_and_failed_writes_hit_the_same_turns_in_any_mixture(
    faults: tuple[str, ...], point: str, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.toml"
    path.write_text(MIXED + "".join(faults).format(point=point))
    out = io.BytesIO()
    log_one(job_of(load_plan(path), 0, Options(driver="trio")), 0, out, 60.0)
    raw = RawSection("a.jsonl", 1, out.getvalue().splitlines(keepends=True))
    undone = [one for one in raw.section().records if isinstance(one, UndoneRecord)]
    assert any(one.why == Commit.FAILED.value for one in undone)
    made = promote(raw)
    assert made.parted is None
    kinds = [table["kind"] for table in made.data["fault"]]
    assert "crash" in kinds
    assert kinds.count("commit_schedule") == 1
    assert {"failed_write", "disk_full"}.isdisjoint(kinds)


def test_a_kill_in_the_midst_of_a_turn_is_a_crash_before_its_commit() -> None:
    """A turn in a worker thread comes to its end, and is undone."""
    records = [
        StartRecord(1, 0, "server", 0, 0),
        TimerRecord(2, 5, "server", 1, "t"),
        UndoneRecord(3, 5, "server", 2, Commit.FAILED.value),
        TimerRecord(4, 6, "server", 1, "t"),
        TimerRecord(5, 10, "server", 1, "t"),
        FaultRecord(6, 13, "server", 0, "it", "kill"),
        FaultRecord(7, 15, "server", 0, "it", "start"),
        FaultRecord(8, 16, "server", 0, "it", "kill"),
        UndoneRecord(9, 18, "server", 5, MEANWHILE),
        FaultRecord(10, 19, "server", 0, "it", "start"),
        StartRecord(11, 20, "server", 0, 1),
        TimerRecord(12, 30, "server", 11, "t"),
        FaultRecord(13, 30, "server", 0, Commit.SILENCED.value, "kill"),
    ]
    rest = f"{30 + AFTER_US}us"
    assert strikes(records) == [
        {"kind": "crash", "name": "crash 1", "actor": "server", "point": "before", "nth": 2}
        | {"down": "10us"},
        {"kind": "crash", "name": "crash 2", "actor": "server", "point": "after", "nth": 2}
        | {"down": rest},
    ]


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (ROOT / "scenarios" / "chaos").glob("*.toml"))
)
def test_every_chaos_scenario_s_log_is_promoted(name: str) -> None:
    if name == "weekend":
        pytest.skip("it sleeps for 60 hours")
    for replication in range(3):
        made = promote(written(f"chaos/{name}", replication, **TCP))
        assert made.parted is None, (replication, made.parted)


def test_another_order_is_found() -> None:
    section = written("chaos/late_go", driver="trio").section()
    assert compare(section, section) is None
    messages = [one for one in section.records if isinstance(one, MessageRecord)]
    at_server = [one for one in messages if one.actor == "server"]
    first, second = at_server[:2]
    other = {
        first.n: msgspec.structs.replace(first, envelope=second.envelope),
        second.n: msgspec.structs.replace(second, envelope=first.envelope),
    }
    records = [other.get(one.n, one) for one in section.records]
    swapped = msgspec.structs.replace(section, records=records)
    assert heard(records) != heard(section.records)
    assert compare(section, swapped) == ("server", 1)
    less = [one for one in section.records if one is not at_server[-1]]
    cut = msgspec.structs.replace(section, records=less)
    assert compare(section, cut) == ("server", len(at_server))
    assert section.end is not None
    ended = msgspec.structs.replace(section.end, t=at_server[-1].t)
    assert compare(section, msgspec.structs.replace(cut, end=ended)) is None


def test_a_message_that_never_came_is_lost_and_one_that_came_twice_comes_twice() -> None:
    records = written("chaos/retrying_proxy", driver="trio").section().records
    ways = arrivals_of(records)
    assert any(len(times) > 1 for way in ways.values() for times in way)
    script = Script(records)
    assert sum(map(len, ways.values())) == sum(len(one) for one in script.sent.values())


KEPT = ROOT / "scenarios" / "regressions" / "no_journal_over_tcp.json"


def test_what_was_lost_over_sockets_is_kept_as_a_regression_test() -> None:
    """It was found by chaos/killed_after_go over TCP, with a relay that has no journal."""
    [(_, found)] = run(KEPT, jobs=1).scenarios[0].found
    assert found.check == "results_arrive"
    safe = run(KEPT, {"relay.use": "built-in"}, jobs=1)
    assert safe.exit is Exit.OK
    assert safe.scenarios[0].found == []


def test_a_simulator_s_log_needs_no_promotion() -> None:
    with pytest.raises(LogError, match=r"line 1: its messages' order is that of the simulator"):
        promote(written("chaos/late_go"))


# From the command line

OWN = """from pullcord import Relay

class Mine(Relay):
    pass
"""
FILE = """schema = 1
name = "own"
[relay]
use = "mine.py:Mine"
[[fault]]
kind = "kill"
actor = "relay"
at = "20s"
down = "5s"
"""


def test_the_file_runs_as_it_is_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "own.toml").write_text(FILE)
    tcp = [
        "--transport",
        "tcp",
        "--speed",
        "400",
        "--logs",
        "all",
        "--out",
        "out",
        "--no-progress",
        "--jobs",
        "1",
    ]
    assert command(tmp_path, "run", "own.toml", *tcp).code == 0
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    target = "else where/found.json"
    done = command(tmp_path, "replay", "out", "--to-scenario", target)
    assert done.code == 0
    assert "in the simulator they come to each actor in the same order" in done.out
    assert f"run it: pullcord run '{target}'" in done.out
    again = command(elsewhere, "run", "found.json", "--no-progress")
    assert again.code == 0
    data = json.loads((elsewhere / "found.json").read_text())
    assert data["relay"]["use"] == f"{tmp_path / 'mine.py'}:Mine"
    [kill] = [table for table in data["fault"] if table["kind"] == "kill"]
    assert kill["actor"] == "relay"
    refused = command(tmp_path, "replay", "out", "--to-scenario", target)
    assert (refused.code, refused.out) == (2, "")
    assert "it is there already" in refused.err
    refused = command(tmp_path, "replay", "out", "--to-scenario", "found.toml")
    assert "does not end in .json" in refused.err
    refused = command(elsewhere, "run", "found.json", "--driver", "trio")
    assert refused.code == 2
    assert "acts in the simulator alone" in refused.err
