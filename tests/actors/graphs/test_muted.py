"""A muted context: time is what it is told, and nothing leaves it."""

from __future__ import annotations

import pytest

from actors.graphs.muted import MutedContext
from actors.graphs.trail import TURNS, Turn
from tests.actors.harness import FakeContext
from transports.envelope import Envelope

TURN = Turn(execution_id="e", number=0, now_us=0, stamp_us=0, free=0)


def test_nothing_leaves_it() -> None:
    behind = FakeContext("engine")
    muted = MutedContext(behind)
    muted.send("model", "hello")
    muted.reply(Envelope(1, "a", "engine", 0, 0, "x"), "hello")
    muted.request_every("t", 1, "model", "hello", 1)
    muted.set_timer("t", 1)
    muted.cancel_timer("t")
    muted.log("event", run="r")
    muted.done()
    muted.trace("")
    assert muted.request("model", "hello", 1) == -1
    assert (behind.sent, behind.timers, behind.events, behind.dones) == ([], {}, [], 0)


def test_its_tables_are_empty_and_stay_so() -> None:
    behind = FakeContext("engine")
    table = MutedContext(behind).store.table(TURNS)
    table.put("k", TURN)
    assert table.insert_unique("k", TURN)
    table.delete("k")
    assert table.get("k") is None
    assert table.scan("run", ("e",), limit=9) == table.claim("run", limit=9) == []
    assert table.count("run") == 0
    assert behind.store.snapshot() == {}


def test_it_has_the_time_that_it_is_told_and_draws_nothing() -> None:
    muted = MutedContext(FakeContext("engine"))
    muted.at(5, 7)
    assert (muted.name, muted.now_us, muted.stamp_us, muted.traceparent) == ("engine", 5, 7, "")
    with pytest.raises(AssertionError, match="draws from 'graph'"):
        muted.random("graph")
    with pytest.raises(AssertionError, match="makes an id"):
        muted.new_id()
