"""What a run waits for, as its owner and its agent are told."""

from __future__ import annotations

from msgspec.structs import replace

from actors.accounts.messages import (
    CancelRun,
    Changed,
    Devices,
    ExplainRun,
    ListDevices,
    RunExplained,
)
from actors.messages import NOT_FOUND, Control, ControlAnswer, Failure
from tests.actors.accounts.deployed import Deployed, meta
from tests.actors.accounts.test_desk import Place
from tests.actors.harness import S

POLL_US = 20 * S  # as the bench's devices say


def reason(place: Place, run: str) -> str:
    """What both are told, which is the same."""
    theirs = place.server.told(place.agent, ExplainRun(command_id=run), RunExplained)
    ours = place.server.owner(ExplainRun(command_id=run), RunExplained, place.owner)
    assert theirs == RunExplained(command_id=run, reason=ours.reason), "nothing of the desktop"
    assert ours.device == place.device
    assert ours.name == "laptop"
    return ours.reason


def test_a_run_on_its_way_to_its_end() -> None:
    place = Place()
    run = place.queued()
    assert reason(place, run) == "next_sync"
    place.server.sync(place.device, (meta(1),), capacity=1)
    assert reason(place, run) == "not_begun"
    assert place.server.start_run(place.device, run)
    assert reason(place, run) == "running"
    body = Control(command_id=run, boot="boot-1", waiting=2)
    place.server.told(place.device, body, ControlAnswer)
    assert reason(place, run) == "approval"
    place.server.owner(CancelRun(command_id=run), Changed, place.owner)
    assert reason(place, run) == "stopping"
    place.server.complete(place.device, run)
    assert reason(place, run) == "ended"


def test_a_desktop_that_was_not_heard_of_is_away_also_while_it_runs() -> None:
    place = Place()
    run, behind = place.queued(), place.queued()
    place.server.start_run(place.device, run)
    heard_us = place.server.context.now_us
    place.server.context.now_us = heard_us + 3 * POLL_US
    assert (reason(place, run), reason(place, behind)) == ("running", "behind_others")
    place.server.context.now_us = heard_us + 3 * POLL_US + 6 * S
    assert (reason(place, run), reason(place, behind)) == ("away", "away")
    told = place.server.owner(ExplainRun(command_id=run), RunExplained, place.owner)
    assert (told.synced_ago_us, told.poll_us) == (3 * POLL_US + 6 * S, POLL_US)
    (listed,) = place.server.owner(ListDevices(), Devices, place.owner).devices
    assert listed.synced_ago_us == told.synced_ago_us


def test_what_a_new_server_knows_of_a_contact_is_not_as_exact() -> None:
    place = Place()
    run = place.queued()
    place.server.start()  # what it has heard is in the former one's memory alone
    place.server.context.now_us += 3 * POLL_US + 6 * S
    assert reason(place, run) == "takes_none"
    place.server.context.now_us += 60 * S
    assert reason(place, run) == "away"


def test_another_server_may_have_heard_of_it_since() -> None:
    place = Place(server=Deployed(shared=True))
    run = place.queued()
    place.server.context.now_us += 3 * POLL_US + 6 * S
    assert reason(place, run) == "takes_none"
    place.server.context.now_us += 60 * S
    assert reason(place, run) == "away"


def test_how_many_runs_come_first() -> None:
    place = Place()
    first, second, third = place.queued(), place.queued(), place.queued()
    place.server.start_run(place.device, first)

    def ahead(run: str) -> int:
        return place.server.owner(ExplainRun(command_id=run), RunExplained, place.owner).ahead

    assert [ahead(run) for run in (first, second, third)] == [0, 1, 2]
    assert reason(place, second) == "behind_others"
    place.server.complete(place.device, first)
    assert [ahead(run) for run in (second, third)] == [0, 1]
    assert place.server.start_run(place.device, third)
    assert ahead(second) == 1, "one that was let start before its turn"


def test_a_desktop_that_syncs_and_takes_nothing() -> None:
    place = Place()
    run = place.queued()
    for _ in range(4):
        place.server.context.now_us += POLL_US
        place.server.share(place.device, 1)  # with room for none, as when its disk is full
    assert reason(place, run) == "takes_none"


def test_a_session_that_is_not_shared_any_more_or_was_changed() -> None:
    place = Place()
    run = place.queued()
    place.server.sync(place.device, (replace(meta(1), generation=1),))
    assert reason(place, run) == "not_shared"
    place.server.sync(place.device, (meta(1),))
    assert reason(place, run) == "next_sync"
    place.server.sync(place.device, ())
    assert reason(place, run) == "not_shared"


def test_strangers_are_told_nothing() -> None:
    server = Deployed()
    place, other = Place(1, server), Place(2, server)
    run = place.queued()
    for asked, outcome in ((run, "another's"), ("no-such-run", "unknown")):
        body = ExplainRun(command_id=asked)
        assert server.told(other.agent, body, Failure) == NOT_FOUND
        assert (other.agent, "ExplainRun", asked, outcome) in server.acts(other.owner)
        assert server.owner(body, Failure, other.owner).code == "not_found"
