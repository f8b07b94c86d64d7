"""The actors of a cell: their classes, built in or a user's own, and their configs.

A user's file is imported alone, under a name that no other module has: the folder that it lies in
is not searched for modules, so an `actors.py` or `logs/` beside it is in nobody's way, and what a
run depends on is one file, whose content is part of the results' digest. What several actors share
is put into the same file, or installed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

import msgspec

from actors.actor import Actor, Place
from actors.agent import Agent
from actors.desktop.relay import DesktopRelay
from actors.engine import Engine
from actors.graph_engine import GraphEngine
from actors.owner import Owner
from actors.relay import Relay
from actors.server import Server
from scenarios.decode import fields_of
from scenarios.graph_engines import GraphFileError, check_scripts_can_run, furnished, make_helper
from scenarios.problems import listed, quote, suggest
from scenarios.spec import ACTOR_KEYS, DESKTOP_USE, GRAPH_USE, HELPERS, Cast, Kind
from scenarios.stand_in import StandIn

BUILT_IN_USE = "built-in"  # what `use` says for no class of one's own, for one that is swept
BUILT_IN: Mapping[Kind, type[Any]] = {
    "server": Server,
    "relay": Relay,
    "engine": Engine,
    "agent": Agent,
    "owner": Owner,
}


class NoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of an actor class that has none: no key may be set."""


class ForeignActorError(Exception):
    """A user's actor or Graph can't be used: one sentence, a cure, and the key at fault."""

    def __init__(self, sentence: str, cure: str | None = None, key: str = "use") -> None:
        self.cure = cure
        self.key = key
        super().__init__(sentence)


def actor_class(kind: Kind, use: str | None, folder: Path) -> type[Any]:
    """Return the class that plays a part: the built-in one, or that of `use = "file.py:Class"`.

    `use = "graph"` is the built-in engine that runs Graphs, "desktop" the deployed relay.

    The file is looked for from `folder`, the scenario's own. ForeignActorError if it can't be used.
    """
    if use is None or use == BUILT_IN_USE:
        return BUILT_IN[kind]
    if kind == "engine" and use == GRAPH_USE:
        return GraphEngine
    if kind == "relay" and use == DESKTOP_USE:
        return DesktopRelay
    path, name = foreign_path(use, folder)
    module = load_file(path)
    candidate = getattr(module, name, None)
    if not inspect.isclass(candidate):
        classes = [
            key
            for key, value in vars(module).items()
            if inspect.isclass(value) and value.__module__ == module.__name__
        ]
        near = suggest(name, classes)
        cure = f"did you mean {quote(near)}?" if near else f"it has {_listed(classes, 'no class')}"
        raise ForeignActorError(f"{path.name} has no class {name}", cure)
    _check(kind, name, candidate)
    return candidate


def make_actor(cast: Cast, place: Place, folder: Path) -> Actor:
    """Return the actor that plays a part; ForeignActorError if it can't be made."""
    try:
        return _made(cast, place, folder)
    except ForeignActorError as error:
        if cast.kind == "model" and error.key == "use":
            error.key = "model"  # what the engine's table calls it
        raise


def _made(cast: Cast, place: Place, folder: Path) -> Actor:
    try:
        place = furnished(cast, place, folder)
        if cast.kind in HELPERS and cast.use is None:
            return make_helper(cast.kind, cast.config, place)
        kind = actor_class(cast.kind, cast.use, folder)
        if issubclass(kind, GraphEngine):
            check_scripts_can_run()
    except GraphFileError as error:
        raise ForeignActorError(str(error), error.cure, error.key) from error
    if cast.use is None or not cast.foreign:
        actor: Actor = kind(cast.config, place)
        return actor if cast.command is None else StandIn(actor)
    try:
        actor = kind(cast.config, place)
    except (Exception, SystemExit) as error:  # whatever a user's __init__ raises
        where = _where(error, foreign_path(cast.use, folder)[0])
        cure = None
        if isinstance(error, TypeError) and not where:
            cure = "it is called with two values: write def __init__(self, config, place)"
        raise ForeignActorError(
            f"{kind.__name__} can't be made: {type(error).__name__}: {error}{where}", cure
        ) from error
    handlers: Any = getattr(actor, "handlers", None)
    if not isinstance(handlers, Mapping) or not all(map(callable, handlers.values())):
        raise ForeignActorError(
            f"{kind.__name__}.handlers is no mapping from message types to methods",
            "set it in __init__, as in self.handlers = {GraphRun: self.on_answer}",
        )
    return actor


def foreign_path(use: str, folder: Path) -> tuple[Path, str]:
    """Return the file and the class name that `use` names."""
    file, colon, name = use.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ForeignActorError(
            f"{quote(use)} names no class", 'write use = "my_relay.py:MyRelay", or "built-in"'
        )
    path = folder / file
    if not path.is_file():
        near = suggest(path.name, sorted(other.name for other in path.parent.glob("*.py")))
        cure = f"did you mean {quote(near)}?" if near else f"it is looked for in {path.parent}"
        raise ForeignActorError(f"there is no file {quote(file)}", cure)
    return path, name


def config_class(actor: type[Any]) -> type[msgspec.Struct]:
    """Return the class of an actor's config."""
    return getattr(actor, "Config", NoConfig)


def _listed(words: list[str], nothing: str) -> str:
    return listed(words, last="and") if words else nothing


def _check(kind: Kind, name: str, candidate: type[Any]) -> None:
    """Raise ForeignActorError if a class is no actor of a kind, as far as that can be seen."""
    for other, base in BUILT_IN.items():
        if issubclass(candidate, base) and not issubclass(candidate, BUILT_IN.get(kind, NoneType)):
            raise ForeignActorError(f"{name} plays {other}, not {kind}")
    for method in ("on_start", "on_timer"):
        if not callable(getattr(candidate, method, None)):
            raise ForeignActorError(
                f"{name} has no method {method}", "`pullcord new actor` writes a complete one"
            )
    if inspect.isabstract(candidate):
        missing = listed(sorted(candidate.__abstractmethods__), last="and")
        raise ForeignActorError(f"{name} is abstract: it lacks {missing}")
    config: Any = config_class(candidate)
    if not (inspect.isclass(config) and issubclass(config, msgspec.Struct)):
        raise ForeignActorError(
            f"{name}.Config is no msgspec.Struct",
            "write class Config(msgspec.Struct, frozen=True, kw_only=True)",
        )
    try:
        fields = fields_of(config)
    except Exception as error:  # whatever its annotations raise
        raise ForeignActorError(f"{name}.Config has a type that can't be read: {error}") from error
    taken = [key for key in ACTOR_KEYS if key in fields]
    if taken:
        raise ForeignActorError(
            f"{name}.Config has the field {quote(taken[0])}, which is a key of every actor's table",
            "call it otherwise",
        )


def load_file(path: Path) -> ModuleType:
    """Import a user's file under a name of its own, once for each content.

    It is compiled here, since Python's own loader may take an older version from its cache, and
    would leave one beside the file.
    """
    content = path.read_bytes()
    digest = blake2b(content + str(path.resolve()).encode(), digest_size=8).hexdigest()
    name = f"pullcord_user_{path.stem}_{digest}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    module = module_from_spec(ModuleSpec(name, None, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module  # msgspec and dataclasses look their annotations up there
    try:
        exec(compile(content, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  it is the user's own program
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _not_imported(path, error) from error
    return module


def _not_imported(path: Path, error: BaseException) -> ForeignActorError:
    """Return what to tell of a file that raised when it was imported."""
    words, cure = f"{type(error).__name__}: {error}", None
    if isinstance(error, SyntaxError):
        words = f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, SystemExit):
        words = "it ends the program"
        cure = 'put what a script does below if __name__ == "__main__":'
    elif isinstance(error, ImportError):
        top = (error.name or "").partition(".")[0]
        if not top or (path.parent / f"{top}.py").exists() or (path.parent / top).is_dir():
            cure = "a file is imported alone: put what it needs into it, or install that"
    return ForeignActorError(f"{path.name} can't be imported: {words}{_where(error, path)}", cure)


def _where(error: BaseException, path: Path) -> str:
    """Return the last line of the user's file that an exception came through, in brackets."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f" (line {line})"
