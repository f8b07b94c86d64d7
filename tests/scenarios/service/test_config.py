"""Settings: flags over environment over a file, each with its place, and so every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.accounts.server import AccountedServer
from scenarios.problems import ScenarioError
from scenarios.service.config import (
    KINDS,
    AgentSettings,
    Resolved,
    ServerSettings,
    file_of,
    resolve,
    rows,
)

FILE = """listen = "127.0.0.1:1"
log_files = 7

[server]
retention = "10d"
"""


def resolved(
    tmp_path: Path, text: str = FILE, environ: dict[str, str] | None = None, **flags: Any
) -> Resolved[ServerSettings]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return resolve(ServerSettings, flags, path, tables=("server",), environ=environ or {})


def test_a_flag_goes_over_a_variable_over_a_file_over_the_default(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    variable = {"PULLCORD_LISTEN": "127.0.0.1:2"}
    found = [
        resolved(tmp_path, "", {}),
        resolved(tmp_path, FILE, {}),
        resolved(tmp_path, FILE, variable),
        resolved(tmp_path, FILE, variable, listen="127.0.0.1:3"),
    ]
    assert [(one.settings.listen, one.origins["listen"]) for one in found] == [
        ("127.0.0.1:8700", "default"),
        ("127.0.0.1:1", f"{path}:1"),
        ("127.0.0.1:2", "PULLCORD_LISTEN"),
        ("127.0.0.1:3", "--listen"),
    ]
    assert found[3].origins["log_files"] == f"{path}:2"


def test_an_actors_table_goes_over_what_is_usual(tmp_path: Path) -> None:
    it = resolved(tmp_path)
    config = it.table("server", AccountedServer.Config, {"retention": "1d", "start_deadline": "2d"})
    assert (str(config.retention_us), str(config.start_deadline_us)) == ("10d", "2d")


@pytest.mark.parametrize(
    ("text", "environ", "place", "words"),
    [
        ('lisen = "x"', {}, "config.toml:1:1", 'unknown key "lisen"'),
        ("listen = 5", {}, "config.toml:1:10", "must be a string"),
        ("log_files = 1", {}, "config.toml:1:13", "at least 2"),
        ("listen = ", {}, "config.toml:1", ""),
        ("", {"PULLCORD_PLAIN": "maybe"}, "PULLCORD_PLAIN", "neither true nor false"),
        ("", {"PULLCORD_LOG_FILES": "many"}, "PULLCORD_LOG_FILES", "integer"),
        ("", {"PULLCORD_LOG_FILES": "1"}, "PULLCORD_LOG_FILES", "at least 2"),
        ("", {"PULLCORD_LOG_SIZE": "big"}, "PULLCORD_LOG_SIZE", "big"),
        (
            "",
            {"PULLCORD_CONNECTIONS": "--5"},
            "PULLCORD_CONNECTIONS",
            '"connections" must',
        ),
        ("", {"PULLCORD_CONNECTIONS": "9" * 5000}, "PULLCORD_CONNECTIONS", "must be an integer"),
        ("", {"PULLCORD_CONNECTIONS": "9" * 12}, "PULLCORD_CONNECTIONS", "at most 1000000"),
        ("", {"PULLCORD_CONNECTIONS": "-1"}, "PULLCORD_CONNECTIONS", "at least 1"),
        ('store = "sqlite:a\\u0000b"', {}, "config.toml:1", "NUL"),
        ("tls_cert = 'a'\nplain = 1", {}, "config.toml:2:9", "true or false"),
        ("[server]\nretention = 3", {}, "config.toml:2:13", "has no unit"),
        ("[relay]\npoll = '1s'", {}, "config.toml:1:2", "relay"),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, text: str, environ: dict[str, str], place: str, words: str
) -> None:
    with pytest.raises(ScenarioError) as told:
        resolved(tmp_path, text, environ).table("server", AccountedServer.Config, {})
    assert place in str(told.value)
    assert words in str(told.value)


def test_an_actors_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    it = resolved(tmp_path, '[server]\nretenton = "1d"')
    with pytest.raises(ScenarioError, match=r'(?s)config\.toml:2:1.*did you mean "retention"'):
        it.table("server", AccountedServer.Config, {})


@pytest.mark.parametrize(
    ("text", "plain"), [("1", True), ("true", True), ("NO", False), ("0", False)]
)
def test_a_variable_says_yes_or_no(tmp_path: Path, text: str, plain: bool) -> None:
    assert resolved(tmp_path, "", {"PULLCORD_PLAIN": text}).settings.plain is plain
    assert resolved(tmp_path, "", {"PULLCORD_LOG_FILES": "9"}).settings.log_files == 9
    assert resolved(tmp_path, "", {"PULLCORD_LOG_SIZE": "1KiB"}).settings.log_size == 1024


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert resolved(tmp_path, "", {"PULLCORD_LISTEN": ""}).origins["listen"] == "default"


def test_what_is_shown_has_every_key_and_no_secret(tmp_path: Path) -> None:
    shown = {key: value for key, value, _ in rows(resolved(tmp_path))}
    assert shown["log_files"] == "7"
    assert shown["plain"] == "false"
    assert shown["server.retention"] == "10d"
    environ = {"PULLCORD_TOKEN": "pc_agt_secret"}
    agent = list(rows(resolve(AgentSettings, {}, None, environ=environ)))
    assert ("token", "(set)", "PULLCORD_TOKEN") in agent
    assert "secret" not in repr(agent)


def test_a_named_file_must_be_there_and_the_usual_one_need_not(tmp_path: Path) -> None:
    assert file_of(tmp_path, None) is None
    usual = tmp_path / "config.toml"
    usual.write_text("")
    assert file_of(tmp_path, None) == usual
    assert file_of(tmp_path, Path("other.toml")) == Path("other.toml")
    with pytest.raises(ScenarioError, match="no such file"):
        resolve(ServerSettings, {}, tmp_path / "none.toml")


def test_every_setting_says_what_it_means() -> None:
    for kind, _ in KINDS.values():
        for field in msgspec.structs.fields(kind):
            assert isinstance(field.type.__metadata__[-1], str), f"{kind.__name__}.{field.name}"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("postgresql://u:hunter2@h:1/db", "postgresql://u:...@h:1/db"),
        ("postgresql://u:hun@ter2@h/db", "postgresql://u:...@h/db"),
        (
            "postgresql://u@h/db?password=hunter2&schema=x",
            "postgresql://u@h/db?password=...&schema=x",
        ),
        ("postgresql://u@h:1/db", "postgresql://u@h:1/db"),
        ("sqlite:/srv/a:b@c.db", "sqlite:/srv/a:b@c.db"),
    ],
)
def test_a_password_in_an_address_is_not_shown(tmp_path: Path, told: str, shown: str) -> None:
    it = resolved(tmp_path, "", {"PULLCORD_STORE": told})
    assert it.settings.store == told
    assert [value for key, value, _ in rows(it) if key == "store"] == [shown]
