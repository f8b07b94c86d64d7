"""A fault's acts, one by one, do what the fault did: the same replication comes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logs.keep import MemoryRecorder
from logs.record import DropRecord, MessageRecord
from scenarios.explore import Discovery, found_file
from scenarios.run import load_plans
from scenarios.runner import Options
from scenarios.shrink_firings import explicit_faults
from scenarios.shrink_start import HERE, prepared
from scenarios.shrink_trial import cell_of, replication_of
from scenarios.source import read_source
from scenarios.spec import FAULTS
from tests.contracts.fault import FROM_LOGS
from transports.faults.byte_fault import ByteFault

BASE = """
schema = 1
name = "base"
profile = "recommended"
[workload]
runs = 3
every = "30s"
[agent]
poll = "every 10s"
cancel = "uniform(0s, 300s)"
"""


def planned(folder: Path, number: int) -> dict[str, Any]:
    """The data of a random fault plan."""
    path = folder / "base.toml"
    path.write_text(BASE)
    (plan,) = load_plans([str(path)], Options())
    data = found_file(plan, 0, 5, Discovery(plan=number, check="", sentence=""))
    return prepared(data, folder, 1, number)


def happened(data: dict[str, Any]) -> list[Any]:
    """What becomes of every message and actor, whatever the faults are called."""
    cell, recorder = cell_of(data, "", HERE), MemoryRecorder()
    cell.simulator.run(replication_of(data), recorder)
    told: list[Any] = []
    for one in recorder.records:
        if isinstance(one, MessageRecord | DropRecord):
            told.append((one.t, one.actor, type(one), one.envelope.body))
        else:
            told.append((one.t, one.actor, getattr(one, "act", type(one))))
    return told


PLANS = range(40)
SEEN: set[str] = set()


@pytest.mark.parametrize("number", PLANS)
def test_the_acts_of_each_fault_of_a_plan_do_the_same(number: int, tmp_path: Path) -> None:
    data = planned(tmp_path, number)
    wanted = happened(data)
    for index, made in enumerate(explicit_faults(data, "", HERE)):
        if made:
            faults = [*data["fault"][:index], *made, *data["fault"][index + 1 :]]
            assert happened({**data, "fault": faults}) == wanted, data["fault"][index]
            assert not any({"probability", "every", "on"} & one.keys() for one in made)
            SEEN.add(data["fault"][index]["kind"])


def test_the_plans_had_every_kind_of_fault_that_acts_one_by_one(tmp_path: Path) -> None:
    for number in PLANS if not SEEN else ():
        data = planned(tmp_path, number)
        acts = explicit_faults(data, "", HERE)
        SEEN.update(one["kind"] for one, made in zip(data["fault"], acts, strict=True) if made)
    whole = {kind for kind, fault in FAULTS.items() if issubclass(fault, ByteFault)}
    assert FAULTS.keys() - whole - {"disk_full", *FROM_LOGS} == SEEN


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    def of(faults: str) -> dict[str, Any]:
        path = tmp_path / "base.toml"
        path.write_text(BASE + faults)
        return prepared(dict(read_source(path).data), tmp_path, 1, 0)

    return of


def test_a_fault_that_counts_already_or_did_nothing_has_no_acts(
    scenario: Callable[[str], dict[str, Any]],
) -> None:
    counting = '[[fault]]\nkind = "drop"\nmessage = "Sync"\nnth = 2\n'
    never = '[[fault]]\nkind = "drop"\nmessage = "Sync"\nprobability = 0.0\n'
    full = '[[fault]]\nkind = "disk_full"\nactor = "server"\nat = "1m"\nfor = "1m"\n'
    assert explicit_faults(scenario(counting + never + full), "", HERE) == [[], [], []]


def test_a_filtered_message_keeps_its_filter_and_every_strike_its_time(
    scenario: Callable[[str], dict[str, Any]],
) -> None:
    filtered = '[[fault]]\nkind = "drop"\nmessage = "GraphRun[status=running]"\nevery = 2\n'
    often = '[[fault]]\nkind = "kill"\nactor = "e*"\nat = "10s"\nevery = "20s"\nfor = "1m"\n'
    drops, kills = explicit_faults(scenario(filtered + often), "", HERE)
    assert drops
    assert {one["message"] for one in drops} == {"GraphRun[status=running]"}
    assert all(one["nth"] % 2 == 0 for one in drops)
    assert [one["nth"] for one in drops] == sorted((one["nth"] for one in drops), reverse=True)
    assert [(one["actor"], one["at"], one["down"]) for one in kills] == [
        ("engine", text, "0s") for text in ("10s", "30s", "50s")
    ]


def test_each_crash_is_as_long_as_it_was(
    scenario: Callable[[str], dict[str, Any]],
) -> None:
    crash = '[[fault]]\nkind = "crash"\nactor = "*"\nevery = 4\ndown = "uniform(1s, 90s)"\n'
    data = scenario(crash + 'for = "5m"\n')
    (acts,) = explicit_faults(data, "", HERE)
    assert len({one["down"] for one in acts}) == len(acts) > 5
    assert happened({**data, "fault": acts}) == happened(data)


def test_one_crash_is_no_turn_for_the_next_fault(
    scenario: Callable[[str], dict[str, Any]],
) -> None:
    crash = '[[fault]]\nkind = "crash"\nactor = "server"\nevery = 7\nfor = "5m"\n'
    write = '[[fault]]\nkind = "failed_write"\nactor = "*"\nevery = 5\nfor = "5m"\n'
    data = scenario(crash + write)
    wanted, acts = happened(data), explicit_faults(data, "", HERE)
    assert all(acts)
    assert happened({**data, "fault": [data["fault"][0], *acts[1]]}) == wanted
    assert happened({**data, "fault": [*acts[0], data["fault"][1]]}) == wanted
    assert happened({**data, "fault": [*acts[0], *acts[1]]}) == wanted
