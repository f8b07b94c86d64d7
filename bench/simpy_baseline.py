"""The same experiment in SimPy, its simplest model: what people would write instead.

Server, relay and agent are processes; every question is a message to the server's store and an
answer through a store of its own. There is no start gate, no outbox, no time-out and no key.
"""

from collections.abc import Generator
from random import Random
from typing import Any

import simpy

from bench.experiment import CONTROL_S, SYNC_S, Outcome, Replicate, draw_duration_s, main

Process = Generator[simpy.Event, Any, None]


class Model:
    """One replication's world."""

    def __init__(self, given: Replicate) -> None:
        self.stream = Random(given.seed)
        self.delays_s = given.delays_s
        self.environment = simpy.Environment()
        self.inbox = simpy.Store(self.environment)
        self.queue: list[str] = []
        self.statuses: dict[str, str] = {}
        self.finished_s: dict[str, float] = {}
        self.outcome: Outcome | None = None

    def ask(self, kind: str, run: str | None) -> simpy.Event:
        """Send the server a question; the event is its answer."""
        answer = simpy.Store(self.environment)
        self.inbox.put((kind, run, answer))
        return answer.get()

    def server(self) -> Process:
        while True:
            kind, run, answer = yield self.inbox.get()
            match kind:
                case "run":
                    self.statuses[run] = "queued"
                    self.queue.append(run)
                    answer.put(run)
                case "get":
                    answer.put((self.statuses[run], self.finished_s.get(run)))
                case "sync":
                    offered, self.queue = self.queue, []
                    for each in offered:
                        self.statuses[each] = "running"
                    answer.put(offered)
                case "control":
                    answer.put(False)
                case "complete":
                    self.statuses[run] = "completed"
                    self.finished_s[run] = self.environment.now
                    answer.put(True)

    def relay(self) -> Process:
        environment = self.environment
        yield environment.timeout(self.stream.uniform(0.0, SYNC_S))
        while True:
            offered = yield self.ask("sync", None)
            for run in offered:
                end_s = environment.now + draw_duration_s(self.stream)
                while environment.now < end_s:
                    yield environment.timeout(min(CONTROL_S, end_s - environment.now))
                    yield self.ask("control", run)
                yield self.ask("complete", run)
            yield environment.timeout(SYNC_S)

    def agent(self) -> Process:
        ticket = yield self.ask("run", "the run")
        for calls, delay_s in enumerate(self.delays_s, 1):
            yield self.environment.timeout(delay_s)
            status, finished_s = yield self.ask("get", ticket)
            if status == "completed":
                self.outcome = Outcome(calls, self.environment.now - finished_s)
                return


def replicate(given: Replicate) -> Outcome:
    """Run one replication until the agent has noticed the result."""
    model = Model(given)
    model.environment.process(model.server())
    model.environment.process(model.relay())
    model.environment.run(until=model.environment.process(model.agent()))
    assert model.outcome is not None
    return model.outcome


if __name__ == "__main__":
    main(replicate)
