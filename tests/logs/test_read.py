"""Reading logs: what was written comes back, cut files and later versions too."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path

import msgspec
import pytest

from logs.read import LogError, Section, log_files, read_sections, record_of, sections_of
from logs.record import EndRecord, EventRecord, HeaderRecord, Record, StartRecord
from logs.write import SectionWriter
from tests.logs.test_keep import ENVELOPE, tell

HEADER = HeaderRecord(
    scenario="s", digest="d", seed=1, cell="a=1", replication=7, command="c", pullcord="0",
    python="3", resolved={"name": "s"},
)  # fmt: skip


def written(sections: int = 1) -> bytes:
    out = io.BytesIO()
    writer = SectionWriter(out)
    for _ in range(sections):
        writer.begin(HEADER)
        tell(writer)
        writer.close("ended", 8)
    return out.getvalue()


def read(data: bytes) -> list[Section]:
    return list(sections_of(io.BytesIO(data), "a.jsonl"))


def test_every_record_is_read_as_it_was_written() -> None:
    first, second = read(written(2))
    assert first.header == HEADER
    assert (first.line, second.line) == (1, 14)
    assert isinstance(first.end, EndRecord)
    assert (first.end.count, first.end.outcome) == (11, "ended")
    kept = msgspec.json.decode(msgspec.json.encode(ENVELOPE))
    for record in first.records:
        assert isinstance(record, Record)
        envelope = getattr(record, "envelope", None)
        assert envelope is None or msgspec.to_builtins(envelope) == kept
    assert [record.n for record in first.records] == list(range(1, 12))
    assert first.where == "s [a=1], replication 7"


@pytest.mark.parametrize("cut", range(1, len(written().splitlines()[-1]) + 40, 7))
def test_a_log_that_was_cut_gives_what_it_has(cut: int) -> None:
    whole = written()
    [section] = read(whole[:-cut])
    assert section.end is None
    assert section.torn == (not whole[:-cut].endswith(b"\n"))
    assert [one.n for one in section.records] == list(range(1, len(section.records) + 1))
    assert len(section.records) >= 9


def test_a_section_that_follows_a_cut_one_is_read() -> None:
    first, second = read(b"\n".join(written().splitlines()[:-1]) + b"\n" + written())
    assert first.end is None
    assert second.end is not None


def test_what_a_later_version_writes_besides_is_left_out() -> None:
    lines = written().splitlines()
    lines.insert(2, b'{"kind":"later","n":2,"what":[1]}')
    lines[3] = lines[3][:-1] + b',"more":1}'
    [section] = read(b"\n".join(lines) + b"\n")
    assert [type(one) for one in section.records[:1]] == [StartRecord]
    assert len(section.records) == 11
    assert isinstance(section.records[-1], EventRecord)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"hello\n", "a.jsonl, line 1: this is no log: a log begins with a header"),
        (b"\x00\xff\n", "a.jsonl, line 1: this is no log"),
        (written() + b"oops\n", "a.jsonl, line 14: this line is no record"),
        (
            written().replace(b'"n":3', b'"n":"x"'),
            "a.jsonl, line 4: this timer record can't be read: Expected `int`, got `str`",
        ),
        (
            written().replace(b'"t":', b'"t":99999999999999999999'),
            "a.jsonl, line 2: this start record can't be read: Expected `int` <= 46116860",
        ),
        (
            written() + written().split(b"\n", 1)[1],
            "a.jsonl, line 13: records come behind this closing record",
        ),
        (written().splitlines()[0], "line 1: its header was cut"),
        (
            written().replace(b'"format":1', b'"format":2'),
            "it was written by pullcord 0 in format 2, and this one reads up to 1",
        ),
    ],
)
def test_what_is_no_log_is_told_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(LogError, match=r"a\.jsonl, line \d+: ") as raised:
        read(data)
    assert told in str(raised.value)


def test_lines_are_decoded_one_by_one() -> None:
    lines = written().splitlines()
    assert record_of(lines[1], "a").n == 1
    assert record_of(b'{"kind":"later","n":1}', "a") is None
    with pytest.raises(LogError, match="a: this line is no record"):
        record_of(b"[1]", "a")
    with pytest.raises(LogError, match="a: this timer record can't be read"):
        record_of(b'{"kind":"timer","n":"x"}', "a")


def test_an_empty_file_has_no_section(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    assert list(read_sections(path)) == []


def test_a_compressed_file_is_told_how_to_be_given() -> None:
    for packed, program in (
        (gzip.compress(b"x"), "zcat"),
        (lzma.compress(b"x"), "xzcat"),
        (bz2.compress(b"x"), "bzcat"),
    ):
        with pytest.raises(LogError, match="it is compressed") as raised:
            list(sections_of(io.BytesIO(packed), "a b.gz"))
        assert raised.value.cure == f"give it as a pipe: <({program} 'a b.gz')"


def test_a_journal_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(LogError, match="this folder has no logs"):
        log_files(tmp_path)
    (tmp_path / "parts").mkdir()
    with pytest.raises(LogError, match="its run was interrupted") as raised:
        log_files(tmp_path)
    assert raised.value.cure == f"go on with it: pullcord run --resume {tmp_path}"
    (tmp_path / "a.jsonl").touch()
    assert log_files(tmp_path) == [tmp_path / "a.jsonl"]


def test_a_results_folder_means_its_logs(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="this folder has no logs"):
        log_files(tmp_path)
    with pytest.raises(LogError, match="there is no such file"):
        log_files(tmp_path / "a.jsonl")
    (tmp_path / "logs").mkdir()
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / "logs" / name).write_bytes(written())
    assert [path.name for path in log_files(tmp_path)] == ["a.jsonl", "b.jsonl"]
    assert log_files(tmp_path / "logs" / "b.jsonl") == [tmp_path / "logs" / "b.jsonl"]
    [section] = read_sections(log_files(tmp_path)[0])
    assert section.path == str(tmp_path / "logs" / "a.jsonl")
