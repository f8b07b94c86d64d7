"""What a server keeps of an agent's keys once their runs are deleted, and for how long."""

from __future__ import annotations

from actors.accounts.messages import Changed, ForgetRun
from actors.ledger import TICKETS
from actors.messages import KEY_REUSED, GraphRun, RunGraphSession
from actors.server import SWEEP_LIMIT
from tests.actors.accounts.deployed import Deployed, meta
from tests.actors.service import DAY
from transports.units import Duration

WORDS = "what nobody else may know"


class Keys(Deployed):
    """A server with an agent whose runs end at once."""

    def __init__(self) -> None:
        super().__init__(retention_us=Duration(2 * DAY), key_retention_us=Duration(5 * DAY))
        self.agent, self.device = self.add_agent(), self.add_device()
        self.share(self.device, 1)

    def submit(self, key: str, said: str = WORDS) -> GraphRun:
        arguments = {"said": said}
        body = RunGraphSession(
            graph_session_id=meta(1).id, arguments=arguments, idempotency_key=f"key-{key:>08}"
        )
        return self.told(self.agent, body, GraphRun)

    def ended(self, key: str) -> str:
        run = self.submit(key).command_id
        self.start_run(self.device, run)
        self.complete(self.device, run)
        return run

    @property
    def keys(self) -> int:
        return len(self.context.store.snapshot().get(TICKETS.name, {}))

    def at(self, now_us: int) -> None:
        self.context.now_us = now_us
        while self.context.timers.get("sweep", now_us + 1) <= now_us:
            self.fire("sweep")
        self.keep()


def test_a_key_stands_for_its_run_for_so_long_and_then_for_another() -> None:
    server = Keys()
    run = server.ended("a")
    server.at(2 * DAY)
    assert server.row(run) is None
    server.at(7 * DAY - 1)
    again = server.submit("a")
    assert (again.command_id, again.status, again.replayed) == (run, "completed", True)
    server.at(7 * DAY)
    assert server.keys == 0
    assert server.submit("a").status == "queued"


def test_many_keys_are_deleted_some_at_a_time() -> None:
    server = Keys()
    for number in range(SWEEP_LIMIT + 20):
        server.ended(str(number))
    server.at(2 * DAY)
    assert server.keys == SWEEP_LIMIT + 20
    server.context.now_us = 7 * DAY
    server.fire("keep")
    assert server.keys == 20
    server.keep()
    assert server.keys == 0


def test_of_a_run_that_was_forgotten_no_word_is_kept_and_its_key_still_means_the_same() -> None:
    server = Keys()
    run = server.ended("a")
    server.owner(ForgetRun(command_id=run), Changed)
    kept = [repr(table) for table in server.context.store.snapshot().values()]
    assert not any(WORDS in text for text in kept)
    assert server.submit("a").command_id == run
    other = RunGraphSession(
        graph_session_id=meta(1).id, arguments={}, idempotency_key=f"key-{'a':>08}"
    )
    assert server.told(server.agent, other, type(KEY_REUSED)) == KEY_REUSED
