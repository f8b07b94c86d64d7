"""Deployed servers on PostgreSQL: what holds on one holds there, and two of them are one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from actors.accounts.messages import RevokeDevice
from actors.accounts.server import RELOOK_US
from actors.messages import GetGraphRun, GraphRun
from actors.stores.postgres import PostgresStore
from tests.actors.accounts.deployed import Deployed, meta
from tests.actors.accounts.test_crash_points import serve, wrong
from tests.actors.accounts.test_server import LIMIT, STEPS, Crowd
from tests.actors.harness import S, Sent
from tests.actors.test_durable_crashes import AGENTS, Play
from tests.postgresql import address


class OnPostgres(Deployed):
    """A deployed server whose store is a database; each turn is a transaction."""

    file: PostgresStore | None = None

    def __init__(self, where: str, boot: int = 0, **config: Any) -> None:
        self.where = where
        self.boot = boot
        super().__init__(shared=True, **config)

    def start(self) -> list[Sent]:
        if self.file is None:
            self.file = PostgresStore(self.where)
            self.context.store = self.file  # type: ignore[assignment]  # one that is elsewhere
            self.context.ids = self.boot * 1_000_000  # each process makes ids of its own
        return super().start()

    def deliver(self, source: str, body: Any, **more: Any) -> list[Sent]:
        self.commit()  # what a test has read since the last turn
        return super().deliver(source, body, **more)

    def fire(self, timer: str) -> list[Sent]:
        self.commit()
        return super().fire(timer)

    def take(self) -> list[Sent]:
        self.commit()
        return super().take()

    def commit(self) -> None:
        assert self.file is not None
        self.file.commit()

    def close(self) -> None:
        assert self.file is not None
        self.file.close()


def any_sequence(steps: list[tuple[str, int, int]]) -> None:
    """What `test_server` tries of a store in memory, on a database."""
    server = OnPostgres(address(), agent_limit=LIMIT, device_limit=LIMIT + 1)
    with closing(server):
        crowd = Crowd(server)
        for step in steps:
            crowd.step(*step)
            crowd.count_open()
        crowd.check()


@settings(max_examples=4, deadline=None)
@given(STEPS)
def test_no_sequence_of_messages_crosses_owners_or_limits_or_escapes_the_audit(
    steps: list[tuple[str, int, int]],
) -> None:
    any_sequence(steps)


@pytest.mark.soak
@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_nor_does_any_of_many(steps: list[tuple[str, int, int]]) -> None:
    any_sequence(steps)


# Killed processes


class Accounted(Play):
    """A story whose server is a deployed one."""

    serve = staticmethod(serve)

    def wrong(self) -> list[str]:
        try:
            self.sim.run(0, self.trace)
            return wrong(self.sim, self.trace, self.unheard)
        finally:
            for store in self.stores.values():
                store.close()


def killed_at(story: str, count: int | None) -> None:
    """Kill the server at so many of its points, or at each; nothing is ever wrong."""
    whole = Accounted("postgres", story)
    assert whole.wrong() == []
    points = [crash for crash in whole.points() if crash[0] == "server"]
    tried = points if count is None else Random(story).sample(points, count)
    found = {}
    for crash in tried:
        play = Accounted("postgres", story, crash)
        if complaint := play.wrong():
            found[crash] = complaint
        assert play.stores["server"].crashed
    assert found == {}


def test_a_process_may_be_killed_at_some_of_its_points() -> None:
    killed_at("run", 3)


@pytest.mark.soak
@pytest.mark.parametrize("story", AGENTS)
def test_a_process_may_be_killed_at_any_of_its_points(story: str) -> None:
    killed_at(story, None)


# Two processes


@pytest.fixture
def two() -> Iterator[tuple[OnPostgres, OnPostgres]]:
    where = address()
    with closing(OnPostgres(where)) as first, closing(OnPostgres(where, 1)) as second:
        yield first, second


def test_who_waits_at_one_hears_within_a_second_of_a_change_at_the_other(
    two: tuple[OnPostgres, OnPostgres],
) -> None:
    here, there = two
    agent, device = here.add_agent(), there.add_device()
    there.share(device, 1)
    run = here.queued(agent)
    assert here.deliver(agent, GetGraphRun(command_id=run, wait_us=20 * S)) == []
    assert here.fire("relook") == [], "nothing has changed"
    since_us = here.context.now_us
    assert there.start_run(device, run)
    (told,) = here.fire("relook")
    assert here.context.now_us - since_us <= RELOOK_US
    assert isinstance(told.body, GraphRun)
    assert (told.target, told.body.status) == (agent, "running")
    assert "relook" not in here.context.timers, "nobody waits any more"


def test_a_key_and_a_limit_are_the_same_at_both(two: tuple[OnPostgres, OnPostgres]) -> None:
    here, there = two
    agent, device = here.add_agent(), there.add_device()
    there.share(device, 1)
    first, again = here.run(agent, key="key-0001"), there.run(agent, key="key-0001")
    assert isinstance(first, GraphRun)
    assert isinstance(again, GraphRun)
    assert (again.command_id, again.replayed) == (first.command_id, True)


def test_who_is_removed_at_one_is_nobody_at_the_other(two: tuple[OnPostgres, OnPostgres]) -> None:
    here, there = two
    device = here.add_device()
    here.share(device, 1)
    there.share(device, 1)
    here.deliver("own_local", RevokeDevice(device=device))
    (told,) = there.share(device, 1)
    assert type(told.body).__name__ == "PrincipalRevoked"
    assert meta(1).id not in {
        one.meta.id for one in there.actor.sessions.scan("device", (device,), limit=9)
    }
