"""`pullcord log`: its flags, its exit codes, and what becomes of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.logs.samples import OUTBOX_RUN, log_of
from tests.scenarios.commandline import MAIN, environment, start
from tests.scenarios.conftest import Call


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox", 0, 2))
    return str(path)


def test_show(log: str, call: Call) -> None:
    done = call("log", "show", log, "--where", "kind=drop", "-w", "actor=relay")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("dropped by drop-1") == 2
    assert len(call("log", "show", log, "--limit", "3").out.splitlines()) == 4
    assert (
        call("log", "show", log, "--replication", "1", "--to", "0s").out.splitlines()[-1].split()[0]
        == "7"
    )
    assert json.loads(call("log", "show", log, "--json", "-n", "1").out.splitlines()[1])["n"] == 1
    assert "timer poll" in call("log", "show", log, "--replication", "0", "--causes", "46").out
    assert "\x1b[" in call("log", "show", log, "-n", "1", "--color", "always").out
    nothing = call("log", "show", log, "-w", "actor=nobody")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "pullcord: no record is like that\n"


def test_the_width_is_the_terminal_s(log: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(map(len, call("log", "show", log).out.splitlines())) == 100
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, call("log", "show", log).out.splitlines())) == 80


def test_diff(log: str, call: Call, tmp_path: Path) -> None:
    other = tmp_path / "b.jsonl"
    other.write_bytes(log_of("published/outbox", 1, 2))
    assert call("log", "diff", log, log).code == 0
    done = call("log", "diff", log, str(other), "--replication", "1")
    assert done.code == 1
    assert "relay.outbox  true → false" in done.out
    assert call("log", "diff", log, str(tmp_path / "no.jsonl")).code == 2


def test_stats(log: str, call: Call) -> None:
    assert call("log", "stats", log).out.startswith("2 sections, 456 records")
    table = json.loads(call("log", "stats", log, "--each", "--format", "json").out)
    assert [part["stats"]["records"] for part in table] == [228, 228, 456]
    csv = call("log", "stats", log, "--format", "csv", "--replication", "0").out
    assert "total,log,records,228" in csv.splitlines()


def test_story(log: str, call: Call) -> None:
    assert "lost on the way: its result" in call("log", "story", "32128a12", log).out
    told = json.loads(call("log", "story", "32128a12", log, "--format", "json").out)
    assert told["run"] == OUTBOX_RUN
    assert told["lines"][0]["n"] == 5
    assert call("log", "story", log).out.count("completed") == 2
    assert len(json.loads(call("log", "story", log, "--format", "json").out)) == 2
    assert call("log", "story", "zebra", log).code == 2
    too_many = call("log", "story", "a", log, "b")
    assert too_many.code == 2
    assert "help: pullcord log story --help" in too_many.err


def test_check(log: str, call: Call) -> None:
    done = call("log", "check", log)
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("0 violated, ")
    assert call("log", "check", log, "--check", "outbox_drains").code == 3
    table = json.loads(call("log", "check", log, "--format", "json").out)
    assert (table["sections"], table["exit"], len(table["checks"])) == (2, 0, 14)


def test_export(log: str, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "out.pftrace"
    assert call("log", "export", log, "--to", "perfetto", "--out", str(out)).code == 0
    assert out.stat().st_size > 1000
    assert json.loads(call("log", "export", "--to", "lnav-format").out)["pullcord_log"]["json"]
    assert call("log", "export", log, "--to", "csv").out.count("\n") == 457
    missing = call("log", "export", "--to", "csv")
    assert missing.code == 2
    assert "help: pullcord log export LOG --to csv" in missing.err
    assert call("log", "export", log, "--to", "csv", "--out", str(tmp_path)).code == 2


BAD = {
    "binary": b"\x00\xff\x7fELF" * 1000,
    "text": b"hello\n",
    "empty": b"",
    "a huge line": b"x" * 5_000_000,
    "a header that was cut": b'{"kind":"header","format":1',
    "a header alone that is none": b'{"kind":"header"}\n',
    "a line that is none": log_of("published/outbox") + b"oops\n",
    "a kind without its fields": log_of("published/outbox") + b'{"kind":"timer"}\n',
    "of the future": log_of("published/outbox").replace(b'"format":1', b'"format":99'),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize(
    "command",
    [("show",), ("diff", "LOG"), ("stats",), ("story",), ("story", "3212"), ("check",),
     ("export", "--to", "csv"), ("show", "--causes", "1")],
)  # fmt: skip
def test_a_bad_file_is_told_in_two_lines(
    tmp_path: Path, call: Call, name: str, command: tuple[str, ...]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(BAD[name])
    words = [str(path) if word == "LOG" else word for word in command]
    done = call("log", *words, str(path))
    assert done.code == 2
    assert "Traceback" not in done.err
    assert str(path) in done.err
    assert len(done.err.splitlines()) <= 2
    assert len(done.err) < 1000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "nowhere.jsonl"), "there is no such file"),
        (("show", "."), "this folder has no logs"),
        (("show", "--follow", "."), "it is a folder"),
        (("show", "--follow", "nowhere.jsonl"), "No such file"),
        (("show", "--follow", "/dev/null"), "it is a pipe or a device"),
        (("show", "/dev/zero"), "it is a device"),
        (("show",), "LOG"),
        (("show", "a.jsonl", "--limit", "0"), "--limit: must be at least 1, not 0"),
        (("show", "a.jsonl", "--limit", "x"), "--limit"),
        (("show", "a.jsonl", "--causes", "1"), "it has 2 sections"),
        (("show", "a.jsonl", "--causes", "1", "--follow"), "leave --follow out"),
        (("show", "a.jsonl", "--causes", "1", "-w", "n>2", "--to", "1s"), "--where and --to out"),
        (("story", "a.jsonl", "3212"), "pullcord log story 3212 a.jsonl"),
        (("show", "a.jsonl", "--replication", "7"), "it has no replication 7"),
        (("show", "a.jsonl", "--cell", "zebra"), 'no cell is called "zebra"'),
        (("show", "a.jsonl", "--from", "30"), "--from: 30 has no unit"),
        (("show", "a.jsonl", "-w", "kind=drp"), 'did you mean "drop"?'),
        (("show", "a.jsonl", "--wher", "kind=drop"), "--wher"),
        (("diff", "a.jsonl"), "RIGHT"),
        (("stats", "a.jsonl", "--format", "xml"), "--format"),
        (("check", "a.jsonl", "--check", "bounds"), "--check bounds"),
        (("export", "a.jsonl"), "--to"),
        (("export", "a.jsonl", "--to", "perfeto"), "--to"),
        (("shw", "a.jsonl"), 'Did you mean "show"?'),
    ],
)
def test_usage_that_is_wrong(
    log: str, call: Call, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    empty = Path(log).parent / "logs-are-not-here"
    empty.mkdir()
    monkeypatch.chdir(empty if "." in words else Path(log).parent)
    done = call("log", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_log_that_was_cut_is_shown_as_far_as_it_goes(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox")[:-200])
    done = call("log", "show", str(path))
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("truncated: it has no closing record, and its last")


def test_a_log_may_come_through_a_pipe(log: str, tmp_path: Path) -> None:
    for data, code, told in (
        (Path(log).read_bytes(), 0, "2 sections, 456 records"),
        (b"hello\n", 2, "line 1: this is no log"),
        (b"", 2, "it is empty"),
    ):
        command = [sys.executable, "-c", MAIN, "log", "stats", "/dev/stdin"]
        done = subprocess.run(
            command, env=environment(), input=data, capture_output=True, check=False, cwd=tmp_path
        )
        assert done.returncode == code
        assert told in (done.stderr if code else done.stdout).decode()
        assert b"/tmp" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]


def test_whoever_reads_a_part_leaves_without_a_word(log: str) -> None:
    command = [sys.executable, "-c", MAIN, "log", "show", log]
    show = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert show.stdout is not None
    assert show.stderr is not None
    show.stdout.readline()
    show.stdout.close()
    assert show.stderr.read() == b""
    show.stderr.close()
    assert show.wait(20) == 0


def test_ctrl_c_ends_what_follows_with_130(log: str, tmp_path: Path) -> None:
    show = start(tmp_path, "log", "show", "--follow", log, "-w", "kind=drop")
    assert show.stdout is not None
    lines = [show.stdout.readline() for _ in range(5)]
    assert sum("drop-1" in line for line in lines) == 2
    time.sleep(0.05)
    show.send_signal(2)
    _, err = show.communicate(timeout=20)
    assert (show.returncode, err) == (130, "pullcord: interrupted\n")
