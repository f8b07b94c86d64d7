"""From a section to a stepper: what can be stepped through, and why something can't."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from logs.keep import MemoryRecorder
from logs.read import LogError, Section
from scenarios import step_files
from scenarios.checks.history import History, Violation, history_of
from scenarios.load import load_plan
from scenarios.runner import Options, job_of
from scenarios.step_files import at_the_end, stepper_of
from scenarios.step_lines import CommandError, LineMode
from scenarios.work import build
from tests.scenarios.commandline import ROOT
from tests.scenarios.stepping import data_of, section_of


def test_a_section_is_stepped_from_its_first_record() -> None:
    section = section_of(data_of("examples/first"))
    made = stepper_of(section)
    assert made.record is section.records[0]
    assert list(made.lanes) == ["server", "relay", "engine", "agent"]


def test_metrics_are_left_out() -> None:
    made = stepper_of(section_of(data_of("published/poll_strategies")))
    host = made.lanes["server"]._host
    assert dict(host.watchers) == {}
    for name, context in host.contexts.items():
        assert context.handlers == dict(context.actor.handlers), name


def test_one_without_a_scenario_or_without_records_says_so() -> None:
    section = section_of(data_of("examples/first"))
    bare = msgspec.structs.replace(section.header, resolved={})
    with pytest.raises(LogError, match=r"a\.jsonl, line 1: its header has no scenario") as raised:
        stepper_of(msgspec.structs.replace(section, header=bare))
    assert "--logs all" in raised.value.cure
    with pytest.raises(LogError, match="it has no records"):
        stepper_of(msgspec.structs.replace(section, records=[]))


def test_an_actor_that_is_not_there_any_more_is_told(tmp_path: Path) -> None:
    section = section_of(data_of("examples/eager_relay", cell=1))
    header = msgspec.structs.replace(section.header, folder=str(tmp_path), path="x.toml")
    with pytest.raises(LogError, match="eager_relay"):
        stepper_of(msgspec.structs.replace(section, header=header))
    lost = msgspec.structs.replace(section, header=header)
    folder = Path(section.header.folder)
    assert stepper_of(lost, folder).lanes["relay"].differences == {}


def test_a_scenario_that_no_longer_reads_is_told() -> None:
    section = section_of(data_of("examples/first"))
    resolved = {**section.header.resolved, "nonsense": {"a": 1}}
    header = msgspec.structs.replace(section.header, resolved=resolved)
    with pytest.raises(LogError, match="its scenario can't be read here"):
        stepper_of(msgspec.structs.replace(section, header=header))


def test_programs_are_not_re_executed_and_their_records_are_shown() -> None:
    section = section_of(data_of("examples/first"))
    resolved = {**section.header.resolved, "relay": {"command": ["./relay"]}}
    header = msgspec.structs.replace(section.header, resolved=resolved)
    made = stepper_of(msgspec.structs.replace(section, header=header))
    assert list(made.lanes) == ["server", "agent"], "its engine is the program's own"
    made.search(made.wanted("relay"))
    assert made.record.actor == "relay"
    assert (made.moment("relay"), made.turn(), made.difference_at(made.at)) == (None, None, None)
    mode = LineMode(made)
    assert "  relay is not re-executed" in [one.text[:26] for one in mode.do("where")]
    assert mode.do("mailbox")[0].text.endswith("under way to relay")
    with pytest.raises(CommandError, match="relay is not re-executed: a program") as raised:
        mode.do("state relay")
    assert raised.value.cure == "there are server, agent"


def test_violations_are_those_that_the_records_prove() -> None:
    section = section_of(data_of("examples/first"))
    assert stepper_of(section).violations == {}
    start = next(one for one in section.records if getattr(one, "event", "") == "engine.started")
    last = section.records[-1]
    again = msgspec.structs.replace(start, n=last.n + 1, t=last.t)
    made = stepper_of(msgspec.structs.replace(section, records=[*section.records, again]))
    assert list(made.violations) == [start.n, again.n]
    assert [one.check for one in made.violations[again.n]] == ["executed_at_most_once"]


@pytest.mark.parametrize("name", ["examples/first", "chaos/redeploy", "chaos/slow_clocks"])
def test_the_end_is_what_the_run_ended_with(name: str) -> None:
    cell = build(job_of(load_plan(ROOT / "scenarios" / f"{name}.toml"), 0, Options()))
    recorder = MemoryRecorder()
    cell.simulator.run(0, recorder)
    ran = history_of(cell, recorder)
    made = stepper_of(section_of(data_of(name)))
    made.to(1)
    found = at_the_end(made, ran)
    assert any(ran.stores.values())
    assert (found.stores, found.timers) == (ran.stores, ran.timers)
    assert (found.outcome, found.ended_us) == (ran.outcome, ran.ended_us)


def seeing(history: History) -> Iterator[Violation]:
    """A check that never holds, and says what it sees."""
    yield Violation("results_arrive", f"{len(history.runs_at_end)} runs", (1,))


def judged(section: Section) -> list[str]:
    return [one.sentence for found in stepper_of(section).violations.values() for one in found]


def test_what_only_the_stores_tell_is_judged_where_they_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_files, "CHECKS", {"results_arrive": seeing})
    section = section_of(data_of("examples/first"))
    [sentence] = judged(section)
    assert int(sentence.split()[0]) > 0
    assert judged(msgspec.structs.replace(section, end=None)) == [], "it was cut before its end"
    event = next(one for one in section.records if getattr(one, "event", ""))
    records = [one for one in section.records if one is not event]
    differing = msgspec.structs.replace(section, records=records)
    assert judged(differing) == [], "it ends otherwise than it did"
    monkeypatch.setattr(step_files, "END_LIMIT_RECORDS", 10)
    assert judged(section) == [], "it would take too long"
