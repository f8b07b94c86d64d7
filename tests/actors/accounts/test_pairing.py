"""Pairing: a code is good once, guessing is bounded, a machine that proves itself stays itself."""

from __future__ import annotations

import pytest

from actors.accounts.messages import (
    CodeAccepted,
    Denied,
    DeviceListing,
    Devices,
    ListDevices,
    NewPairingCode,
    Paired,
    RevokeDevice,
)
from actors.accounts.pairing import (
    ADDRESS_TRIES,
    BAD_CODE,
    CODES_LIMIT,
    OWNER_CODES_LIMIT,
    TOO_MANY_CODES,
    TRIES_LIMIT,
    WRONG_TRIES,
)
from actors.accounts.rows import CODES, TRIES
from actors.accounts.tokens import LOCAL_OWNER
from actors.messages import Failure
from tests.actors.accounts.deployed import Deployed, hashed
from tests.actors.harness import S

LIFETIME_US = 600 * S


def devices(server: Deployed, owner: str = LOCAL_OWNER) -> list[DeviceListing]:
    return list(server.owner(ListDevices(), Devices, owner).devices)


def paired(answer: Paired | Denied) -> str:
    assert isinstance(answer, Paired), answer
    return answer.device


def test_a_code_makes_one_device_of_its_owner() -> None:
    server = Deployed()
    owner = server.add_owner()
    code = server.code(owner)
    answer = server.pair(code, "d", name="Laptop", address="10.0.0.1")
    assert answer == Paired(device=paired(answer), name="Laptop", owner=owner)
    assert [each.device for each in devices(server, owner)] == [answer.device]
    assert devices(server) == []
    row = server.audit(owner)[0]
    assert (row.act, row.subject, row.address) == ("device.pair", answer.device, "10.0.0.1")
    assert server.pair(code, "other") == BAD_CODE, "it is used up"


def test_a_lost_answer_is_asked_for_again() -> None:
    server = Deployed()
    code = server.code()
    first = server.pair(code, "d")
    assert server.pair(code, "d") == first
    server.context.now_us += LIFETIME_US
    assert server.pair(code, "d") == BAD_CODE, "but not for ever"
    assert len(devices(server)) == 1


def test_a_code_is_good_for_ten_minutes() -> None:
    server = Deployed()
    early, late = server.code(), server.code()
    server.context.now_us += LIFETIME_US - 1
    paired(server.pair(early))
    server.context.now_us += 1
    assert server.pair(late) == BAD_CODE
    server.keep()
    assert CODES.name not in server.context.store.snapshot()


def test_an_address_has_five_wrong_tries() -> None:
    server = Deployed()
    code = server.code()
    for number in range(ADDRESS_TRIES):
        assert server.pair(f"wrong-{number}", address="bad") == BAD_CODE
    denied = server.pair(code, address="bad")
    assert isinstance(denied, Denied)
    assert (denied.reason, denied.retry_after_us) == ("too_many_tries", LIFETIME_US)
    assert denied.error == "too many wrong pairing codes: wait 11 minutes"
    paired(server.pair(code, address="good"))
    server.context.now_us += LIFETIME_US
    paired(server.pair(server.code(), address="bad"))


def test_twenty_wrong_tries_in_all_end_every_open_code() -> None:
    server = Deployed()
    codes = [server.code(), server.code()]
    for number in range(WRONG_TRIES - 1):
        server.pair(f"wrong-{number}", address=f"10.0.0.{number}")
    later = server.code()
    server.pair("wrong", address="10.0.1.1")
    assert [server.pair(code, address=code) for code in codes] == [BAD_CODE] * 2
    paired(server.pair(later, address="good"))
    assert [act for _, act, _, _ in server.acts()].count("pairing.end") == 2


def test_more_addresses_than_are_remembered_cost_no_memory() -> None:
    server = Deployed()
    for number in range(TRIES_LIMIT + 50):
        server.pair("wrong", address=f"address {number}")
    assert len(server.context.store.snapshot()[TRIES.name]) == TRIES_LIMIT


def test_so_many_codes_are_open_at_once() -> None:
    server = Deployed()
    for _ in range(OWNER_CODES_LIMIT):
        server.code()
    body = NewPairingCode(code_hash=hashed("one more"))
    assert server.owner(body, Failure) == TOO_MANY_CODES
    server.context.now_us += LIFETIME_US
    server.owner(body, CodeAccepted)
    for _ in range((CODES_LIMIT - 1) // OWNER_CODES_LIMIT):
        owner = server.add_owner()
        for _ in range(OWNER_CODES_LIMIT):
            server.code(owner)
    last = server.add_owner()
    answers = []
    for number in range(OWNER_CODES_LIMIT):
        (sent,) = server.deliver(last, NewPairingCode(code_hash=hashed(f"last {number}")))
        answers.append(sent.body)
    assert answers[-1] == TOO_MANY_CODES
    server.owner(NewPairingCode(), Failure)


def test_names_that_collide_get_a_number() -> None:
    server = Deployed()
    first = server.add_device(name="laptop")
    server.add_device(name="laptop")
    server.add_device(name="")
    server.add_device(name="\n")
    assert sorted(each.name for each in devices(server)) == [
        "desktop",
        "desktop-2",
        "laptop",
        "laptop-2",
    ]
    server.deliver(LOCAL_OWNER, RevokeDevice(device=first))
    server.add_device(name="laptop")
    names = [each.name for each in devices(server) if not each.revoked]
    assert names.count("laptop") == 1, "a removed device's name is free"


@pytest.mark.parametrize("rotated", [False, True])
def test_a_machine_that_proves_itself_stays_the_same_device(rotated: bool) -> None:
    server = Deployed()
    device = server.add_device(bearer="d1")
    server.share(device, 1)
    run = server.queued(server.add_agent())
    if rotated:
        assert paired(server.pair(server.code(), "d2", old_hash=hashed("d1"))) == device
    assert paired(server.pair(server.code(), "d3", old_hash=hashed("d1"))) == device
    assert isinstance(server.sign_in("d1"), Denied)
    assert server.offers(device) == [run]
    assert [each.name for each in devices(server)] == ["laptop"]
    assert "device.pair_again" in [act for _, act, _, _ in server.acts()]


def test_a_token_that_a_desktop_wrote_before_a_lost_answer_proves_it_too() -> None:
    server = Deployed()
    device = server.add_device(bearer="d1")
    assert paired(server.pair(server.code(), "d1")) == device


def test_no_token_proves_a_removed_device_or_another_owner_s() -> None:
    server = Deployed()
    other = server.add_owner()
    device = server.add_device(bearer="d1")
    new = paired(server.pair(server.code(other), "d2", old_hash=hashed("d1")))
    assert new != device
    assert [each.device for each in devices(server, other)] == [new]
    server.deliver(LOCAL_OWNER, RevokeDevice(device=device))
    server.keep()
    newer = paired(server.pair(server.code(), "d3", old_hash=hashed("d1")))
    assert newer not in {device, new}
    server.share(newer, 1)
    assert server.queued(server.add_agent()), "its sessions are free for the new one"


def test_nobody_takes_another_s_token_over() -> None:
    server = Deployed()
    agent = server.add_agent(bearer="a")
    other = server.add_owner()
    theirs = server.add_device(other, bearer="d")
    for bearer, whose in (("a", agent), ("d", theirs)):
        assert server.pair(server.code(), bearer) == BAD_CODE
        answer = server.sign_in(bearer)
        assert not isinstance(answer, Denied)
        assert answer.principal == whose


def test_pairing_that_fails_leaves_the_one_before_intact() -> None:
    server = Deployed()
    device = server.add_device(bearer="d1")
    assert server.pair("wrong", "d2", old_hash=hashed("d1")) == BAD_CODE
    answer = server.sign_in("d1")
    assert not isinstance(answer, Denied)
    assert answer.principal == device
