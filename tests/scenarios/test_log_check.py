"""The invariants on a stored log: held, violated, or honestly not judged."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from logs.read import Section
from logs.seek import entries_of
from scenarios.checks import CHECKS, History
from scenarios.log_check import (
    HEARS,
    STANDS_ON,
    Judged,
    Report,
    _judge,
    as_json,
    check_log,
    checks_named,
    lines_of,
)
from scenarios.log_history import history_of_log
from scenarios.problems import ScenarioError
from tests.logs.samples import Made, log_of
from tests.logs.test_any_log import sections


def judged(folder: Path, data: bytes, *names: str) -> Report:
    path = folder / "a.jsonl"
    path.write_bytes(data)
    return check_log(entries_of(path), names)


def verdicts(report: Report) -> dict[str, str]:
    return {one.check: one.verdict for one in report.checks}


@pytest.mark.parametrize("name", ["published/outbox", "published/consent", "chaos/agent_dies"])
def test_what_held_in_the_run_holds_on_its_log(tmp_path: Path, name: str) -> None:
    report = judged(tmp_path, log_of(name))
    assert report.exit == 0
    assert report.missing == []
    found = verdicts(report)
    assert list(found) == list(CHECKS)
    for check in STANDS_ON:
        assert found[check] == "not judged"
    for check in ("executed_at_most_once", "same_key_one_run", "consent_respected"):
        assert found[check] == "held"
    for check in ("nothing_accepted_lost", "terminal_never_changes", "bounds_hold"):
        assert found[check] == "held in part"


def test_a_check_that_asks_for_the_stores_is_never_said_to_hold(tmp_path: Path) -> None:
    """Whatever of a history has not the stores in it, each check that would read them is known."""
    for name, check in CHECKS.items():
        source = inspect.getsource(inspect.getmodule(check))  # type: ignore[arg-type]  # it has one
        reads = re.search(r"history\.(rows|runs_at_end|run_rows|keeps_runs|stores|timers)", source)
        verdict = verdicts(judged(tmp_path, log_of("published/outbox"), name))[name]
        assert (verdict == "held") <= (reads is None), name


def test_convergence_is_judged_where_nothing_ever_broke(tmp_path: Path) -> None:
    report = judged(tmp_path, log_of("published/outbox"), "converges_after_heal")
    assert report.checks[0].reasons == [
        "needs the time at which the last fault ended, which a log does not say"
    ]
    assert report.exit == 3
    report = judged(tmp_path, log_of("published/cancel"), "converges_after_heal")
    assert report.checks[0].reasons == ["the log ends before convergence was due"]
    report = judged(tmp_path, Made().data(), "converges_after_heal")
    assert report.exit == 3


TWICE = (
    b'{"kind":"event","n":228,"t":1,"actor":"engine","cause":0,"event":"engine.started",'
    b'"fields":{"run":"32128a12-2dae-42de-80fd-000000000001","execution":"x"}}\n'
)


def test_a_violation_names_its_section_and_the_records_that_prove_it(tmp_path: Path) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    broken = b"".join([*lines[:-2], TWICE, lines[-1]])
    report = judged(tmp_path, log_of("published/outbox", 1) + broken)
    assert report.exit == 1
    found = {one.check: one for one in report.checks}["executed_at_most_once"]
    assert found.sections == {"held": 1, "violated": 1}
    [seen] = found.violations
    assert seen.section == "outbox [relay.outbox=true], replication 0"
    assert seen.sentence.endswith("was started 2 times")
    assert seen.records == (16, 228)
    lines_shown = list(lines_of(report, 100, colored=False))
    assert any(line.endswith("was started 2 times [records 16, 228]") for line in lines_shown)
    assert lines_shown[-1].startswith("1 violated, ")
    table = json.loads(as_json(report))
    assert table["exit"] == 1
    assert table["checks"][0]["verdict"] == "violated"
    assert table["checks"][0]["violations"][0]["records"] == [16, 228]


def test_a_deployment_s_log_is_judged_by_the_names_in_it(tmp_path: Path) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    bare = re.sub(rb'"resolved":\{.*\}\}', b'"resolved":{}}', lines[0])
    report = judged(tmp_path, b"".join([bare, *lines[1:-2], TWICE]))
    assert verdicts(report)["executed_at_most_once"] == "violated"
    assert report.missing == [
        "its header has no scenario: parts are known by the actors' names",
        "it is truncated, so what comes later is not known",
    ]
    shown = list(lines_of(report, 100, colored=True))
    assert "note: it is truncated, so what comes later is not known" in shown
    assert any("\x1b[1;31mviolated\x1b[0m" in line for line in shown)


def test_how_to_judge_all_is_said_where_a_run_is_the_same_again(tmp_path: Path) -> None:
    report = judged(tmp_path, log_of("published/outbox"))
    assert report.again.endswith("--replication 0 --logs all --set run.check=all")
    assert any(line.endswith(report.again) for line in lines_of(report, 100, colored=False))
    sure = judged(tmp_path, log_of("published/outbox"), "consent_respected")
    assert not any("run.check" in line for line in lines_of(sure, 100, colored=False))
    sockets = log_of("published/outbox").replace(b'"driver":"sim"', b'"driver":"trio"')
    assert judged(tmp_path, sockets).again == ""
    assert judged(tmp_path, Made().data()).again == ""


def test_what_one_process_wrote_says_nothing_of_the_others(tmp_path: Path) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    relay = [line for line in lines[1:] if b'"actor":"relay"' in line]
    report = judged(tmp_path, b"".join([lines[0], *relay]))
    found = {one.check: one for one in report.checks}
    assert found["consent_respected"].verdict == "held"
    for name, parts in HEARS.items():
        if parts[0] != "relay":
            assert found[name].verdict == "not judged"
    assert found["executed_at_most_once"].reasons == ["the log has no records of an engine"]
    assert found["same_key_one_run"].reasons == ["the log has no records of a server"]
    nobody = judged(tmp_path, Made().data())
    assert nobody.exit == 3
    assert set(verdicts(nobody).values()) == {"not judged"}


OWN = """
from pullcord import Violation


def few_records(history):
    if len(history.records) > 100:
        yield Violation("few_records", "too many", (101,))


def asks(history):
    history.stores
    yield from ()


def fails(history):
    raise KeyError("x")
    yield
"""


def test_a_check_of_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    log = log_of("published/outbox")
    report = judged(tmp_path, log, "own.py:few_records", "own.py:asks")
    assert verdicts(report) == {"own.py:few_records": "violated", "own.py:asks": "held in part"}
    assert report.checks[1].reasons == ["on the records alone: a log has no stores"]
    with pytest.raises(ScenarioError, match=r"--check own.py:fails: .* raised KeyError: 'x'"):
        judged(tmp_path, log, "own.py:fails")


def test_the_scenario_s_own_checks_are_judged_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    lines = log_of("published/outbox").splitlines(keepends=True)
    head = lines[0].replace(
        b'"run":{', b'"run":{"check":["all","own.py:few_records","no.py:x"],', 1
    )
    for folder, verdict, told in (
        (tmp_path, "violated", "the scenario's check no.py:x can't be used here: "),
        (tmp_path / "gone", "", "the scenario's check own.py:few_records can't be used here: "),
    ):
        moved = re.sub(rb'"folder":"[^"]*"', f'"folder":"{folder}"'.encode(), head)
        report = judged(tmp_path, b"".join([moved, *lines[1:]]))
        found = verdicts(report)
        assert found.get("own.py:few_records", "") == verdict
        assert len(found) == len(CHECKS) + bool(verdict)
        assert report.missing[0].startswith(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bounds_hld", 'did you mean "bounds_hold"?'),
        ("gone.py:x", "there is no file"),
        ("x", "names no check"),
    ],
)
def test_a_check_that_there_is_not(name: str, told: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        checks_named([name])
    assert told in str(raised.value)
    assert raised.value.problems[0].path == f"--check {name}"


@settings(max_examples=80, deadline=None)
@given(sections())
def test_whatever_a_log_says_is_judged_or_not(one: Section) -> None:
    cut = history_of_log(one)
    for name, check in CHECKS.items():
        found = Judged(check=name)
        _judge(found, name, check, cut, "here")
        assert sum(found.sections.values()) == 1
        assert bool(found.violations) == (found.verdict == "violated")


def test_what_a_check_can_not_read_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_history: History) -> object:
        raise ZeroDivisionError

    monkeypatch.setitem(CHECKS, "bounds_hold", broken)
    report = judged(tmp_path, log_of("published/outbox"), "bounds_hold")
    assert report.exit == 3
    [reason] = report.checks[0].reasons
    assert reason == "the log has what it can't read: bounds_hold raised ZeroDivisionError: "


def test_every_check_is_in_one_of_the_two_tables() -> None:
    assert STANDS_ON.keys() | HEARS.keys() == CHECKS.keys()
    assert not STANDS_ON.keys() & HEARS.keys()
