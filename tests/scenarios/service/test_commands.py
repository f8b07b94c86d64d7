"""The commands of a deployment with what people do wrong: one line, its cure, and exit code 2."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from scenarios.cli import _guarded_call
from scenarios.service.files import lock_folder, make_folder
from tests.scenarios.commandline import Done

TOKEN = "pc_agt_nobodys"  # noqa: S105  nobody's


class Shell:
    """Runs commands in this process, in a folder of their own, with an environment."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._patch, self._capsys = folder, patch, capsys
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("PULLCORD_")]:
            patch.delenv(name)
        self.set("PULLCORD_HOME", str(folder))

    def set(self, name: str, value: str) -> None:
        self._patch.setenv(name, value)

    def run(self, *args: str) -> Done:
        self._patch.setattr(sys, "argv", ["pullcord", *args])
        code = _guarded_call()
        return Done(code, *self._capsys.readouterr())


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (
            ["server", "--listen", "0.0.0.0:1"],
            [
                "--listen: others can reach 0.0.0.0:1, and without TLS they can read every token",
                "help: give --tls-cert and --tls-key, or --plain if something in front speaks TLS",
            ],
        ),
        (["server", "--listen", "here"], ['--listen: "here" is not an address: write HOST:PORT']),
        (["server", "--tls-cert", "x.pem"], ["--tls-cert: TLS needs --tls-key too"]),
        (
            ["server", "--store", "mysql://x"],
            ['--store: "mysql://x" names no store', "help: write sqlite:PATH or postgresql:"],
        ),
        (["server", "--config", "none.toml"], ["none.toml: there is no such file"]),
        (["server", "--folder", "file"], ["file: the folder can't be written: File exists"]),
        (
            ["desktop", "run", "--server", "127.0.0.1:1"],
            [
                "desktop: this desktop is not paired with a server",
                "help: pair it first: pullcord desktop pair --server HOST:PORT CODE",
            ],
        ),
        (["desktop", "pair", "A", "--server", "x"], ['--server: "x" is not an address']),
        (["desktop", "pair", "A"], ["--server: which server?"]),
        (["desktop", "pair", "A" * 99, "--server", "127.0.0.1:1"], ["CODE: this is no pairing"]),
        (
            ["desktop", "pair", "ABCD", "--server", "127.0.0.1:1"],
            ["127.0.0.1:1: Connection refused", "help: is the server running there?"],
        ),
        (["devices", "list"], ["owner.sock: no server runs here", "help: start it there"]),
        (["agent", "list", "p"], ["--server: which server?"]),
        (["agent", "list", "p", "--server", "127.0.0.1:1"], ["127.0.0.1:1: Connection refused"]),
        (["agent", "run", "gs_1", "--args", "{"], ["--args: it is no JSON"]),
        (["agent", "wait", "c", "--timeout", "soon"], ["--timeout: "]),
        (["agent", "walk"], ['Unknown command "walk"', "help: pullcord agent --help"]),
        (["runs", "list", "--limit", "0"], ["--limit: at least 1 row"]),
        (["runs", "show"], ["help: pullcord runs show --help"]),
        (["audit"], ["owner.sock: no server runs here"]),
        (["desktop", "approvals"], ["desktop.sock: no desktop runs here"]),
        (
            ["desktop", "approvals", "allow", "c-1"],
            ["allow: it goes with a run and a call's number", "help: as `pullcord desktop appr"],
        ),
        (["desktop", "approvals", "maybe"], ['Invalid value "maybe"', "desktop approvals --help"]),
        (["config", "show", "nobody"], ["Invalid value"]),
    ],
)
def test_a_mistake_is_told_in_a_line_with_its_cure(
    shell: Shell, args: list[str], lines: list[str]
) -> None:
    (shell.folder / "file").write_text("")
    shell.set("PULLCORD_TOKEN", TOKEN)
    done = shell.run(*args)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    for line in lines:
        assert line in done.err
    assert TOKEN not in done.err


def test_a_token_that_is_for_something_else_is_not_sent(shell: Shell) -> None:
    shell.set("PULLCORD_TOKEN", TOKEN)
    done = shell.run("devices", "list", "--server", "127.0.0.1:1")
    words = "PULLCORD_TOKEN: this is the token of an agent, and an owner's is needed"
    assert (done.code, done.err) == (2, f"{words}\n")
    shell.set("PULLCORD_TOKEN", TOKEN.replace("agt", "dev"))
    done = shell.run("agent", "list", "shop", "--server", "127.0.0.1:1")
    assert "this is the token of a desktop, and an agent's is needed" in done.err


def test_a_port_in_use_and_a_folder_in_use(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = shell.run("server", "--listen", address)
    assert done.code == 2
    assert done.err.splitlines()[0] == f"--listen: {address} is in use by another program"
    lock = lock_folder(make_folder(shell.folder / "busy"), "server")
    done = shell.run("server", "--folder", "busy")
    lock.release()
    assert done.code == 2
    assert done.err.startswith("busy: another server uses this folder: ")


def test_a_password_is_in_no_log_and_no_error(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        where = "sqlite:server.db?password=hunter2"  # it is a name, and looks as a database's
        done = shell.run("server", "--listen", address, "--store", where)
    assert done.code == 2
    logs = list((shell.folder / "server" / "logs").iterdir())
    assert ["password=..." in log.read_text() for log in logs] == [True]
    assert "hunter2" not in "".join(log.read_text() for log in logs)
    for store in ("postgresql://u:hunter2@127.0.0.1:1/db", "mysql://u:hunter2@h/db"):
        done = shell.run("server", "--listen", "127.0.0.1:0", "--store", store)
        assert done.code == 2
        assert "hunter2" not in done.err


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("bad\udcff", "PULLCORD_TOKEN: this is no token"),
        ("two words", "PULLCORD_TOKEN: this is no token"),
        ("x" * 2000, "PULLCORD_TOKEN: this is no token"),
        ("pc_dev_secret", "PULLCORD_TOKEN: this is the token of a desktop"),
    ],
)
def test_what_is_no_token_is_told_before_anybody_is_asked(
    shell: Shell, token: str, words: str
) -> None:
    shell.set("PULLCORD_TOKEN", token)
    for args in (["agent", "list", "p"], ["devices", "list"]):
        done = shell.run(*args, "--server", "127.0.0.1:1")
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert token not in done.err


def test_a_local_socket_that_nobody_answers(shell: Shell) -> None:
    folder = make_folder(shell.folder / "server")
    path = folder / "owner.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))  # as a killed server leaves it
    assert "owner.sock: no server runs here" in shell.run("devices", "list").err
    path.unlink()
    path.write_text("")
    done = shell.run("server", "--listen", "127.0.0.1:0")
    assert done.code == 2
    assert "the socket can't be made: Address already in use" in done.err
    assert "help: remove what is there" in done.err
    done = shell.run("devices", "list", "--folder", "a" * 150)
    assert "this path is too long for a socket" in done.err
    if os.geteuid() == 0:  # as somebody who may not
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen()
            path.chmod(0o600)
            folder.chmod(0o755)
            shell.folder.chmod(0o755)
            os.seteuid(65534)
            try:
                done = shell.run("devices", "list")
            finally:
                os.seteuid(0)
        assert "this is another user's" in done.err


def test_a_call_that_can_not_be_sent_keeps_no_key(shell: Shell) -> None:
    shell.set("PULLCORD_TOKEN", TOKEN)
    (shell.folder / "large.json").write_text(json.dumps({"x": "a" * (1 << 20)}))
    for given in ("@large.json", '{"n": 99999999999999999999999999}'):
        done = shell.run("agent", "run", "gs_1", "--args", given, "--server", "127.0.0.1:1")
        assert done.code == 2
        assert done.err.startswith("pullcord agent run: this call can't be sent: ")
    assert not (shell.folder / "agent").exists()
    (shell.folder / "agent").write_text("")
    done = shell.run("agent", "run", "gs_1", "--server", "127.0.0.1:1")
    assert done.code == 2
    assert done.err.startswith(f"{shell.folder}/agent: the call's key can't be kept: ")


def test_where_each_setting_was_said(shell: Shell) -> None:
    folder = make_folder(shell.folder / "server")
    (folder / "config.toml").write_text('store = "sqlite:x.db"\n[server]\nretention = "3d"\n')
    shell.set("PULLCORD_LISTEN", "127.0.0.1:9")
    done = shell.run("config", "show", "server", "--json")
    assert done.code == 0, done.err
    rows = {row["key"]: (row["value"], row["from"]) for row in json.loads(done.out)}
    assert rows["listen"] == ("127.0.0.1:9", "PULLCORD_LISTEN")
    assert rows["store"] == ("sqlite:x.db", f"{folder}/config.toml:1")
    assert rows["server.retention"] == ("3d", f"{folder}/config.toml:3")
    assert rows["plain"] == ("false", "default")
    shell.set("PULLCORD_TOKEN", TOKEN)
    shown = shell.run("config", "show", "agent")
    assert "token        (set)  PULLCORD_TOKEN" in shown.out
