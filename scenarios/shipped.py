"""Finding scenario files: by path, by folder, and the shipped ones by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scenarios.load import problem_of
from scenarios.problems import listed, quote, suggest

HERE = Path(__file__).resolve().parent
JOURNAL = "journal.jsonl"  # is in a folder of results
OTHER_FILES = frozenset({"pyproject.toml", "ruff.toml", "poetry.toml", "tools.toml", "__pycache__"})
HEAD_BYTES = 4096  # of a file in JSON, where a scenario says its schema


def shipped() -> dict[str, Path]:
    """Return the shipped scenarios by name: published/poll_strategies, examples/first."""
    found = {}
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        for path in sorted(folder.glob("*.toml")):
            if folder.name != "templates":
                found[f"{folder.name}/{path.stem}"] = path
    return found


def find(targets: list[str]) -> list[str]:
    """Return the files that the targets mean, in order; ScenarioError if one means none."""
    files: list[str] = []
    for target in targets:
        files += _named(target) if target.startswith("@") else _at(target)
    return list(dict.fromkeys(files))


def shown(path: str) -> str:
    """Return how a file is named: a shipped one by its name, another by its path as it is."""
    file = Path(path)
    if file.is_absolute() and file.is_relative_to(HERE) and file.suffix == ".toml":
        return f"@{file.relative_to(HERE).with_suffix('').as_posix()}"
    return path


def _named(target: str) -> list[str]:
    """Return the shipped files of a name: a folder, a file in it, or a file's name alone."""
    name = target.removeprefix("@").removesuffix(".toml").strip("/")
    known = shipped()
    if name in known:
        return [str(known[name])]
    folders = sorted({key.partition("/")[0] for key in known})
    if name in folders:
        return [str(path) for key, path in known.items() if key.startswith(f"{name}/")]
    stems: dict[str, list[str]] = {}
    for key in known:
        stems.setdefault(_stem(key), []).append(key)
    meant = stems.get(_stem(name), [])
    if len(meant) == 1:
        return [str(known[meant[0]])]
    near = suggest(name, [*folders, *known]) or suggest(_stem(name), stems)
    cure = f"there is {listed((f'@{folder}' for folder in folders), last='and')}"
    if near is not None:
        cure = f"did you mean {listed(quote(f'@{key}') for key in stems.get(near, [near]))}?"
    raise problem_of(target, "no shipped scenario has this name", cure)


def _stem(name: str) -> str:
    """Return a scenario's name without its folder, as the file has it."""
    return name.rpartition("/")[2].replace("-", "_")


def _at(target: str) -> list[str]:
    path = Path(target)
    if not path.is_dir():
        return [target]  # the reader says what is wrong with it
    files = sorted(_inside(path))
    if not files:
        raise problem_of(target, "this folder has no scenario file", "a scenario ends in .toml")
    return [str(file) for file in files]


def _inside(folder: Path) -> Iterator[Path]:
    """Return a folder's scenarios: what ends in .toml, and .json that speaks of a schema.

    Left out are hidden folders, the results of runs, and the files of Python's own tools.
    """
    try:
        children = list(folder.iterdir())
    except OSError as error:
        raise problem_of(str(folder), f"this folder can't be read: {error.strerror}") from None
    for path in children:
        if path.name.startswith(".") or path.name in OTHER_FILES:
            continue
        if path.is_dir():
            if not path.is_symlink() and not (path / JOURNAL).exists():
                yield from _inside(path)
        elif path.suffix == ".toml" or (path.suffix == ".json" and b'"schema"' in _head(path)):
            yield path


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)
