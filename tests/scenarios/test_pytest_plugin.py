"""Scenario files as tests."""

import subprocess
import sys
from pathlib import Path

from tests.scenarios.commandline import SMALL, environment, write, write_foreign

FAILING = SMALL + '[[expect]]\nthat = "wait.mean < 0.01s"\n'
QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:trio")


def pytest_in(folder: Path, *args: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "scenarios.pytest_plugin", *QUIET, *args],
        cwd=folder,
        env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_files_are_collected_with_the_flag_alone(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "a.scenario.toml")
    write(tmp_path, "nonsense", "pyproject-like.toml")
    code, text = pytest_in(tmp_path)
    assert code == 5, text
    code, text = pytest_in(tmp_path, "--pullcord", "-v")
    assert code == 0, text
    assert "a.scenario.toml::wait.max <= 100s PASSED" in text
    assert "2 passed" in text


def test_a_file_that_is_named_needs_no_flag_and_no_pattern(tmp_path: Path) -> None:
    write(tmp_path)
    code, text = pytest_in(tmp_path, "small.toml")
    assert code == 0, text
    assert "2 passed" in text


def test_what_failed_is_told_in_the_verdicts_words(tmp_path: Path) -> None:
    write(tmp_path, FAILING, "a.scenario.toml")
    code, text = pytest_in(tmp_path, "--pullcord")
    assert code == 1
    assert "fail [relay.poll=5s]: " in text
    assert "reproduce: pullcord run" in text
    assert "1 failed, 2 passed" in text
    assert "pytest_plugin.py" not in text


def test_a_broken_file_is_an_error_of_collection(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace("[agent]", "[agnet]"), "a.scenario.toml")
    code, text = pytest_in(tmp_path, "--pullcord")
    assert code == 2
    assert "a.scenario.toml:9:2" in text
    assert 'did you mean "agent"?' in text
    assert "Traceback" not in text


def test_trouble_fails_every_test_of_its_file(tmp_path: Path) -> None:
    write_foreign(tmp_path, "{}['x']").rename(tmp_path / "mine.scenario.toml")
    code, text = pytest_in(tmp_path, "--pullcord")
    assert code == 1
    assert "failed: relay failed on timer 'poll' at" in text
    assert "mine.py" in text
    assert "--replication 0 --logs all" in text


def test_the_pattern_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\npullcord_files = small*.toml\n")
    write(tmp_path)
    code, text = pytest_in(tmp_path, "--pullcord")
    assert code == 0, text


def test_nothing_heavy_is_imported_before_a_file_is_collected() -> None:
    heavy = ("trio", "msgspec", "rich", "scenarios.load")
    code = f"import sys, scenarios.pytest_plugin; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
