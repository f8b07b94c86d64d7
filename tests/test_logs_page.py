"""The page on logs has the table that the records themselves make, and output as it is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from logs.record import KINDS
from scenarios.cli import LOG_COMMANDS, main
from tests.log_page import COMMON, envelope, meaning, page
from tests.logs.samples import log_of
from tests.scenarios.commandline import ROOT

TEXT = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```\n(\$ pullcord log .*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_page_has_the_table_as_it_is_now() -> None:
    assert page().strip() in TEXT, "put what `python -m tests.log_page` prints into it"
    assert envelope() in TEXT


def test_every_kind_has_its_row_and_every_field_its_place() -> None:
    lines = page().splitlines()
    for name, kind in KINDS.items():
        [row] = [line for line in lines if line.startswith(f"| `{name}` |")]
        assert meaning(kind) in row
        for field in kind.__struct_fields__:
            assert field in COMMON or re.search(rf"[` ]{field}[` ]", row)


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.partition("\n")[0])
def test_what_is_shown_is_what_is_printed(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results" / "logs"
    folder.mkdir(parents=True)
    (folder / "outbox-1-relay.outbox=true.jsonl").write_bytes(log_of("published/outbox"))
    other = tmp_path / "without" / "logs"
    other.mkdir(parents=True)
    (other / "outbox-2-relay.outbox=false.jsonl").write_bytes(log_of("published/outbox", 1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    line, _, expected = shown.partition("\n")
    monkeypatch.setattr("sys.argv", shlex.split(line.removeprefix("$ ")))
    with pytest.raises(SystemExit):
        main()
    # A header has the checkout's path, so a log's size is another in each.
    printed = re.sub(r"[\d,]+ bytes", "N bytes", capsys.readouterr().out).splitlines()
    lines = re.sub(r"[\d,]+ bytes", "N bytes", expected).splitlines()
    if "..." in lines:  # what the page leaves out in the middle
        cut = lines.index("...")
        head, tail = lines[:cut], lines[cut + 1 :]
        assert printed[: len(head)] == head
        assert printed[len(printed) - len(tail) :] == tail
    else:
        assert printed == lines


def test_the_page_shows_every_command() -> None:
    for function in LOG_COMMANDS:
        assert f"pullcord log {function.rpartition(':')[2]}" in TEXT
