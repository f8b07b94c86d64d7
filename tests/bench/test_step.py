"""The benchmark of stepping goes through a log, and prints what it took."""

from __future__ import annotations

import pytest

from bench.step import RECORDS_A_RUN, main


def test_it_prints_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--records", "1000", "--visits", "5"])
    head, blank, *rest = capsys.readouterr().out.splitlines()
    records = int(head.split()[2].replace(",", ""))
    assert 1000 <= records <= 1000 + 3 * RECORDS_A_RUN
    assert head.endswith(" records of 4 actors")
    assert blank == ""
    names = ["opened", "judged", "explored", "median answer", "longest answer"]
    assert [line[:14].strip() for line in rest] == names
    assert rest[1].endswith(" s, 0 violations")
    assert all(float(line[14:].split()[0]) >= 0 for line in rest)
    assert rest[3].endswith(" of 10")
