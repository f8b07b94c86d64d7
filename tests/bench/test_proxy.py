"""The benchmark of the proxy measures, and prints both rates and their ratio."""

from __future__ import annotations

import pytest

from bench.proxy import main


def test_it_prints_both_rates_and_the_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--seconds", "0.02", "--rounds", "1"])
    direct, proxied, ratio = capsys.readouterr().out.splitlines()
    assert direct.startswith("direct")
    assert "requests/s" in direct
    assert proxied.startswith("proxied")
    assert 0 < float(ratio.split()[1]) < 1.5
