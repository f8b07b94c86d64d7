"""Drop: the messages that it fires on are lost, the others arrive."""

from __future__ import annotations

from actors.engine import Engine
from actors.messages import FleetRun, Start
from actors.simulator import Simulator
from tests.actors.harness import Trace, make_cell, put_to_work
from tests.contracts.fault import LinkFaultContract, get
from transports.faults.drop import Drop
from transports.memory import Link
from transports.verdict import LOST


class TestDrop(LinkFaultContract):
    """The suite on drop."""

    kind = Drop

    def test_a_message_is_lost(self) -> None:
        assert self.works().judge(get(1)) == LOST


def test_a_dropped_request_is_lost_once_recorded_and_asked_again() -> None:
    judge = Drop(name="lost start", message="Start", nth=1).at_work()

    def link(sim: Simulator, source: str, target: str) -> Link | None:
        return sim.new_link(judges=[judge]) if (source, target) == ("relay", "server") else None

    cell = make_cell(engine=Engine.Config(), link=link)
    put_to_work(judge, cell)
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
