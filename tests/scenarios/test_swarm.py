"""Random fault plans: each its own, the same for the same seed, and healed in time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from actors.graphs.messages import GRAPH_MESSAGES
from actors.world import TrioWorld
from scenarios.build import CellRun
from scenarios.explore import with_plan
from scenarios.spec import FAULTS
from scenarios.swarm import BREAKING, HEAL_S, MESSAGES_OF_RUNS, plan_of
from tests.actors.harness import Trace
from tests.contracts.fault import FROM_LOGS
from tests.scenarios.loading import load
from transports.faults.byte_fault import ByteFault
from transports.faults.fault import LinkFault

KINDS = {"server": "server", "relay": "relay", "engine": "engine", "agent": "agent"}
PLANS = [plan_of(1, number, KINDS) for number in range(300)]


def test_a_plan_depends_on_its_seed_and_number_alone() -> None:
    assert plan_of(1, 7, KINDS) == PLANS[7]
    assert plan_of(2, 7, KINDS) != PLANS[7]
    assert len({str(plan) for plan in PLANS}) == len(PLANS)


def test_plans_have_every_kind_of_fault_and_leave_every_kind_out() -> None:
    seen = Counter(kind for plan in PLANS for kind in {table["kind"] for table in plan})
    # All but those that a log is turned into.
    assert set(seen) == set(FAULTS) - FROM_LOGS
    for kind, count in seen.items():
        rare = issubclass(FAULTS[kind], ByteFault)
        assert (12 < count < 60) if rare else (30 < count < 250), kind
    assert all(PLANS)
    assert len({table["name"] for table in PLANS[0]}) == len(PLANS[0])


def test_each_fifth_plan_breaks_connections_too() -> None:
    broken = [
        number
        for number, plan in enumerate(PLANS)
        if any(issubclass(FAULTS[table["kind"]], ByteFault) for table in plan)
    ]
    assert all(number % BREAKING == BREAKING - 1 for number in broken)
    assert len(broken) > 50


def test_bits_flip_rarely_or_often() -> None:
    plans = (plan_of(2, number, KINDS) for number in range(BREAKING - 1, 1_000, BREAKING))
    shares = [table["share"] for plan in plans for table in plan if table["kind"] == "corrupt"]
    assert len(shares) > 40
    assert 0.0001 <= min(shares) < 0.001
    assert 0.1 < max(shares) <= 1


@pytest.mark.parametrize("number", range(40))
def test_every_plan_is_one_that_a_file_may_have_and_heals(number: int, tmp_path: Path) -> None:
    scenario = with_plan(load(tmp_path, "").scenarios[0], PLANS[number])
    assert len(scenario.faults) == len(PLANS[number])
    for fault in scenario.faults:
        if isinstance(fault, LinkFault) and fault.lasts is None:
            assert fault.nth is not None
        if fault.at is not None and fault.lasts is not None:
            assert fault.at + fault.lasts <= HEAL_S * 1_000_000


@pytest.mark.parametrize("number", range(BREAKING - 1, 8 * BREAKING, BREAKING))
def test_connections_break_alike_on_both_hosts_in_memory(number: int, tmp_path: Path) -> None:
    plan = load(tmp_path, '[workload]\nruns = 3\nevery = "30s"\n')
    breaks = [table for table in PLANS[number] if issubclass(FAULTS[table["kind"]], ByteFault)]
    scenario = with_plan(plan.scenarios[0], breaks)

    def outcome(world: type[TrioWorld] | None) -> tuple[Any, ...]:
        cell = CellRun(scenario, 1, "", plan.folder, world=world)
        trace = Trace()
        cell.simulator.run(number, trace)
        drops = sorted(record[2:5] for record in trace.records if record[1] == "drop")
        return cell.simulator.now_us, [fault.fired for fault in cell.faults], drops

    assert outcome(None) == outcome(TrioWorld)


def test_plans_speak_of_no_graphs_agents() -> None:
    spoken = {table["message"] for plan in PLANS for table in plan if "message" in table}
    assert spoken <= set(MESSAGES_OF_RUNS)
    assert not {kind.__name__ for kind in GRAPH_MESSAGES} & set(MESSAGES_OF_RUNS)
