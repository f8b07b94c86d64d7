"""The version is the project's."""

import tomllib
from pathlib import Path

from transports.version import VERSION

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
