"""Graphs in a scenario: which files they need, who answers their agents, where scripts run.

`[engine] use = "graph"` lets a cell's engines run JavaScript: `graph` names the file, looked for
from the scenario's own folder, and the other .js files beside it are what it may call; or a folder,
in which each session's Graph is called as its slug.

Each such engine has a model, an actor of its own that links, faults and logs know by name: `model`
for `engine`. With `permissions` it has `tools` too, and with an `approval_delay` an `approver`, who
stands for its owner. They have no tables: their keys stand in the engine's, since they describe
that engine's agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from actors.actor import Actor, Place
from actors.graph_engine import SUFFIX, GraphEngine
from actors.graphs.meta import MetaError, read_script
from actors.graphs.model import BUILT_IN_MODELS, ModelConfig
from actors.graphs.scripted import AnswersError, ScriptedModel
from actors.graphs.seam import VmPort
from actors.graphs.synthetic import SyntheticModel
from actors.graphs.tools import Approver, SyntheticTools, ToolsConfig
from scenarios.graph_syntax import ENGINE_MODULE, reached_files, syntax_problem
from scenarios.problems import quote, suggest
from scenarios.references import Role
from scenarios.spec import Cast, Kind

FILE_LIMIT_BYTES = 1 << 20  # of a Graph; a longer one was never written by hand
ANSWERS_LIMIT_BYTES = 1 << 28  # of recorded answers, which are held in memory
LIBRARY_LIMIT = 200  # Graphs in one folder


class GraphFileError(Exception):
    """A file that an engine's table names can't be used: the key, one sentence, and a cure."""

    def __init__(self, key: str, sentence: str, cure: str | None = None) -> None:
        self.key = key
        self.cure = cure
        super().__init__(sentence)


def name_for(engine: str, what: Kind) -> str:
    """Return the name of an engine's model, tools or approver: `model-2` for `engine-2`."""
    if engine == "engine" or engine.startswith("engine-"):
        return what + engine.removeprefix("engine")
    return f"{engine}-{what}"


def approver_for(engine: Cast) -> str:
    """Return the name of an engine's approver, empty if it has none."""
    config = engine.config
    if not isinstance(config, ToolsConfig) or config.approval_delay_us is None:
        return ""
    return name_for(engine.name, "approver")


def graph_roles(roles: Iterable[Role]) -> list[Role]:
    """Return the models, tools and approvers of engines, each at its engine's place in the file."""
    return [
        Role(one, path, frozenset())
        for cast, path, _ in roles
        if cast.kind == "engine"
        for one in _helpers_of(cast)
    ]


def _helpers_of(engine: Cast) -> Iterator[Cast]:
    """Yield those that an engine that runs Graphs has beside it."""
    config = engine.config
    if not isinstance(config, ModelConfig):
        return
    use = None if config.model in BUILT_IN_MODELS else config.model
    part = _part(config, ModelConfig)
    yield Cast(kind="model", name=name_for(engine.name, "model"), use=use, config=part)
    if not isinstance(config, ToolsConfig):
        return
    part = _part(config, ToolsConfig)
    if config.permissions:
        yield Cast(kind="tools", name=name_for(engine.name, "tools"), use=None, config=part)
    if approver := approver_for(engine):
        yield Cast(kind="approver", name=approver, use=None, config=part)


def _part(config: ModelConfig, kind: type[ModelConfig]) -> ModelConfig:
    """Return what an engine's config says of those beside it."""
    return kind(**{name: getattr(config, name) for name in kind.__struct_fields__})


def files_of(config: Any, folder: Path) -> Mapping[str, Path]:
    """Return the files that an actor's config names, by the names that its place has for them.

    GraphFileError if one is missing.
    """
    if not isinstance(config, GraphEngine.Config):
        named = isinstance(config, ModelConfig) and not isinstance(config, ToolsConfig)
        answers = config.answers if named else None
        return {} if answers is None else {answers: _existing("answers", answers, folder, "")}
    home = folder / config.graph
    if not home.is_dir():
        home = _existing("graph", config.graph, folder, SUFFIX).parent
    found = {one.name: one for one in sorted(home.glob(f"*{SUFFIX}"))}
    if len(found) > LIBRARY_LIMIT:
        cure = "give the Graph a folder of its own"
        raise GraphFileError("graph", f"{home} has {len(found)} Graphs", cure)
    return found


def _existing(key: str, file: str, folder: Path, suffix: str) -> Path:
    path = folder / file
    if suffix and not file.endswith(suffix):
        raise GraphFileError(
            key, f"{quote(file)} is no Graph", f'a Graph\'s name ends in "{suffix}"'
        )
    if path.is_file():
        return path
    names = sorted(one.name for one in path.parent.glob(f"*{suffix}"))
    near = suggest(path.name, names)
    cure = f"did you mean {quote(near)}?" if near else f"it is looked for in {path.parent}"
    raise GraphFileError(key, f"there is no file {quote(file)}", cure)


def furnished(cast: Cast, place: Place, folder: Path) -> Place:
    """Return an actor's place with the texts of its files; GraphFileError if one can't be used."""
    config = cast.config
    files = {
        name: _text("graph" if name.endswith(SUFFIX) else "answers", path)
        for name, path in files_of(config, folder).items()
    }
    if isinstance(config, GraphEngine.Config):
        for name in reached_files(_roots(config.graph, place, files), files):
            try:
                problem = syntax_problem(read_script(files[name]).source)
            except MetaError as error:
                raise GraphFileError("graph", f"{name}, {error}") from None
            if problem is not None:
                raise GraphFileError("graph", f"{name}, {problem}")
    return msgspec.structs.replace(place, files=files) if files else place


def _roots(graph: str, place: Place, files: Mapping[str, str]) -> list[str]:
    """Return the files that runs begin with: the one that is named, or one for each session."""
    if graph.endswith(SUFFIX):
        return [Path(graph).name]
    names = [f"{session.slug}{SUFFIX}" for session in place.sessions]
    for session, name in zip(place.sessions, names, strict=True):
        if name not in files:
            near = suggest(name, list(files))
            cure = f"did you mean {quote(near)}?" if near else f"it is looked for in {graph}"
            sentence = f"session {quote(session.name)} has no Graph: there is no {name}"
            raise GraphFileError("graph", sentence, cure)
    return names


def _text(key: str, path: Path) -> str:
    limit = ANSWERS_LIMIT_BYTES if key == "answers" else FILE_LIMIT_BYTES
    try:
        if path.stat().st_size > limit:
            raise GraphFileError(key, f"{path.name} is larger than {limit:,} bytes")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise GraphFileError(key, f"{path.name} is no text in UTF-8") from None
    except OSError as error:
        raise GraphFileError(key, f"{path.name} can't be read: {error.strerror}") from None


def make_helper(kind: Kind, config: Any, place: Place) -> Actor:
    """Return what is built in of an engine's model, tools and approver.

    GraphFileError if a model's recorded answers have a mistake.
    """
    if kind == "tools":
        return SyntheticTools(config, place)
    if kind == "approver":
        return Approver(config, place)
    if config.model == "synthetic":
        return SyntheticModel(config, place)
    try:
        return ScriptedModel(config, place)
    except AnswersError as error:
        raise GraphFileError("answers", f"{config.answers}, {error}") from None


def check_scripts_can_run() -> None:
    """Raise GraphFileError where no JavaScript engine is installed."""
    if find_spec(ENGINE_MODULE) is None:
        raise GraphFileError(
            "use", "a Graph needs a JavaScript engine", "pip install 'pullcord[graphs]'"
        )


@cache
def vm_port() -> VmPort:
    """Return where scripts run: one port for all cells, which starts anew in a forked process."""
    from actors.edges.vm_process import ProcessVmPort  # noqa: PLC0415  what few runs need

    return ProcessVmPort()
