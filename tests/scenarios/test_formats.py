"""What a program reads: every format is valid, and says what failed and how to see it again."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import get_args

import pytest

from scenarios.choices import Format
from scenarios.formats import FORMATS
from scenarios.load import load_plan
from scenarios.results import Results
from scenarios.runner import Options, Runner
from tests.scenarios.commandline import SMALL, result_of, write_foreign

AWKWARD = SMALL.replace('summary = "How', 'summary = "A|B <b> & 100 % \\u0007 How') + (
    '[[expect]]\nthat = "wait.mean < 0.01s"\n'
    '[[expect]]\nthat = "wait.mean[5s] < 0.5 * wait.mean[20s]"\n'
    '[[expect]]\nthat = "wait.count[20s] equals 80"\nquote = "a | b"\n'
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A passing, a failing scenario and one in trouble."""
    folder = tmp_path_factory.mktemp("formats")
    bad = load_plan(write_foreign(folder, "raise ValueError('<&\\x01\\n::x%')"))
    troubled = Runner([bad], Options(jobs=1), None).run().scenarios[0]
    return Results([result_of(folder, AWKWARD), troubled], None)


def test_every_format_has_its_function() -> None:
    assert set(FORMATS) == set(get_args(Format)) - {"text"}


def test_json_is_results_json(results: Results) -> None:
    data = json.loads(FORMATS["json"](results))
    assert data["exit"] == 1
    verdicts = [one["verdict"] for one in data["scenarios"][0]["expectations"]]
    assert verdicts.count("fail") == 2
    assert data["scenarios"][1]["troubles"][0]["kind"] == "failed"
    assert data["scenarios"][1]["troubles"][0]["reproduce"].endswith("--replication 0 --logs all")
    failed = [one for one in data["scenarios"][0]["expectations"] if one["verdict"] == "fail"]
    assert all(one["reproduce"].startswith("pullcord run ") for one in failed)


def test_junit_parses(results: Results) -> None:
    root = ET.fromstring(FORMATS["junit"](results))  # noqa: S314  our own text
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"small", "mine"}
    small, mine = suites["small"], suites["mine"]
    assert (small.get("tests"), small.get("failures"), small.get("errors")) == ("7", "2", "0")
    assert len(small.findall("testcase")) == 7
    assert len(small.findall("testcase/failure")) == 2
    assert mine.get("errors") == "1"
    error = mine.find("testcase/error")
    assert error is not None
    assert error.text is not None
    assert "reproduce: pullcord run" in error.text


def test_csv_reads(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](results))))
    assert [(row["scenario"], row["cell"], row["metric"]) for row in rows] == [
        ("small", "relay.poll=5s", "wait"),
        ("small", "relay.poll=5s", "late"),
        ("small", "relay.poll=20s", "wait"),
        ("small", "relay.poll=20s", "late"),
        ("mine", "", "wait"),
    ]
    assert float(rows[0]["count"]) == 80
    assert rows[4]["mean"] == ""


def test_markdown_tables_are_whole(results: Results) -> None:
    text = FORMATS["md"](results)
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 2
    for table in tables:
        assert len({line.count("|") for line in table.strip().splitlines()}) == 1
    assert "a &#124; b" in text
    assert "A&#124;B &lt;b> &amp; 100 %" in text
    assert "## What did not pass" in text
    assert "**failed** mine" in text


def test_github_commands_are_one_line_each_and_escaped(results: Results) -> None:
    lines = FORMATS["github"](results).splitlines()
    assert [line.split(" ")[0].split("::")[1] for line in lines] == [
        "error", "error", "warning", "error", "notice"
    ]  # fmt: skip
    assert "inconclusive" in lines[2]
    assert "%0A" in lines[3]
    assert "::x%25" in lines[3]
    assert "reproduce: pullcord run" in lines[0]
    assert lines[-1].startswith("::notice::")
    assert lines[-1].endswith("exit 1")


def test_no_format_has_escape_codes(results: Results) -> None:
    for form in FORMATS.values():
        assert "\x1b" not in form(results)
        assert "\x07" not in form(results)


def test_a_scenario_without_expectations_has_one_case(tmp_path: Path) -> None:
    one = result_of(tmp_path, SMALL.split("[[expect]]")[0])
    assert '<testcase classname="small" name="ends"/>' in FORMATS["junit"](Results([one], None))
