"""Keys that outlive a call: kept until the ticket is there, one for each call that is under way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actors.server import KEY_CHARS
from scenarios.service.keys import KEPT_S, kept_key
from tests.scenarios.commandline import ROOT

CALL = ("server:1", '["gs_1",{}]')


def cut_off(folder: Path, *call: str) -> str:
    """Make a call that ends without an answer; its key."""
    with kept_key(folder, *call) as kept:
        return kept.key


def test_a_call_that_was_cut_off_finds_its_key(tmp_path: Path) -> None:
    key = cut_off(tmp_path, *CALL)
    assert KEY_CHARS[0] <= len(key) <= KEY_CHARS[1]
    with kept_key(tmp_path, *CALL) as kept:
        assert (kept.key, kept.again) == (key, True)
        kept.done = True
    with kept_key(tmp_path, *CALL) as kept:
        assert kept.key != key
        assert not kept.again


def test_another_call_has_another_key(tmp_path: Path) -> None:
    key = cut_off(tmp_path, *CALL)
    assert cut_off(tmp_path, "server:2", CALL[1]) != key
    assert cut_off(tmp_path, CALL[0], '["gs_2",{}]') != key


def test_the_same_call_twice_at_one_time_has_two_keys(tmp_path: Path) -> None:
    with kept_key(tmp_path, *CALL) as one, kept_key(tmp_path, *CALL) as two:
        assert one.key != two.key
        one.done = True
    assert cut_off(tmp_path, *CALL) == two.key


def test_an_error_within_the_call_keeps_the_key(tmp_path: Path) -> None:
    with pytest.raises(KeyError), kept_key(tmp_path, *CALL) as kept:
        raise KeyError(kept.key)
    assert cut_off(tmp_path, *CALL) == kept.key


def test_a_key_is_on_the_disk_before_it_is_given_and_survives_a_kill(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from scenarios.service.keys import *\n"
        "with kept_key(Path(sys.argv[1]), 'a') as kept:\n"
        "    print(kept.key, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode < 0, done.stderr
    assert cut_off(tmp_path, "a") == done.stdout.strip()


def test_a_file_that_was_cut_short_is_no_key(tmp_path: Path) -> None:
    key = cut_off(tmp_path, *CALL)
    [path] = tmp_path.glob("*.key")
    path.write_text(key[:5])
    assert len(cut_off(tmp_path, *CALL)) == len(key)


def test_what_nobody_repeats_is_forgotten(tmp_path: Path) -> None:
    key = cut_off(tmp_path, *CALL)
    [path] = tmp_path.glob("*.key")
    old_s = time.time() - KEPT_S - 10
    os.utime(path, (old_s, old_s))
    assert cut_off(tmp_path, *CALL) != key
    assert path.stat().st_mode & 0o777 == 0o600
