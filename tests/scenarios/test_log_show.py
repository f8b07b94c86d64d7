"""Records as lines: aligned, cut to the width, coloured; by their causes; as they come."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from logs.read import LogError
from logs.record import TimerRecord
from logs.seek import Entry, entries_of
from scenarios.log_show import Choice, Following, Lines, ending, show, show_causes, title
from scenarios.log_where import parse_where
from tests.logs.samples import OUTBOX_RUN, Made, header, log_of, section


def entries(folder: Path, data: bytes, name: str = "a.jsonl") -> list[Entry]:
    path = folder / name
    path.write_bytes(data)
    return entries_of(path)


def shown(
    given: list[Entry], *where: str, width: int = 100, limit: int | None = None
) -> tuple[int, list[str]]:
    out = io.StringIO()
    choice = Choice(where=parse_where(where), limit=limit)
    count = show(given, choice, Lines(out, width, colored=False))
    return count, out.getvalue().splitlines()


def test_a_section_has_a_head_a_line_a_record_and_its_ending(tmp_path: Path) -> None:
    count, lines = shown(entries(tmp_path, log_of("published/outbox")))
    assert count == 228
    assert lines[0] == "outbox [relay.outbox=true], replication 0, seed 1"
    assert lines[1] == "   1       0s  server  starts, boot 0"
    assert lines[46] == (
        "  46      30s  relay   dropped by drop-1: relay → server  "
        "Complete(command_id=3212…000000000001, bo…"
    )
    assert lines[48] == "  48      40s  relay   time-out: no answer to Complete to server"
    assert lines[-1] == "ended at 1200s, 228 records"
    assert len(lines) == 230


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_are_cut_to_the_width_and_columns_stand_under_each_other(
    tmp_path: Path, width: int
) -> None:
    _, lines = shown(entries(tmp_path, log_of("chaos/agent_dies")), width=width)
    assert max(map(cell_len, lines)) <= width
    starts = {re.match(r" *\d+ +\S+  (\S+ +)", line).end() for line in lines[1:-1]}  # type: ignore[union-attr]  # each has it
    assert len(starts) == 1
    assert any(line.endswith("…") for line in lines) == (width < 200)


def test_what_is_wanted_alone_is_shown_each_under_its_head(tmp_path: Path) -> None:
    given = entries(tmp_path, log_of("published/outbox", 0, 3) + log_of("published/cancel"))
    count, lines = shown(given, "kind=drop")
    assert count == 3
    assert [line for line in lines if "seed" in line] == lines[::2]
    assert len(lines) == 6
    count, lines = shown(given, "kind=drop", limit=2)
    assert (count, len(lines)) == (2, 4)
    count, lines = shown(given, "run=" + OUTBOX_RUN)
    assert count > 30
    assert lines[0].endswith("replication 0, seed 1")
    assert shown(given, "actor=nobody") == (0, [])


def test_the_colours_of_a_terminal() -> None:
    out = io.StringIO()
    Lines(out, 80, colored=True).line(TimerRecord(1, 0, "relay", 0, "x"), "timer x")
    assert "\x1b[36mrelay\x1b[0m" in out.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    again = io.StringIO()
    Lines(again, 80, colored=False).line(TimerRecord(1, 0, "relay", 0, "x"), "timer x")
    assert plain == again.getvalue()


def test_nothing_in_a_log_moves_the_cursor(tmp_path: Path) -> None:
    made = Made(scenario="\x1b[2J")
    made.tell.event(0, "a\x1b[1m", 0, "x\r", {"y\n": "\x1b]0;t\x07"})
    _, lines = shown(entries(tmp_path, made.data()))
    assert len(lines) == 3
    assert not re.search(r"[\x00-\x1f\x7f]", "".join(lines))


def test_raw_lines_are_those_of_the_file_after_their_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = log_of("published/outbox", 0, 2) + log_of("published/cancel")
    lines = data.decode().splitlines(keepends=True)
    choice = Choice(where=parse_where(["kind=drop"]), json=True)
    assert show(entries(tmp_path, data), choice, Lines(io.StringIO(), 80, colored=False)) == 2
    out = capsys.readouterr().out.splitlines(keepends=True)
    assert out == [lines[0], lines[46], lines[230], lines[230 + 46]]
    every = Choice(where=parse_where([]), json=True)
    show(entries(tmp_path, data), every, Lines(io.StringIO(), 80, colored=False))
    kept = [line for line in lines if not line.startswith('{"kind":"end"')]
    assert capsys.readouterr().out.splitlines(keepends=True) == kept


def test_a_last_line_that_was_cut_is_not_among_the_raw_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    choice = Choice(where=parse_where([]), json=True)
    given = entries(tmp_path, b"".join(lines[:5]) + lines[5][:40])
    assert show(given, choice, Lines(io.StringIO(), 80, colored=False)) == 4
    assert capsys.readouterr().out.encode() == b"".join(lines[:5])


def test_a_field_of_a_later_version_is_in_the_raw_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Made().data().replace(b'{"kind":"end"', b'{"kind":"timer","n":1,"t":0,"actor":"a",'
                                 b'"cause":0,"timer":"x","later":[1]}\n{"kind":"end"')  # fmt: skip
    choice = Choice(where=parse_where(["kind=timer"]), json=True)
    show(entries(tmp_path, data), choice, Lines(io.StringIO(), 80, colored=False))
    assert json.loads(capsys.readouterr().out.splitlines()[1])["later"] == [1]


def causes(given: Entry, number: int, limit: int | None = None, **options: Any) -> list[str]:
    out = io.StringIO()
    choice = Choice(where=parse_where([]), limit=limit, **options)
    show_causes(given, number, choice, Lines(out, 100, colored=False))
    return out.getvalue().splitlines()


def test_causes_and_what_a_record_brought_about(tmp_path: Path) -> None:
    [entry] = entries(tmp_path, log_of("published/outbox"))
    lines = causes(entry, 46)
    middle = lines.index("it brought nothing about")
    assert [int(line.split()[0]) for line in lines[1:middle]] == [
        4, 5, 2, 8, 9, 11, 12, 14, 15, 43, 45, 46
    ][2:]  # fmt: skip
    lines = causes(entry, 50, limit=2)
    middle = lines.index("what it brought about:")
    assert lines[middle - 1].split()[0] == "50"
    assert [line.split()[0] for line in lines[middle + 1 : -1]] == ["51", "52"]
    assert lines[-1] == "and more: --limit shows it"
    with pytest.raises(LogError, match="there is no record 999") as raised:
        causes(entry, 999)
    assert raised.value.cure == "they go from 1 to 228"


def test_the_raw_lines_of_causes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [entry] = entries(tmp_path, log_of("published/outbox"))
    assert causes(entry, 8, limit=1, json=True) == []
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line).get("n") for line in lines] == [None, 2, 8, 9]


# A file that grows


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_added_to_a_file_is_shown_as_it_comes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    as_json: bool,
) -> None:
    lines = log_of("published/outbox").splitlines(keepends=True)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines[:30]) + lines[30][:10])

    def wait(_seconds: float) -> None:
        with path.open("ab") as file:
            file.write(lines[30][10:] + b"".join(lines[31:60]))

    where = parse_where(["kind=drop|unanswered", f"run={OUTBOX_RUN}"])
    out = io.StringIO()
    lines_out = Lines(out, 100, colored=False)
    choice = Choice(where=where, limit=2, json=as_json)
    Following(path, choice, lines_out, wait).run(None, None)
    if as_json:
        assert capsys.readouterr().out.encode() == lines[0] + lines[46] + lines[48]
    else:
        head, drop, late = out.getvalue().splitlines()
        assert head.startswith("outbox [relay.outbox=true], replication 0")
        assert "dropped by drop-1" in drop
        assert "no answer to Complete to server" in late


def test_of_a_file_that_grows_one_cell_or_replication_may_be_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/outbox", 0, 2) + log_of("published/outbox", 1, 2))
    out = io.StringIO()
    choice = Choice(where=parse_where(["kind=drop"]), limit=1)
    Following(path, choice, Lines(out, 100, colored=False)).run("false", 1)
    assert out.getvalue().startswith("outbox [relay.outbox=false], replication 1")


def test_what_can_not_be_followed(tmp_path: Path) -> None:
    choice = Choice(where=parse_where([]))
    lines = Lines(io.StringIO(), 80, colored=False)
    with pytest.raises(LogError, match="it is a folder"):
        Following(tmp_path, choice, lines).run(None, None)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"hello\n")
    with pytest.raises(LogError, match="line 1"):
        Following(path, choice, lines).run(None, None)
    path.write_bytes(b'{"kind":"later"}\n')
    with pytest.raises(LogError, match="line 1: this is no log"):
        Following(path, choice, lines).run(None, None)


def test_heads_and_endings() -> None:
    assert (
        title(header(driver="trio", transport="tcp")) == "s, replication 0, seed 1, trio over tcp"
    )
    assert ending(None) == "truncated: it has no closing record"
    assert ending(None, torn=True).endswith("and its last line was cut")
    assert ending(section(Made().data(5)).end) == "ended at 5us, 0 records"
