"""Files in folders: what is read, and that nothing outside is, whatever a path says."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.edges.tools.files import (
    ENTRIES_LIMIT,
    FILE_LIMIT_BYTES,
    Folders,
    ListFiles,
    ReadFile,
    lines_of,
)
from actors.edges.tools.tool import TEXT_LIMIT_CHARS, ToolError

SECRET = "nobody may read this"  # noqa: S105  a word to look for


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Two folders, and a secret beside them."""
    docs, src = tmp_path / "docs", tmp_path / "src"
    (docs / "deep").mkdir(parents=True)
    src.mkdir()
    (docs / "a.md").write_text("first\nsecond\nthird\n")
    (docs / "deep" / "b.md").write_text("below")
    (docs / ".env").write_text(SECRET)
    (src / "a.py").write_text("pass")
    (tmp_path / "secret").write_text(SECRET)
    return Folders({"docs": docs, "src": src})


async def read(folders: Folders, path: str, **more: Any) -> str:
    return await ReadFile(folders).call({"path": path, **more})


async def refusal(folders: Folders, path: str) -> str:
    with pytest.raises(ToolError) as error:
        await read(folders, path)
    assert SECRET not in str(error.value)
    return str(error.value)


async def test_a_file_is_read_below_its_folders_name(folders: Folders) -> None:
    assert await read(folders, "docs/a.md") == "first\nsecond\nthird\n"
    assert await read(folders, "docs/deep/b.md") == "below"
    assert await read(folders, "src/a.py") == "pass"


async def test_lines_are_read_in_parts(folders: Folders) -> None:
    text = await read(folders, "docs/a.md", from_line=2, lines=1)
    assert text == "second\n\n[3 lines: the rest begins at line 3]"
    with pytest.raises(ToolError, match="has 3 lines"):
        await read(folders, "docs/a.md", from_line=4)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/etc/passwd", "begins with a folder's name"),
        ("~/x", "begins with a folder's name"),
        ("docs/../secret", 'no ".."'),
        ("docs/deep/../../secret", 'no ".."'),
        ("../secret", 'no ".."'),
        ("docs//a.md", "empty part"),
        ("docs/./a.md", 'no "."'),
        ("docs\\..\\secret", "begins with a folder's name"),
        ("docs/a.md\0.png", "no path"),
        ("docs/\ud800", "no path"),
        ("docs/" + "a/" * 100, "a path has"),
        ("x" * 5_000, "no path"),
        ("secret", "no folder of this name: there is docs, src"),
        ("", "empty part"),
        ("docs", "list_files"),
        ("docs/deep", "list_files"),
        ("docs/.env", "begin with a dot"),
        ("docs/none.md", "No such file"),
        ("docs/a.md/b", "no folder"),
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(
    folders: Folders, path: str, words: str
) -> None:
    assert words in await refusal(folders, path)


async def test_no_link_is_followed_wherever_it_stands(folders: Folders, tmp_path: Path) -> None:
    docs = folders.folders["docs"]
    (docs / "out").symlink_to(tmp_path)
    (docs / "file").symlink_to(tmp_path / "secret")
    (docs / "within").symlink_to(docs / "a.md")
    assert "link" in await refusal(folders, "docs/file")
    assert "link" in await refusal(folders, "docs/within")
    assert "link" in await refusal(folders, "docs/out/secret")
    assert "out  [no file]" in await ListFiles(folders).call({"path": "docs"})


async def test_the_folder_itself_may_be_a_link(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folders.folders["docs"])
    assert await read(Folders({"d": tmp_path / "link"}), "d/deep/b.md") == "below"


async def test_what_is_no_file_is_refused_at_once(folders: Folders) -> None:
    docs = folders.folders["docs"]
    os.mkfifo(docs / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(docs / "socket"))
        assert "no file" in await refusal(folders, "docs/pipe")
        assert "no file" in await refusal(folders, "docs/socket")


async def test_devices_and_what_is_mounted_are_refused() -> None:
    assert "no file" in await refusal(Folders({"dev": Path("/dev")}), "dev/null")
    root = Folders({"root": Path("/")})
    assert "another file system" in await refusal(root, "root/proc/self/environ")


async def test_what_is_no_text_is_refused(folders: Folders) -> None:
    docs = folders.folders["docs"]
    (docs / "binary").write_bytes(b"\xff\xfe\0")
    (docs / "zero").write_bytes(b"a\0b")
    with (docs / "huge").open("wb") as file:
        file.truncate(FILE_LIMIT_BYTES + 1)
    assert "no text in UTF-8" in await refusal(folders, "docs/binary")
    assert "zero bytes" in await refusal(folders, "docs/zero")
    assert "more than 8,388,608 bytes" in await refusal(folders, "docs/huge")


async def test_hidden_files_are_read_where_the_settings_say_so(folders: Folders) -> None:
    open_ = Folders(folders.folders, hidden=True)
    assert await read(open_, "docs/.env") == SECRET
    assert ".env" in await ListFiles(open_).call({"path": "docs"})


@pytest.mark.parametrize("step", range(8))
async def test_what_is_swapped_for_a_link_meanwhile_gives_nothing(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    deep = folders.folders["docs"] / "deep"
    (deep / "secret").write_text("allowed")
    calls = 0

    def swapping(what: Any) -> Any:
        def swapped(*args: Any, **how: Any) -> Any:
            nonlocal calls
            if calls == step:
                deep.rename(deep.with_name("kept"))
                deep.symlink_to(tmp_path)
                (deep.with_name("kept") / "secret").unlink()
                (deep.with_name("kept") / "secret").symlink_to(tmp_path / "secret")
            calls += 1
            return what(*args, **how)

        return swapped

    for name in ("open", "fstat"):
        monkeypatch.setattr(f"actors.edges.tools.files.os.{name}", swapping(getattr(os, name)))
    try:
        text = folders.read("docs/deep/secret")
    except (OSError, ToolError):
        text = "refused"
    monkeypatch.undo()
    assert text == ("refused" if step < 5 else "allowed")


async def test_a_list_names_folders_files_and_sizes(folders: Folders) -> None:
    listed = ListFiles(folders)
    assert await listed.call({}) == "docs/\nsrc/"
    assert await listed.call({"path": "docs"}) == "a.md  19 bytes\ndeep/"
    assert await listed.call({"path": "docs/deep/"}) == "b.md  5 bytes"
    with pytest.raises(ToolError, match="No such file"):
        await listed.call({"path": "docs/none"})
    with pytest.raises(ToolError, match="no folder"):
        await listed.call({"path": "docs/a.md"})


async def test_a_long_list_is_cut_and_an_empty_one_told(folders: Folders) -> None:
    (folders.folders["src"] / "a.py").unlink()
    assert await ListFiles(folders).call({"path": "src"}) == "[the folder is empty]"
    for number in range(ENTRIES_LIMIT + 5):
        (folders.folders["src"] / f"{number:05}").touch()
    assert (await ListFiles(folders).call({"path": "src"})).endswith("\n[and 5 more]")


def open_descriptors() -> int:
    return len([*Path("/dev/fd").iterdir()])


@pytest.mark.parametrize("path", ["docs/none/x", "docs/deep", "docs/a.md/b"])
async def test_no_descriptor_is_left_open(folders: Folders, path: str) -> None:
    before = open_descriptors()
    await refusal(folders, path)
    await read(folders, "docs/deep/b.md")
    assert open_descriptors() == before


PARTS = st.sampled_from(["docs", "src", "..", ".", "", "deep", "a.md", "secret", "/", "\0", "~"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PARTS, max_size=6), st.booleans())
def test_no_path_reads_the_secret(folders: Folders, parts: list[str], hidden: bool) -> None:
    path = ("/" if hidden else "") + "/".join(parts)
    try:
        text = folders.read(path)
    except (ToolError, OSError):
        return
    assert SECRET not in text


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=50),
    st.integers(1, 9),
)
def test_parts_of_a_file_make_up_the_whole(lines: list[str], count: int) -> None:
    text = "".join(line + "\n" for line in lines)
    whole, first = "", 1
    total = len(text.splitlines())
    while first <= max(1, total):
        part = lines_of(text, first, count)
        whole += part.rpartition("\n[")[0] if first + count <= total else part
        first += count
    assert whole == text


def test_a_long_file_says_where_it_goes_on() -> None:
    text = lines_of(("x" * 99 + "\n") * 1_000, 1, None)
    assert len(text) <= TEXT_LIMIT_CHARS
    assert text.endswith("[1,000 lines: the rest begins at line 300]")
    assert lines_of("y" * 50_000, 1, None) == "y" * 50_000
