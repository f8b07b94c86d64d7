"""Where a deployed process keeps its files: made, locked, set aside, replaced as a whole."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scenarios.problems import ScenarioError
from scenarios.service.credentials import Credentials, read_credentials, write_credentials
from scenarios.service.files import (
    home,
    lock_folder,
    make_folder,
    open_sqlite,
    warn_of_readers,
    write_secret,
)
from tests.actors.puppets import NOTES, Note


@pytest.fixture
def _as_a_stranger(tmp_path: Path) -> Iterator[None]:
    """Be a user who may not write everywhere, as root may."""
    if os.geteuid() != 0:
        yield
        return
    tmp_path.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_the_usual_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULLCORD_HOME", "/somewhere")
    assert home() == Path("/somewhere")
    monkeypatch.delenv("PULLCORD_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert home() == Path("/data/pullcord")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert home() == Path.home() / ".local/share/pullcord"


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("_as_a_stranger")
def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "new"):
        with pytest.raises(ScenarioError, match=r"(?s)can't be written: Permission.*--folder"):
            make_folder(place)


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ScenarioError, match="can't be written"):
        make_folder(tmp_path / "file")


def test_one_process_of_a_kind_uses_a_folder(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path, "desktop")
    words = rf"(?s){tmp_path}: another desktop uses this folder: this process.*stop that one"
    with pytest.raises(ScenarioError, match=words):
        lock_folder(tmp_path, "desktop")
    lock_folder(tmp_path, "server").release()
    lock.release()
    lock_folder(tmp_path, "desktop").release()


def test_a_secret_is_its_owners_alone_and_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    write_secret(path, "one")
    assert path.stat().st_mode & 0o777 == 0o600

    def fail(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scenarios.service.files.os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_secret(path, "two")
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_database_is_set_aside_and_told_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "relay.db"
    store = open_sqlite(path, lambda _: None)
    for number in range(100):
        store.table(NOTES).put(str(number), Note("x" * 500))
    store.commit()
    store.close()
    whole = path.read_bytes()
    broken = whole[:5000] + b"\xff" * 20_000 + whole[25_000:]
    path.write_bytes(broken)
    said: list[str] = []
    store = open_sqlite(path, said.append)
    assert store.table(NOTES).count("text") == 0
    store.close()
    assert (tmp_path / "relay.db.1").read_bytes() == broken
    assert len(said) == 3
    assert said[1] == (f"it is kept as {path}.1, and a new one is begun: what only it knew is lost")


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(ScenarioError, match=r"(?s)server\.db: this is some other.*name another"):
        open_sqlite(path, lambda _: None)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"root:x:0:0\n" * 400, b"\xff" * 5000, b"SQLite format 3\0" * 9]
)
def test_what_never_was_a_database_of_ours_stays_where_it_is(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "passwd"
    path.write_bytes(content)
    for _ in range(2):  # nor is it ours because it was tried once
        with pytest.raises(ScenarioError, match=r"(?s)passwd: this is no database.*name another"):
            open_sqlite(path, lambda _: None)
    assert path.read_bytes() == content
    assert not list(tmp_path.glob("passwd.1*"))


@pytest.mark.parametrize("lost", ["head", "reserve"])
def test_a_database_of_ours_is_known_by_its_head_or_its_reserve(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "server.db"
    open_sqlite(path, lambda _: None).close()
    if lost == "head":
        path.write_bytes(b"\0" * 9000)
    else:
        path.with_name("server.db.reserve").unlink()
        path.write_bytes(path.read_bytes()[:100] + b"\xff" * 9000)
    said: list[str] = []
    open_sqlite(path, said.append).close()
    assert len(said) == 3


def test_a_database_where_none_can_be_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    for place, words in ((tmp_path, "no file"), (tmp_path / "a" / "b.db", "folder is not there")):
        with pytest.raises(ScenarioError, match=rf"(?s){words}.*help: name a file"):
            open_sqlite(place, lambda _: None)
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}.*"))


def test_a_token_that_others_may_read_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    said: list[str] = []
    warn_of_readers(path, said.append)
    path.write_text("token = 'x'")
    for mode in (0o600, 0o400, 0o644, 0o640):
        path.chmod(mode)
        warn_of_readers(path, said.append)
    assert said == [f"{path}: others may read the token in it; chmod 600 {path}"] * 2


WORD = "pc_dev_x"
CREDENTIALS = Credentials(
    server='odd "host":1', token=WORD, device="dev_1", fingerprint="ab", plain=True
)


def test_credentials_are_written_and_read_again(tmp_path: Path) -> None:
    assert read_credentials(tmp_path) is None
    write_credentials(tmp_path, CREDENTIALS)
    assert read_credentials(tmp_path) == CREDENTIALS
    assert (tmp_path / "credentials.toml").stat().st_mode & 0o777 == 0o600
    assert WORD not in repr(CREDENTIALS)


@pytest.mark.parametrize("text", ["token = 5", "nonsense", 'server = "a"'])
def test_credentials_that_can_not_be_read_are_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "credentials.toml").write_text(text)
    with pytest.raises(ScenarioError, match=r"credentials\.toml"):
        read_credentials(tmp_path)
