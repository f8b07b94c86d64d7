"""Exports go to a file or to stdout, as bytes that the other tool reads."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]  # it has no types
    perfetto_trace_pb2 as protos,
)

from logs.read import LogError
from logs.seek import Entry, entries_of
from scenarios.folder import FolderError
from scenarios.log_export import Target, export
from scenarios.problems import ScenarioError
from tests.logs.samples import log_of


@pytest.fixture
def entries(tmp_path: Path) -> list[Entry]:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox", 0, 2))
    return entries_of(path)


def written(entries: list[Entry], to: Target, folder: Path) -> bytes:
    export(entries, to, folder / "out")
    return (folder / "out").read_bytes()


def test_a_trace_has_a_process_a_section(entries: list[Entry], tmp_path: Path) -> None:
    trace = protos.Trace.FromString(written(entries, "perfetto", tmp_path))
    names = [p.track_descriptor.process.process_name for p in trace.packet]
    assert [name for name in names if name] == [entry.words for entry in entries]


def test_a_table_has_one_head(entries: list[Entry], tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(written(entries, "csv", tmp_path).decode())))
    assert len(rows) == 456
    assert [row["replication"] for row in rows[::228]] == ["0", "1"]


def test_otlp_has_a_request_a_line(entries: list[Entry], tmp_path: Path) -> None:
    lines = written(entries, "otlp-json", tmp_path).splitlines()
    assert [list(json.loads(line)) for line in lines] == [["resourceSpans"]] * 2


def test_lnav_s_definition_needs_no_log(tmp_path: Path) -> None:
    assert "pullcord_log" in json.loads(written([], "lnav-format", tmp_path))


def test_a_file_that_can_not_be_completed_is_none(tmp_path: Path) -> None:
    log, out = tmp_path / "a.jsonl", tmp_path / "out"
    log.write_bytes(log_of("published/outbox") + log_of("published/outbox") + b"oops\n")
    out.write_bytes(b"before")
    with pytest.raises(LogError):
        export(entries_of(log), "csv", out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out"]
    assert out.read_bytes() == b"before"
    with pytest.raises(FolderError, match="it is a folder"):
        export([], "csv", tmp_path)
    with pytest.raises(FolderError, match="a file is in its way"):
        export([], "csv", log / "out")


def test_a_folder_is_made_for_the_file(tmp_path: Path) -> None:
    export([], "csv", tmp_path / "new" / "out")
    assert (tmp_path / "new" / "out").read_text().startswith("scenario,")


def test_a_device_is_written_to_as_it_is() -> None:
    export([], "csv", Path("/dev/null"))
    assert not Path("/dev/null").is_file()


def test_bytes_are_kept_from_a_terminal(
    entries: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    with pytest.raises(ScenarioError, match=r"--out trace\.pftrace"):
        export(entries, "perfetto", None)
