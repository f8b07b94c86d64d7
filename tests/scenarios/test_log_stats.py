"""A log's figures: for people, as JSON, as CSV; of each section and of all."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from logs.seek import entries_of
from logs.words import seconds
from scenarios.log_stats import HEAD, Part, as_csv, as_json, figures, text
from tests.logs.samples import log_of


def parts(folder: Path, *, each: bool = False) -> list[Part]:
    path = folder / "a.jsonl"
    path.write_bytes(log_of("published/outbox", 0, 2) + log_of("chaos/swapping"))
    return list(figures(entries_of(path), each=each))


def test_the_total_adds_the_sections_up(tmp_path: Path) -> None:
    *single, total = parts(tmp_path, each=True)
    assert [part.section for part in single] == [
        "outbox [relay.outbox=true], replication 0",
        "outbox [relay.outbox=true], replication 1",
        "swapping, replication 0",
    ]
    assert total.section == "total"
    for name in ("records", "size_bytes", "turns", "span_us"):
        assert getattr(total.stats, name) == sum(getattr(one.stats, name) for one in single)
    assert total.stats.size_bytes == (tmp_path / "a.jsonl").stat().st_size
    assert parts(tmp_path) == [total]


def test_people_get_tables(tmp_path: Path) -> None:
    found = parts(tmp_path, each=True)
    lines = list(text(found, 100, colored=False))
    assert max(map(len, lines)) <= 100
    assert lines[0].split()[:3] == ["section", "records", "turns"]
    total = found[-1].stats
    assert f"3 sections, {total.records:,} records, {total.size_bytes:,} bytes" in lines
    assert any(line.startswith(f"{total.turns:,} turns in ") for line in lines)
    assert "drop-1" in "\n".join(lines)
    assert "relay_swaps: pause relay" in "\n".join(lines)
    row = next(line.split() for line in lines if line.startswith("Complete "))
    one = total.messages["Complete"]
    assert one.latency is not None
    assert row[1:4] == [str(one.delivered), str(one.late), str(one.lost)]
    assert row[-1] == seconds(one.latency.max_us)
    alone = "\n".join(text(found[-1:], 100, colored=False))
    assert alone.startswith("3 sections")


def test_json_has_every_figure(tmp_path: Path) -> None:
    found = parts(tmp_path, each=True)
    table = json.loads(as_json(found))
    assert [part["section"] for part in table] == [part.section for part in found]
    assert table[-1]["stats"]["kinds"] == found[-1].stats.kinds
    assert table[-1]["stats"]["runs"]["queued"] == found[-1].stats.runs.queued


def test_csv_has_a_line_a_figure(tmp_path: Path) -> None:
    found = parts(tmp_path, each=True)
    rows = list(csv.reader(io.StringIO(as_csv(found))))
    assert tuple(rows[0]) == HEAD
    named = {tuple(row[:3]): row[3:] for row in rows[1:]}
    assert len(named) == len(rows) - 1
    stats = found[-1].stats
    assert named["total", "log", "records"] == [str(stats.records)]
    assert named["total", "dropped_by", "drop-1"] == ["2"]
    latency = stats.messages["GraphRun"].latency
    assert latency is not None
    assert float(named["total", "delivered", "GraphRun"][-1]) == latency.max_us / 1e6
    assert named["swapping, replication 0", "log", "sections"] == ["1"]
