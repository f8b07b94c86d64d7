"""What may be set of a relay, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.config import decode_hook
from actors.relay import Relay
from actors.relay_config import SLOTS_LIMIT


def convert(**keys: Any) -> Relay.Config:
    return msgspec.convert(keys, Relay.Config, dec_hook=decode_hook)


def test_the_defaults_are_the_account_s() -> None:
    config = convert()
    assert (config.poll_us, config.control_us, config.timeout_us) == (
        20_000_000, 3_000_000, 10_000_000,
    )  # fmt: skip
    assert (config.slots, config.stop_limit_us, config.outbox, config.presence) == (
        1, 0, True, False,
    )  # fmt: skip


@pytest.mark.parametrize("key", ["poll", "control", "timeout"])
def test_a_time_of_nothing_is_refused(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"{key} must be longer than 0s"):
        convert(**{key: "0s"})


@pytest.mark.parametrize("slots", [0, -1, SLOTS_LIMIT + 1, 1.5])
def test_slots_are_few_and_whole(slots: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        convert(slots=slots)


def test_a_stop_may_take_for_ever_or_have_a_limit() -> None:
    assert convert(stop_limit="1m").stop_limit_us == 60_000_000
