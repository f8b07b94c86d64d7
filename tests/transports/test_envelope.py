"""An envelope is frozen, cheap, and its id a number that every reader reads exactly."""

import gc
from typing import Any

import msgspec
import pytest

from transports.envelope import BOOT_LIMIT, SERIAL_BITS, Envelope

ENVELOPE = Envelope(7, "agent", "server", 0, 3, "hello")


def test_an_envelope_never_changes() -> None:
    with pytest.raises(AttributeError):
        ENVELOPE.source = "relay"  # type: ignore[misc]  # the point of this test
    changed: Envelope[Any] = msgspec.structs.replace(ENVELOPE, source="relay")
    assert (changed.source, ENVELOPE.source) == ("relay", "agent")


def test_envelopes_with_equal_fields_are_equal() -> None:
    assert Envelope(7, "agent", "server", 0, 3, "hello") == ENVELOPE
    assert Envelope(8, "agent", "server", 0, 3, "hello") != ENVELOPE


def test_the_garbage_collector_does_not_track_an_envelope() -> None:
    assert not gc.is_tracked(Envelope(7, "agent", "server", 0, 0, ENVELOPE))


def test_the_last_id_of_the_last_boot_is_exact_for_javascript() -> None:
    last = (BOOT_LIMIT - 1 << SERIAL_BITS) + (1 << SERIAL_BITS) - 1
    assert last == 2**53 - 1
    assert float(last) == last


def test_ids_of_two_boots_never_meet() -> None:
    assert (1 << SERIAL_BITS) + (1 << SERIAL_BITS) - 1 < 2 << SERIAL_BITS
