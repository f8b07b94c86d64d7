"""Verdicts, failures and meanings in sentences."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scenarios.report.words import (
    always,
    failures,
    meaning,
    sentence,
    spread,
    verdict_of,
    whole_command,
)
from scenarios.results import Exit
from scenarios.runner import Options
from scenarios.spec import MetricTable
from tests.scenarios.commandline import SMALL, USING, result_of, write_foreign
from tests.scenarios.report.test_strip import FAULTS


def test_every_exit_that_results_may_have_has_a_word() -> None:
    for code in Exit:
        if code not in (Exit.DIVERGED, Exit.INTERRUPTED):
            sign, word, verdict = verdict_of(code)
            assert (sign in "✓✗?", bool(word)) == (True, True)
            assert (verdict == "pass") == (code is Exit.OK)


def test_a_sentence_counts_what_matters(tmp_path: Path) -> None:
    assert sentence(result_of(tmp_path)) == "3 passed of 3 expectations."
    failing = SMALL + '[[expect]]\nthat = "wait.mean[20s] < 0.01s"\n' + FAULTS
    assert sentence(result_of(tmp_path, failing)).endswith(
        " of 4 expectations; faults did not fire as they must in 2 cells."
    )


def test_nothing_judged_is_said(tmp_path: Path) -> None:
    text = SMALL[: SMALL.index("[[expect]]")]
    assert sentence(result_of(tmp_path, text)) == ("Nothing failed, and no expectation was judged.")


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, "--seed 1"),
        ({"cell": "5s"}, "--seed 1 --cell relay.poll=5s"),
        ({"contains": "poll=", "replication": 2}, "--seed 1 --replication 2"),
        ({"contains": "=2", "replication": 2}, "--seed 1 --cell relay.poll=20s --replication 2"),
    ],
)
def test_the_command_runs_what_was_run(tmp_path: Path, options: dict[str, Any], end: str) -> None:
    one = result_of(tmp_path, SMALL, **options)
    assert whole_command(one, Options(**options)).endswith(f"small.toml {end}")


def test_the_command_chooses_some_of_the_cells(tmp_path: Path) -> None:
    text = SMALL.replace('"5s", "20s"]', '"5s", "20s", "25s"]')
    one = result_of(tmp_path, text, contains="l=2")
    assert whole_command(one, Options(contains="l=2")).endswith("--seed 1 -k l=2")


def test_trouble_is_said_first(tmp_path: Path) -> None:
    write_foreign(tmp_path, "raise RuntimeError('no')")
    one = result_of(tmp_path, USING)
    assert sentence(one) == "1 replication did not reach the end."
    (only,) = failures(one)
    assert only["kind"] == "failed"
    assert "raise RuntimeError" in only["trace"]
    assert "--replication 0 --logs all" in only["command"]


def test_failures_come_with_their_command(tmp_path: Path) -> None:
    one = result_of(tmp_path, SMALL + '[[expect]]\nthat = "wait.mean[20s] < 0.01s"\n')
    (only,) = failures(one)
    assert only["verdict"] == "fail"
    assert only["text"].startswith("wait.mean[20s] < 0.01s: ")
    assert only["command"].endswith("--cell relay.poll=20s")


def test_cells_whose_faults_are_quiet_are_failures_too(tmp_path: Path) -> None:
    one = result_of(tmp_path, SMALL + FAULTS)
    texts = [each["text"] for each in failures(one) if "did not fire" in each["text"]]
    assert len(texts) >= len(one.cells)
    assert any(text.startswith("[relay.poll=5s] fault never did not fire") for text in texts)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"count": "Sync"}, "how often Sync came, a row a run"),
        ({"count": "Sync", "per": "replication"}, "how often Sync came, a row a replication"),
        ({"value": "run.terminal.chars"}, "run.terminal.chars, a row each time"),
        ({"source": "start", "target": "run.queued", "per": "replication", "take": "last"},
         "seconds from start to run.queued, a row a replication, the last one"),
    ],
)  # fmt: skip
def test_meanings(table: dict[str, str], text: str) -> None:
    assert meaning(MetricTable(**table)) == text  # type: ignore[arg-type]  # fields by name


def test_what_never_varies_is_said(tmp_path: Path) -> None:
    text = SMALL.replace('count = "Sync"', 'count = "run.queued"')
    one = result_of(tmp_path, text)
    assert always(one, "late") == "always 2, 80 values"
    assert always(one, "wait") == ""


def test_spreads(tmp_path: Path) -> None:
    _, judgement = result_of(tmp_path).judgements[0]
    assert spread(replace(judgement, low=None, high=None), timed=True) == ""
    assert spread(replace(judgement, low=float("-inf"), high=90.0), timed=True) == "-∞ to 90 s"
