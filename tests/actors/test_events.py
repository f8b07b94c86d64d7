"""The events that may be measured are those that are said, with the fields that are promised."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Step
from actors.agent import Agent
from actors.chance import Durations
from actors.engine import Engine
from actors.events import EVENTS
from actors.messages import Completion
from actors.server import Server
from tests.actors.graphs.fake_vm import Api
from tests.actors.graphs.graph_world import GraphWorld, play
from tests.actors.harness import SESSION, S, Trace, make_cell
from tests.actors.service import Service
from transports.envelope import Envelope
from transports.units import Duration
from transports.verdict import LOST, Verdict

BY_THE_HOST = {"agent.ticket", "agent.noticed"}  # seen in messages, said by nobody


class Loses:
    """Loses the first answer to a call that queues a run."""

    name = "first ticket"

    def __init__(self) -> None:
        self.left = 1

    def judge(self, _envelope: Envelope[Any]) -> Verdict | None:
        self.left -= 1
        return LOST if self.left == 0 else None


def said() -> list[tuple[str, str, dict[str, Any]]]:
    """Who said what in a cell where about everything happens, and on a server alone."""
    loses = Loses()
    cell = make_cell(
        server=Server.Config(run_deadline_us=Duration(100 * S)),
        engine=Engine.Config(duration_us=Durations.parse("choice(60s, 150s)")),
        agent=Agent.Config(runs=6, cancel_us=Durations.parse("uniform(0s, 600s)")),
        steps=(Step(at_us=300 * S, act="unshare", session=SESSION.id),),
        link=lambda sim, source, target: (
            sim.new_link(judges=[loses]) if (source, target) == ("server", "agent") else None
        ),
    )
    cell.on_begin.append(lambda: cell.at(3_600 * S, cell.finish))
    found = []
    for replication in range(5):
        trace = Trace()
        cell.run(replication, trace)
        found += [(record[3], record[5], record[6]) for record in trace.kinds("event")]
    service = Service()
    service.complete("nobody", Completion(execution_id=None, status="failed"))
    found += [("server", event, fields) for event, fields in service.context.events]
    told = [*told_of_graphs(), *told_of_tools()]
    return found + [(record[3], record[5], record[6]) for record in told]


def told_of_graphs() -> list[tuple[Any, ...]]:
    """What an engine says of a Graph that does a little of everything."""

    async def main(api: Api, _: Any) -> Any:
        api.say("phase", "all of it")
        api.say("log", "a line")
        api.say("retry", "again", attempt=1)
        await api.settled([api.agent("one"), api.agent("two"), api.graph("other")])

    async def other(_api: Api, _: Any) -> None:
        return None

    world = play(main, others={"other": other}, max_agents=1)
    return world.trace.kinds("event")


def told_of_tools() -> list[tuple[Any, ...]]:
    """What an engine says of agents with tools, in a run that waits while it is restarted."""

    async def main(api: Api, args: dict[str, Any]) -> Any:
        return await api.agent(args["prompt"], tools=("shell", "http_get"))

    world = GraphWorld(
        mains={"main": main},
        runs={"r1": {"prompt": "short"}, "r2": {"prompt": "half a character: \ud800"}},
        permissions={"*": {"shell": "ask"}},
        tool_calls=1,
        approval_delay="1m",
        max_runs=2,
        guarded=True,
    )
    world.at(5 * S, lambda: world.guarded.kill("engine", "test"))
    world.at(9 * S, lambda: world.guarded.revive("engine", "test"))
    return world.run().trace.kinds("event")


SAID = said()


@pytest.mark.parametrize("event", sorted(EVENTS.keys() - BY_THE_HOST))
def test_an_event_is_said_with_its_fields(event: str) -> None:
    fields = {tuple(fields) for _, name, fields in SAID if name == event}
    assert {frozenset(each) for each in fields} == {frozenset(EVENTS[event].fields)}


def test_what_the_server_and_the_engine_say_may_be_measured() -> None:
    names = {event for actor, event, _ in SAID if actor in {"server", "engine"}}
    assert names <= EVENTS.keys()


def test_what_may_be_replaced_is_not_measured_by_its_own_word() -> None:
    names = {event for actor, event, _ in SAID if actor in {"relay", "agent", "owner"}}
    assert not names & EVENTS.keys()


def test_every_event_belongs_to_a_run_and_says_what_it_means() -> None:
    for event in EVENTS.values():
        assert event.fields[0] == "run"
        assert event.meaning
