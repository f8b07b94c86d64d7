"""One scenario of Graphs, one result: with any number of jobs, wherever scripts run, on any host.

A script's VM, the numbers and dates that it writes, its chance and its turns must not depend on the
Python, on the process that it runs in, or on the host that drives its engine. The golden digests
are the same on every Python; `make pythons` looks at them on each that is present. After a change
that is meant to change results, `python -m tests.scenarios.test_graph_determinism` writes them
anew, and the changelog tells.
"""

import json
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from actors.events import EVENTS
from actors.graphs.script import ScriptVmPort
from actors.world import TrioWorld
from logs.keep import MemoryRecorder
from logs.record import MessageRecord
from scenarios.build import CellRun
from scenarios.load import load_plan
from tests.scenarios.commandline import ROOT, command, records

pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")

GOLDEN = ROOT / "tests" / "golden" / "graph_digests.json"
FOLDER = ROOT / "scenarios" / "graph_runs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
REPLICATIONS = 3

Digests = dict[str, str]


def digest_of(*lines: bytes) -> str:
    return blake2b(b"\n".join(lines), digest_size=16).hexdigest()


def written(folder: Path, name: str, *flags: str, **env: str) -> Digests:
    """The digests of a run's results and of its logs without their headers, as users have them."""
    out = f"{name}{len(list(folder.iterdir()))}"
    file = str(FOLDER / f"{name}.toml")
    counts = ("-n", str(REPLICATIONS), "--logs", "all", "--out", out)
    done = command(folder, "run", file, *counts, *flags, env=env)
    assert done.err == ""
    assert done.code in {0, 1, 3}  # so few replications prove nothing
    results = json.loads((folder / out / "results.json").read_text())
    found = {"results": results["scenarios"][0]["digest"]}
    for log in sorted((folder / out / "logs").iterdir()):
        found[log.name] = digest_of(*records(log))
    return found


def history(name: str, world: Callable[[int, str], Any] | None = None) -> str:
    """The digest of all that happens and is said in the first replications of each cell."""
    plan = load_plan(FOLDER / f"{name}.toml")
    lines: list[bytes] = []

    def happened(event: str, now_us: int, fields: dict[str, Any]) -> None:
        lines.append(json.dumps([event, now_us, fields], default=str).encode())

    for scenario, cell in zip(plan.scenarios, plan.cells, strict=True):
        run = CellRun(scenario, plan.run.seed, cell.label, plan.folder, world=world)
        for event in EVENTS:
            run.simulator.watch(event, partial(happened, event))
        for replication in range(REPLICATIONS):
            recorder = MemoryRecorder()
            run.simulator.run(replication, recorder)
            said = [one for one in recorder.records if isinstance(one, MessageRecord)]
            said.sort(key=lambda one: (one.t, one.actor))  # two hosts serve actors in other orders
            lines += [
                msgspec.json.encode((one.t, one.envelope.source, one.actor, one.envelope.body))
                for one in said
            ]
            lines.append(repr({each: run.metrics[each].rows() for each in run.metrics}).encode())
    assert len(lines) > 100
    return digest_of(*lines)


@pytest.mark.parametrize("name", NAMES)
def test_jobs_and_hash_seeds_do_not_matter(tmp_path: Path, name: str) -> None:
    first = written(tmp_path, name, "-j", "1", PYTHONHASHSEED="0")
    assert written(tmp_path, name, "-j", "2", PYTHONHASHSEED="1", TZ="Asia/Tokyo") == first
    assert written(tmp_path, name, "-j", "1", "--seed", "2") != first


@pytest.mark.parametrize("world", [None, TrioWorld], ids=["simulator", "trio"])
@pytest.mark.parametrize("name", NAMES)
def test_the_place_of_scripts_does_not_matter(
    name: str, world: type[TrioWorld] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.build.vm_port", ScriptVmPort)  # in this process, in no child
    assert history(name, world) == golden()[name]["history"]


@pytest.mark.parametrize("name", NAMES)
def test_the_host_of_the_engine_does_not_matter(name: str) -> None:
    assert history(name, TrioWorld) == golden()[name]["history"]


def found_now() -> dict[str, Digests]:
    """All digests, by this Python and this code."""
    found = {}
    for name in NAMES:
        with TemporaryDirectory() as folder:
            found[name] = written(Path(folder), name, "-j", "1") | {"history": history(name)}
    return found


def golden() -> dict[str, Digests]:
    """All digests as they always were."""
    kept: dict[str, Digests] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return kept


def test_results_and_logs_are_those_that_they_always_were_on_every_python() -> None:
    assert found_now() == golden(), (
        "results have changed; if they were meant to: "
        "python -m tests.scenarios.test_graph_determinism"
    )


def renew() -> None:
    """Write the golden digests."""
    GOLDEN.write_text(json.dumps(found_now(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    renew()
