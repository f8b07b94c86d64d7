"""The words of flags are those of what they choose."""

from typing import get_args

from scenarios.choices import Color, Format, Logs
from scenarios.flags import RunFlags


def test_the_words_are_short_and_each_once() -> None:
    assert get_args(Color) == ("auto", "always", "never")
    assert get_args(Logs) == ("none", "failed", "all")
    assert get_args(Format) == ("text", "json", "junit", "csv", "md", "github")


def test_a_resumed_run_fixes_what_decides_its_results() -> None:
    assert RunFlags(jobs=2, quiet=True, format="json", patience="1s").fixed_by_a_run() == []
    given = RunFlags(seed=0, replication=0, contains="", logs="all")
    assert given.fixed_by_a_run() == ["--seed", "--replication", "-k", "--logs"]
    apart = RunFlags(transport="tcp", processes="separate")
    assert apart.fixed_by_a_run() == ["--transport", "--processes"]
