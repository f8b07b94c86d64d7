"""Where Graphs lie: the user's files, those that were saved, and the shipped ones.

Saved Graphs lie in the folder PULLCORD_GRAPHS, by default `pullcord/graphs` in the user's data
(XDG_DATA_HOME). A Graph may call those beside it and the saved ones, by their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from actors.graphs.meta import MetaError, read_script
from scenarios.folder import write_whole
from scenarios.graph_syntax import reached_files
from scenarios.problems import Problem, ScenarioError, listed, quote, suggest

SHIPPED: Final = Path(__file__).resolve().parent / "graphs"
PREFIX: Final = "@graphs/"
SUFFIX: Final = ".js"
ANSWERS_SUFFIX: Final = ".answers.jsonl"
NAME_LIMIT_CHARS: Final = 60
FILE_LIMIT_BYTES: Final = 1 << 20  # of a Graph; a longer one was never written by hand
ANSWERS_LIMIT_BYTES: Final = 1 << 28  # of recorded answers, which are held in memory
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class Graph(Struct, frozen=True, kw_only=True):
    """A Graph's file: its text, and how to name it to people."""

    path: Path
    shown: str
    text: str

    @property
    def name(self) -> str:
        """What scripts call it."""
        return self.path.name.removesuffix(SUFFIX)

    @property
    def answers(self) -> Path:
        """Where its recorded answers lie, if there are any."""
        return self.path.with_name(self.name + ANSWERS_SUFFIX)


def refusal(path: str, message: str, cure: str | None = None) -> ScenarioError:
    """Return the error of something that can't be used."""
    return ScenarioError([Problem(path=path, message=message, cure=cure)])


def saved_folder() -> Path:
    """Return where this user's Graphs are saved; it need not be there."""
    if chosen := os.environ.get("PULLCORD_GRAPHS"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or ""
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"  # noqa: PTH117  of a text
    return base / "pullcord" / "graphs"


def graphs_in(folder: Path) -> dict[str, Path]:
    """Return the Graphs of a folder by name; none if it is not there."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError:
        return {}
    return {path.stem: path for path in found if path.is_file()}


def find_graph(target: str) -> Graph:
    """Return the Graph that a file's path, a saved Graph's name or @graphs/NAME means.

    ScenarioError if there is none, or it can't be read.
    """
    if target.startswith("@"):
        return _shipped(target)
    if target.endswith(SUFFIX) or "/" in target or Path(target).is_file():
        return _read(Path(target), target)
    saved = graphs_in(saved_folder())
    if target in saved:
        return _read(saved[target], target)
    here = Path(target + SUFFIX)
    if here.is_file():
        cure = f"did you mean the file {quote(str(here))}?"
    else:
        near = suggest(target, [*saved, *(PREFIX + name for name in graphs_in(SHIPPED))])
        cure = f"did you mean {quote(near)}?" if near else "see: pullcord graph list"
    raise refusal(target, "no Graph is saved under this name", cure)


def _shipped(target: str) -> Graph:
    known = graphs_in(SHIPPED)
    name = target.removeprefix("@").removeprefix("graphs/").removesuffix(SUFFIX)
    if name in known:
        return _read(known[name], PREFIX + name)
    near = suggest(name, known)
    cure = f"there is {listed((PREFIX + one for one in known), last='and')}"
    if near is not None:
        cure = f"did you mean {quote(PREFIX + near)}?"
    raise refusal(target, "no shipped Graph has this name", cure)


def _read(path: Path, shown: str) -> Graph:
    if path.suffix != SUFFIX:
        raise refusal(shown, "this is no Graph", f"a Graph is a file that ends in {SUFFIX}")
    if not path.is_file():
        near = suggest(path.stem, graphs_in(path.parent))
        cure = f"did you mean {quote(str(path.with_name(near + SUFFIX)))}?" if near else None
        other = "this is a device, a pipe or a socket, and no file"
        what = "this is a folder" if path.is_dir() else other if path.exists() else "no such file"
        raise refusal(shown, what, cure)
    return Graph(path=path, shown=shown, text=text_of(path, shown, FILE_LIMIT_BYTES))


def text_of(path: Path, shown: str, limit_bytes: int = ANSWERS_LIMIT_BYTES) -> str:
    """Return a file's text; ScenarioError if it can't be read, or is larger than anybody's."""
    try:
        with path.open("rb") as file:
            raw = file.read(limit_bytes + 1)
    except OSError as error:
        raise refusal(shown, f"it can't be read: {error.strerror}") from None
    if len(raw) > limit_bytes:
        raise refusal(shown, f"it has more than {limit_bytes:,} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise refusal(shown, "it is no text in UTF-8") from None


def library_of(graph: Graph) -> Mapping[str, str]:
    """Return the sources that a Graph may call, by file name: itself, its siblings, saved ones.

    What can't be read is left out: a script that calls it is told that there is no such Graph.
    """
    paths = {**graphs_in(saved_folder()), **graphs_in(graph.path.parent)}
    found = {}
    for name, path in paths.items():
        try:
            found[name + SUFFIX] = text_of(path, str(path), FILE_LIMIT_BYTES)
        except ScenarioError:
            continue
    return {**found, graph.path.name: graph.text}


def reached(graph: Graph, library: Mapping[str, str]) -> list[Graph]:
    """Return a Graph, and those of its library that it calls by a name written out."""
    names = reached_files([graph.path.name], library)[1:]
    return [graph, *(beside(graph, name, library) for name in names)]


def beside(graph: Graph, file: str, library: Mapping[str, str]) -> Graph:
    """Return the Graph that a file of a Graph's library has, named as its user would name it."""
    path, saved = graph.path.with_name(file), saved_folder() / file
    if not path.is_file() and saved.is_file():
        path = saved
    if graph.shown.startswith(PREFIX):
        shown = PREFIX + path.stem if path.parent == SHIPPED else path.stem
    elif path.parent == saved_folder():
        shown = path.stem
    else:
        shown = str(Path(graph.shown).with_name(file))
    return Graph(path=path, shown=shown, text=library[file])


def meta_of(text: str) -> dict[str, Any]:
    """Return what a Graph says of itself; nothing if that can't be read."""
    try:
        return read_script(text).meta
    except MetaError:
        return {}


def listing() -> Iterator[tuple[str, str, str]]:
    """Yield the saved and then the shipped Graphs: name, description, file."""
    for prefix, folder in (("", saved_folder()), (PREFIX, SHIPPED)):
        for name, path in graphs_in(folder).items():
            try:
                meta = meta_of(text_of(path, str(path), FILE_LIMIT_BYTES))
            except ScenarioError as error:
                meta = {"description": f"({error.problems[0].message})"}
            yield prefix + name, str(meta.get("description", "")), str(path)


def save(graph: Graph, name: str, *, replace: bool) -> Path:
    """Save a Graph, with its recorded answers, and return the file.

    ScenarioError if there is one of this name already and `replace` is not set.
    """
    if not NAME.fullmatch(name) or len(name) > NAME_LIMIT_CHARS:
        cure = f"take letters, digits, - and _, {NAME_LIMIT_CHARS} at most, as in nightly-review"
        raise refusal(name, "this can't be the name of a Graph", cure)
    folder = saved_folder()
    target = folder / (name + SUFFIX)
    if os.path.lexists(target) and not replace:
        cure = "choose another name, or give --replace"
        raise refusal(name, "a Graph is saved under this name already", cure)
    copies = {target: graph.text}
    if graph.answers.is_file():
        answers = text_of(graph.answers, str(graph.answers))
        copies[target.with_name(name + ANSWERS_SUFFIX)] = answers
    try:
        for path, text in copies.items():
            write_whole(path, text.encode())
    except OSError as error:
        raise refusal(str(folder), f"it can't be written: {error.strerror}") from None
    return target
