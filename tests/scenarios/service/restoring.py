"""A server's database is replaced by an older one: what was done since is never done again."""

from __future__ import annotations

import random
from collections.abc import Sequence

import trio

from actors.messages import NOT_FOUND, TERMINAL, Failure
from actors.stores.sqlite import backup, restore, set_aside
from scenarios.service.credentials import read_credentials
from tests.scenarios.service import verdict
from tests.scenarios.service.calls import Wish
from tests.scenarios.service.members import LOOK_S
from tests.scenarios.service.plant import Plant


async def restored(
    plant: Plant, chance: random.Random, before: Sequence[Wish], after: Sequence[Wish]
) -> list[str]:
    """Back up while runs are under way, go on, restore; return what is not as it must be.

    The runs `before` are queued before the backup, those `after` once it is there. Between
    the two the desktop gets a token that the backup does not know.
    """
    server, database = plant.servers[0], plant.databases[0]
    copy = plant.home / "copy.db"
    copy.unlink(missing_ok=True)
    async with trio.open_nursery() as nursery:
        for wish in before:
            wish.delay_s = 0.0
            nursery.start_soon(wish.live, plant.calls, plant.session)
        while not all(wish.ticket for wish in before):  # noqa: ASYNC110  no one task's event
            await trio.sleep(LOOK_S)
        await trio.sleep(chance.random() * 0.8)
        await trio.to_thread.run_sync(backup, database, copy)
    known = read_credentials(plant.desktop_folder)
    await plant.balancer.cut()  # a token that is replaced must have been used
    await plant.balancer.mend()
    async with trio.open_nursery() as nursery:
        for wish in after:
            nursery.start_soon(wish.live, plant.calls, plant.session)
    while read_credentials(plant.desktop_folder) == known:  # noqa: ASYNC110  another process's
        await trio.sleep(LOOK_S)
    marks = verdict.read_marks(plant.marks)
    found = [*verdict.ends([*before, *after], marks, interrupts=False)]
    await server.kill()
    set_aside(database).unlink()
    restore(copy, database)
    await plant.start_all()
    for wish in before:
        found += await _told_again(plant, wish)
    for wish in after:
        await wish.look(plant.calls)
        if wish.told[-1] != NOT_FOUND:
            found.append(f"{wish.ticket} is known to a database that is older")
        wish.told.clear()
        wish.complaints.clear()
    return found


async def _told_again(plant: Plant, wish: Wish) -> list[str]:
    """Wait until a run has ended once more; return what is wrong with that end."""
    first = wish.run
    assert first is not None, "it has ended before"
    wish.told.clear()
    while True:
        await wish.look(plant.calls)
        again = wish.told[-1]
        if isinstance(again, Failure):
            return [f"{wish.ticket} was queued before the backup: {again.error}"]
        if again.status in TERMINAL:
            break
    # A cancel that came after the backup is forgotten: what it kept from starting may start now.
    forgotten = first.status == "cancelled"
    if not forgotten and again.status not in (first.status, "interrupted"):
        return [f"{wish.ticket} was {first.status} and is {again.status} after a restore"]
    if not forgotten and again.status == "completed" and again.result != first.result:
        return [f"{wish.ticket} has another result after a restore"]
    return []
