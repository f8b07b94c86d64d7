"""Drop: the messages that it fires on are lost, the others arrive."""

from __future__ import annotations

from typing import Any

from actors.engine import Engine
from actors.messages import FleetRun, Start
from actors.simulator import Simulator
from tests.actors.harness import Trace, make_cell
from tests.contracts.fault import FaultContract, Judging
from transports.envelope import Envelope
from transports.faults.drop import Drop, DropJudge
from transports.faults.fault import Fault
from transports.memory import Link


class TestDrop(FaultContract):
    """The suite on drop."""

    kind = Drop

    def at_work(self, fault: Fault) -> DropJudge:
        assert isinstance(fault, Drop)
        return DropJudge(fault)

    def touches(self, judging: Judging, envelope: Envelope[Any]) -> bool:
        assert isinstance(judging, DropJudge)
        return judging.drops(envelope)


def test_a_dropped_request_is_lost_once_recorded_and_asked_again() -> None:
    judge = DropJudge(Drop(name="lost start", message="Start", nth=1))

    def link(sim: Simulator, source: str, target: str) -> Link | None:
        return sim.new_link(judges=[judge]) if (source, target) == ("relay", "server") else None

    cell = make_cell(engine=Engine.Config(), link=link)
    cell.on_begin.append(lambda: judge.start(cell.stream("fault/lost start").random))
    cell.on_done = lambda _: cell.finish()
    for replication in range(2):
        trace = Trace()
        cell.run(replication, trace)
        assert judge.fired == 1
        (drop,) = trace.kinds("drop")
        assert (drop[4], type(drop[5].body)) == ("lost start", Start)
        assert len(trace.bodies(Start)) == 1, "the same question, asked again"
        assert len(trace.bodies(FleetRun)) == 1
        assert len(trace.kinds("unanswered")) == 1
