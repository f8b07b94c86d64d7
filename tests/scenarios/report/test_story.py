"""A replication told again is the one that was run; one from a log is what the log has."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from logs.read import read_sections
from scenarios.load import load_plan
from scenarios.report.story import Teller, story_of
from scenarios.results import ScenarioResult
from scenarios.run import load_plans
from scenarios.runner import NO_OPTIONS, Options, Runner
from tests.scenarios.commandline import SMALL, command, result_of, write, write_foreign
from tests.scenarios.report.test_strip import FAULTS


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> ScenarioResult:
    return result_of(tmp_path_factory.mktemp("story"), SMALL + FAULTS)


def test_it_has_the_records_of_the_log(tmp_path: Path) -> None:
    write(tmp_path, SMALL + FAULTS)
    done = command(tmp_path, "run", "small.toml", "-n", "3", "--logs", "all", "--out", "out")
    assert done.code in (0, 3), done.err
    plan = load_plan(tmp_path / "small.toml")
    result = result_of(tmp_path, SMALL + FAULTS, replications=3)
    logged = [
        section for path in sorted((tmp_path / "out" / "logs").iterdir())
        for section in read_sections(path)
    ]  # fmt: skip
    for section in logged:
        cell = next(cell for cell in result.cells if cell.cell.label == section.header.cell)
        story = Teller(NO_OPTIONS, None).tell(plan, cell, section.header.replication)
        assert story is not None
        assert [(r.n, r.t, r.actor, r.cause) for r in story.records] == [
            (r.n, r.t, r.actor, r.cause) for r in section.records
        ]
        assert section.end is not None
        assert (story.end_us, story.outcome) == (section.end.t, "ended")
        kept = story_of(section)
        assert (kept.end_us, kept.outcome, kept.stops()) == (
            story.end_us, "ended", story.stops(),
        )  # fmt: skip
        assert kept.firings["sleep"] == story.firings["sleep"]
    assert len(logged) == 6


def test_firings_are_as_many_as_were_counted(one: ScenarioResult) -> None:
    teller = Teller(NO_OPTIONS, None)
    for number in range(10):
        story = teller.tell(one.plan, one.cells[0], number)
        assert story is not None
        for fault in one.cells[0].scenario.faults:
            found = story.firings[fault.name]
            assert len(found) == one.cells[0].fired(fault.name)[number]
            assert found == sorted(found)
            assert all(0 <= at <= story.end_us for at in found)


def test_stops_have_their_ends(one: ScenarioResult) -> None:
    story = Teller(NO_OPTIONS, None).tell(one.plan, one.cells[0], 0)
    assert story is not None
    (stop,) = story.stops()
    assert (stop.fault, stop.actor, stop.act) == ("sleep", "relay", "suspend")
    assert (stop.begin_us, stop.end_us) == (10_000_000, 30_000_000)
    cut = [record for record in story.records if record.t < 20_000_000]
    assert replace(story, records=cut).stops()[0].end_us == story.end_us


def test_what_gives_other_results_is_not_told(tmp_path: Path) -> None:
    one = result_of(tmp_path)
    teller = Teller(NO_OPTIONS, None)
    assert teller.tell(one.plan, one.cells[0], 3) is not None
    cell = one.cells[1]
    next(rows for number, rows in cell.rows("wait") if number == 3)
    cell._values["wait"][6] += 0.5  # the first of replication 3, as another program has it
    assert teller.tell(one.plan, cell, 3) is None
    assert teller.tell(one.plan, cell, 4) is not None
    assert teller.unlike == 1


def test_what_did_not_end_is_told_up_to_there(tmp_path: Path) -> None:
    path = write_foreign(tmp_path, "raise RuntimeError('no')")
    chosen = Options(jobs=1)
    plans = load_plans([str(path)], chosen)
    (result,) = Runner(plans, chosen, None).run().scenarios
    ((_, trouble),) = result.troubles
    story = Teller(NO_OPTIONS, None).tell(result.plan, result.cells[0], trouble.replication)
    assert story is not None
    assert story.outcome == "failed"
    assert story.records


def test_of_another_host_only_logs_tell(one: ScenarioResult, tmp_path: Path) -> None:
    options = replace(NO_OPTIONS, driver="trio")
    for folder in (None, tmp_path):
        teller = Teller(options, folder)
        teller.keep(frozenset({("small", "relay.poll=5s", 0)}))
        assert teller.tell(one.plan, one.cells[0], 0) is None
    write(tmp_path, SMALL)
    command(tmp_path, "run", "small.toml", "-n", "2", "--logs", "all", "--out", "out")
    teller = Teller(options, tmp_path / "out")
    teller.keep(frozenset({("small", "relay.poll=5s", 1)}))
    assert teller.tell(one.plan, one.cells[0], 0) is None, "nobody asked for it"
    assert teller.tell(one.plan, one.cells[0], 1) is not None
