"""Sessions, links and the keys of forms: who may come in, and for how long."""

from __future__ import annotations

import pytest

from scenarios.service.http import sessions as module
from scenarios.service.http.sessions import FormKeys, Links, Sessions, same


class Clock:
    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock)


def test_a_cookie_finds_its_session_and_no_other_does(sessions: Sessions) -> None:
    session, cookie = sessions.begin("own_1", "Anna")
    assert len(cookie) == 43
    assert sessions.find(cookie) is session
    assert sessions.find(cookie[:-1]) is None
    assert sessions.find("") is None


def test_no_cookie_is_kept_as_it_is(sessions: Sessions) -> None:
    session, cookie = sessions.begin("own_1", "Anna")
    assert cookie not in str(vars(sessions)) + str(vars(session))


def test_a_session_ends_when_it_is_idle(sessions: Sessions, clock: Clock) -> None:
    _, cookie = sessions.begin("own_1", "Anna")
    clock.now_s += module.IDLE_LIMIT_S - 1
    assert sessions.find(cookie) is not None
    clock.now_s += module.IDLE_LIMIT_S
    assert sessions.find(cookie) is None
    assert sessions.count == 0


def test_a_session_ends_however_much_it_is_used(sessions: Sessions, clock: Clock) -> None:
    session, cookie = sessions.begin("own_1", "Anna")
    hours = 0
    while sessions.find(cookie) is session:
        cookie = sessions.renewed(session) or cookie
        clock.now_s += 3600
        hours += 1
    assert hours == module.SESSION_LIMIT_S / 3600


def test_a_cookie_is_replaced_and_the_old_one_soon_ends(sessions: Sessions, clock: Clock) -> None:
    session, first = sessions.begin("own_1", "Anna")
    key = session.form_key
    assert sessions.renewed(session) is None
    clock.now_s += module.RENEW_S
    second = sessions.renewed(session)
    assert second is not None
    assert sessions.find(first) is sessions.find(second) is session
    assert sessions.renewed(session) is None
    clock.now_s += module.OVERLAP_S + 1
    assert sessions.find(first) is None
    assert sessions.find(second) is session
    assert session.form_key == key  # a form that is open may still be sent
    assert sessions.count == 1


def test_signing_out_ends_every_cookie_of_the_session(sessions: Sessions, clock: Clock) -> None:
    session, first = sessions.begin("own_1", "Anna")
    clock.now_s += module.RENEW_S
    second = sessions.renewed(session) or ""
    clock.now_s += module.RENEW_S
    sessions.end(session)
    assert sessions.renewed(session) is None
    assert sessions.find(first) is sessions.find(second) is None
    assert sessions.count == 0


def test_an_owner_is_signed_out_everywhere_and_others_stay(sessions: Sessions) -> None:
    _, one = sessions.begin("own_1", "Anna")
    _, other = sessions.begin("own_2", "Ben")
    _, two = sessions.begin("own_1", "Anna")
    sessions.end_all("own_1")
    assert sessions.find(one) is sessions.find(two) is None
    assert sessions.find(other) is not None


def test_the_oldest_session_gives_way(
    sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SESSIONS_LIMIT", 3)
    cookies = []
    for _ in range(5):
        clock.now_s += 1
        cookies.append(sessions.begin("own_1", "Anna")[1])
    assert [sessions.find(cookie) is not None for cookie in cookies] == [0, 0, 1, 1, 1]


def test_a_token_is_asked_after_once_a_minute(sessions: Sessions, clock: Clock) -> None:
    session, _ = sessions.begin("own_1", "Anna", "hash")
    by_link, _ = sessions.begin("own_1", "Anna")
    assert not sessions.must_check(session)
    clock.now_s += module.CHECK_S
    assert sessions.must_check(session)
    sessions.checked(session)
    assert not sessions.must_check(session)
    assert not sessions.must_check(by_link)


def test_a_link_works_once_and_not_for_long(clock: Clock) -> None:
    links = Links(clock)
    first, second = links.make("own_1", "Anna"), links.make("own_1", "Anna")
    assert links.take(first) == ("own_1", "Anna")
    assert links.take(first) is None
    clock.now_s += module.LINK_LIMIT_S
    assert links.take(second) is None
    assert links.take("") is None


def test_links_are_bounded(clock: Clock) -> None:
    links = Links(clock)
    made = [links.make("own_1", "Anna") for _ in range(module.LINKS_LIMIT + 1)]
    assert links.take(made[0]) is None
    assert links.take(made[1]) is not None


def test_form_keys_belong_to_a_cookie_and_a_process() -> None:
    keys = FormKeys()
    assert keys.key("a") == keys.key("a")
    assert len({keys.key("a"), keys.key("b"), FormKeys().key("a")}) == 3


def test_secrets_of_any_characters_can_be_compared() -> None:
    assert same("ab", "ab")
    assert not same("ab", "abc")
    assert not same("\ud800é", "ab")
