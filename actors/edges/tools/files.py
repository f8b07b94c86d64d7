"""Reads text files in folders that the settings name, and nothing outside them.

A path is walked from its folder part by part, each opened by its parent's descriptor without
following a link: what is checked is what is opened, whatever is moved or swapped meanwhile. A walk
never leaves the folder's own file system, so nothing that is mounted below is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from actors.edges.tools.tool import TEXT_LIMIT_CHARS, ToolError, ToolSpec, arguments_schema
from actors.text import clean_text, units

FILE_LIMIT_BYTES: Final = 8 << 20  # a larger one is no text that anybody wrote
PATH_LIMIT_CHARS: Final = 4_096
PARTS_LIMIT: Final = 64  # each is a descriptor that is opened
ENTRIES_LIMIT: Final = 1_000  # of a folder's list
NOTE_CHARS: Final = 100  # of a result, for where the rest begins
LIMIT_S: Final = 30.0  # a network's file system may hang
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not waiting for a pipe's other end, and never a process's terminal.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

T = TypeVar("T")


class Folders:
    """Folders by the names that agents have for them. With `hidden` dot files count, too."""

    def __init__(self, folders: Mapping[str, Path], *, hidden: bool = False) -> None:
        self.folders = folders
        self.hidden = hidden

    def parts(self, path: str) -> list[str]:
        """Return the parts of an agent's path; ToolError if it is no path here."""
        if clean_text(path) != path or len(path) > PATH_LIMIT_CHARS:
            raise ToolError("this is no path")
        if path.startswith(("/", "~")) or "\\" in path:
            raise ToolError(f"a path begins with a folder's name: {self.shown()}")
        parts = path.rstrip("/").split("/")
        if "" in parts or "." in parts or ".." in parts or len(parts) > PARTS_LIMIT:
            raise ToolError('a path has no "." and no ".." in it, and no empty part')
        if parts[0] not in self.folders:
            raise ToolError(f"there is no folder of this name: {self.shown()}")
        if not self.hidden and any(part.startswith(".") for part in parts[1:]):
            raise ToolError("files whose names begin with a dot are not for agents")
        return parts

    def shown(self) -> str:
        """Return the folders' names, for an agent."""
        return "there is " + ", ".join(self.folders)

    @contextmanager
    def opened(self, parts: list[str]) -> Iterator[int]:
        """Open the folder that some parts lead to; OSError if they don't."""
        # The folder itself is the owner's word, and may be a link.
        current = os.open(self.folders[parts[0]], _FOLDER & ~os.O_NOFOLLOW)
        try:
            device = os.fstat(current).st_dev
            for part in parts[1:]:
                below = os.open(part, _FOLDER, dir_fd=current)
                os.close(current)
                current = below
                if os.fstat(current).st_dev != device:
                    raise ToolError("another file system is mounted there")
            yield current
        finally:
            os.close(current)

    def read(self, path: str) -> str:
        """Return a file's text; ToolError if it is none of ours, or no text."""
        parts = self.parts(path)
        if len(parts) == 1:
            raise ToolError("this is a folder: list_files lists it")
        with self.opened(parts[:-1]) as folder:
            found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            check_kind(found)  # before it is opened: to open a device may do something
            descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                opened = os.fstat(descriptor)
                check_kind(opened)
                if opened.st_dev != os.fstat(folder).st_dev:
                    raise ToolError("another file system is mounted there")
                raw = file.read(FILE_LIMIT_BYTES + 1)
        if len(raw) > FILE_LIMIT_BYTES:
            raise ToolError(f"the file has more than {FILE_LIMIT_BYTES:,} bytes")
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise ToolError("the file is no text in UTF-8") from None
        if "\0" in text:
            raise ToolError("the file is no text: there are zero bytes in it")
        return text

    def list(self, path: str) -> str:
        """Return what is in a folder, a name a line; of the folders themselves for no path."""
        if not path:
            return "\n".join(f"{name}/" for name in self.folders)
        parts = self.parts(path)
        lines = []
        with self.opened(parts) as folder:
            names = sorted(os.listdir(folder))  # noqa: PTH208  by a descriptor
            shown = [name for name in names if self.hidden or not name.startswith(".")]
            for name in shown[:ENTRIES_LIMIT]:
                with suppress(OSError):  # gone meanwhile
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    lines.append(_line(name, found))
        if len(shown) > ENTRIES_LIMIT:
            lines.append(f"[and {len(shown) - ENTRIES_LIMIT:,} more]")
        return "\n".join(lines) or "[the folder is empty]"


def check_kind(found: os.stat_result) -> None:
    """Refuse what is no plain file."""
    mode = found.st_mode
    if stat.S_ISDIR(mode):
        raise ToolError("this is a folder: list_files lists it")
    if stat.S_ISLNK(mode):
        raise ToolError("this is a link, and links are not followed")
    if not stat.S_ISREG(mode):
        raise ToolError("this is a device, a pipe or a socket, and no file")
    if found.st_size > FILE_LIMIT_BYTES:
        raise ToolError(f"the file has more than {FILE_LIMIT_BYTES:,} bytes")


def _line(name: str, found: os.stat_result) -> str:
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    if stat.S_ISDIR(found.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(found.st_mode):
        return f"{shown}  {found.st_size:,} bytes"
    return f"{shown}  [no file]"


async def _in_thread(work: Callable[[], T]) -> T:
    """Do what may block, and say in a sentence why it failed; it only reads, so it may be left."""
    try:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
    except NotADirectoryError:
        raise ToolError("a part of the path is a link or a file, and no folder") from None
    except OSError as error:
        raise ToolError(f"it can't be read: {error.strerror}") from None


class ReadFile:
    """The tool `read_file`."""

    limit_s = LIMIT_S

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.spec = ToolSpec(
            name="read_file",
            description=(
                "Reads a text file. The path begins with a folder's name: "
                f"{folders.shown()}. A long file comes in parts: from_line says where to go on."
            ),
            schema=arguments_schema(
                {"path": {"type": "string", "maxLength": PATH_LIMIT_CHARS}},
                from_line={"type": "integer", "minimum": 1},
                lines={"type": "integer", "minimum": 1},
            ),
        )

    async def call(self, arguments: dict[str, Any]) -> str:
        """See Tool."""
        path = arguments["path"]
        text = await _in_thread(lambda: self.folders.read(path))
        return lines_of(text, arguments.get("from_line", 1), arguments.get("lines"))


class ListFiles:
    """The tool `list_files`."""

    limit_s = LIMIT_S

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.spec = ToolSpec(
            name="list_files",
            description=(
                "Lists a folder. Without a path it lists the folders that there are: "
                f"{folders.shown()}."
            ),
            schema=arguments_schema({}, path={"type": "string", "maxLength": PATH_LIMIT_CHARS}),
        )

    async def call(self, arguments: dict[str, Any]) -> str:
        """See Tool."""
        path = arguments.get("path", "")
        return await _in_thread(lambda: self.folders.list(path))


def lines_of(text: str, first: int, count: int | None) -> str:
    """Return some lines of a text, as many as fit in a result, and where the rest begins."""
    lines = text.splitlines(keepends=True)
    if first > max(1, len(lines)):
        raise ToolError(f"the file has {len(lines):,} lines")
    end = len(lines) if count is None else min(len(lines), first - 1 + count)
    room, at = TEXT_LIMIT_CHARS - NOTE_CHARS, first - 1
    while at < end and (room := room - units(lines[at])) >= 0:
        at += 1
    if at == first - 1:  # a line that fits nowhere is cut as every result is
        at = min(end, first)
    shown = "".join(lines[first - 1 : at])
    rest = (
        "" if at == len(lines) else f"\n[{len(lines):,} lines: the rest begins at line {at + 1:,}]"
    )
    return shown + rest
