"""The story of one run is found by its name, and all runs are listed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from logs.read import LogError
from scenarios.log_show import Lines
from scenarios.log_story import list_runs, runs_of, show_story, tell
from tests.logs.samples import OUTBOX_RUN, Made, log_of


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox", 0, 2) + log_of("chaos/agent_dies"))
    return path


@pytest.mark.parametrize("text", [OUTBOX_RUN, "32128a12", "3212…0001"])
def test_a_run_is_found_in_whichever_section_it_is(log: Path, text: str) -> None:
    head, told = tell(log, text, None, None)
    assert told.run == OUTBOX_RUN
    assert head == "outbox [relay.outbox=true], replication 0, seed 1"
    out = io.StringIO()
    show_story(head, told, Lines(out, 100, colored=False))
    lines = out.getvalue().splitlines()
    assert lines[0].startswith(f"run {OUTBOX_RUN}: outbox")
    assert lines[1] == "  0s    [5]  agent asked for it (attempt 1)"
    assert lines[-1] == "900s  [183]  agent read from server that it is completed"


def test_what_happened_many_times_says_how_often(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("chaos/cut_cancel"))
    head, told = tell(path, "0001", None, None)
    out = io.StringIO()
    show_story(head, told, Lines(out, 100, colored=False))
    assert " times, until " in out.getvalue()


def test_a_name_that_means_several_runs_or_none_is_an_error(log: Path) -> None:
    with pytest.raises(LogError, match='"5c5d6a69" may mean 4 runs') as raised:
        tell(log, "5c5d6a69", None, None)
    assert raised.value.cure.startswith("write more of it: 5c5d6a69-")
    with pytest.raises(LogError, match='no run is called "x"') as raised:
        tell(log, "x", None, None)
    assert raised.value.cure == "without a run the command lists them"
    with pytest.raises(LogError) as raised:
        tell(log, OUTBOX_RUN.replace("32", "23"), None, None)
    assert raised.value.cure == f"did you mean {OUTBOX_RUN}?"
    with pytest.raises(LogError, match="no run is called"):
        tell(log, OUTBOX_RUN, None, 1)


def test_a_run_of_two_sections_is_told_apart_by_its_section(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox") * 2)
    with pytest.raises(LogError, match="may mean 2 runs") as raised:
        tell(path, OUTBOX_RUN, None, None)
    assert raised.value.cure.startswith("say where, by --cell, --replication or its file: outbox [")


def test_a_whole_id_is_meant_before_the_beginning_of_another(tmp_path: Path) -> None:
    made = Made()
    for run in ("r-10", "r-1"):
        made.tell.event(0, "server", 0, "run.queued", {"run": run})
    path = tmp_path / "a.jsonl"
    path.write_bytes(made.data())
    assert tell(path, "r-1", None, None)[1].run == "r-1"
    assert tell(path, "10", None, None)[1].run == "r-10"


def test_all_runs_are_listed_by_section(log: Path) -> None:
    found = list(runs_of(log, None, None))
    assert [len(one.runs) for one in found] == [1, 1, 4]
    lines = list(list_runs(found, 120, colored=False))
    assert lines[0] == "outbox [relay.outbox=true], replication 0"
    assert lines[2].split() == [OUTBOX_RUN, "agent", "completed", "0s", "5s", "45s", "38"]
    narrow = "\n".join(list_runs(found, 80, colored=False))
    assert OUTBOX_RUN not in narrow
    assert "3212…000000000001" in narrow


def test_a_section_without_runs_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(Made().data())
    assert list(list_runs(list(runs_of(path, None, None)), 80, colored=False)) == [
        "s, replication 0", "no run is named in it"
    ]  # fmt: skip
