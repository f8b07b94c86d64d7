"""What a deployed relay makes of a new link: what it asked over the old, it asks again soon."""

from __future__ import annotations

import pytest

from actors.desktop.messages import Connected
from actors.desktop.relay import RESYNC_US
from actors.messages import Accepted, Commands, Complete, FleetRun, Start, StartAnswer, Sync
from tests.actors.desktop.owned import Owned
from tests.actors.harness import Sent, only


def shared() -> tuple[Owned, str]:
    """A desktop that shares one session and does nothing."""
    desk = Owned()
    session = desk.add()
    desk.share(session)
    desk.actor.passing = False
    return desk, session


def linked_anew(desk: Owned) -> list[Sent]:
    """Tell of a new link, and let its next poll come; what is said then."""
    assert desk.deliver("uplink", Connected()) == [], "nothing at once: others may come back too"
    delay_us = desk.context.timers["poll"] - desk.context.now_us
    assert 0 <= delay_us < RESYNC_US
    return desk.poll()


def test_it_syncs_within_two_seconds() -> None:
    desk, _ = shared()
    only(linked_anew(desk), Sync, "server")


def test_desktops_that_come_back_together_do_not_sync_together() -> None:
    desk, _ = shared()
    delays = set()
    for _ in range(20):
        desk.deliver("uplink", Connected())
        delays.add(desk.context.timers["poll"] - desk.context.now_us)
    assert len(delays) == 20
    assert max(delays) - min(delays) > RESYNC_US / 2


def test_a_sync_that_was_lost_is_not_waited_for() -> None:
    desk, session = shared()
    lost = desk.sync()
    sync = only(linked_anew(desk), Sync, "server")
    assert desk.unanswered(lost) == []
    start = only(desk.answer(sync, Commands(commands=(desk.command_for(session),))), Start)
    assert start.body.command_id == "r1"


def test_nor_is_a_question_for_leave_and_the_run_starts_once() -> None:
    desk, session = shared()
    lost = desk.asked_to_start(desk.command_for(session))
    asked = only(linked_anew(desk), Start, "server")
    assert asked.body == lost.body
    only(desk.answer(asked, StartAnswer(go=True)), FleetRun)
    for sent in (desk.unanswered(lost), desk.answer(lost, StartAnswer(go=True))):
        assert sent == []


def test_nor_is_a_result_that_was_posted() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session))
    lost = desk.finished()
    posted = only(linked_anew(desk), Complete, "server")
    assert posted.body == lost.body
    only(desk.answer(posted, Accepted(command_id="r1")), Sync)
    assert desk.unsent() == []


@pytest.mark.parametrize("late", [False, True])
def test_what_executes_goes_on(late: bool) -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session))
    (control,) = desk.fire("control")
    presence = only(linked_anew(desk), Sync, "server")
    assert presence.body.capacity == 0
    assert presence.body.open == ("r1",)
    if late:
        desk.unanswered(control)
    desk.accept(desk.finished())
    assert desk.unsent() == []


@pytest.mark.parametrize("accepted", [False, True])
def test_a_run_that_ended_is_not_begun_anew_by_a_question_about_it(accepted: bool) -> None:
    desk = Owned(slots=2)
    session = desk.add()
    desk.share(session)
    desk.actor.passing = False
    desk.executing(desk.command_for(session))
    (control,) = desk.fire("control:r1")
    post = desk.finished()
    if accepted:
        desk.accept(post)
    sent = linked_anew(desk)
    assert not [one for one in sent if isinstance(one.body, Start)]
    assert desk.unanswered(control) == []
    posted = [one.body.command_id for one in sent if isinstance(one.body, Complete)]
    assert posted == ([] if accepted else ["r1"])


def test_a_time_out_of_before_ends_no_pass_of_now() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session))
    lost = desk.finished()
    sync = only(desk.answer(only(linked_anew(desk), Complete), Accepted(command_id="r1")), Sync)
    again = only(desk.unanswered(lost), Sync)
    assert desk.actor.passing
    assert desk.answer(sync, Commands(commands=())) == []
    desk.answer(again, Commands(commands=()))
    assert not desk.actor.passing
