"""Reasons in words: each has some, and an owner is told of the desktop too."""

from __future__ import annotations

from typing import get_args

import pytest

from actors.accounts.messages import Reason, RunExplained
from scenarios.service.why import WORDS, words_of


def test_every_reason_has_words() -> None:
    assert set(WORDS) == set(get_args(Reason))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (RunExplained(command_id="c", reason="away"), "its desktop has not been heard of lately"),
        (
            RunExplained(command_id="c", reason="behind_others"),
            "other runs come first on its desktop",
        ),
        (
            RunExplained(
                command_id="c", reason="away", device="dev_1", name="laptop",
                synced_ago_us=193_500_000,
            ),
            "its desktop has not been heard of lately (laptop, synced 3m13s ago)",
        ),
        (
            RunExplained(command_id="c", reason="behind_others", device="dev_1", ahead=1),
            "1 other run comes first on its desktop (dev_1, never synced)",
        ),
        (
            RunExplained(
                command_id="c", reason="behind_others", device="d", synced_ago_us=0, ahead=2
            ),
            "2 other runs come first on its desktop (d, synced 0s ago)",
        ),
    ],
)  # fmt: skip
def test_a_reason_in_words(told: RunExplained, words: str) -> None:
    assert words_of(told) == words
