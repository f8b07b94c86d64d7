"""The floor: a script that knows this experiment alone. No messages, one heap of calls."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from bench.experiment import CONTROL_S, SYNC_S, Outcome, Replicate, draw_duration_s, main


class Script:
    """One replication: times on a heap, and what happens then."""

    def __init__(self, given: Replicate) -> None:
        stream = Random(given.seed)
        self.heap: list[tuple[float, int, Callable[[float], None]]] = []
        self.serial = 0
        self.status = "queued"
        self.calls = 0
        self.finished_s = 0.0
        self.late_s: float | None = None
        self.delays_s = given.delays_s
        self.at(stream.uniform(0.0, SYNC_S), self.sync)
        self.duration_s = draw_duration_s(stream)
        self.at(next(self.delays_s), self.poll)

    def at(self, time_s: float, call: Callable[[float], None]) -> None:
        self.serial += 1
        heappush(self.heap, (time_s, self.serial, call))

    def sync(self, now_s: float) -> None:
        if self.status == "queued":
            self.status = "running"
            self.at(now_s + self.duration_s, self.finish)
            self.at(now_s + CONTROL_S, self.control)
        self.at(now_s + SYNC_S, self.sync)

    def control(self, now_s: float) -> None:
        if self.status == "running":
            self.at(now_s + CONTROL_S, self.control)

    def finish(self, now_s: float) -> None:
        self.status = "completed"
        self.finished_s = now_s

    def poll(self, now_s: float) -> None:
        self.calls += 1
        if self.status == "completed":
            self.late_s = now_s - self.finished_s
        else:
            self.at(now_s + next(self.delays_s), self.poll)


def replicate(given: Replicate) -> Outcome:
    """Run one replication until the agent has noticed the result."""
    script = Script(given)
    heap = script.heap
    while script.late_s is None:
        now_s, _, call = heappop(heap)
        call(now_s)
    return Outcome(script.calls, script.late_s)


if __name__ == "__main__":
    main(replicate)
