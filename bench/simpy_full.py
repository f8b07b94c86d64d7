"""The same experiment in SimPy with our protocol: what a like-for-like comparison needs.

It adds the start gate, the engine as a process of its own, the outbox, answer time-outs, the key
of a run, ownership, a stream for each purpose, and passes that are skipped while the relay is busy.
"""

from collections.abc import Callable, Generator
from random import Random
from typing import Any

import simpy

from bench.experiment import CONTROL_S, SYNC_S, Outcome, Replicate, draw_duration_s, main

ANSWER_S = 10.0

Process = Generator[simpy.Event, Any, None]
Question = Generator[simpy.Event, Any, Any]


class Server:
    """Queue, keys and statuses; one answer for each question."""

    def __init__(self, environment: simpy.Environment) -> None:
        self.environment = environment
        self.inbox = simpy.Store(environment)
        self.queue: list[str] = []
        self.keys: dict[str, str] = {}
        self.runs: dict[str, dict[str, Any]] = {}

    def process(self) -> Process:
        answers: dict[str, Callable[[Any], object]] = {
            "run": self.run,
            "get": self.get,
            "sync": self.sync,
            "start": self.start,
            "control": self.control,
            "complete": self.complete,
        }
        while True:
            kind, argument, answer = yield self.inbox.get()
            answer.put(answers[kind](argument))

    def run(self, key: str) -> str:
        if key not in self.keys:
            self.keys[key] = "command"
            self.queue.append("command")
            self.runs["command"] = {
                "status": "queued",
                "agent": "agent",
                "device": "relay",
                "delivery": 0,
            }
        return self.keys[key]

    def get(self, command: str) -> dict[str, Any] | None:
        run = self.runs.get(command)
        return dict(run) if run is not None and run["agent"] == "agent" else None

    def sync(self, _: None) -> list[tuple[str, int]]:
        for command in self.queue:
            self.runs[command]["delivery"] += 1
        return [(command, self.runs[command]["delivery"]) for command in self.queue]

    def start(self, offered: tuple[str, int]) -> bool:
        command, delivery = offered
        run = self.runs[command]
        go = run["status"] == "queued" and run["delivery"] == delivery
        if go:
            run["status"] = "running"
            self.queue.remove(command)
        return bool(go)

    def control(self, command: str) -> bool:
        return bool(self.runs[command]["status"] != "running")

    def complete(self, command: str) -> bool:
        self.runs[command] |= {"status": "completed", "finished_s": self.environment.now}
        return True


class Model:
    """One replication's world."""

    def __init__(self, given: Replicate) -> None:
        self.phase = Random(f"{given.seed}/phase")
        self.duration = Random(f"{given.seed}/duration")
        self.delays_s = given.delays_s
        self.environment = simpy.Environment()
        self.server = Server(self.environment)
        self.fleet = simpy.Store(self.environment)
        self.outbox: dict[str, str] = {}
        self.started: set[str] = set()
        self.busy = False
        self.outcome: Outcome | None = None

    def send(self, kind: str, argument: object) -> simpy.Event:
        """Send the server a question; the event is its answer."""
        answer = simpy.Store(self.environment)
        self.server.inbox.put((kind, argument, answer))
        return answer.get()

    def ask(self, kind: str, argument: object) -> Question:
        """The server's answer, or None after the time-out."""
        answer = self.send(kind, argument)
        yield answer | self.environment.timeout(ANSWER_S)
        return answer.value if answer.triggered else None

    def engine(self) -> Process:
        while True:
            command, started, finished = yield self.fleet.get()
            started.put("execution")
            yield self.environment.timeout(draw_duration_s(self.duration))
            finished.put(command)

    def relay(self) -> Process:
        yield self.environment.timeout(self.phase.uniform(0.0, SYNC_S))
        while True:
            if not self.busy:
                self.busy = True
                self.environment.process(self.relay_pass())
            yield self.environment.timeout(SYNC_S)

    def relay_pass(self) -> Process:
        for command in list(self.outbox):
            yield from self.post(command)
        offered = yield from self.ask("sync", None)
        for command, delivery in offered or ():
            if command not in self.started:
                go = yield from self.ask("start", (command, delivery))
                if go:
                    yield from self.execute(command)
        self.busy = False

    def execute(self, command: str) -> Process:
        self.started.add(command)
        started, finished = simpy.Store(self.environment), simpy.Store(self.environment)
        self.fleet.put((command, started, finished))
        yield started.get()
        done = finished.get()
        while True:
            yield done | self.environment.timeout(CONTROL_S)
            if done.triggered:
                break
            yield self.send("control", command)
        self.outbox[command] = "completed"
        yield from self.post(command)

    def post(self, command: str) -> Process:
        accepted = yield from self.ask("complete", command)
        if accepted:
            del self.outbox[command]

    def agent(self) -> Process:
        ticket = yield from self.ask("run", "key")
        for calls, delay_s in enumerate(self.delays_s, 1):
            yield self.environment.timeout(delay_s)
            run = yield from self.ask("get", ticket)
            if run["status"] == "completed":
                self.outcome = Outcome(calls, self.environment.now - run["finished_s"])
                return


def replicate(given: Replicate) -> Outcome:
    """Run one replication until the agent has noticed the result."""
    model = Model(given)
    model.environment.process(model.server.process())
    model.environment.process(model.relay())
    model.environment.process(model.engine())
    model.environment.run(until=model.environment.process(model.agent()))
    assert model.outcome is not None
    return model.outcome


if __name__ == "__main__":
    main(replicate)
