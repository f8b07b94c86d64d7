"""A history from a log is the one that its host observed, but for what no log has."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.messages import GetGraphRun, GraphRun
from logs.keep import MemoryRecorder
from logs.record import SendRecord
from scenarios.build import CellRun
from scenarios.checks import History, history_of
from scenarios.load import load_plan
from scenarios.log_history import history_of_log
from tests.logs.samples import SCENARIOS, Made, log_of, section


@pytest.mark.parametrize("name", ["published/outbox", "chaos/agent_dies", "chaos/full_disk"])
def test_a_log_tells_what_its_host_observed(name: str) -> None:
    plan = load_plan(SCENARIOS / f"{name}.toml")
    cell = CellRun(plan.scenarios[0], plan.run.seed, plan.cells[0].label, plan.folder)
    recorder = MemoryRecorder()
    cell.simulator.run(0, recorder)
    seen = history_of(cell, recorder)
    cut = history_of_log(section(log_of(name)))
    read = cut.history
    assert cut.missing == ()
    assert len(read.records) == len(seen.records)
    assert read.records == [
        one if isinstance(one, SendRecord) else _as_read(one) for one in seen.records
    ]
    assert (dict(read.kinds), dict(read.configs)) == (dict(seen.kinds), dict(seen.configs))
    assert read.ended_us == seen.ended_us
    assert read.settled
    assert list(read.stories) == list(seen.stories)
    for kind in (GraphRun, GetGraphRun):
        assert [one.n for one in read.delivered(kind)] == [one.n for one in seen.delivered(kind)]


def _as_read(record: object) -> object:
    """A record as it is after a way through JSON, its body typed again."""
    envelope = getattr(record, "envelope", None)
    plain = msgspec.json.decode(msgspec.json.encode(record))
    if envelope is None:
        return msgspec.convert(plain, type(record))
    body = msgspec.convert(plain["envelope"].pop("body"), type(envelope.body))
    bare = msgspec.convert({**plain, "envelope": {**plain["envelope"], "body": None}}, type(record))
    whole = msgspec.structs.replace(bare.envelope, body=body)  # type: ignore[attr-defined]  # it has
    return msgspec.structs.replace(bare, envelope=whole)  # type: ignore[type-var]  # a struct


def test_when_the_last_fault_ended_is_known_only_where_there_was_none() -> None:
    assert history_of_log(section(log_of("published/outbox"))).history.healed_us is None
    assert history_of_log(section(log_of("published/cancel"))).history.healed_us == 0
    assert history_of_log(Made().section()).history.healed_us is None


def test_asking_for_what_a_log_has_not_is_noticed_each_time() -> None:
    history = history_of_log(section(log_of("published/outbox"))).history
    assert history.stories
    assert not history.asked
    assert history.run_rows == {}
    assert list(history.asked) == ["stores"]
    history.afresh()
    assert not history.asked
    assert history.run_rows == {}
    assert list(history.asked) == ["stores"]
    assert history.timers == {}
    assert list(history.asked) == ["stores", "timers"]
    history.afresh()
    assert dict(history.stores) == {}
    assert list(history.asked) == ["stores"]
    assert isinstance(history, History)


def test_without_a_scenario_parts_are_known_by_names() -> None:
    made = Made()
    for name in ("server", "relay-2", "engine_b", "agents", "laptop"):
        made.tell.start(0, name, 0)
    cut = history_of_log(made.section())
    assert cut.history.kinds == {"server": "server", "relay-2": "relay", "engine_b": "engine"}
    assert cut.missing == (
        "its header has no scenario: parts are known by the actors' names",
        "which parts agents, laptop play is not known",
    )


def test_a_scenario_that_can_not_be_made_again_is_told(tmp_path: Path) -> None:
    made = Made(resolved={"schema": 1, "name": "s", "relay": {"poll": "soon"}})
    made.tell.start(0, "server", 0)
    [told] = history_of_log(made.section()).missing
    assert told.startswith("its scenario can't be read here: ")
    foreign = {"schema": 1, "name": "s", "relay": {"use": "gone.py:Relay"}}
    made = Made(resolved=foreign, folder=str(tmp_path))
    made.tell.start(0, "relay", 0)
    cut = history_of_log(made.section())
    assert "gone.py" in cut.missing[0]
    assert cut.history.kinds == {"relay": "relay"}


def test_messages_that_are_not_ours_stay_as_they_are() -> None:
    made = Made()
    made.tell.message(0, made.envelope("a", "b", {"type": "Hello", "x": 1}))
    made.tell.message(0, made.envelope("a", "b", {"type": "GraphRun", "status": 5}))
    made.tell.message(0, made.envelope("a", "b", [1]))
    cut = history_of_log(made.section())
    assert [one.envelope.body for one in cut.history.records if hasattr(one, "envelope")] == [
        {"type": "Hello", "x": 1}, {"type": "GraphRun", "status": 5}, [1]
    ]  # fmt: skip
    assert [one for one in cut.missing if "type" in one] == [
        "messages of the type Hello are not read",
        "messages of the type GraphRun are not read",
        "messages of the type list are not read",
    ]


def test_a_truncated_log_is_not_settled() -> None:
    cut = history_of_log(section(Made().data(end=False)))
    assert not cut.history.settled
    assert "it is truncated, so what comes later is not known" in cut.missing
