"""The results folder: what a run writes, so that it can be resumed and nothing is half-written."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from scenarios.work import Rows

if sys.platform != "win32":
    import fcntl

FORMAT = 1
SUMMARY = "results.json"  # is written last, so a folder without it is of a run that was cut short
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FolderError(Exception):
    """A results folder can't be used: one sentence, and a cure."""

    def __init__(self, sentence: str, cure: str) -> None:
        self.cure = cure
        super().__init__(sentence)


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's first line: what is run. A resumed run must have the same.

    `paths` are as the user named them, from `cwd`.
    """

    format: int = FORMAT
    code: str
    cwd: str
    paths: tuple[str, ...]
    digests: tuple[str, ...]
    options: dict[str, Any]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A later line of the journal: one range that is done."""

    scenario: int
    cell: int
    rows: Rows


class Folder:
    """A results folder: its journal, its logs, its summary. One run writes it."""

    def __init__(self, path: Path, journal: int) -> None:
        self.path = path
        self._journal = journal

    @classmethod
    def create(cls, path: Path, head: Head) -> Folder:
        """Make the folder and begin its journal; FolderError if it can't be, or is in use."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _refuse(path, error)
        return cls._begin(path, head)

    @classmethod
    def create_numbered(cls, base: Path, name: str, head: Head) -> Folder:
        """Make a new folder NAME-N in `base`, with the next number that is free."""
        number = 1 + _highest(base, name)
        while True:
            path = base / f"{name}-{number}"
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                if not path.exists():  # a file stands in the way further up
                    _refuse(base, NotADirectoryError(errno.ENOTDIR, "a file is in its way"))
                number += 1  # another run was faster
            except OSError as error:
                _refuse(path, error)
            else:
                return cls._begin(path, head)

    @classmethod
    def _begin(cls, path: Path, head: Head) -> Folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        try:
            journal = os.open(path / "journal.jsonl", flags, 0o666)
        except FileExistsError:
            raise FolderError(
                f"{path} already has the results of a run",
                f"go on with it: {resuming(path)}; or choose another --out",
            ) from None
        except OSError as error:
            _refuse(path, error)
        _lock(path, journal)
        folder = cls(path, journal)
        try:
            folder.write_line(head)
        except OSError:
            folder.close()
            (path / "journal.jsonl").unlink()  # nothing to go on with: the next run may begin here
            raise
        return folder

    @classmethod
    def resume(cls, path: Path) -> tuple[Folder, Head, list[Entry]]:
        """Open a folder whose run was cut short; a torn last line is left out."""
        file = path / "journal.jsonl"
        try:
            journal = os.open(file, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise FolderError(
                f"{path} has no journal to go on with: {error.strerror}",
                "name the folder that the interrupted run named when it ended",
            ) from None
        try:
            _lock(path, journal)
            head, entries = cls._read(file, journal)
        except BaseException:
            os.close(journal)
            raise
        return cls(path, journal), head, entries

    @staticmethod
    def _read(file: Path, journal: int) -> tuple[Head, list[Entry]]:
        head, entries, size_bytes = read_journal(file)
        os.truncate(journal, size_bytes)
        return head, entries

    def write_line(self, line: Head | Entry) -> None:
        """Add a line to the journal; it is with the operating system when this returns."""
        data = memoryview(msgspec.json.encode(line) + b"\n")
        try:
            while data:
                data = data[os.write(self._journal, data) :]
        except OSError as error:
            raise self.failed(error) from error

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file of the folder whole, or not at all."""
        try:
            write_whole(self.path / name, data)
        except OSError as error:
            raise self.failed(error) from error

    def failed(self, error: OSError) -> FolderError:
        """Return what to say when something could not be written into the folder."""
        if error.errno in FULL:
            return FolderError(
                f"{self.path} can't be written any more: the disk is full",
                f"free some space, then go on with it: {resuming(self.path)}",
            )
        return FolderError(
            f"{self.path} can't be written any more: {error.strerror}",
            f"when it can be, go on with it: {resuming(self.path)}",
        )

    def close(self) -> None:
        """Close the journal."""
        os.close(self._journal)


def read_journal(file: Path) -> tuple[Head, list[Entry], int]:
    """Return a journal's lines and its size in bytes, both without a torn last line.

    FolderError if it is none; OSError if it can't be read.
    """
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.splitlines()
    try:
        head = msgspec.json.decode(lines[0], type=Head)
        entries = [msgspec.json.decode(line, type=Entry) for line in lines[1:]]
    except (IndexError, msgspec.MsgspecError):
        raise FolderError(
            f"{file} is damaged, or no journal of this pullcord", "run the scenario anew"
        ) from None
    return head, entries, len(whole)


def unwritable(path: Path, error: OSError) -> FolderError:
    """Return what to say when a file or folder that a flag names can't be written."""
    if path.is_dir() and not isinstance(error, PermissionError):
        why = "it is a folder"
    elif isinstance(error, FileExistsError | NotADirectoryError):
        why = "a file is in its way"
    else:
        why = error.strerror or str(error)
    cure = "free some space" if error.errno in FULL else "choose another place"
    return FolderError(f"{path} can't be written: {why}", cure)


def resuming(path: Path) -> str:
    """Return the command that goes on with a run."""
    return shlex.join(["pullcord", "run", "--resume", str(path)])


def _lock(path: Path, journal: int) -> None:
    """Take the journal for this process; the system gives it back when the process ends."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FolderError(
            f"{path} is in use: another pullcord is writing into it",
            "wait until it has ended, or choose another --out",
        ) from None
    except OSError:
        return  # some network file systems have no locks


def _refuse(path: Path, error: OSError) -> NoReturn:
    if path.exists() and not path.is_dir():
        why = "it is a file"
    elif error.errno in FULL:
        why = "the disk is full"
    else:
        why = error.strerror or str(error)
    raise FolderError(
        f"{path} can't be a results folder: {why}", "choose another folder with --out"
    ) from None


def _highest(base: Path, name: str) -> int:
    """Return the highest number among the folders NAME-N, 0 if there is none."""
    pattern = re.compile(rf"{re.escape(name)}-(\d+)")
    try:
        found = [pattern.fullmatch(entry.name) for entry in base.iterdir()]
    except OSError:
        return 0
    return max((int(match[1]) for match in found if match), default=0)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole, or leave what was there: to a temporary name, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
