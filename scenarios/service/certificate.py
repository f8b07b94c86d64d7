"""A server's own certificate: whether others can trust it without being told of it, else its print.

A desktop that is paired by a code learns the fingerprint with it, from the owner's own screen.
"""

from __future__ import annotations

import hashlib
import ssl

FLIGHTS = 10  # of a handshake in memory; TLS 1.3 has three, 1.2 four


def strange_fingerprint(server: ssl.SSLContext) -> str:
    """Return the SHA-256 of a server's certificate; "" if this system's authorities vouch for it.

    Other machines have the same authorities, or nearly. Which names the certificate has and whether
    those are reached by one is not looked at.
    """
    verifying = ssl.create_default_context()
    verifying.check_hostname = False
    try:
        _greeted(verifying, server)
    except ssl.SSLCertVerificationError:
        taking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        taking.check_hostname = False
        taking.verify_mode = ssl.CERT_NONE
        certificate = _greeted(taking, server).getpeercert(binary_form=True)
        assert certificate is not None, "a server has one"
        return hashlib.sha256(certificate).hexdigest()
    return ""


def _greeted(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLObject:
    """Return the client's side of a handshake with the server, in memory. Raises ssl.SSLError."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    mine = client.wrap_bio(back, there)
    sides = (mine, server.wrap_bio(there, back, server_side=True))
    for _ in range(FLIGHTS):
        waiting = 0
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting += 1
        if not waiting:
            break
    return mine
