"""Sections are found without decoding them, and what grows is followed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from logs.read import LogError, raw_sections
from logs.seek import entries_of, follow, raw_section
from tests.logs.samples import Made, log_of


def test_each_section_is_found_where_it_is_and_read_as_in_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox", 0, 3) + log_of("published/outbox", 1, 2))
    entries = entries_of(path)
    assert [entry.replication for entry in entries] == [0, 1, 2, 0, 1]
    assert [entry.key for entry in entries][3] == ("outbox", "relay.outbox=false", 0)
    assert [raw_section(entry) for entry in entries] == list(raw_sections(path))
    for entry in entries:
        section = raw_section(entry).section()
        assert section.where == entry.words
        assert section.line == entry.line
        assert section.header.cell == entry.cell


def test_a_copy_is_called_as_what_it_was_copied_from(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(Made().data() + b"oops\n")
    [entry] = entries_of(path, "stdin")
    assert (entry.path, entry.file) == ("stdin", str(path))
    with pytest.raises(LogError, match=r"^stdin, line 3: this line is no record"):
        raw_section(entry).section()
    path.write_bytes(b"oops\n")
    with pytest.raises(LogError, match=r"^stdin, line 1: this is no log"):
        entries_of(path, "stdin")


def test_what_is_no_log_is_told_at_once_and_an_empty_file_has_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\x00\xff" * 100)
    with pytest.raises(LogError, match="line 1: this is no log"):
        entries_of(path)
    path.write_bytes(b"")
    assert entries_of(path) == []


def test_a_header_that_was_cut_is_found_and_its_section_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(Made().data() + b'{"kind":"header","form')
    entries = entries_of(path)
    assert len(entries) == 2
    with pytest.raises(LogError, match="line 3: its header was cut"):
        raw_section(entries[1]).section()


def test_a_file_that_grows_is_followed_and_a_line_is_given_only_when_it_is_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntw")
    more = iter([b"o\nthree\n", b"four\n"])

    def wait(_seconds: float) -> None:
        with path.open("ab") as file:
            file.write(next(more))

    assert list(islice(follow(path, wait), 4)) == [b"one\n", b"two\n", b"three\n", b"four\n"]


@pytest.mark.parametrize("how", ["replaced", "shortened", "gone for a moment"])
def test_a_file_that_begins_anew_is_read_anew(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    waits = 0

    def wait(_seconds: float) -> None:
        nonlocal waits
        waits += 1
        if how == "gone for a moment" and waits == 1:
            path.unlink()
            return
        other = tmp_path / "b"
        other.write_bytes(b"new\n")
        if how == "shortened":
            path.write_bytes(b"new\n")
        else:
            other.replace(path)

    assert list(islice(follow(path, wait), 3)) == [b"one\n", b"two\n", b"new\n"]
