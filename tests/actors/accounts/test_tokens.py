"""Tokens: whose each is, rotation that nobody is locked out by, copies that are told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.accounts.messages import (
    GATEWAY,
    Authenticated,
    BeginRotation,
    Denied,
    PrincipalAdded,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    Rotation,
)
from actors.accounts.rows import TOKENS
from actors.accounts.tokens import (
    LOCAL_OWNER,
    NAME_CHARS,
    RETIRED_LIMIT,
    REVOKED,
    SUPERSEDED,
    TOKENS_LIMIT,
    UNKNOWN,
    display_name,
)
from tests.actors.accounts.deployed import Deployed, hashed
from tests.actors.harness import S

DAY = 86_400 * S


def rotate(server: Deployed, device: str, secret: str) -> bool:
    body = BeginRotation(device=device, token_hash=hashed(secret))
    return server.told(GATEWAY, body, Rotation).begun


def is_good(server: Deployed, secret: str) -> bool:
    return isinstance(server.sign_in(secret), Authenticated)


def test_a_token_says_who_its_bearer_is() -> None:
    server = Deployed()
    agent = server.add_agent(bearer="a", name="claude", scopes=("graphs:read",))
    device = server.add_device(bearer="d", name="Laptop")
    for name in ("", agent, "claude"):
        assert server.sign_in("a", name) == Authenticated(
            principal=agent,
            kind="agent",
            owner=LOCAL_OWNER,
            name="claude",
            scopes=("graphs:read",),
        )
    assert server.sign_in("d", device) == Authenticated(
        principal=device, kind="device", owner=LOCAL_OWNER, name="Laptop", rotate_in_us=DAY
    )
    for secret, name in (("x", ""), ("x", "claude"), ("a", "codex"), ("a", device), ("", "")):
        assert server.sign_in(secret, name) == UNKNOWN, "one answer for all of them"


def test_a_token_in_plain_stands_nowhere_in_the_store() -> None:
    server = Deployed()
    server.add_agent(bearer="pc_agt_secret", name="claude")
    server.sign_in("pc_agt_secret")
    assert "pc_agt_secret" not in repr(server.context.store.snapshot())


def test_a_token_that_is_old_is_to_be_rotated_and_only_a_device_s() -> None:
    server = Deployed()
    server.add_agent(bearer="a")
    server.add_device(bearer="d")
    server.context.now_us += DAY
    for secret, wanted in (("a", False), ("d", True)):
        answer = server.sign_in(secret)
        assert isinstance(answer, Authenticated)
        assert (answer.rotate_in_us == 0) is wanted


def test_the_first_use_of_the_next_token_ends_the_one_before() -> None:
    server = Deployed()
    device = server.add_device(bearer="d1")
    assert rotate(server, device, "d2")
    assert is_good(server, "d1"), "the new token may have been lost"
    assert is_good(server, "d2")
    server.context.now_us += 1
    assert server.sign_in("d1") == SUPERSEDED
    assert server.principal(device).reused_us is not None
    assert is_good(server, "d2"), "the rightful one goes on"
    acts = [act for _, act, subject, _ in server.acts() if subject == device]
    assert acts[-3:] == ["token.rotate", "token.use", "sign_in"]


def test_lost_tokens_change_nothing() -> None:
    server = Deployed()
    device = server.add_device(bearer="d1")
    for number in range(2, TOKENS_LIMIT + 1):
        assert rotate(server, device, f"d{number}")
    assert not rotate(server, device, "d9"), "so many wait for their first use"
    assert rotate(server, device, "d2"), "the same one again is no other"
    assert is_good(server, "d1")
    assert is_good(server, "d3"), "it came after all"
    assert not is_good(server, "d2")
    assert is_good(server, "d4"), "and the one after it may be under way"
    assert rotate(server, device, "d9")


def test_a_server_restored_from_a_backup_still_lets_the_desktop_in() -> None:
    server = Deployed()
    device = server.add_device(bearer="d1")
    backup = server.context.store.snapshot()
    assert rotate(server, device, "d2")
    assert is_good(server, "d2")
    server.context.store.restore(backup)
    server.start()
    assert server.sign_in("d2") == UNKNOWN
    assert is_good(server, "d1"), "which the desktop kept"
    assert server.principal(device).reused_us is None


def test_a_revoked_principal_is_told_so_by_its_own_token_alone() -> None:
    server = Deployed()
    agent, device = server.add_agent(bearer="a"), server.add_device(bearer="d")
    server.deliver(LOCAL_OWNER, RevokeAgent(agent=agent))
    server.deliver(LOCAL_OWNER, RevokeDevice(device=device))
    assert server.sign_in("a") == server.sign_in("d") == REVOKED
    assert server.sign_in("x", agent) == UNKNOWN
    assert not rotate(server, device, "d2")


def test_an_owner_renews_its_agents_tokens_and_its_own() -> None:
    server = Deployed()
    owner = server.add_owner()
    agent = server.add_agent(owner, "a1")
    body = RenewToken(principal=agent, token_hash=hashed("a2"))
    assert server.owner(body, PrincipalAdded, owner).principal == agent
    assert server.sign_in("a1") == SUPERSEDED
    assert is_good(server, "a2")
    server.owner(RenewToken(principal=owner, token_hash=hashed("o2")), PrincipalAdded, owner)
    assert is_good(server, "o2")


def test_so_many_ended_tokens_are_still_told_from_unknown_ones() -> None:
    server = Deployed()
    agent = server.add_agent(bearer="a0")
    for number in range(1, 20):
        body = RenewToken(principal=agent, token_hash=hashed(f"a{number}"))
        server.owner(body, PrincipalAdded)
    answers = [server.sign_in(f"a{number}") for number in range(20)]
    assert answers.count(SUPERSEDED) == RETIRED_LIMIT
    assert answers.count(UNKNOWN) == 19 - RETIRED_LIMIT
    assert isinstance(answers[-1], Authenticated)
    held = server.context.store.snapshot()[TOKENS.name]
    assert len(held) == RETIRED_LIMIT + 1


def test_most_connections_write_nothing() -> None:
    server = Deployed()
    server.add_agent(bearer="a")
    server.sign_in("a")
    before = server.context.store.snapshot()
    server.context.now_us += 59 * S
    assert is_good(server, "a")
    assert server.context.store.snapshot() == before


@given(st.lists(st.tuples(st.sampled_from("rcl"), st.integers(0, 3)), max_size=40))
def test_a_desktop_that_keeps_its_two_tokens_is_never_locked_out(
    steps: Iterable[tuple[str, int]],
) -> None:
    """It is sent tokens, of which some are lost; it keeps the last two; the server is restored."""
    server = Deployed()
    device = server.add_device(bearer="t0")
    kept, serial = ["t0"], 0
    for step, number in steps:
        if step == "c":
            good = [secret for secret in reversed(kept) if is_good(server, secret)]
            assert good, kept
        else:
            serial += 1
            if rotate(server, device, f"t{serial}") and (step == "r" or number):
                kept = [*kept[-1:], f"t{serial}"]
    assert any(is_good(server, secret) for secret in reversed(kept))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (" a\n\tb ", "a b"),
        ("x" * 99, "x" * NAME_CHARS),
        ("\x1b[31m", "[31m"),
        ("", "?"),
        ("\0", "�"),
    ],
)
def test_a_display_name_is_one_short_line(name: str, shown: str) -> None:
    assert display_name(name, "?") == shown


def test_denials_name_no_secret() -> None:
    for denial in (UNKNOWN, REVOKED, SUPERSEDED):
        assert isinstance(denial, Denied)
        assert denial.error
