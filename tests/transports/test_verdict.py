"""What becomes of a message: by default nothing at all."""

from __future__ import annotations

import pytest

from transports.verdict import LOST, Verdict


def test_a_verdict_that_says_nothing_lets_the_message_be() -> None:
    verdict = Verdict()
    assert not verdict.lost
    assert (verdict.later_us, verdict.copies, verdict.overtaken) == (0, 0, False)


def test_lost_is_the_end_of_it() -> None:
    assert Verdict(lost=True) == LOST


def test_a_verdict_does_not_change() -> None:
    with pytest.raises(AttributeError):
        LOST.lost = False  # type: ignore[misc]  # it is frozen, which is what is tried
