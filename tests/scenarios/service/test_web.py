"""Settings of a server's HTTP side: what can't be is told in one line, with the cure."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trustme

from actors.edges.gateway import SERVER, Gateway
from scenarios.problems import ScenarioError
from scenarios.service import web
from scenarios.service.config import ServerSettings
from scenarios.service.http.edge import HttpEdge
from scenarios.service.server import run_server
from scenarios.service.web import public_url, web_edge
from scenarios.service.world import ServiceWorld
from tests.scenarios.commandline import command, start
from transports.connection import Peer
from transports.handshake import PROTOCOL

ORIGINS = {
    "http": "--http",
    "http_url": "PULLCORD_HTTP_URL",
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
}


def edge(**fields: Any) -> Any:
    """The edge of a server with these settings."""
    settings = msgspec.structs.replace(ServerSettings(http="127.0.0.1:0"), **fields)
    world = ServiceWorld(SERVER, lambda _line: None)
    me = Peer(protocol=PROTOCOL, name=SERVER, boot="s1")
    gateway = Gateway(me, world, b"key", lambda _event, /, **_fields: None)
    return web_edge(settings, ORIGINS, gateway, world)


def refused(**fields: Any) -> str:
    """Why there is no such edge."""
    with pytest.raises(ScenarioError) as caught:
        edge(**fields)
    (problem,) = caught.value.problems
    assert problem.cure or ": write" in problem.message
    return f"{problem.path}: {problem.message}"


def test_an_address_is_all_that_it_needs() -> None:
    assert isinstance(edge(), HttpEdge)
    assert edge(http="127.0.0.1:80").base == "http://127.0.0.1:80"
    assert edge(http="0.0.0.0:80", plain=True).base == "http://127.0.0.1:80"
    assert edge(http="[::]:80", plain=True).base == "http://[::1]:80"
    assert edge(http_url="https://pull.example.org/").base == "https://pull.example.org"


def test_pages_have_the_servers_certificate(tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(b"".join(part.bytes() for part in certificate.cert_chain_pems))
    key.write_bytes(certificate.private_key_pem.bytes())
    made = edge(http="0.0.0.0:443", tls_cert=str(chain), tls_key=str(key))
    assert made.base == "https://127.0.0.1:443"


def test_pages_do_not_cross_a_network_in_plain_by_accident() -> None:
    assert refused(http="0.0.0.0:80") == (
        "--http: others can reach 0.0.0.0:80, and without TLS they can read every page and token"
    )


@pytest.mark.parametrize("part", web.PARTS)
def test_a_missing_web_server_is_told_with_what_to_install(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "find_spec", lambda name: None if name == part else name)
    with pytest.raises(ScenarioError) as caught:
        edge()
    assert caught.value.problems[0].cure == "pip install 'pullcord[server]', or leave --http out"


def test_all_else_of_a_server_needs_no_web_server() -> None:
    root = Path(web.__file__).parents[2]
    block = f"import sys; sys.modules.update(dict.fromkeys({web.PARTS!r}))"
    command = [sys.executable, "-c", f"{block}; import {run_server.__module__}"]
    subprocess.run(command, cwd=root, check=True)


def test_the_extra_has_what_is_looked_for() -> None:
    text = (Path(web.__file__).parents[2] / "pyproject.toml").read_text()
    extra = text.split("\nserver = [")[1].split("]")[0].replace("-", "_")
    assert all(f'"{part}>=' in extra for part in web.PARTS)


def test_an_address_that_is_none_is_refused() -> None:
    assert refused(http="8787").startswith('--http: "8787" is not an address')


@pytest.mark.parametrize(
    "text",
    [
        "pull.example.org",
        "ftp://pull.example.org",
        "https://",
        "https://a@b.example",
        "https://pull.example.org/pages",
        "https://pull.example.org?x",
        "https://pull.example.org:x",
        "https://[::1",
        "javascript:alert(1)",
    ],
)
def test_a_url_that_is_no_servers_is_refused(text: str) -> None:
    assert refused(http_url=text).startswith(f'PULLCORD_HTTP_URL: "{text}"')


def test_a_url_is_kept_without_its_slash() -> None:
    assert public_url("", "") == ""
    assert public_url("http://x.example:8080/", "") == "http://x.example:8080"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path, since a socket lies in it."""
    with tempfile.TemporaryDirectory(prefix="pc-") as folder:
        yield Path(folder)


def test_a_server_and_its_pages_live_and_end_together(place: Path) -> None:
    env = {"PULLCORD_HOME": str(place)}
    away = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    with start(place, "server", *away, env=env) as server:
        try:
            assert server.stderr is not None
            page = next(line for line in server.stderr if "owner's page: " in line)
            base = page.split("owner's page: ")[1].strip().rstrip("/")
            assert httpx.get(f"{base}/healthz", timeout=60).text == "ok\n"
            told = command(place, "link", "--json", env=env)
            url = json.loads(told.out)["url"]
            assert url.startswith(f"{base}/link/")
            plain = command(place, "link", env=env)
            assert (plain.code, plain.out.startswith(f"{base}/link/")) == (0, True)
            with httpx.Client(base_url=base, timeout=60) as browser:
                key = browser.get(url).text.split('form_key" value="')[1].split('"')[0]
                assert browser.post(url, data={"form_key": key}).status_code == 303
                assert "No desktop is paired" in browser.get("/").text
                used = browser.post(url, data={"form_key": key})
                assert used.status_code == 403
        finally:
            server.terminate()
        assert server.wait() == 0


def test_a_server_without_pages_says_how_to_have_them(place: Path) -> None:
    env = {"PULLCORD_HOME": str(place)}
    with start(place, "server", "--listen", "127.0.0.1:0", env=env) as server:
        try:
            assert server.stderr is not None
            server.stderr.readline()
            told = command(place, "link", env=env)
        finally:
            server.terminate()
        assert server.wait() == 0
    assert told.code == 2
    assert "this server has no pages: start it with --http" in told.err
