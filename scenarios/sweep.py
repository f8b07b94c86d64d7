"""From swept keys to cells: product, zip, exclude."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from scenarios.decode import Decoder
from scenarios.overrides import reachable
from scenarios.places import Keys
from scenarios.problems import listed, quote, suggest
from scenarios.spec import CELLS_LIMIT

WAYS = ("product", "zip", "exclude")


class Cell(msgspec.Struct, frozen=True):
    """One combination of swept values: (key, value) pairs in the order of the file.

    Its label names its stream of chance too, so a new value in a sweep changes no other cell.
    """

    assignments: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """`agent.poll=every 2s, relay.poll=20s`; empty when nothing is swept."""
        return ", ".join(f"{key}={value_text(value)}" for key, value in self.assignments)

    def matches(self, subscript: str) -> bool:
        """Whether a subscript means this cell: its label, part of it, or its values alone."""
        subscript = subscript.strip()
        if subscript == ", ".join(value_text(value) for _, value in self.assignments):
            return True
        pairs = [f"{key}={value_text(value)}" for key, value in self.assignments]
        return subscript == self.label or _made_of(subscript, pairs)


def _made_of(text: str, pairs: list[str]) -> bool:
    """Whether a text is some of the pairs, with commas between; values may have commas too."""
    for pair in pairs:
        if text == pair:
            return True
        others = [other for other in pairs if other != pair]
        if text.startswith(f"{pair},") and _made_of(text[len(pair) + 1 :].lstrip(), others):
            return True
    return False


def value_text(value: Any) -> str:
    """Return a swept value as labels and subscripts write it: without quotes and brackets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_text(inner)}" for key, inner in value.items())
    return str(value).strip()


def cells_of(
    axes: Mapping[str, Sequence[Any]],
    zipped: Mapping[str, Sequence[Any]],
    excluded: Sequence[Mapping[str, Any]],
) -> tuple[Cell, ...]:
    """Return the cells: every combination of `axes`, with each row of `zipped`, less the excluded.

    An excluded row names some keys and values; a cell that has them all is left out.
    """
    cells = []
    for values in product(*axes.values()):
        for row in _rows(zipped):
            cell = (*zip(axes, values, strict=True), *row)
            if not any(_has(cell, exclusion) for exclusion in excluded):
                cells.append(Cell(cell))
    return tuple(cells)


def _rows(zipped: Mapping[str, Sequence[Any]]) -> Iterator[tuple[tuple[str, Any], ...]]:
    if not zipped:
        yield ()
    for values in zip(*zipped.values(), strict=True):
        yield tuple(zip(zipped, values, strict=True))


def _has(cell: tuple[tuple[str, Any], ...], exclusion: Mapping[str, Any]) -> bool:
    values = {key: value_text(value) for key, value in cell}
    return all(values.get(key) == value_text(value) for key, value in exclusion.items())


class SweepReader:
    """Reads [sweep] of a file. `paths` has the place of each swept key's list."""

    def __init__(self, decoder: Decoder, data: dict[str, Any]) -> None:
        self.decoder = decoder
        self.data = data
        self.paths: dict[str, Keys] = {}
        self._tried: set[str] = set()

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells: one without a label if nothing is swept.

        Where the sweep has problems it is one cell of first values, in which others can be found.
        """
        table = self.data.get("sweep", {})
        if not isinstance(table, dict):
            self.decoder.value(("sweep",), table, dict[str, Any])
            return (Cell(()),)
        count = len(self.decoder.problems)
        self._check_keys(table)
        axes = self._axes("product", table.get("product", {}))
        zipped = self._axes("zip", table.get("zip", {}))
        excluded = self._excluded(table.get("exclude", []), {**axes, **zipped})
        self._check_rows(zipped)
        if axes or zipped:
            self._check_size(axes, zipped)
        if len(self.decoder.problems) == count:
            cells = cells_of(axes, zipped, excluded)
            if cells:
                return cells
            self.decoder.problem(("sweep", "exclude"), "every cell of the sweep is excluded")
        first = {key: values[0] for key, values in {**axes, **zipped}.items()}
        return (Cell(tuple(first.items())),)

    def place(self, key: str, value: Any) -> Keys:
        """Return the place of a swept value in the file."""
        values: Any = self.data
        for part in self.paths[key]:
            values = values[part]
        text = value_text(value)
        return (*self.paths[key], [value_text(one) for one in values].index(text))

    def _check_keys(self, table: dict[str, Any]) -> None:
        for key, value in table.items():
            if key not in WAYS:
                near = suggest(key, WAYS)
                cure = f"did you mean {quote(near)}?" if near else None
                if "." in key or isinstance(value, list):
                    cure = "write it below [sweep.product] or [sweep.zip]"
                self.decoder.problem(
                    ("sweep", key), f"unknown key {quote(key)} in [sweep]", of="key", cure=cure
                )

    def _axes(self, way: str, data: Any) -> dict[str, list[Any]]:
        """Return the lists of [sweep.product] or [sweep.zip] that can be used."""
        axes: dict[str, list[Any]] = {}
        if not isinstance(data, dict):
            self.decoder.value(("sweep", way), data, dict[str, Any])
            return axes
        for key, values in data.items():
            path: Keys = ("sweep", way, key)
            self._tried.add(key)
            if isinstance(values, dict):
                inner = next(iter(values), "KEY")
                cure = f'put the whole key in quotes: "{key}.{inner}" = [...]'
                self.decoder.problem(path, f"{quote(key)} names no value", of="key", cure=cure)
            elif (unreachable := reachable(key, self.data)) is not None:
                message = f"{quote(key)} can't be swept"
                self.decoder.problem(path, message, of="key", cure=unreachable)
            elif not isinstance(values, list):
                cure = f'put it in brackets: "{key}" = [...]'
                self.decoder.problem(path, f"{quote(key)} must be an array of values", cure=cure)
            elif not values:
                self.decoder.problem(path, f"{quote(key)} is swept over no value")
            elif key in self.paths:
                self.decoder.problem(path, f"{quote(key)} is swept twice", of="key")
            else:
                axes[key] = values
                self.paths[key] = path
                if way == "product":
                    self._check_values(path, values)
        return axes

    def _check_values(self, path: Keys, values: list[Any]) -> None:
        """Report values that stand there twice, going by their text, which labels are made of."""
        seen: set[str] = set()
        for index, value in enumerate(values):
            text = value_text(value)
            if text in seen:
                self.decoder.problem((*path, index), f"{quote(text)} is in the list twice")
            seen.add(text)

    def _check_rows(self, zipped: Mapping[str, list[Any]]) -> None:
        """Report zipped lists that aren't equally long, and rows that are there twice."""
        if len({len(values) for values in zipped.values()}) > 1:
            sizes = (f"{key} has {len(values)}" for key, values in zipped.items())
            message = f"zipped lists must be equally long: {listed(sizes, last='and')}"
            self.decoder.problem(("sweep", "zip"), message)
            return
        seen: dict[tuple[str, ...], int] = {}
        for index, row in enumerate(zip(*zipped.values(), strict=True)):
            first = seen.setdefault(tuple(map(value_text, row)), index)
            if first != index:
                path = (*self.paths[next(iter(zipped))], index)
                message = f"row {index + 1} of [sweep.zip] is the same as row {first + 1}"
                self.decoder.problem(path, message)

    def _check_size(self, axes: Mapping[str, list[Any]], zipped: Mapping[str, list[Any]]) -> None:
        size = math.prod(len(values) for values in axes.values())
        size *= max((len(values) for values in zipped.values()), default=1)
        if size > CELLS_LIMIT:
            message = f"this sweep has {size:,} cells; {CELLS_LIMIT:,} are the limit"
            self.decoder.problem(("sweep",), message, of="key")

    def _excluded(self, data: Any, axes: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
        """Return the rows of [[sweep.exclude]], whose keys and values must be swept ones."""
        path: Keys = ("sweep", "exclude")
        rows = self.decoder.value(path, data, tuple[dict[str, Any], ...]) or ()
        for index, row in enumerate(rows):
            if not row:
                self.decoder.problem((*path, index), "this would exclude every cell")
            for key, value in row.items():
                if key not in self._tried:
                    near = suggest(key, axes)
                    cure = f"did you mean {quote(near)}?" if near else None
                    message = f"{quote(key)} is not swept"
                    self.decoder.problem((*path, index, key), message, of="key", cure=cure)
                elif key in axes and value_text(value) not in map(value_text, axes[key]):
                    near = suggest(value_text(value), map(value_text, axes[key]))
                    cure = f"did you mean {quote(near)}?" if near else None
                    message = f"{quote(key)} never has this value"
                    self.decoder.problem((*path, index, key), message, cure=cure)
        return list(rows)
