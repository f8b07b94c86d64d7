"""The benchmark of reading measures, and prints rates and their ratios."""

from __future__ import annotations

import pytest

from bench.logs import main


def test_it_prints_each_rate_and_its_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--records", "2000", "--rounds", "1"])
    head, blank, ours, plain, ratio, _, ran, seed, actors = capsys.readouterr().out.splitlines()
    assert int(head.split()[3].replace(",", "")) in range(2000, 2400)
    assert blank == ""
    assert ours.startswith("read_sections")
    assert plain.startswith("json.loads")
    assert float(ratio.split()[1]) > 0
    assert ran.startswith("run, with log")
    assert "times the time (bar: 2)" in seed
    assert actors.startswith("by actor")
