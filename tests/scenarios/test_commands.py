"""The commands: flags, output, exit codes."""

import json
import re
from pathlib import Path

import pytest

from scenarios import run as run_module
from tests.scenarios.commandline import SMALL, write, write_foreign
from tests.scenarios.conftest import Call

FAILING = SMALL + '[[expect]]\nthat = "wait.mean < 0.01s"\n'
UNSURE = SMALL + '[[expect]]\nthat = "wait.mean[5s] within 12.5s +/- 0.1s"\n'


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where results lie beside the scenario, as without a checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "default_base", lambda: Path("pullcord-results"))


def test_run_prints_results_and_keeps_them(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    done = call("run", "small.toml")
    assert (done.code, done.err) == (0, "")
    assert "3 passed of 3 expectations; 80 replications in 2 cells" in done.out
    assert done.out.endswith("results in pullcord-results/small-1\n")
    kept = json.loads((tmp_path / "pullcord-results" / "small-1" / "results.json").read_text())
    assert kept["exit"] == 0
    assert call("run", "small.toml").out.endswith("results in pullcord-results/small-2\n")


def test_a_folder_with_a_space_and_other_letters(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "mein Ördner 日"
    folder.mkdir()
    write(folder)
    done = call("run", str(folder), "--out", str(folder / "out é"), "--logs", "all")
    assert done.code == 0
    assert len(list((folder / "out é" / "logs").iterdir())) == 2


@pytest.mark.parametrize(
    ("text", "flags", "code"),
    [
        (SMALL, (), 0),
        (FAILING, (), 1),
        (SMALL.replace("[agent]", "[agnet]"), (), 2),
        (UNSURE, (), 3),
        (UNSURE, ("--inconclusive", "warn"), 0),
        (FAILING, ("--inconclusive", "warn"), 1),
        (FAILING + UNSURE.removeprefix(SMALL), (), 1),
        (SMALL.replace("[run]", '[run]\nlimit = "3s"'), (), 1),
    ],
)
def test_exit_codes(
    tmp_path: Path, call: Call, text: str, flags: tuple[str, ...], code: int
) -> None:
    write(tmp_path, text)
    assert call("run", "small.toml", *flags).code == code


def figures(out: str) -> list[str]:
    return re.findall(r"^(?:5s|20s) .*$", out, re.MULTILINE)


def test_seed_replications_set_cell_and_k(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    plain = call("run", "small.toml").out
    assert figures(call("run", "small.toml", "--seed", "1").out) == figures(plain)
    assert figures(call("run", "small.toml", "--seed", "2").out) != figures(plain)
    assert "6 replications in 2 cells" in call("run", "small.toml", "-n", "3").out
    assert "6 replications" in call("run", "small.toml", "--replications", "3").out
    changed = call("run", "small.toml", "--set", "agent.runs=1", "--set=relay.jitter=window").out
    assert figures(changed) != figures(plain)
    for flags in (("--cell", "20s"), ("--cell", "relay.poll=20s"), ("-k", "20")):
        alone = call("run", "small.toml", *flags).out
        assert figures(alone) == figures(plain)[1:]
        assert "40 replications in 1 cell," in alone
    one = call("run", "small.toml", "--cell", "20s", "--replication", "7", "--logs", "all")
    assert "no expectation judged; 1 replication in 1 cell," in one.out


def test_quiet_and_verbose(tmp_path: Path, call: Call) -> None:
    write(tmp_path, FAILING)
    quiet = call("run", "small.toml", "-q").out.splitlines()
    assert quiet[0] == "small"
    assert quiet[1].startswith("  fail wait.mean < 0.01s [5s]")
    assert quiet[2].startswith("  reproduce: pullcord run small.toml --seed 1 --cell")
    assert "pass wait.max" in call("run", "small.toml", "-v").out
    write(tmp_path)
    assert len(call("run", "small.toml", "-q").out.splitlines()) == 2


def test_colours_when_asked_for(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FAILING)
    assert "\x1b" not in call("run", "small.toml").out
    assert "\x1b[1;31mfail" in call("run", "small.toml", "--color", "always").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in call("run", "small.toml").out
    broken = write(tmp_path, "nonsense", "broken.toml")
    assert "\x1b" in call("check", str(broken), "--color", "always").err
    assert "\x1b" not in call("check", str(broken), "--color", "never").err


@pytest.mark.parametrize("form", ["json", "junit", "csv", "md", "github"])
def test_a_format_is_all_that_stdout_has(tmp_path: Path, call: Call, form: str) -> None:
    write(tmp_path)
    done = call("run", "small.toml", "--format", form)
    assert done.err == ""
    assert "results in" not in done.out
    assert done.out.endswith("\n")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("run",), "pullcord run: which scenario?"),
        (("run", "small.toml", "-n", "0"), "--replications: must be at least 1, not 0"),
        (("run", "small.toml", "-n", "many"), 'unable to convert "many" into int'),
        (("run", "small.toml", "--driver", "thread"), "--driver"),
        (("run", "small.toml", "--transport", "udp"), "--transport"),
        (("run", "small.toml", "--driver", "sim", "--transport", "tcp"), "no sockets"),
        (("run", "small.toml", "--speed", "0"), "--speed: must be above 0"),
        (("explore",), "TARGETS"),
        (("explore", "small.toml", "--budget", "soon"), "--budget"),
        (("run", "small.toml", "--set", "rleay.poll=5s"), 'did you mean "relay.poll"?'),
        (("run", "small.toml", "--cell", "9s"), 'no cell is called "9s"'),
        (("run", "small.toml", "--patience", "ten"), "--patience"),
        (("run", "small.toml", "--seed", "1", "--resume", "x"), "so a scenario and --seed can't"),
        (("run", "--resume", "nowhere"), "nowhere has no journal to go on with"),
        (("run", "nowhere.toml"), "nowhere.toml"),
        (("run", "@publisehd"), 'did you mean "@published"?'),
        (("run", "small.toml", "--fast"), "Unknown option: --fast"),
        (("run", "small.toml", "--logs", "some"), "--logs"),
        (("rnu", "small.toml"), "rnu"),
        (("check",), "TARGETS"),
        (("run", "small.toml", "--executor", "nowhere:make"), "ModuleNotFoundError"),
    ],
)
def test_usage_that_is_wrong(
    tmp_path: Path, call: Call, flags: tuple[str, ...], words: str
) -> None:
    write(tmp_path)
    done = call(*flags)
    assert done.code == 2
    assert done.out == ""
    assert words in done.err
    assert "Traceback" not in done.err


def test_logs_of_what_failed(tmp_path: Path, call: Call) -> None:
    write(tmp_path, FAILING)
    assert call("run", "small.toml", "--logs", "failed", "--out", "out").code == 1
    logs = sorted(path.name for path in (tmp_path / "out" / "logs").iterdir())
    assert logs == ["small-1-relay.poll=5s.jsonl", "small-2-relay.poll=20s.jsonl"]
    text = (tmp_path / "out" / "logs" / logs[0]).read_text()
    assert text.count('{"kind":"header"') == 3
    write(tmp_path)
    call("run", "small.toml", "--logs", "failed", "--out", "fine")
    assert not (tmp_path / "fine" / "logs").exists()


def test_two_runs_into_one_folder(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    call("run", "small.toml", "--out", "out")
    before = (tmp_path / "out" / "results.json").read_bytes()
    done = call("run", "small.toml", "--out", "out", "--seed", "2")
    assert done.code == 2
    assert done.err == (
        "pullcord: out already has the results of a run\n"
        "help: go on with it: pullcord run --resume out; or choose another --out\n"
    )
    assert (tmp_path / "out" / "results.json").read_bytes() == before


def test_a_finished_run_is_shown_again_by_resume(tmp_path: Path, call: Call) -> None:
    write(tmp_path, FAILING)
    first = call("run", "small.toml", "--out", "out")
    again = call("run", "--resume", "out")
    assert (again.code, again.err) == (1, "")
    clock = re.compile(r"\d+\.\d\d s$", re.MULTILINE)
    assert clock.sub("", again.out) == clock.sub("", first.out)


# The other commands


def test_check(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    done = call("check", "small.toml")
    assert (done.code, done.err) == (0, "")
    assert done.out == ("small.toml: small is valid: 2 cells, 80 replications, 2 expectations\n")
    assert list(tmp_path.iterdir()) == [tmp_path / "small.toml"]
    assert call("check", "small.toml", "-k", "20", "-n", "7").out == (
        "small.toml: small is valid: 1 cell, 7 replications, 2 expectations\n"
    )


def test_check_plan(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    done = call("check", "small.toml", "--plan", "-j", "2")
    assert done.code == 0
    assert "  agent  runs = 2, poll = every 30s" in done.out
    assert re.search(r"^relay.poll=20s +40 +\d", done.out, re.MULTILINE)
    assert re.search(r"^wait.max <= 100s +relay.poll=5s +0$", done.out, re.MULTILINE)
    assert re.search(r"^about [\d.e-]+ s on 2 processes$", done.out, re.MULTILINE)
    assert list(tmp_path.iterdir()) == [tmp_path / "small.toml"]


def test_check_plan_of_an_actor_that_fails(tmp_path: Path, call: Call) -> None:
    write_foreign(tmp_path, "1 / 0")
    assert call("check", "mine.toml").code == 0
    done = call("check", "mine.toml", "--plan")
    assert done.code == 1
    assert "ZeroDivisionError" in done.out


def test_names_schema_and_new(tmp_path: Path, call: Call) -> None:
    assert "run.queued" in call("names").out
    assert json.loads(call("names", "--format", "json").out)
    assert "run.queued" in call("names", "run.queued").out
    assert call("names", "nothing-like-it").code == 2
    assert json.loads(call("schema").out)["title"]
    done = call("new", "my-first.toml")
    assert done.code == 0
    assert (tmp_path / "my-first.toml").is_file()
    assert call("new", "my-first.toml").code == 2
    assert call("check", "my-first.toml").code == 0
    assert call("new", "actor", "my_agent", "--kind", "agent").code == 0
    assert call("run", "my_agent.toml", "-n", "2").code in (0, 1, 3)
