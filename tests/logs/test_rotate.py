"""The log of a process that stays: bounded files, each a log of its own, and full disks."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from actors.messages import RunGraphSession, Sync
from logs.read import Section, read_sections
from logs.record import EventRecord, HeaderRecord, MessageRecord
from logs.rotate import RotatingRecorder
from transports.envelope import Envelope

HEADER = HeaderRecord(
    scenario="server",
    digest="",
    seed=1,
    cell="",
    replication=0,
    command="pullcord server",
    pullcord="0",
    python="3",
    resolved={},
)
SYNC = Sync(boot="b", sessions=(), open=(), capacity=1, poll_us=1)


def recorder(folder: Path, said: list[str] | None = None, **how: Any) -> RotatingRecorder:
    settings = {"files": 3, "size_bytes": 2_000, "whole": False} | how
    return RotatingRecorder(
        folder, HEADER, {"epoch_us": 5}, (said if said is not None else []).append, **settings
    )


def kill(log: RotatingRecorder) -> None:
    """End it as a kill does: nothing more is written."""
    assert log._out is not None
    log._out.close()


def sections(folder: Path) -> list[Section]:
    return [one for path in sorted(folder.glob("*.jsonl")) for one in read_sections(path)]


def record_syncs(log: RotatingRecorder, count: int) -> None:
    turn = 0
    for number in range(1, count + 1):
        turn = log.message(number, Envelope(number, "relay", "server", 0, turn, SYNC))
        log.event(number, "server", turn, "synced", {"number": number})
        log.flush()


def test_every_record_is_in_its_file_when_flush_returns(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.event(1, "server", 0, "up", {})
    log.flush()
    [section] = sections(tmp_path)
    assert [getattr(record, "event", None) for record in section.records] == ["log.began", "up"]
    assert section.end is None, "it goes on"
    kill(log)


def test_files_are_bounded_in_size_and_number_and_each_is_a_log_of_its_own(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    record_syncs(log, 60)
    log.close("stopped")
    paths = sorted(tmp_path.glob("*.jsonl"))
    assert len(paths) == 3
    assert all(path.stat().st_size < 3_000 for path in paths)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in paths)
    found = sections(tmp_path)
    assert [one.end.outcome for one in found if one.end] == ["rotated", "rotated", "stopped"]
    for one in found:
        assert one.end is not None
        assert [record.n for record in one.records] == list(range(1, one.end.count + 1))
        assert isinstance(one.records[0], EventRecord)
        assert one.records[0].fields == {"epoch_us": 5}
        for record in one.records[1:]:
            if isinstance(record, EventRecord):
                turn = one.records[record.cause - 1]
                assert isinstance(turn, MessageRecord)
                assert turn.envelope.id == record.fields["number"]
            elif isinstance(record, MessageRecord):
                assert record.cause == record.envelope.cause
                before = one.records[record.cause - 1]
                if record.cause:
                    assert isinstance(before, MessageRecord)
                    assert before.envelope.id == record.envelope.id - 1


def test_a_cause_in_the_file_before_is_none(tmp_path: Path) -> None:
    log = recorder(tmp_path, files=99)
    turn = 0
    for number in range(1, 40):
        turn = log.message(number, Envelope(number, "relay", "server", 0, turn, SYNC))
        log.flush()
    log.close("stopped")
    found = sections(tmp_path)
    assert len(found) > 3
    for one in found:
        assert [record.cause for record in one.records[:3]] == [0, 0, 2]


def test_files_that_are_written_whole_go_on_with_numbers_and_causes(tmp_path: Path) -> None:
    log = recorder(tmp_path, files=99, whole=True)
    turns: list[int] = []
    for number in range(1, 40):
        cause = turns[-1] if turns else 0
        turns.append(log.message(number, Envelope(number, "relay", "server", 0, cause, SYNC)))
        log.flush()
    log.close("stopped")
    found = sections(tmp_path)
    assert len(found) > 3
    records = [record for one in found for record in one.records]
    assert [record.n for record in records] == list(range(1, len(records) + 1))
    messages = [record for record in records if isinstance(record, MessageRecord)]
    assert [record.n for record in messages] == turns
    assert [record.cause for record in messages] == [0, *turns[:-1]]
    assert [record.envelope.cause for record in messages] == [0, *turns[:-1]]


def test_a_new_start_writes_a_new_file(tmp_path: Path) -> None:
    kill(recorder(tmp_path))
    recorder(tmp_path).close("stopped")
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "server-00000001.jsonl",
        "server-00000002.jsonl",
    ]


def test_payloads_are_written_only_if_that_is_wanted(tmp_path: Path) -> None:
    body = RunGraphSession(
        graph_session_id="gs_1", idempotency_key="key-0001", arguments={"a": "private"}
    )
    for whole in (False, True):
        log = recorder(tmp_path / str(whole), whole=whole)
        log.message(1, Envelope(1, "agent", "server", 0, 0, body))
        log.close("stopped")
        text = "".join(path.read_text() for path in (tmp_path / str(whole)).iterdir())
        assert ("private" in text) is whole
        assert "key-0001" in text


class FullDisk:
    """A file on a disk that has room for so many bytes."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes

    def write(self, data: bytes) -> int:
        if self.room_bytes <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken, self.room_bytes = min(len(data), self.room_bytes), self.room_bytes - len(data)
        return taken

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("room_bytes", [0, 10])
def test_a_full_disk_loses_records_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    now = [100.0]
    monkeypatch.setattr("logs.rotate.time.monotonic", lambda: now[0])
    said: list[str] = []
    log = recorder(tmp_path, said)
    kill(log)
    monkeypatch.setattr(log, "_out", FullDisk(room_bytes))
    record_syncs(log, 3)
    assert said == [f"the log can't be written in {tmp_path}: No space left on device"]
    now[0] += 60
    record_syncs(log, 1)
    log.close("stopped")
    assert said[1:] == [f"the log goes on in {tmp_path}; 6 records are lost"]
    found = sections(tmp_path)
    assert [len(one.records) for one in found] == [1, 3]
    began = found[1].records[0]
    assert isinstance(began, EventRecord)
    assert began.fields == {"epoch_us": 5, "lost": 6}


def test_what_has_no_json_is_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    log = recorder(tmp_path, said, whole=True)
    odd = RunGraphSession(graph_session_id="gs_1", idempotency_key="k", arguments={"a": object()})
    log.message(1, Envelope(1, "agent", "server", 0, 0, odd))
    log.close("stopped")
    assert len(said) == 1
    assert len(sections(tmp_path)[0].records) == 2
