"""Tokens and pairing codes: their form, their hashes, and that none of them is ever shown."""

from __future__ import annotations

import msgspec
import pytest

from actors.edges.door import (
    ALPHABET,
    NewToken,
    PairDevice,
    PairingCode,
    PrincipalToken,
    hash_code,
    hash_token,
    make_code,
    make_token,
    network_of,
)
from transports.envelope import Envelope
from transports.wire import WireCodec

WORD = "nobody else's"


def test_tokens_are_long_random_and_say_what_they_are() -> None:
    tokens = {make_token("device") for _ in range(100)}
    assert len(tokens) == 100
    assert all(token.startswith("pc_dev_") and len(token) == 50 for token in tokens)
    assert make_token("agent").startswith("pc_agt_")
    assert make_token("owner").startswith("pc_own_")
    assert len({hash_token(token) for token in tokens}) == 100
    assert all(token not in hash_token(token) for token in tokens)


def test_codes_can_be_typed_in_any_way() -> None:
    code = make_code()
    assert set(code) <= {*ALPHABET, "-"}
    hashed = hash_code(b"key", code)
    assert hash_code(b"key", code.lower().replace("-", " ")) == hashed
    assert hash_code(b"key", f" {code[:2]}-{code[2:]}") == hashed
    assert hash_code(b"other", code) != hashed
    assert hash_code(b"key", make_code()) != hashed


@pytest.mark.parametrize(
    "body",
    [
        PairDevice(code=WORD, name="n", token="pc_dev_" + "s" * 43, old_token=WORD),
        PairingCode(code=WORD, expires_in_us=1),
        PrincipalToken(principal="agt_1", name="n", token=WORD),
        NewToken(token="pc_dev_" + "s" * 43),
    ],
)
def test_a_secret_is_in_no_repr(body: msgspec.Struct) -> None:
    assert WORD not in repr(body)
    assert "ssss" not in repr(body)
    assert "ssss" not in repr(Envelope(1, "a", "b", 0, 0, body))


@pytest.mark.parametrize("token", ["", "pc_agt_" + "s" * 43, "pc_dev_short", "pc_dev_" + "!" * 43])
def test_a_desktop_brings_a_token_of_the_right_form(token: str) -> None:
    codec = WireCodec([PairDevice])
    frame = codec.encode(
        Envelope(1, "", "server", 0, 0, PairDevice(code="C", name="n", token=token))
    )
    with pytest.raises(Exception, match="not an envelope"):
        codec.decode(frame, "pairing")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3:50000", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6:50000", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9:50001", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::9]:50001", "2001:db8:1:2::/64"),
        ("fe80::1%eth0:50000", "fe80::/64"),
        ("::ffff:10.1.2.3:50000", "10.1.2.3"),
        ("local", "local"),
        ("", ""),
    ],
)
def test_a_strangers_tries_are_counted_under_what_it_can_not_choose_afresh(
    address: str, network: str
) -> None:
    assert network_of(address) == network
