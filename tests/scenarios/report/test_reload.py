"""Results read back from their folder are those of the run; what can't be read is said."""

import json
from pathlib import Path

import pytest

from scenarios.folder import FolderError
from scenarios.problems import ScenarioError
from scenarios.report.reload import reload
from scenarios.results import Exit, encoded
from scenarios.run import run
from tests.scenarios.commandline import SMALL, write, write_foreign
from tests.scenarios.report.test_strip import FAULTS

FAILING = SMALL + '[[expect]]\nthat = "wait.mean < 0.01s"\n'


@pytest.mark.parametrize("text", [SMALL, FAILING, SMALL + FAULTS])
def test_they_are_those_of_the_run(tmp_path: Path, text: str) -> None:
    ran = run(write(tmp_path, text), jobs=1, out=tmp_path / "out")
    for target in (tmp_path / "out", tmp_path / "out" / "results.json"):
        found = reload(target).results
        assert encoded(found) == encoded(ran)
        assert found.folder == tmp_path / "out"
        assert found.exit == ran.exit


@pytest.mark.parametrize("where", [1, 5])
def test_trouble_is_read_back_too(tmp_path: Path, where: int) -> None:
    path = write_foreign(tmp_path, "raise RuntimeError('no')")
    mine = (tmp_path / "mine.py").read_text()
    (tmp_path / "mine.py").write_text(mine.replace(
        "            raise", f"            if context.random('x').random() > 0.{where}:\n"
        "                raise"
    ))  # fmt: skip
    ran = run(path, jobs=1, replications=40, out=tmp_path / "out")
    found = reload(tmp_path / "out").results
    assert ran.scenarios[0].troubles
    assert encoded(found) == encoded(ran)
    assert found.exit == ran.exit == Exit.FAILED


def test_options_are_those_of_the_run(tmp_path: Path) -> None:
    run(write(tmp_path), jobs=1, seed=9, replications=3,
        cell="5s", out=tmp_path / "out")  # fmt: skip
    found = reload(tmp_path / "out")
    assert found.options.seed == 9
    assert found.results.replications == 3
    assert found.results.scenarios[0].plan.run.seed == 9


def refusal(target: Path) -> FolderError:
    with pytest.raises(FolderError) as refused:
        reload(target)
    assert refused.value.cure
    return refused.value


def test_what_is_no_results_folder_is_said(tmp_path: Path) -> None:
    assert "no such folder" in str(refusal(tmp_path / "missing"))
    assert "no such folder" in str(refusal(tmp_path / "missing" / "results.json"))
    assert "there is no journal.jsonl" in str(refusal(tmp_path))
    assert "is a file" in str(refusal(write(tmp_path)))
    (tmp_path / "journal.jsonl").write_text("{}\n")
    assert "damaged" in str(refusal(tmp_path))


def test_an_interrupted_run_says_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(write(tmp_path), jobs=1, out=out)
    journal = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "journal.jsonl").write_bytes(b"".join(journal[:1]))
    assert "its journal is not whole" in str(refusal(out))
    (out / "results.json").unlink()
    refused = refusal(out)
    assert "its run was interrupted" in str(refused)
    assert "of 80 replications it lacks 40 of small [relay.poll=5s]" in str(refused)
    assert refused.cure == f"go on with it: pullcord run --resume {out}"


def test_a_run_that_died_before_its_last_files_is_interrupted_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(write(tmp_path), jobs=1, replications=2, out=out)
    (out / "results.json").unlink()
    assert str(refusal(out)) == f"{out} can't be reported: its run was interrupted"


def test_a_changed_file_is_said(tmp_path: Path) -> None:
    path = write(tmp_path)
    run(path, jobs=1, replications=2, out=tmp_path / "out")
    path.write_text(SMALL.replace("= 40", "= 41"))
    reload(tmp_path / "out")  # what an option overrode may change
    path.write_text(SMALL.replace("30s", "31s"))
    assert "has changed since" in str(refusal(tmp_path / "out"))
    path.unlink()
    with pytest.raises(ScenarioError, match="no such file"):
        reload(tmp_path / "out")


def test_another_format_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(write(tmp_path), jobs=1, replications=2, out=out)
    head, *rest = (out / "journal.jsonl").read_text().splitlines(keepends=True)
    head = json.dumps(json.loads(head) | {"format": 99}) + "\n"
    (out / "journal.jsonl").write_text("".join([head, *rest]))
    assert "another version" in str(refusal(out))


def test_paths_are_shown_as_they_were_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    run("small.toml", jobs=1, replications=2, out="out")
    monkeypatch.chdir("/")
    assert reload(tmp_path / "out").results.scenarios[0].plan.path == "small.toml"
