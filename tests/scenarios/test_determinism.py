"""One scenario, one result: in other processes, under other hash seeds, on other Pythons.

The golden digests in tests/golden/ are the same on every Python; `make test` looks at them on each
that is present. After a change that is meant to change results,
`python -m tests.scenarios.test_determinism` writes them anew, and the changelog tells.
"""

import json
import shutil
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.scenarios.commandline import MAIN, ROOT, SMALL, environment, records, write

GOLDEN = ROOT / "tests" / "golden" / "digests.json"

# Faults, latency, cancelling, a fan-out, an owner: a little of everything that draws chance.
RICH = (
    SMALL.replace("runs = 2", 'runs = 3\nretry = "same key"')
    + """
[[link]]
from = "*"
to = "server"
latency = "lognormal(median=80ms, sigma=0.6)"
[[fault]]
kind = "drop"
name = "lossy"
probability = 0.02
"""
)

TEXTS = {"small": SMALL, "rich": RICH}


def digests(folder: Path, *flags: str, python: str = sys.executable, **env: str) -> dict[str, str]:
    """The digests of a run's results and of its logs without their headers."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run(
        [python, "-c", MAIN, "run", "small.toml", "--out", "out", "--logs", "all", *flags],
        cwd=folder, env=environment(**env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    results = json.loads((out / "results.json").read_text())
    found = {"results": results["scenarios"][0]["digest"]}
    for log in sorted((out / "logs").iterdir()):
        lines = b"\n".join(records(log))
        found[log.name] = blake2b(lines, digest_size=16).hexdigest()
    return found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_processes_hash_seeds_and_jobs_do_not_matter(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    first = digests(tmp_path, "-j", "1", PYTHONHASHSEED="0")
    assert len(first) == 3
    assert digests(tmp_path, "-j", "2", PYTHONHASHSEED="1") == first
    assert digests(tmp_path, "-j", "3", PYTHONHASHSEED="4711", TZ="Asia/Tokyo", LANG="C") == first
    assert digests(tmp_path, "--seed", "2") != first


def found_now() -> dict[str, dict[str, str]]:
    """The digests of both scenarios, by this Python and this code."""
    found = {}
    for name, text in TEXTS.items():
        with TemporaryDirectory() as folder:
            write(Path(folder), text)
            found[name] = digests(Path(folder), "-j", "1")
    return found


def test_results_and_logs_are_those_that_they_always_were_on_every_python() -> None:
    assert found_now() == json.loads(GOLDEN.read_text(encoding="utf-8")), (
        "results have changed; if they were meant to: python -m tests.scenarios.test_determinism"
    )


def renew() -> None:
    """Write the golden digests."""
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(found_now(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    renew()
