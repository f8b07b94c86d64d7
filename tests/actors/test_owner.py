"""The owner: each step at its time, in order, and again until the relay has noted it."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Place, Step
from actors.messages import Disable, Enable, Noted, Rename, Share, Unshare
from actors.owner import Owner
from tests.actors.harness import SESSION, Bench, S, only


def step(at_s: int, act: str) -> Step:
    return Step(at_us=at_s * S, act=act, session=SESSION.id)


class Person(Bench):
    """An owner with steps."""

    def __init__(self, *steps: Step, **config: Any) -> None:
        place = Place(name="owner", relay="relay-2", sessions=(SESSION,), steps=steps)
        super().__init__(Owner(Owner.Config(**config), place), "owner")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("share", Share(session=SESSION.id)),
        ("unshare", Unshare(session=SESSION.id)),
        ("rename", Rename(session=SESSION.id, name="demo renamed")),
        ("enable", Enable(project="default")),
        ("disable", Disable(project="default")),
    ],
)
def test_a_step_is_told_to_the_owner_s_relay_at_its_time(act: str, message: Any) -> None:
    person = Person(step(7, act))
    assert person.started == []
    assert person.context.timers == {"0": 7 * S}
    question = only(person.fire("0"), type(message), "relay-2")
    assert question.body == message
    assert question.timeout_us == 10 * S
    assert person.events("owner.step") == [{"act": act, "session": SESSION.id}]
    assert person.answer(question, Noted()) == []
    assert person.context.dones == 1


def test_a_step_is_repeated_until_it_is_noted() -> None:
    person = Person(step(7, "unshare"))
    question = only(person.fire("0"), Unshare)
    for _ in range(3):
        again = only(person.unanswered(question), Unshare)
        assert again.body == question.body
        question = again
    person.answer(question, Noted())
    assert person.context.dones == 1


def test_a_later_step_waits_for_an_earlier_one_that_is_not_noted() -> None:
    """Else the earlier one, told again, would undo the later one."""
    person = Person(step(5, "unshare"), step(8, "share"), step(9, "unshare"))
    unshare = only(person.fire("0"), Unshare)
    assert person.fire("1") == []
    assert person.fire("2") == []
    unshare = only(person.unanswered(unshare), Unshare)
    share = only(person.answer(unshare, Noted()), Share)
    share = only(person.unanswered(share), Share)
    last = only(person.answer(share, Noted()), Unshare)
    assert person.context.dones == 0
    assert person.answer(last, Noted()) == []
    assert person.context.dones == 1


def test_a_restart_takes_the_steps_that_are_left_in_order() -> None:
    person = Person(step(1, "unshare"), step(2, "share"), step(50, "disable"))
    person.answer(only(person.fire("0"), Unshare), Noted())
    person.fire("1")
    assert person.start() == []
    assert person.context.timers == {"1": 2 * S, "2": 50 * S}
    person.answer(only(person.fire("1"), Share), Noted())
    person.answer(only(person.fire("2"), Disable), Noted())
    assert person.context.dones == 1
    assert person.start() == []
    assert (person.context.dones, person.context.timers) == (2, {})


def test_an_owner_without_steps_is_done() -> None:
    assert Person().context.dones == 1
