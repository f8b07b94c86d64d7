"""From what a user names to a run."""

from pathlib import Path
from typing import Any

import pytest

import pullcord
from scenarios import run as module
from scenarios.folder import FolderError
from scenarios.load import Plan
from scenarios.problems import ScenarioError
from scenarios.run import code_digest, default_base, default_name, load_plans, resume, run
from scenarios.runner import Options
from scenarios.spec import FAULTS, SEPARATE_FAULTS
from tests.scenarios.commandline import SMALL, plan_of, write, write_foreign
from tests.scenarios.test_runner import cut, interrupting


def test_a_file_is_run_from_python(tmp_path: Path) -> None:
    results = pullcord.run(write(tmp_path), {"run.replications": 5}, seed=3, jobs=1)
    assert results.replications == 10
    assert results.folder is None
    assert results["small"].plan.run.seed == 3
    assert list(tmp_path.iterdir()) == [tmp_path / "small.toml"]


def test_several_files_and_a_results_folder(tmp_path: Path) -> None:
    other = write(tmp_path, SMALL.replace('"small"', '"other"'), "other.toml")
    results = run([write(tmp_path), other], out=tmp_path / "out", replications=2, jobs=1)
    assert [one.name for one in results.scenarios] == ["small", "other"]
    assert (tmp_path / "out" / "results.json").is_file()


def test_logs_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give out="):
        run(write(tmp_path), logs="all")


def test_an_interrupt_reaches_the_caller(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        run(write(tmp_path), out=tmp_path / "out", jobs=1, progress=interrupting(1))
    assert (tmp_path / "out" / "journal.jsonl").is_file()


def test_the_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace("replications = 40", "replications = 0"), "a.toml")
    write(tmp_path, SMALL, "b.toml")
    write(tmp_path, SMALL.replace("[agent]", "[agnet]"), "c.toml")
    with pytest.raises(ScenarioError) as refused:
        load_plans([str(tmp_path)], Options())
    assert {Path(problem.path).name for problem in refused.value.problems} == {"a.toml", "c.toml"}


def test_a_wrong_override_is_told_once(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "a.toml")
    write(tmp_path, SMALL.replace('"small"', '"b"'), "b.toml")
    with pytest.raises(ScenarioError) as refused:
        run(tmp_path, {"rleay.poll": "5s"})
    assert len(refused.value.problems) == 1


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "a.toml")
    write(tmp_path, SMALL, "b.toml")
    with pytest.raises(ScenarioError, match='"small" is also the name of'):
        load_plans([str(tmp_path)], Options())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(cell="9s"), 'no cell is called "9s"'),
        (Options(contains="9s"), 'no cell\'s label contains "9s"'),
    ],
)
def test_a_cell_that_nothing_is_called_is_refused(
    tmp_path: Path, options: Options, words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        load_plans([str(write(tmp_path))], options)
    single = SMALL.replace("[sweep.product]\n", "").replace(
        '"relay.poll" = ["5s", "20s"]', ""
    ).replace('rows = "relay.poll"\n', "").replace("[5s]", "")  # fmt: skip
    with pytest.raises(ScenarioError, match="nothing is swept here"):
        load_plans([str(write(tmp_path, single))], options)


# Resume


def interrupted(tmp_path: Path, path: Path) -> Path:
    run(path, out=tmp_path / "out", jobs=1)
    cut(tmp_path / "out", 1)
    return tmp_path / "out"


def test_a_changed_scenario_is_not_resumed(tmp_path: Path) -> None:
    path = write(tmp_path)
    out = interrupted(tmp_path, path)
    path.write_text(SMALL.replace("uniform(5s, 40s)", "uniform(5s, 41s)"))
    with pytest.raises(
        FolderError, match=r"small.toml, or an actor that it uses, has changed since"
    ):
        resume(out)
    path.write_text(SMALL)
    assert resume(out).passed


def test_a_changed_actor_is_not_resumed(tmp_path: Path) -> None:
    out = interrupted(tmp_path, write_foreign(tmp_path, "pass"))
    actor = tmp_path / "mine.py"
    actor.write_text(actor.read_text() + "\n# a comment\n")
    with pytest.raises(FolderError, match="or an actor that it uses, has changed"):
        resume(out)


def test_changed_code_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = interrupted(tmp_path, write(tmp_path))
    monkeypatch.setattr(module, "code_digest", lambda: "other")
    with pytest.raises(FolderError, match="pullcord itself has changed since") as refused:
        resume(out)
    assert "run it anew" in refused.value.cure


def test_a_run_is_resumed_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = interrupted(tmp_path, Path("small.toml"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume(out).passed


def test_what_ran_on_tasks_and_has_ended_is_not_run_again(tmp_path: Path) -> None:
    path, out = write(tmp_path), tmp_path / "out"
    options: dict[str, Any] = {"driver": "trio", "logs": "all", "replications": 2, "jobs": 1}
    whole = run(path, out=out, **options)
    files = sorted(one for one in out.rglob("*") if one.is_file())
    before = [(one.stat().st_ino, one.read_bytes()) for one in files]
    again = resume(out)
    assert again.scenarios[0].digest == whole.scenarios[0].digest
    assert again.replications == whole.replications == 4
    assert (again.folder, again.exit) == (out, whole.exit)
    assert [(one.stat().st_ino, one.read_bytes()) for one in files] == before
    assert sorted(one for one in out.rglob("*") if one.is_file()) == files


def test_options_are_those_of_the_run(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = run(path, {"relay.jitter": "window"}, seed=5, cell="20s", out=tmp_path / "out", jobs=1)
    cut(tmp_path / "out", 0)
    again = resume(tmp_path / "out", jobs=1)
    assert again.scenarios[0].digest == whole.scenarios[0].digest
    assert [cell.cell.label for cell in again.scenarios[0].cells] == ["relay.poll=20s"]


# Processes


def refused(path: Path, **options: Any) -> list[tuple[str, str, str | None]]:
    with pytest.raises(ScenarioError) as raised:
        load_plans([str(path)], Options(processes="separate", **options))
    return [(one.path, one.message, one.cure) for one in raised.value.problems]


@pytest.mark.parametrize("options", [{}, {"driver": "trio"}])
def test_separate_processes_need_sockets(tmp_path: Path, options: dict[str, Any]) -> None:
    [(place, words, cure)] = refused(write(tmp_path), **options)
    assert (place, cure) == ("--processes", "give --transport tcp, or unix")
    assert "separate ones need sockets" in words


def test_separate_processes_need_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    [(_, words, _)] = refused(write(tmp_path), driver="trio", transport="tcp")
    assert "which Windows has not" in words


REFUSED = {
    "reset": 'from = "relay"\nto = "server"\nat = "1s"\n',
    "black_hole": 'from = "relay"\nto = "server"\nat = "1s"\nfor = "5s"\n',
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_fault_that_does_not_act_on_separate_processes_is_refused(
    tmp_path: Path, kind: str
) -> None:
    path = write(tmp_path, f'{SMALL}[[fault]]\nkind = "{kind}"\n{REFUSED[kind]}')
    [(place, words, cure)] = refused(path, driver="trio", transport="tcp")
    assert (place, cure) == (str(path), "leave --processes out")
    assert (
        words == f"the fault {kind}-1, a {kind}, does not act on actors in processes of their own"
    )


def test_the_faults_that_reach_processes_are_all_but_those_of_connections() -> None:
    names = {kind for kind, fault in FAULTS.items() if fault in SEPARATE_FAULTS}
    assert names == {
        "drop", "delay", "duplicate", "partition", "reorder", "hold", "kill", "suspend", "pause",
        "crash", "disk_full", "failed_write", "clock_skew", "clock_step", "clock_drift",
    }  # fmt: skip


# Names


def test_the_digest_of_the_code_is_that_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("actors", "transports", "scenarios", "logs"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)

    def digest() -> str:
        code_digest.cache_clear()
        return code_digest()

    digests = {digest()}
    (tmp_path / "actors" / "a.py").write_text("1")
    digests.add(digest())
    (tmp_path / "actors" / "a.py").rename(tmp_path / "actors" / "b.py")
    digests.add(digest())
    (tmp_path / "actors" / "notes.txt").write_text("1")
    assert digest() in digests
    assert len(digests) == 3
    code_digest.cache_clear()


def test_results_lie_in_the_checkout_or_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_base() == module.ROOT / "logs" / "results"
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert default_base() == Path("pullcord-results")


@pytest.mark.parametrize(
    ("targets", "name"),
    [
        (["@published"], "published"),
        (["some/folder"], "folder"),
        (["a.toml", "b.toml"], "a.toml"),
        (["/"], "run"),
    ],
)
def test_a_run_of_several_is_called_as_its_target(
    tmp_path: Path, targets: list[str], name: str
) -> None:
    plans: list[Plan] = [plan_of(tmp_path)] * 2
    assert default_name(plans, targets) == name
    assert default_name(plans[:1], targets) == "small"
