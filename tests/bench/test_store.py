"""The benchmark of the stores measures, and prints a line for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.store import STORES, main


def test_it_prints_a_rate_of_each_store_for_small_rows_and_large_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["--seconds", "0.01", "--rounds", "1", "--folder", str(tmp_path)])
    stores, server = capsys.readouterr().out.split("\n\n")
    heading, *lines = stores.splitlines()
    assert heading.split() == ["turns", "a", "second", "750-byte", "rows", "20", "KB", "results"]
    assert [line[:28].strip() for line in lines] == list(STORES)
    assert all(int(rate.replace(",", "")) > 0 for line in lines for rate in line[28:].split())
    heading, *lines = server.splitlines()
    assert heading.split() == [
        "submissions",
        "a",
        "second",
        "a",
        "commit",
        "each",
        "up",
        "to",
        "64",
        "ratio",
    ]
    for line in lines:
        alone, grouped, ratio = line[28:].replace(",", "").replace("x", "").split()
        assert float(ratio) == pytest.approx(int(grouped) / int(alone), abs=0.1)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
