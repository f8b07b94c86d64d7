"""Scenario files as tests: one test an expectation, in all the cells that it speaks of.

`pytest --pullcord` collects every file of the pattern `pullcord_files` (`*.scenario.toml`); a file
that is named on the command line is collected without the flag. Nothing of pullcord is imported
before that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from scenarios.judge import Judgement
    from scenarios.results import Results, ScenarioResult


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag and the pattern of the files' names."""
    group = parser.getgroup("pullcord")
    group.addoption(
        "--pullcord", action="store_true", help="collect pullcord scenario files as tests"
    )
    parser.addini("pullcord_files", "globs of scenario files", default="*.scenario.toml")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a scenario file if the flag is given, or the file itself is."""
    named = file_path.suffix == ".toml" and parent.session.isinitpath(file_path)
    if parent.config.getoption("--pullcord") and not named:
        globs = str(parent.config.getini("pullcord_files")).split()
        named = any(file_path.match(glob) for glob in globs)
    return ScenarioFile.from_parent(parent, path=file_path) if named else None


class ScenarioFile(pytest.File):
    """A scenario file: run once, when the first of its tests needs its verdict."""

    _results: Results | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Return a test an expectation; a file that can't be read is an error of collection."""
        from scenarios.load import load_plan
        from scenarios.problems import ScenarioError

        try:
            plan = load_plan(self.path)
        except ScenarioError as error:
            raise self.CollectError(str(error)) from None
        for index, expect in enumerate(plan.expects):
            name = expect.expectation.text
            yield ExpectationItem.from_parent(self, name=name, index=index)
        if not plan.expects:
            yield ExpectationItem.from_parent(self, name="ends", index=None)

    def results(self) -> Results:
        """Return the file's results."""
        from scenarios.run import run

        if self._results is None:
            self._results = run(self.path, jobs=1)
        return self._results


class ScenarioFailedError(Exception):
    """A scenario's expectation did not pass."""


class ExpectationItem(pytest.Item):
    """One expectation, in every cell that it speaks of; without an index, that every run ends."""

    def __init__(self, *, index: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._index = index

    def runtest(self) -> None:
        """Judge; raise ScenarioFailedError with what is wrong."""
        assert isinstance(self.parent, ScenarioFile), "an expectation belongs to its file"
        one = self.parent.results().scenarios[0]
        wanted = None if self._index is None else one.plan.expects[self._index]
        bad = [*_troubles(one), *_violations(one)] or [
            _words(one, judgement)
            for expect, judgement in one.judgements
            if expect is wanted and judgement.verdict != "pass"
        ]
        if bad:
            raise ScenarioFailedError("\n".join(bad))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the verdict's words, without our own frames."""
        if isinstance(excinfo.value, ScenarioFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return where the test is and how it is called."""
        return self.path, None, f"{self.path.name}: {self.name}"


def _violations(one: ScenarioResult) -> Iterator[str]:
    """Return what is told of each check that did not hold."""
    from scenarios.reproduce import again

    for cell, found in one.found:
        label = cell.cell.label
        where = f" [{label}]" if label else ""
        yield f"violated: {found.check}{where}: {found.words(cell.replications)}"
        yield f"reproduce: {again(one.plan, label, found.replication)}"


def _troubles(one: ScenarioResult) -> Iterator[str]:
    from scenarios.reproduce import again

    for cell, trouble in one.troubles:
        label = cell.cell.label
        where = f" [{label}]" if label else ""
        yield f"{trouble.kind}{where}: {trouble.sentence}"
        if trouble.trace:
            yield trouble.trace
        yield f"reproduce: {again(one.plan, label, trouble.replication)}"


def _words(one: ScenarioResult, judgement: Judgement) -> str:
    from scenarios.reproduce import again

    where = f" [{judgement.cell}]" if judgement.cell else ""
    command = again(one.plan, judgement.cell)
    return f"{judgement.verdict}{where}: {judgement.detail}\nreproduce: {command}"
