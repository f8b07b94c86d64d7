"""Where two logs part, as it is printed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from logs.read import LogError
from scenarios.log_diff import diff
from scenarios.log_sections import chosen
from scenarios.log_show import Lines
from tests.logs.samples import log_of


def compared(
    folder: Path, left: bytes, right: bytes, *, ignore_ids: bool = False
) -> tuple[int, list[str]]:
    paths = folder / "a.jsonl", folder / "b.jsonl"
    for path, data in zip(paths, (left, right), strict=True):
        path.write_bytes(data)
    out = io.StringIO()
    one, other = ((path, chosen(path)) for path in paths)
    code = diff(one, other, Lines(out, 200, colored=False), ignore_ids=ignore_ids)
    return code, out.getvalue().replace(str(folder), "").splitlines()


def test_equal_logs_are_equal_whatever_their_headers_say(tmp_path: Path) -> None:
    data = log_of("published/outbox", 0, 3)
    other = data.replace(b'"python":"3', b'"python":"4')
    assert compared(tmp_path, data, other) == (0, ["3 sections equal, 0 different, 0 alone"])


def test_lines_that_say_the_same_in_other_bytes_are_equal(tmp_path: Path) -> None:
    data = log_of("published/outbox")
    other = data.replace(b'"n":5,', b'"n": 5,')
    assert other != data
    assert compared(tmp_path, data, other)[0] == 0


def test_the_first_difference_has_what_explains_it_and_what_led_to_it(tmp_path: Path) -> None:
    lines = log_of("published/outbox", 0, 2).splitlines(keepends=True)
    other = list(lines)
    other[0] = other[0].replace(b'"seed":1', b'"seed":2')
    other[51] = other[51].replace(b'"status":"completed"', b'"status":"failed"')
    code, told = compared(tmp_path, b"".join(lines), b"".join(other))
    assert code == 1
    assert told == [
        "outbox [relay.outbox=true], replication 0 differs",
        "what the headers explain:",
        "  seed  1 → 2",
        "equal until here: 50 records",
        "  48     40s  relay   time-out: no answer to Complete to server",
        "  49     45s  relay   timer poll",
        told[6],
        "- /a.jsonl",
        "   2      0s  relay   starts, boot 0",
        "   8      5s  relay   timer poll",
        "  36     25s  relay   timer poll",
        "  49     45s  relay   timer poll",
        told[6],
        told[13],
        "+ /b.jsonl",
        *told[8:13],
        told[20],
        "field by field:",
        '  fields.status  "completed" → "failed"',
        "1 section equal, 1 different, 0 alone",
    ]
    assert told[6].startswith("  50     45s  server  relay → server  Complete(")
    assert "status=completed" in told[13]
    assert "status=failed" in told[20]


def test_two_cells_part_where_they_do_something_else(tmp_path: Path) -> None:
    code, told = compared(
        tmp_path, log_of("published/outbox"), log_of("published/outbox", 1), ignore_ids=True
    )
    assert code == 1
    assert "  relay.outbox  true → false" in told
    [where] = [line for line in told if line.startswith("equal until here")]
    assert where == "equal until here: 49 records"
    assert [line.split("  ")[-1].split("(")[0] for line in told if line.startswith("  50 ")] == [
        "Complete", "Sync"
    ]  # fmt: skip
    assert '  envelope.body.type        "Complete" → "Sync"' in told


def test_long_chains_and_long_lists_are_cut(tmp_path: Path) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    other = [*lines[:-2], lines[-2].replace(b'"actor":"relay"', b'"actor":"x"'), lines[-1]]
    other[0] = other[0].replace(b'"resolved":{', b'"resolved":{' + b"".join(
        b'"k%d":0,' % number for number in range(30)))  # fmt: skip
    code, told = compared(tmp_path, b"".join(lines), b"".join(other))
    assert code == 1
    assert "  and 10 more" in told
    assert any(line.endswith("causes before these") for line in told)


def test_a_log_that_ends_early_says_so(tmp_path: Path) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    _, told = compared(tmp_path, b"".join(lines), b"".join(lines[:30]))
    assert "here it ends: truncated: it has no closing record" in told
    _, told = compared(tmp_path, b"".join(lines[:30]) + lines[-1], b"".join(lines))
    assert "here it ends: ended at 1200s, 228 records" in told


def test_the_first_section_that_differs_is_shown_and_the_others_are_counted(
    tmp_path: Path,
) -> None:
    data = log_of("published/outbox", 0, 3)
    other = data.replace(b'"actor":"engine"', b'"actor":"other"')
    code, told = compared(tmp_path, data, other)
    assert code == 1
    assert [line for line in told if line.endswith("differs")] == [told[0]]
    assert told[-1] == "0 sections equal, 3 different, 0 alone"


def test_what_only_one_has_is_a_difference(tmp_path: Path) -> None:
    one, more = log_of("published/outbox", 0, 1), log_of("published/outbox", 0, 3)
    both = log_of("published/cancel")
    code, told = compared(tmp_path, more + both, one + both)
    assert code == 1
    assert told == [
        "only in /a.jsonl: outbox [relay.outbox=true], replication 1 and 1 more",
        "2 sections equal, 0 different, 2 alone",
    ]
    code, told = compared(tmp_path, one + log_of("published/outbox", 1), both * 2)
    assert code == 1
    assert told[-2:] == [
        "no two sections are of the same cell and replication",
        "0 sections equal, 0 different, 4 alone",
    ]


def test_what_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="this is no log"):
        compared(tmp_path, log_of("published/outbox"), b"hello\n")
    with pytest.raises(LogError, match="it is empty"):
        compared(tmp_path, log_of("published/outbox"), b"")
