"""From a scenario file to a plan: every cell decoded and checked, every mistake at once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import msgspec

from scenarios.cast import foreign_path
from scenarios.cell import CellLoader, Part, tables_of
from scenarios.decode import Decoder
from scenarios.expect import Expectation, ExpectationError, parse_expectation
from scenarios.graph_engines import files_of
from scenarios.overrides import FLAG, Override, apply_overrides, assign
from scenarios.places import Keys
from scenarios.problems import Problem, ScenarioError, listed, quote, suggest
from scenarios.source import Source, read_source
from scenarios.spec import ExpectTable, RunTable, Scenario, TableTable, TopTable
from scenarios.stats import parse_statistic
from scenarios.sweep import Cell, SweepReader

SCHEMA = 1


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation as the file has it, read."""

    expectation: Expectation
    note: str
    quote: str


class Plan:
    """A scenario file that can be run: its cells, each a complete Scenario."""

    def __init__(self, source: Source, data: dict[str, Any], overrides: Mapping[str, Any]) -> None:
        self.path = source.path
        self.folder = Path(source.path).resolve().parent
        self.text = source.text
        self.data = data
        self.overrides = dict(overrides)
        self.host: tuple[str, ...] = ()  # the flags of what it runs on, if not the simulator
        self.cells: tuple[Cell, ...] = ()
        self.scenarios: tuple[Scenario, ...] = ()
        self.tables: tuple[TableTable, ...] = ()
        self.expects: tuple[Expect, ...] = ()

    @property
    def top(self) -> TopTable:
        """The keys at the top of the file, as they are in the first cell."""
        return self.scenarios[0].top

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.top.name

    @property
    def run(self) -> RunTable:
        """[run] of the first cell, which every cell shares but for what is swept."""
        return self.scenarios[0].run

    @property
    def foreign(self) -> tuple[str, ...]:
        """Every `use` in any cell, each once."""
        uses = {
            cast.use: None
            for one in self.scenarios
            for cast in one.cast
            if cast.use and cast.foreign
        }
        return tuple(uses)

    @property
    def graph_files(self) -> tuple[Path, ...]:
        """The files of every Graph in any cell, each once."""
        casts = [cast for one in self.scenarios for cast in one.cast]
        files = [path for cast in casts for path in files_of(cast.config, self.folder).values()]
        return tuple(dict.fromkeys(files))

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides the results: the data, the user's own actors, the Graphs."""
        state = blake2b(msgspec.json.encode(self.data, order="sorted"), digest_size=16)
        for use in self.foreign:
            path, name = foreign_path(use, self.folder)
            state.update(name.encode() + b"\0" + path.read_bytes())
        for path in self.graph_files:
            state.update(path.name.encode() + b"\0" + path.read_bytes())
        return state.hexdigest()


def load_plan(path: str | Path, overrides: tuple[Override, ...] = ()) -> Plan:
    """Read a scenario file; ScenarioError with every problem in it."""
    source = read_source(path)
    data = dict(source.data)
    problems = apply_overrides(data, overrides)
    if problems:
        raise ScenarioError(problems)
    plan = Plan(source, data, {one.key: one.value for one in overrides})
    _Loader(source, plan, overrides).load()
    return plan


class _MovedSource(Source):
    """A source in which some keys have their place elsewhere: in a sweep, or on the command line.

    `moved` has the place of a swept value for each key that it is put at, `given` the override of
    each key that has one.
    """

    def __init__(
        self, source: Source, moved: Mapping[Keys, Keys], given: Mapping[Keys, str]
    ) -> None:
        vars(self).update(vars(source))  # the same text, whose places are found once
        self._source = source
        self._moved = moved
        self._given = given

    def place(self, path: Keys, of: Literal["key", "value"] = "value") -> tuple[int, int, int]:
        """As `Source.place`; what is wrong with a swept key as such is at the key in the sweep."""
        for length in range(len(path), 0, -1):
            target = self._moved.get(path[:length])
            if target is not None:
                if of == "key" and length == len(path):
                    return self._source.place(target[:-1], of)
                return self._source.place((*target, *path[length:]), of)
        return self._source.place(path, of)

    def problem(
        self,
        path: Keys,
        message: str,
        *,
        of: Literal["key", "value"] = "value",
        cure: str | None = None,
    ) -> Problem:
        """As `Source.problem`; a problem of an override has the override as its place."""
        for length in range(len(path), 0, -1):
            key = self._given.get(path[:length])
            if key is not None:
                return Problem(path=f"{FLAG} {key}", message=message, cure=cure)
        return super().problem(path, message, of=of, cure=cure)


class _Loader:
    """Decodes one file, table by table, and goes on after a problem to find the others."""

    def __init__(self, source: Source, plan: Plan, overrides: tuple[Override, ...]) -> None:
        self.source = source
        self.plan = plan
        self.given: dict[Keys, str] = {}
        for one in overrides:
            self.given |= dict.fromkeys(assign(dict(plan.data), one.key, one.value), one.key)
        self.decoder = Decoder(_MovedSource(source, {}, self.given))

    def load(self) -> None:
        """Fill the plan, or raise ScenarioError."""
        self.check_schema()
        sweep = SweepReader(self.decoder, self.plan.data)
        self.plan.cells = sweep.cells()
        swept = not self.decoder.problems
        self.plan.scenarios = tuple(self.scenarios(sweep))
        self.plan.tables = tuple(self.tables([*sweep.paths]))
        self.plan.expects = tuple(self.expects(swept))
        self.decoder.finish()

    def check_schema(self) -> None:
        """Refuse a file of another version, of which nothing else can be said."""
        schema = self.plan.data.setdefault("schema", SCHEMA)
        if "schema" not in self.source.data:
            cure = f"write schema = {SCHEMA}"
            self.decoder.problem((), 'the file needs the key "schema"', cure=cure)
        if isinstance(schema, int) and schema != SCHEMA:
            cure = f"write schema = {SCHEMA}" if schema < SCHEMA else "update pullcord"
            message = f"this pullcord reads schema {SCHEMA}, not {schema}"
            self.decoder.problem(("schema",), message, cure=cure)
            self.decoder.finish()

    def scenarios(self, sweep: SweepReader) -> Iterator[Scenario]:
        """Decode each cell; its problems have their places in the sweep where that is at fault."""
        known: dict[Hashable, Part] = {}
        for cell in self.plan.cells:
            data = cell_data(self.plan.data, Cell(()))
            moved: dict[Keys, Keys] = {}
            for key, value in cell.assignments:
                for target in assign(data, key, value):
                    moved[target] = sweep.place(key, value)
            decoder = Decoder(_MovedSource(self.source, moved, self.given))
            scenario = CellLoader(decoder, data, self.plan.folder, known).load()
            self.decoder.problems.extend(decoder.problems)
            if scenario is not None:
                yield scenario

    # Tables and expectations

    def tables(self, axes: list[str]) -> Iterator[TableTable]:
        """Decode [[table]] and check what its columns and rows refer to."""
        for path, data in tables_of("table", self.plan.data.get("table", [])):
            table = self.decoder.struct(path, data, TableTable)
            if table is None:
                continue
            for at, row in enumerate([table.rows] if isinstance(table.rows, str) else table.rows):
                if row not in axes:
                    near = suggest(row, axes)
                    swept = listed(axes, last="and") if axes else "nothing"
                    cure = f"did you mean {quote(near)}?" if near else f"the file sweeps {swept}"
                    place = (*path, "rows") if isinstance(table.rows, str) else (*path, "rows", at)
                    self.decoder.problem(place, f"{quote(row)} is not swept", cure=cure)
            for at, column in enumerate(table.columns):
                self.check_column((*path, "columns", at), column)
            yield table

    def check_column(self, path: Keys, column: str) -> None:
        """Report a column that names no statistic of a metric."""
        if "[" in column:
            message = f"a column has every cell, each in its row: {quote(column)} names one"
            self.decoder.problem(path, message, cure="leave out the brackets")
            return
        metric, statistic = column_parts(column)
        if not metric:
            message = f"{quote(column)} names no statistic"
            self.decoder.problem(path, message, cure=f'write "{column}.mean"')
            return
        self.check_metric(path, metric)
        try:
            parse_statistic(statistic)
        except ValueError as error:
            self.decoder.problem(path, str(error))

    def expects(self, swept: bool) -> Iterator[Expect]:
        """Decode [[expect]] and check what it refers to; cells only if the sweep is sound."""
        for table_path, data in tables_of("expect", self.plan.data.get("expect", [])):
            table = self.decoder.struct(table_path, data, ExpectTable)
            if table is None:
                continue
            path = (*table_path, "that")
            try:
                expectation = parse_expectation(table.that)
            except ExpectationError as error:
                self.decoder.problem(path, str(error))
                self.narrow(table.that, error.offset)
                continue
            for reference in expectation.references:
                if self.check_metric(path, reference.metric):
                    self.narrow(table.that, reference.offset, len(reference.metric))
                if swept and reference.subscript is not None:
                    at = table.that.find(reference.subscript, reference.offset)
                    if self.check_subscript(path, reference.subscript):
                        self.narrow(table.that, at, len(reference.subscript))
            yield Expect(expectation=expectation, note=table.note, quote=table.quote)

    def narrow(self, text: str, offset: int, length_chars: int | None = None) -> None:
        """Move the last problem, of a text, to a part of it: a word if no length is given.

        A text that isn't written as it is, with escapes or over several lines, stays as a whole.
        """
        problem = self.decoder.problems[-1]
        start = (problem.source_line or "").find(text, max(problem.column - 1, 0))
        if start < 0:
            return
        if length_chars is None:
            length_chars = len((text[offset:].split() or [" "])[0])
        self.decoder.problems[-1] = msgspec.structs.replace(
            problem, column=start + offset + 1, length_chars=length_chars
        )

    def check_subscript(self, path: Keys, subscript: str) -> bool:
        """Report a subscript that means no cell; whether it was reported."""
        cells = self.plan.cells
        if any(cell.matches(subscript) for cell in cells):
            return False
        message = f"no cell is called [{subscript}]"
        labels = [cell.label for cell in cells]
        if labels == [""]:
            self.decoder.problem(path, message, cure="nothing is swept: leave out the brackets")
            return True
        short = [label.partition("=")[2] for label in labels if len(cells[0].assignments) == 1]
        near = suggest(subscript, [*short, *labels])
        cure = f"did you mean [{near}]?" if near else f"the first is [{labels[0]}]"
        self.decoder.problem(path, message, cure=cure)
        return True

    def check_metric(self, path: Keys, name: str) -> bool:
        """Report a metric that the file doesn't define; whether it was reported."""
        metrics = self.plan.data.get("metrics")
        known = list(metrics) if isinstance(metrics, dict) else []
        if name in known:
            return False
        near = suggest(name, known)
        cure = f"the metrics are {listed(known, last='and')}" if known else _NO_METRIC
        cure = f"did you mean {quote(near)}?" if near else cure
        self.decoder.problem(path, f"no metric is called {quote(name)}", cure=cure)
        return True


_NO_METRIC = "define it in a table [metrics.NAME]"
_COLUMN = re.compile(r"(.+?)\.(p[0-9]+\.[0-9]+|[^.]*)")


def column_parts(column: str) -> tuple[str, str]:
    """Return a column's metric and statistic: `late.p99.9` is of `late`. "" for no metric."""
    match = _COLUMN.fullmatch(column)
    return ("", column) if match is None else (match[1], match[2])


def cell_data(data: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """Return the file's data as it is in one cell; what no sweep touches is the same object."""
    data = {key: value for key, value in data.items() if key != "sweep"}
    for key, value in cell.assignments:
        assign(data, key, value)
    return data


def problem_of(path: str, message: str, cure: str | None = None) -> ScenarioError:
    """Return an error about a whole file."""
    return ScenarioError([Problem(path=path, message=message, cure=cure)])
