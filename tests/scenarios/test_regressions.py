"""What once went wrong is kept as a scenario, and goes right."""

from __future__ import annotations

from pathlib import Path

import pytest

import pullcord

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "scenarios" / "regressions").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_it_goes_right(file: Path) -> None:
    assert pullcord.run(file, jobs=1).passed
