"""What a person reads after a run."""

import io
from pathlib import Path

import pytest

from scenarios.load import load_plan
from scenarios.render import Text, figures, number, plural, seconds, short_label, statistic, worse
from scenarios.results import Results
from scenarios.runner import Options, Runner
from scenarios.stats import Sample
from scenarios.sweep import Cell
from tests.scenarios.commandline import SMALL, result_of, write_foreign

FAILING = SMALL + '[[expect]]\nthat = "wait.mean < 0.01s"\n'


def text_of(results: Results, width: int = 80, **how: bool) -> str:
    out = io.StringIO()
    Text(out, width, **how).show(results)
    return out.getvalue()


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, "-"), (3.0, "3"), (47.123, "47.12"), (0.00012346, "0.0001235"), (123456.7, "123457"),
     (1e20, "100000000000000000000"), (-2.5, "-2.5"), (99871.0, "99871")],
)  # fmt: skip
def test_numbers_have_four_digits(amount: float | None, text: str) -> None:
    assert number(amount) == text


def test_statistics_without_a_value_are_a_dash() -> None:
    assert statistic(Sample([], [0]), "mean") == "-"
    assert statistic(Sample([], [0]), "count") == "0"
    assert statistic(Sample([1.0, 3.0]), "mean") == "2"


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.012, "0.012 s"), (3.14159, "3.1 s"), (47.0, "47 s"), (600.0, "10 min"), (9000.0, "2.5 h")],
)
def test_real_time_is_told_roughly(amount: float, text: str) -> None:
    assert seconds(amount) == text


def test_nouns_have_their_plural() -> None:
    assert (plural(1, "cell"), plural(2000, "cell")) == ("1 cell", "2,000 cells")


@pytest.mark.parametrize(
    ("assignments", "label"),
    [
        ((("agent.poll", "every 2s"),), "every 2s"),
        ((("agent.retry", "new key"), ("repetition", 2)), "new key, repetition=2"),
        ((("relay.outbox", True),), "outbox=true"),
        ((("engine.alphabet", "ascii"), ("engine.result_chars", 5)), "ascii, result_chars=5"),
        ((("a.b", "20"),), "b=20"),
        ((), ""),
    ],
)
def test_labels_are_shortened_as_long_as_they_say_what_they_mean(
    assignments: tuple[tuple[str, object], ...], label: str
) -> None:
    assert short_label(Cell(assignments)) == label


def test_the_worse_verdict_wins() -> None:
    assert worse("pass", "inconclusive") == "inconclusive"
    assert worse("inconclusive", "fail") == "fail"
    assert worse("pass", "pass") == "pass"


def test_a_run_that_passed(tmp_path: Path) -> None:
    text = text_of(Results([result_of(tmp_path)], Path("out")))
    lines = text.splitlines()
    assert lines[0] == "small  How long a run waits, with two intervals."
    assert lines[1].split() == ["relay.poll", "wait.mean", "wait.max"]
    assert lines[2].split()[0] == "5s"
    assert lines[-2].startswith("3 passed of 3 expectations; 80 replications in 2 cells, 0.00 s")
    assert lines[-1] == "results in out"
    assert "\x1b" not in text


def test_what_failed_has_its_reason_and_its_command(tmp_path: Path) -> None:
    one = result_of(tmp_path, FAILING)
    text = text_of(Results([one], None))
    assert text.count("fail wait.mean < 0.01s [5s]: ") == 1
    assert f"  reproduce: pullcord run {tmp_path}/small.toml --seed 1 --cell relay.poll=5s" in text
    assert "3 passed, 2 failed of 5 expectations" in text
    quiet = text_of(Results([one], None), quiet=True)
    assert quiet.splitlines()[0] == "small"
    assert "wait.max" not in quiet
    assert "  pass wait.max" in text_of(Results([one], None), verbose=True)


def test_colours_are_there_when_they_are_wanted(tmp_path: Path) -> None:
    one = result_of(tmp_path, FAILING)
    assert "\x1b[1;31mfail\x1b[0m" in text_of(Results([one], None), colored=True)


def test_trouble_shows_the_users_lines(tmp_path: Path) -> None:
    plan = load_plan(write_foreign(tmp_path, "{}['x\\x1b[31m']"))
    results = Runner([plan], Options(jobs=1), None).run()
    text = text_of(results)
    assert "failed mine, replication 0:" in text
    assert "KeyError" in text
    assert "mine.py" in text
    assert "line 8, in on_timer" in text
    assert "reproduce: pullcord run" in text
    assert "--replication 0 --logs all" in text
    assert "1 scenario in trouble; no expectation judged" in text
    assert "\x1b" not in text


def test_a_file_cannot_colour_the_terminal(tmp_path: Path) -> None:
    text = SMALL.replace("How long", "\\u001b[31mHow long")
    assert "\x1b" not in text_of(Results([result_of(tmp_path, text)], None))


def test_a_file_without_tables_shows_every_metric(tmp_path: Path) -> None:
    text = SMALL.split("[[table]]")[0]
    lines = text_of(Results([result_of(tmp_path, text)], None)).splitlines()
    assert lines[1].split() == ["cell", "wait.mean", "wait.p95", "late.mean", "late.p95"]
    assert lines[2].split()[0] == "5s"


PUBLISHED = (
    SMALL
    + """
[[expect]]
that = "wait.mean[5s] equals 2.5s"
[[expect]]
that = "wait.mean[5s] agrees with 2.6s"
[[expect]]
that = "wait.count[20s] equals 80"
quote = "every run was started, and each of them exactly once"
"""
)


def test_published_figures_stand_beside_ours(tmp_path: Path) -> None:
    one = result_of(tmp_path, PUBLISHED)
    found = figures(one)
    assert [(f.name, f.cell, f.published, f.exact) for f in found] == [
        ("wait.mean", "5s", "2.6s", "2.5s"),
        ("wait.count", "20s", "every run was started, and each of them exactly once", "80"),
    ]
    text = text_of(Results([one], None))
    row = next(line for line in text.splitlines() if line.startswith("  wait.mean"))
    assert row.split()[:4] == ["wait.mean", "5s", "2.6s", "2.5s"]
    assert "    published: every run was started, and each of them exactly once" in text
    table = text[text.index("figure ") : text.index("passed")]
    assert all(len(line) <= 80 for line in table.splitlines() if ": " not in line)
