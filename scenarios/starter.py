"""Starters: a scenario or a Graph that runs at once, an actor with a scenario that compares it.

What is copied lies in templates/, where it runs as it is; only names are replaced.
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scenarios.problems import Problem, ScenarioError, listed, quote, suggest

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
KINDS: Final = ("relay", "agent", "engine", "server")
NAME_LIMIT_CHARS: Final = 60  # what a scenario's name may have, less the prefix of a results folder
SUFFIXES: Final = {".toml": "scenario", ".py": "actor", ".js": "graph"}  # what each is
STARTERS: Final = tuple(SUFFIXES.values())

# Python would find a user's file of this name in the place of the module.
_TAKEN: Final = frozenset(("pullcord", "msgspec"))
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-]?[A-Za-z0-9]+)*")
_IMPORTED: Final = re.compile(r"^from (?:typing|pullcord) import (.*)$", re.MULTILINE)


def starter(
    what: str = "scenario", name: str | None = None, folder: Path = Path(), kind: str = "relay"
) -> list[str]:
    """Write a starter and return what to tell the user: the files, and the next command.

    `what` is "scenario", "actor" or "graph"; a file's name in its place says which by its suffix.
    `name` may have folders in front and a suffix behind. ScenarioError, and nothing written, if a
    file is there already, can't be written or can't have this name.
    """
    if what not in STARTERS:
        meant = SUFFIXES.get(Path(what).suffix)
        if name is not None or meant is None:
            near = suggest(what, STARTERS)
            cure = f"did you mean {quote(near)}?" if near else f"write {listed(STARTERS)}"
            raise _error(what, "no starter is called so", cure)
        what, name = meant, what
    if what == "scenario":
        return _scenario(folder / (name or "my_scenario"))
    if what == "graph":
        return _graph(folder / (name or "my_graph"))
    if kind not in KINDS:
        near = suggest(kind, KINDS)
        cure = f"did you mean {quote(near)}?" if near else f"write {listed(KINDS)}"
        raise _error(kind, "there is no starter for this kind of actor", cure)
    return _actor(folder / (name or f"my_{kind}"), kind)


def _scenario(target: Path) -> list[str]:
    path = _file(target, ".toml")
    written = {path: _filled("my_scenario.toml", {"my-scenario": _scenario_name(path)})}
    _write(written)
    shown = _shown(path)
    return [
        f"wrote {shown}",
        "",
        f"Next: pullcord run {shown}",
        "      pullcord names           what else a scenario may say",
    ]


def _graph(target: Path) -> list[str]:
    path = _file(target, ".js")
    words = {"my_graph": path.stem, "my-graph": _scenario_name(path)}
    _write({path: _filled("my_graph.js", words)})
    shown = _shown(path)
    return [
        f"wrote {shown}",
        "",
        f"Next: pullcord graph run {shown}",
        f"      pullcord graph check {shown}",
    ]


def _actor(target: Path, kind: str) -> list[str]:
    path = _file(target, ".py")
    module = path.stem.replace("-", "_")
    path = path.with_name(f"{module}.py")
    class_name = "".join(word[:1].upper() + word[1:] for word in module.split("_"))
    _check_class(path, class_name, kind)
    scenario = path.with_suffix(".toml")
    words = {
        f"my_{kind}": module,
        f"My{kind.capitalize()}": class_name,
        f"my-{kind}": _scenario_name(path),
    }
    _write({file: _filled(f"my_{kind}{file.suffix}", words) for file in (path, scenario)})
    return [
        f"wrote {_shown(path)}: {class_name}, the built-in {kind} with one method changed",
        f"wrote {_shown(scenario)}: compares it with the built-in {kind}",
        "",
        f"Next: pullcord run {_shown(scenario)}",
    ]


# Names


def _file(target: Path, suffix: str) -> Path:
    """Return the file that a target means; ScenarioError if it can't have this name."""
    stem = target.name
    for known in SUFFIXES:
        stem = stem.removesuffix(known)
    if not _WORD.fullmatch(stem) or len(stem) > NAME_LIMIT_CHARS:
        message = f"{quote(target.name)} can't be the name of a scenario, an actor or a Graph"
        cure = f"take letters, digits, - and _, {NAME_LIMIT_CHARS} at most, as in my_relay"
        raise _error(str(target), message, cure)
    if not target.parent.is_dir():
        raise _error(
            _shown(target), "its folder doesn't exist", f"mkdir -p {_shown(target.parent)}"
        )
    return target.with_name(stem + suffix)


def _scenario_name(path: Path) -> str:
    return path.stem.lower().replace("_", "-")


def _check_class(path: Path, class_name: str, kind: str) -> None:
    """Refuse a module or a class that would hide what the actor is made of."""
    source = (TEMPLATES / f"my_{kind}.py").read_text(encoding="utf-8")
    used = {word for line in _IMPORTED.findall(source) for word in line.split(", ")}
    module = path.stem
    if module.lower() in _TAKEN or keyword.iskeyword(module) or class_name in {*used, "Config"}:
        message = f"{quote(module)} is the name of something that the actor needs"
        raise _error(_shown(path), message, f"take another, as in my_{kind}")


def _filled(template: str, words: Mapping[str, str]) -> str:
    """Return a template's text with its own names replaced."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return re.sub("|".join(words), lambda match: words[match[0]], text)


# Files


def _write(texts: Mapping[Path, str]) -> None:
    """Write all files or none; ScenarioError if one is there already or can't be written."""
    for path in texts:
        if os.path.lexists(path):
            raise _error(_shown(path), "this file exists", "choose another name, or remove it")
    made: list[Path] = []
    try:
        for path, text in texts.items():
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            made.append(draft)
            draft.write_text(text, encoding="utf-8")
        for path in texts:
            path.with_name(f".{path.name}.{os.getpid()}").rename(path)
            made.append(path)
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
        name = _shown(next(iter(texts)))
        raise _error(name, f"it can't be written: {error.strerror}", None) from error


def _shown(path: Path) -> str:
    """Return a path as the user would type it from the working directory."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _error(path: str, message: str, cure: str | None) -> ScenarioError:
    return ScenarioError([Problem(path=path, message=message, cure=cure)])
