"""What goes wrong around a deployment, end to end: one line, its cure, exit code 2, nothing lost.

One server and one desktop as processes, the desktop's clock a day behind; commands as people type
them, in this process. What is no server of ours is a thread that answers with given bytes.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
import trustme

from actors.accounts.messages import AddAgent
from scenarios.service.config import AgentSettings, resolve
from scenarios.service.owner import Owner
from tests.scenarios.commandline import MAIN, Done
from tests.scenarios.service.test_commands import Shell
from tests.scenarios.test_service import Deployment, Process
from transports.frames import pack_greeting
from transports.handshake import PROTOCOL

DAY_BEHIND: Final = (
    "import time; real, day = time.time_ns, 86_400 * 10**9\n"
    "time.time_ns = lambda: real() - day\n"
    "time.time = lambda: time.time_ns() / 1e9\n"
)
WEB_PAGE: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>Sign in</body></html>"
)
NEWER: Final = {"type": "welcome", "protocol": PROTOCOL + 1, "name": "server", "boot": "b"}
WRONG: Final = "pc_agt_" + "x" * 43
CALLS: Final = (("agent", "list", "shop"), ("desktop", "pair", "ABCD-2345"), ("devices", "list"))


class System(Deployment):
    """A deployment that is up, and answers at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gate.touch()
        self.server = self.serve()
        self.introduce()
        self.desktop = self.start("-c", DAY_BEHIND + MAIN, "desktop", "run")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with System(tmp_path_factory.mktemp("system")) as it:
        it.desktop.wait_for("connected to")
        it.share()
        it.until_listed()
        yield it


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


def as_agent(shell: Shell, it: System, token: str = "") -> Shell:
    shell.set("PULLCORD_SERVER", it.listen)
    shell.set("PULLCORD_TOKEN", token or it.token)
    return shell


def refused(done: Done, *words: str) -> None:
    """One line, at most one cure, nothing on stdout, exit code 2, no secret."""
    assert (done.code, done.out) == (2, "")
    lines = [line for line in done.err.splitlines() if not line.startswith("      ")]
    assert len(lines) <= 2, done.err
    assert [line.startswith("help: ") for line in lines[1:]] == [True] * (len(lines) - 1)
    for word in words:
        assert word in " ".join(done.err.split())
    assert "pc_agt_" not in done.err.replace("begins with pc_agt_", "")


def works(it: System, who: str) -> None:
    """A run still goes from ticket to result."""
    assert it.until(it.queue(who), "completed").result == {"words": "Good day", "who": who}


@contextmanager
def answering(told: bytes) -> Iterator[str]:
    """Something that answers whoever connects with these bytes; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    stream, _ = listener.accept()
                except OSError:
                    return
                with stream:
                    stream.settimeout(5)
                    stream.recv(1 << 16)
                    stream.sendall(told)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


# Who calls


@pytest.mark.parametrize("json", [False, True])
def test_a_wrong_token(shell: Shell, system: System, json: bool) -> None:
    more = ["--json"] if json else []
    told = as_agent(shell, system, WRONG).run("agent", "list", "shop", *more)
    refused(told, f"{system.listen}: refused: unknown name or wrong token", "agents add NAME")


def test_anothers_run_is_told_as_one_that_is_not_there(shell: Shell, system: System) -> None:
    ticket = system.queue("Ann")
    nothing = resolve(AgentSettings, {}, None, environ={})
    owner = Owner(nothing, system.folder / "server" / "owner.sock")
    other = owner.ask(AddAgent(name="other")).token
    for verb in ("get", "cancel", "wait"):
        texts = []
        for asked in (ticket, "nobody's"):
            done = as_agent(shell, system, other).run("agent", verb, asked)
            assert (done.code, done.out) == (2, "")
            texts.append(done.err.replace(asked, "TICKET"))
        assert texts[0] == texts[1]
        assert "not found or access removed" in texts[0]
    assert system.until(ticket, "completed").result["who"] == "Ann"


# What answers


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (WEB_PAGE, ("this is HTTP", "help: a web server answers there")),
        (
            pack_greeting(msgspec.msgpack.encode(NEWER)),
            (f"speaks protocol {PROTOCOL + 1}", "help: update pullcord"),
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ("this is SSH", "help: an SSH server answers there")),
        (b"", ("the peer closed", "help: is this a pullcord server?")),
    ],
)
def test_what_is_no_server_of_ours(shell: Shell, told: bytes, words: tuple[str, ...]) -> None:
    for call in CALLS:
        mark = "pc_own_" if call[0] == "devices" else "pc_agt_"
        shell.set("PULLCORD_TOKEN", mark + "x" * 43)
        with answering(told) as address:
            refused(shell.run(*call, "--server", address), f"{address}: ", *words)


def test_a_certificate_that_does_not_match_and_tls_to_plain(
    shell: Shell, system: System, tmp_path: Path
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("elsewhere.example")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    told = {"PULLCORD_HOME": str(tmp_path)}
    how = ("--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    server = Process(tmp_path, told, "-c", MAIN, "server", *how)
    try:
        address = server.wait_for("server listens on").split(" on ")[1].split()[0]
        as_agent(shell, system)
        port = address.rpartition(":")[2]
        for more, words in (
            (("--server", f"localhost:{port}", "--ca", "ca.pem"), "by a name that its cert"),
            (("--server", address, "--fingerprint", "0" * 64), "has another fingerprint"),
            (("--server", address), "if it speaks TLS, give --ca or --fingerprint"),
            (("--server", system.listen, "--ca", "ca.pem"), "it speaks no TLS"),
        ):
            refused(shell.run("agent", "list", "shop", *more), words)
    finally:
        assert server.stop() == 0


# Where it runs


def test_a_port_and_a_folder_in_use(shell: Shell, system: System) -> None:
    told = shell.run("server", "--listen", system.listen)
    refused(told, f"--listen: {system.listen} is in use by another program", "choose another port")
    folder = str(system.folder / "server")
    told = shell.run("server", "--listen", "127.0.0.1:0", "--folder", folder)
    refused(told, "another server uses this folder: process", "--folder")
    works(system, "Bea")


def test_a_file_of_something_else_and_a_folder_that_is_not_ours(shell: Shell) -> None:
    (shell.folder / "notes").write_text("what somebody wrote\n" * 400)
    at = ("--listen", "127.0.0.1:0")
    told = shell.run("server", *at, "--store", "sqlite:notes")
    refused(told, "notes: this is no database of pullcord", "name another file")
    assert (shell.folder / "notes").read_text() == "what somebody wrote\n" * 400
    (shell.folder / "readonly").mkdir(mode=0o555)
    shell.folder.chmod(0o755)
    with as_a_stranger():
        told = shell.run("server", *at, "--folder", "readonly")
    refused(told, "readonly: the folder can't be written: Permission denied", "--folder")


@contextmanager
def as_a_stranger() -> Iterator[None]:
    """Be a user who may not write everywhere, as root may."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_full_disk_refuses_new_work_and_loses_none(shell: Shell, system: System) -> None:
    server = system.server
    ticket = system.queue("Cat")
    system.until(ticket, "completed")
    pid = server.popen.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    as_agent(shell, system)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))  # each file is as on a full disk
    call = ("agent", "run", system.session, "--args", '{"who": "Dot"}')
    try:
        lost = system.start("-c", MAIN, *call)  # the first that writes is not answered
        server.wait_for("server's store: ")
        lost.kill()
        told = shell.run(*call)
        refused(told, "the server's disk is full or can't be written", "not_writable")
        assert json.loads(shell.run("agent", "get", ticket).out)["who"] == "Cat"
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    server.wait_for("store can be written again")
    done = system.command(*call, "--wait")
    assert (done.code, json.loads(done.out)["who"]) == (0, "Dot")
    assert "this call was made before" in done.err
    assert system.names_asked().count("Dot") == 1


# When


def test_a_server_that_stands_still_is_waited_for(shell: Shell, system: System) -> None:
    server = system.server
    ticket = system.queue("Eve")
    server.popen.send_signal(signal.SIGSTOP)
    threading.Timer(0.5, server.popen.send_signal, (signal.SIGCONT,)).start()
    done = as_agent(shell, system).run("agent", "wait", ticket)
    assert (done.code, json.loads(done.out)["who"]) == (0, "Eve")


def test_a_removed_desktop_is_told_and_keeps_what_it_has(shell: Shell, system: System) -> None:
    desktop = system.desktop
    works(system, "Fay")
    listed = system.command("devices", "list", "--json")
    [device] = json.loads(listed.out)
    assert system.command("devices", "revoke", device["device"]).code == 0
    desktop.wait_for("access was removed by the owner")
    assert "pair it again" in desktop.wait_for("help: ")
    told = as_agent(shell, system).run("agent", "run", system.session)
    refused(told, "not found or access removed")
    ran = json.loads(system.command("desktop", "history", "--json").out)
    assert ran[0]["status"] == "completed"
    assert desktop.stop() == 0
