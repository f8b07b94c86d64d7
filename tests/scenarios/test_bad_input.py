"""What goes wrong, end to end: a clear word, the right exit code, nothing half-written."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.scenarios.commandline import (
    MAIN,
    SMALL,
    alive,
    await_end,
    command,
    environment,
    records,
    start,
    write,
    write_foreign,
)
from tests.scenarios.conftest import Call

LONG = SMALL.replace("replications = 40", "replications = 200000").replace(
    'that = "wait.count[5s] equals 80"', 'that = "wait.max <= 1000s"'
)
MIDDLE = SMALL.replace("replications = 40", "replications = 1000").replace("equals 80", "> 0")


# Files


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[agent]", "[agnet]", 'did you mean "agent"?'),
        ('poll = "every 30s"', "poll = 30", "poll"),
        ('poll = "every 30s"', 'poll = "every 30"', "30"),
        ('"wait.max <= 100s"', '"wiat.max <= 100s"', 'did you mean "wait"?'),
        ('"5s", "20s"', "", "is swept over no value"),
        ('"5s", "20s"', '"-5s", "20s"', "-5s"),
        ("replications = 40", "replications = 0", "replications"),
        ("schema = 1", "schema = ", "small.toml:2"),
        ("runs = 2", 'runs = 2\nuse = "nowhere.py:Mine"', 'there is no file "nowhere.py"'),
    ],
)
def test_a_file_with_a_mistake(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: str
) -> None:
    write(tmp_path, SMALL.replace(old, new))
    monkeypatch.chdir(tmp_path)
    done = call("run", "small.toml", "--out", "out")
    assert done.code == 2
    assert done.out == ""
    assert words in done.err
    assert re.search(r"^small\.toml:\d+", done.err)
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


def test_what_is_no_scenario_file(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.toml").write_bytes("name = 'é'".encode("latin-1"))
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "huge.toml").write_bytes(b"#" * 50_000_000)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("latin.toml", "empty.toml", "huge.toml", "folder", "missing.toml"):
        begun = time.monotonic()
        done = call("run", name, "--out", "out")
        assert (done.code, done.out) == (2, "")
        assert name in done.err
        assert "Traceback" not in done.err
        assert time.monotonic() - begun < 2
    assert not (tmp_path / "out").exists()


def test_every_broken_file_of_a_folder_is_told(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    write(tmp_path / "set", SMALL, "fine.toml")
    write(tmp_path / "set", SMALL.replace("[agent]", "[agnet]"), "one.toml")
    write(tmp_path / "set", "nonsense", "two.toml")
    done = call("run", "set", "--out", "out")
    assert done.code == 2
    assert "set/one.toml:" in done.err
    assert "set/two.toml:" in done.err
    assert not (tmp_path / "out").exists()


# A user's actor


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (
            "{}[timer]", 1,
            [r"failed mine, replication 0:", r"relay failed on timer 'poll' at [\d.]+ s: KeyError",
             r'mine\.py", line 8, in on_timer', r"    \{\}\[timer\]"],
        ),
        ("while True: pass", 1, [r"stuck mine", r"did not end within 0.3 s", r"mine\.py:8\)"]),
        ("context.set_timer('x', 0); return", 1, [r"stuck mine", r"relay on timer 'x'"]),
        ("context.log('x', at=time.time())", 2, [r"not deterministic mine", r"reads a clock"]),
        ("import random; context.log('x', at=random.random())", 2, [r"not deterministic"]),
        ("context.send('bob', messages.GetGraphRun(command_id='x'))", 1,
         [r"relay sent to 'bob' on timer 'poll', but there are only server, relay, engine, agent"]),
        ("context.send('agent', messages.GetGraphRun(command_id='x'))", 1,
         [r"agent has no handler for GetGraphRun"]),
        ("message = messages.GetGraphRun(command_id='x'); message.command_id = 'y'", 1,
         [r"AttributeError: immutable type", r"mine\.py"]),
        ("raise SystemExit('done')", 1, [r"relay on timer 'poll' called sys.exit\('done'\)"]),
        ("raise KeyError", 1, [r"KeyError"]),
        ("return", 1, [r"limit reached mine", r"did not end within 1h", r"agent"]),
    ],
)  # fmt: skip
def test_an_actor_that_goes_wrong(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, body: str, code: int,
    words: list[str],
) -> None:  # fmt: skip
    path = write_foreign(tmp_path, body)
    path.write_text(path.read_text().replace("[run]", '[run]\nlimit = "1h"'))
    monkeypatch.chdir(tmp_path)
    done = call("run", "mine.toml", "--out", "out", "--patience", "300ms", "--logs", "failed")
    assert done.code == code
    for word in words:
        assert re.search(word, done.out), done.out
    assert "simulator.py" not in done.out
    assert "  reproduce: pullcord run mine.toml --seed 1 --replication 0 --logs all" in done.out
    (log,) = (tmp_path / "out" / "logs").iterdir()
    assert records(log)[-1].startswith(b'{"kind":"end"')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_like_it", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("class Other: pass", 'has no class "?Mine"?'),
        ("class Mine: pass", "on_start"),
    ],
)
def test_an_actor_that_is_none(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    write_foreign(tmp_path, "pass")
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = call("run", "mine.toml", "--out", "out")
    assert done.code == 2
    assert re.search(words, done.err)
    assert re.match(r"mine\.toml:\d+:\d+: ", done.err)
    assert "Traceback" not in done.err


def test_an_actor_that_cannot_be_made(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_foreign(tmp_path, "pass\n\n    def __init__(self, config, place):\n    1 / 0")
    text = (tmp_path / "mine.py").read_text()
    made = "class Mine(Relay):\n    def __init__(self, config, place):\n        1 / 0\n"
    (tmp_path / "mine.py").write_text(text.split("class Mine")[0] + made)
    monkeypatch.chdir(tmp_path)
    done = call("run", "mine.toml", "--out", "out")
    assert done.code == 2
    assert "can't be made: ZeroDivisionError" in done.out + done.err


# Results that can't be written


def test_an_output_folder_that_is_none(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    (tmp_path / "file").write_text("mine")
    monkeypatch.chdir(tmp_path)
    for out in ("file", "file/inside", "/dev/full", "/proc/results"):
        done = call("run", "small.toml", "--out", out)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"pullcord: {out} can't be a results folder: ")
        assert done.err.endswith("help: choose another folder with --out\n")
    assert (tmp_path / "file").read_text() == "mine"


def limited(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("flags", [(), ("--logs", "all"), ("--logs", "all", "-j", "2")])
def test_a_disk_that_gets_full(tmp_path: Path, flags: tuple[str, ...]) -> None:
    write(tmp_path, MIDDLE)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "run", "small.toml", "--out", "out", *flags],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
        preexec_fn=lambda: limited(9_000),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "the disk is full" in done.stderr
    assert "pullcord run --resume out" in done.stderr
    assert "Traceback" not in done.stderr
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left <= {"journal.jsonl", "parts"}
    again = command(tmp_path, "run", "--resume", "out", "-q")
    assert again.code == 0, again.err
    whole = command(tmp_path, "run", "small.toml", "--out", "whole", "-q", *flags)
    assert whole.code == 0
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


def digest(folder: Path) -> list[str]:
    return re.findall(r'"digest": "(\w+)"', (folder / "results.json").read_text())


# Signals


def interrupt(folder: Path, *flags: str, group: bool, sign: int = signal.SIGINT) -> tuple[
    "subprocess.Popen[str]", str, str, float
]:  # fmt: skip
    """Begin a long run, and send a signal to it once it has done something."""
    process = start(folder, "run", "small.toml", "--out", "out", *flags)
    journal = folder / "out" / "journal.jsonl"
    limit = time.monotonic() + 20
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < limit
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    begun = time.monotonic()
    (os.killpg if group else os.kill)(process.pid, sign)
    out, err = process.communicate(timeout=20)
    return process, out, err, time.monotonic() - begun


@pytest.mark.parametrize("group", [True, False])
@pytest.mark.parametrize("flags", [("-j", "2"), ("-j", "1"), ("-j", "2", "--logs", "all")])
def test_ctrl_c(tmp_path: Path, group: bool, flags: tuple[str, ...]) -> None:
    write(tmp_path, LONG)
    process, out, err, seconds = interrupt(tmp_path, *flags, group=group)
    assert process.returncode == 130
    assert seconds < 1.5
    assert await_end(process.pid) == []
    assert out == ""
    assert re.fullmatch(
        r"pullcord: interrupted; [\d,]+ replications are kept\n"
        r"help: go on with it: pullcord run --resume out\n",
        err,
    )
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == {"journal.jsonl"} | ({"parts"} if "all" in flags else set())
    for line in (tmp_path / "out" / "journal.jsonl").read_bytes().splitlines(keepends=True):
        assert line.endswith(b"}\n")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_cut_off_leaves_no_worker_behind_and_goes_on(
    tmp_path: Path, sign: int
) -> None:
    write(tmp_path, MIDDLE.replace("replications = 1000", "replications = 4000"))
    process, _, _, _ = interrupt(tmp_path, "-j", "2", group=False, sign=sign)
    assert process.returncode == (130 if sign == signal.SIGINT else -sign)
    assert await_end(process.pid) == []
    again = command(tmp_path, "run", "--resume", "out", "-j", "2")
    assert (again.code, again.err) == (0, "")
    whole = command(tmp_path, "run", "small.toml", "--out", "whole", "-j", "2")
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")
    clock = re.compile(r"\d+\.\d\d s$|results in \w+$", re.MULTILINE)
    assert clock.sub("", again.out) == clock.sub("", whole.out)


def test_two_that_resume_at_once(tmp_path: Path) -> None:
    write(tmp_path, LONG)
    process = start(tmp_path, "run", "small.toml", "--out", "out", "-j", "1")
    while not (tmp_path / "out" / "journal.jsonl").exists():
        time.sleep(0.02)
    time.sleep(0.2)
    done = command(tmp_path, "run", "--resume", "out")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert done.code == 2
    assert "out is in use: another pullcord is writing into it" in done.err


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    write(tmp_path, LONG)
    process = start(tmp_path, "run", "small.toml", "--out", "out", "-j", "2")
    limit = time.monotonic() + 20
    while len(alive(process.pid)) < 3 and time.monotonic() < limit:
        time.sleep(0.02)
    time.sleep(0.3)
    worker = next(pid for pid in alive(process.pid) if pid != process.pid)
    os.kill(worker, signal.SIGKILL)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("pullcord: a worker process was killed while it ran replications ")
    assert "help: go on with it: pullcord run --resume out" in err
    assert await_end(process.pid) == []


# Speech


def test_piped_output_has_no_escapes_and_stderr_nothing(tmp_path: Path) -> None:
    write(tmp_path)
    done = command(tmp_path, "run", "small.toml", "--out", "out")
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert "results in out" in done.out


def test_a_reader_who_leaves(tmp_path: Path) -> None:
    write(tmp_path)
    line = f'"{sys.executable}" -c "{MAIN}" run small.toml --out out -v | head -1'
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith("small")
    assert done.stderr == ""
    assert (tmp_path / "out" / "results.json").is_file()
