"""A server's own certificate: known by its fingerprint, but where authorities vouch for it."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
import trustme

from scenarios.service.certificate import strange_fingerprint

CA = trustme.CA()
LEAF = CA.issue_cert("server.example")


def context() -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    LEAF.configure_cert(made)
    return made


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_one_that_nobody_vouches_for_has_a_fingerprint(version: ssl.TLSVersion) -> None:
    server = context()
    server.maximum_version = version
    der = ssl.PEM_cert_to_DER_cert(LEAF.cert_chain_pems[0].bytes().decode())
    assert strange_fingerprint(server) == hashlib.sha256(der).hexdigest()


def test_one_that_the_system_s_authorities_vouch_for_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CA.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert strange_fingerprint(context()) == ""
