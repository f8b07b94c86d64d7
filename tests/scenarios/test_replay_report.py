"""What `pullcord replay` prints and returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenarios.commandline import command

FILE = 'schema = 1\nname = "tried"\n[run]\nreplications = 2\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A scenario's log of two replications."""
    (tmp_path / "tried.toml").write_text(FILE)
    out = ["--logs", "all", "--out", "out", "--no-progress", "--jobs", "1"]
    assert command(tmp_path, "run", "tried.toml", *out).code == 0
    return tmp_path / "out" / "logs" / "tried.jsonl"


def test_what_is_the_same_is_told_in_a_line(tmp_path: Path, log: Path) -> None:
    done = command(tmp_path, "replay", "out")
    lines = log.read_text().splitlines()
    assert done.code == 0
    assert done.out == f"the same: 2 replications, {len(lines) - 4:,} records\n"
    log.write_text("\n".join(lines[:-3]) + "\n")
    done = command(tmp_path, "replay", str(log), "--actor", "relay")
    assert done.out.startswith("the same of relay: 2 replications, ")
    assert done.out.endswith("1 truncated, the same as far as they go\n")


def test_only_what_was_compared_is_counted(tmp_path: Path, log: Path) -> None:
    relays = log.read_text().count('"actor":"relay"')
    done = command(tmp_path, "replay", "out", "--actor", "relay")
    assert done.out == f"the same of relay: 2 replications, {relays:,} records\n"
    done = command(tmp_path, "replay", "out", "--from", "3", "--until", "7")
    assert (done.code, done.out) == (0, "the same: 2 replications, 10 records\n")


def test_where_nothing_is_compared_nothing_is_the_same(tmp_path: Path, log: Path) -> None:
    assert log.exists()
    done = command(tmp_path, "replay", "out", "--from", "99999")
    assert done.code == 3
    assert done.out.startswith("nothing was compared: no record of 2 replications")
    done = command(tmp_path, "replay", "out", "--until", "0", "--format", "json")
    told = json.loads(done.out)
    assert (done.code, told["equal"], told["records"]) == (3, None, 0)


def test_what_differs_is_told_with_its_place_causes_and_fields(tmp_path: Path, log: Path) -> None:
    log.write_text(log.read_text().replace('"status":"queued"', '"status":"Queued"', 1))
    done = command(tmp_path, "replay", "out")
    assert done.code == 4
    first, place, *rest = done.out.splitlines()
    assert first.startswith("tried, replication 0 diverges at record ")
    number = int(first.split("record ")[1].split(":")[0])
    assert place == f"out/logs/tried.jsonl, line {number + 1}"
    assert 'envelope.body.status  "Queued" → "queued"' in rest[-1]
    assert any("what led to it" in line for line in rest)
    told = json.loads(command(tmp_path, "replay", "out", "--format", "json").out)
    assert (told["equal"], told["divergence"]["n"]) == (False, number)
    assert command(tmp_path, "replay", "out", "--replication", "1").code == 0
    assert command(tmp_path, "replay", "out", "--until", str(number - 3)).code == 0
    assert (
        command(tmp_path, "replay", "out", "--from", str(number + 1), "--until", "9999").code == 0
    )
    assert command(tmp_path, "replay", "out", "--from", "0s").code == 4


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["nothing"], "nothing: there is no such file"),
        (["tried.toml"], "tried.toml, line 1: this is no log"),
        (["out", "--actor", "relais"], 'no actor is called "relais"\nhelp: did you mean "relay"?'),
        (["out", "--from", "soon"], '--from: "soon" is not a duration'),
        (["out", "--from", "9", "--until", "5"], "--until: 5 is before --from 9"),
        (["out", "--from", "2s", "--until", "1s"], "--until: 1s is before --from 2s"),
        (
            ["out", "--to-scenario", "a.json", "--actor", "relay", "--format", "json"],
            "so --actor and --format json can't be given too",
        ),
        (["out", "--replication", "7"], "it has no replication 7\nhelp: it has 0 to 1"),
        (["out", "--folder", "nowhere"], "--folder: there is no folder nowhere"),
    ],
)
def test_a_mistake_is_told_with_its_cure(
    tmp_path: Path, log: Path, flags: list[str], told: str
) -> None:
    assert log.exists()
    done = command(tmp_path, "replay", *flags)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "help: " in done.err


def test_a_scenario_is_written_where_its_flag_says_or_it_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "tried.toml").write_text(FILE)
    out = ["--logs", "all", "--out", "out", "--no-progress", "--driver", "trio", "-n", "1"]
    assert command(tmp_path, "run", "tried.toml", *out).code == 0
    done = command(tmp_path, "replay", "out", "--to-scenario", "new folder/a.json")
    assert done.code == 0
    assert done.out.endswith("run it: pullcord run 'new folder/a.json'\n")
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["a.json"]
    done = command(tmp_path, "replay", "out", "--to-scenario", "tried.toml/a.json")
    assert done.code == 2
    assert "tried.toml/a.json can't be written: a file is in its way\nhelp: " in done.err


def test_a_log_without_its_scenario_or_its_actor_s_file_says_what_it_lacks(
    tmp_path: Path, log: Path
) -> None:
    lines = log.read_text().splitlines()
    header = json.loads(lines[0]) | {"resolved": {}}
    log.write_text("\n".join([json.dumps(header, separators=(",", ":")), *lines[1:]]) + "\n")
    done = command(tmp_path, "replay", "out")
    assert done.code == 2
    assert "its header has no scenario" in done.err
    (tmp_path / "own.py").write_text("from pullcord import Relay\nclass Own(Relay):\n    pass\n")
    (tmp_path / "own.toml").write_text(FILE + '[relay]\nuse = "own.py:Own"\n')
    out = ["--logs", "all", "--out", "own", "--no-progress", "--jobs", "1"]
    assert command(tmp_path, "run", "own.toml", *out).code == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "own.py").rename(moved / "own.py")
    done = command(tmp_path, "replay", "own")
    assert done.code == 2
    assert 'there is no file "own.py"' in done.err
    assert command(tmp_path, "replay", "own", "--folder", "moved").code == 0
