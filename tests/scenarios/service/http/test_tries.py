"""Failed tries: bounded for an address, for all, and in memory."""

from __future__ import annotations

import pytest

from scenarios.service.http import tries as module
from scenarios.service.http.tries import ADDRESS_LIMIT, WINDOW_S, Tries


def test_an_address_waits_once_it_has_failed_too_often() -> None:
    now_s = [100.0]
    tries = Tries(lambda: now_s[0])
    for _ in range(ADDRESS_LIMIT):
        assert tries.wait_s("a") == 0
        tries.failed("a")
        now_s[0] += 1
    assert tries.wait_s("a") == WINDOW_S - ADDRESS_LIMIT
    assert tries.wait_s("b") == 0
    now_s[0] += WINDOW_S - ADDRESS_LIMIT
    assert tries.wait_s("a") == 0  # the first is forgotten, and one more may be tried
    tries.failed("a")
    assert tries.wait_s("a") == 1


def test_all_addresses_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOTAL_LIMIT", 4)
    tries = Tries(lambda: 0.0)
    for number in range(4):
        assert tries.wait_s("me") == 0
        tries.failed(f"address {number}")
    assert tries.wait_s("me") == WINDOW_S


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ADDRESSES_LIMIT", 3)
    tries = Tries(lambda: 0.0)
    for number in range(50):
        tries.failed(f"address {number}")
    assert len(tries._by_address) == 3
