"""The owner's settings: what they turn on, and every mistake at its place."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.problems import ScenarioError
from scenarios.tool_settings import ToolSettings, load_tools

GOOD = """
[read_file]
folders = { docs = "docs" }

[http_get]
hosts = ["docs.example.org"]
private_hosts = ["http://localhost:8000"]

[shell.show]
command = ["cat", "{name}"]
description = "Shows a file."
patterns = { name = "[a-z]+" }
timeout = "5s"

[mcp.all]
command = ["cat"]
tools = ["*"]

[mcp.some]
url = "https://mcp.example.org/mcp"
tools = ["search", "odd.name"]
headers = { Authorization = "MCP_AUTH" }

[approvals]
timeout = "2m"

[graphs."*"]
read_file = "allow"
"mcp__all__*" = "ask"
mcp__some__search = "allow"

[graphs.triage]
shell__show = "ask"
mcp__all__anything = "deny"
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes settings beside a folder of documents, and reads them."""
    (tmp_path / "docs").mkdir()

    def written(text: str) -> ToolSettings:
        path = tmp_path / "tools.toml"
        path.write_text(text)
        return load_tools(path)

    return written


def refused(write: Any, text: str) -> str:
    with pytest.raises(ScenarioError) as error:
        write(text)
    return str(error.value)


def test_all_that_is_turned_on(write: Any, tmp_path: Path) -> None:
    settings = write(GOOD)
    assert settings.names() == [
        "read_file", "list_files", "http_get", "shell__show", "mcp__some__search",
        "mcp__some__odd_name",
    ]  # fmt: skip
    assert settings.may_have("mcp__all__anything")
    assert not settings.may_have("mcp__other__anything")
    assert not settings.may_have("shell__other")
    assert settings.folders.folders == {"docs": tmp_path / "docs"}
    assert [(str(one), one.private) for one in settings.hosts] == [
        ("docs.example.org", False),
        ("http://localhost:8000", True),
    ]
    assert settings.commands[0].limit_s == 5
    assert settings.commands[0].folder == tmp_path
    assert settings.approval_timeout_us == 120_000_000
    assert settings.permissions["triage"]["shell__show"] == "ask"


def test_nothing_is_on_by_itself(write: Any) -> None:
    settings = write("")
    assert settings.names() == []
    assert settings.permissions == {}
    assert settings.approval_timeout_us == 900_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[read_fil]", 'tools.toml:1:2: unknown key "read_fil"'),
        ("[read_file]", 'needs the key "folders"'),
        ("[read_file]\nfolders = {}", "name at least one folder"),
        ('[read_file]\nfolders = { docs = "none" }', "there is no folder"),
        ('[read_file]\nfolders = { "a/b" = "docs" }', "can't be a folder's name"),
        ('[read_file]\nfolders = { p = "/proc/self" }', "the machine's own"),
        ("[read_file]\nhiden = true", 'did you mean "hidden"?'),
        ("[http_get]", "names no host"),
        ('[http_get]\nhosts = ["*.org"]', "too wide"),
        ('[http_get]\nhosts = ["a.org", "a b"]', 'tools.toml:2:19: "a b" is no host'),
        ("shell = 3", "write [shell.NAME]"),
        ("[shell.a__b]", "can't be a name here"),
        ('[shell.a]\ncommand = []\ndescription = ""', "at least one word"),
        ('[shell.a]\ncommand = ["no-such-program"]\ndescription = ""', "there is no program"),
        ('[shell.a]\ncommand = ["{a}"]\ndescription = ""', "can't be an agent's choice"),
        ('[shell.a]\ncommand = ["cat"]', 'needs the key "description"'),
        ('[shell.a]\ncommand = ["cat"]\ndescription=""\nfolder="no"', "there is no folder"),
        ('[shell.a]\ncommand = ["cat"]\ndescription=""\ntimeout="0s"', "longer than 0s"),
        ('[shell.a]\ncommand = ["cat"]\ndescription=""\nenv=["A=b"]', "a variable's name"),
        ('[shell.a]\ncommand=["cat","{a}"]\ndescription=""\npatterns={a="("}', "can't be used"),
        ('[shell.a]\ncommand=["cat","{a}"]\ndescription=""\npatterns={a="x)|(y"}', "can't be used"),
        ('[shell.a]\ncommand=["cat","{a}"]\ndescription=""\npatterns={b="x"}', "no place {b}"),
        (f'[shell.{"a" * 60}]\ncommand=["cat"]\ndescription=""', "64 characters at most"),
        ("[mcp.a]\ntools = []", "either a command or a URL"),
        ('[mcp.a]\ntools = ["*"]\ncommand = ["cat"]\nurl = "https://a"', "either a command or"),
        ('[mcp.a]\ntools = ["*"]\nurl = "ftp://a"', "a URL begins with"),
        ('[mcp.a]\ntools = []\ncommand = ["cat"]', "no tool that may be used"),
        ('[mcp.a]\ntools = ["*"]\ncommand = ["cat"]\nheaders = {A = "b c"}', "a variable's name"),
        ('[approvals]\ntimeout = "0s"', "must be able to wait"),
        ('[graphs."*"]\nread_file = "allow"', "it needs the table [read_file]"),
        ('[graphs."*"]\nshell__x = "ask"', "it needs the table [shell.NAME]"),
        ('[graphs."*"]\n"mcp__*" = "ask"', "it needs the table [mcp.NAME]"),
        ('[graphs."*"]\nwrite_file = "ask"', "set tools up first"),
        ("graphs = 3", "must be a table"),
        ("[graphs]\ntriage = 3", "must be a table"),
    ],
)
def test_a_mistake_is_told_at_its_place(write: Any, text: str, words: str) -> None:
    said = refused(write, text)
    assert words in said
    assert "tools.toml:" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('read_file = "yes"', '"allow", "ask" or "deny"'),
        ('reed_file = "ask"', 'did you mean "read_file"?'),
        ('"shel__*" = "ask"', "there is read_file, list_files, http_get"),
    ],
)
def test_a_permission_that_means_nothing_is_refused(write: Any, line: str, words: str) -> None:
    assert words in refused(write, f"{GOOD}\n[graphs.other]\n{line}")


def test_every_mistake_is_told_at_once(write: Any) -> None:
    said = refused(write, '[http_get]\nhosts = ["*", "a b"]\n[approvals]\ntimeout = "0s"\n[x]')
    assert said.count("tools.toml:") == 4
