"""The results folder: made once, resumed, never half-written."""

import os
import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scenarios.folder import Entry, Folder, FolderError, Head, resuming, unwritable, write_whole
from scenarios.work import Rows

HEAD = Head(code="c", cwd="/", paths=("a.toml",), digests=("d",), options={})
ROWS = Rows(
    first=0, last=2, values={"wait": b"12345678"}, counts={"wait": None}, fired={}, seconds=0.5
)
ENTRY = Entry(scenario=0, cell=1, rows=ROWS)


def refusal(path: Path) -> FolderError:
    with pytest.raises(FolderError) as refused:
        Folder.create(path, HEAD)
    return refused.value


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "new" / "deep", HEAD)
    folder.write_line(ENTRY)
    folder.close()
    again, head, entries = Folder.resume(folder.path)
    assert (head, entries) == (HEAD, [ENTRY])
    again.write_line(ENTRY)
    again.close()
    last, _, entries = Folder.resume(folder.path)
    assert entries == [ENTRY, ENTRY]
    last.close()


@pytest.mark.parametrize("kept", [1, 5, 50])
def test_a_torn_last_line_is_left_out(tmp_path: Path, kept: int) -> None:
    folder = Folder.create(tmp_path / "r", HEAD)
    folder.write_line(ENTRY)
    folder.close()
    journal = folder.path / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole.splitlines()[1][:kept])
    again, _, entries = Folder.resume(folder.path)
    assert entries == [ENTRY]
    again.write_line(ENTRY)
    again.close()
    last, _, entries = Folder.resume(folder.path)
    assert entries == [ENTRY, ENTRY]
    last.close()


@pytest.mark.parametrize("text", ["", "{}\n", "nonsense\n", '{"code":1}\n'])
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "journal.jsonl").write_text(text)
    with pytest.raises(FolderError, match="damaged, or no journal"):
        Folder.resume(tmp_path)
    assert (tmp_path / "journal.jsonl").read_text() == text
    with pytest.raises(FolderError, match="no journal to go on with: No such file"):
        Folder.resume(tmp_path / "nothing")


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "my results", HEAD)
    error = refusal(folder.path)
    assert str(error) == f"{folder.path} already has the results of a run"
    assert resuming(folder.path) in error.cure
    assert f"--resume '{folder.path}'" in error.cure
    with pytest.raises(FolderError, match="in use: another pullcord is writing"):
        Folder.resume(folder.path)
    folder.close()
    Folder.resume(folder.path)[0].close()


def test_a_folder_that_has_other_files_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    Folder.create(tmp_path, HEAD).close()
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("file", "it is a file"),
        ("file/inside", "Not a directory"),
        ("/dev/full", "it is a file"),
        ("/proc/nothing", "No such file or directory"),
    ],
)
def test_what_can_be_no_folder_is_refused(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    error = refusal(tmp_path / path)
    assert str(error).endswith(f"can't be a results folder: {why}")
    assert "--out" in error.cure


def test_numbers_are_given_once_also_to_runs_at_the_same_moment(tmp_path: Path) -> None:
    (tmp_path / "base" / "a-7").mkdir(parents=True)
    (tmp_path / "base" / "a-x").mkdir()
    (tmp_path / "base" / "b-9").mkdir()

    def create(_: int) -> str:
        folder = Folder.create_numbered(tmp_path / "base", "a", HEAD)
        folder.close()
        return folder.path.name

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(create, range(16)))
    assert sorted(names) == sorted(f"a-{number}" for number in range(8, 24))


def test_a_number_that_another_run_took_in_between_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.folder._highest", lambda _base, _name: 0)
    folders = [Folder.create_numbered(tmp_path / "base", "a", HEAD) for _ in range(3)]
    assert [folder.path.name for folder in folders] == ["a-1", "a-2", "a-3"]
    for folder in folders:
        folder.close()


def test_a_default_folder_with_a_file_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    with pytest.raises(FolderError, match="can't be a results folder"):
        Folder.create_numbered(tmp_path / "logs", "a", HEAD)


def test_a_full_disk_says_how_to_go_on(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "r", HEAD)
    room = len((folder.path / "journal.jsonl").read_bytes()) + 20
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(
            FolderError, match="can't be written any more: the disk is full"
        ) as full:
            folder.write_line(ENTRY)
        with pytest.raises(FolderError, match="the disk is full"):
            folder.write_file("results.json", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    folder.close()
    assert full.value.cure.endswith(f"pullcord run --resume {folder.path}")
    assert os.listdir(folder.path) == ["journal.jsonl"]  # noqa: PTH208  names alone
    assert Folder.resume(folder.path)[2] == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.json"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(TypeError):
        write_whole(path, "text")  # type: ignore[arg-type]  # fails while writing
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_says_why_and_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, error, told in (
        (tmp_path, IsADirectoryError(21, "Is a directory"), "it is a folder"),
        (tmp_path, PermissionError(13, "Permission denied"), "Permission denied"),
        (file, FileExistsError(17, "File exists"), "a file is in its way"),
        (file / "a", NotADirectoryError(20, "Not a directory"), "a file is in its way"),
        (file, OSError(5, "Input/output error"), "Input/output error"),
    ):
        found = unwritable(path, error)
        assert str(found) == f"{path} can't be written: {told}"
        assert found.cure == "choose another place"
    assert unwritable(file, OSError(28, "No space left on device")).cure == "free some space"
