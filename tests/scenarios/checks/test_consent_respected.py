"""No run of a session starts on a desktop whose owner has unshared it."""

from __future__ import annotations

from actors.messages import FleetRun, Share, Unshare
from scenarios.checks.consent_respected import consent_respected
from scenarios.checks.history import Violation
from tests.scenarios.checks.tale import Tale

RUN = FleetRun(channel="graph:external:r1", session="s1", slug="s", arguments={})


def test_a_run_after_the_owner_s_no_is_found() -> None:
    tale = Tale()
    no = tale.say("owner", "relay", Unshare(session="s1"))
    go = tale.say("server", "relay", None)
    started = tale.say("relay", "engine", RUN, by=go)
    assert tale.judge(consent_respected) == [
        Violation(
            "consent_respected",
            "relay started graph:external:r1 after its owner had unshared the session",
            (no, started),
        )
    ]


def test_a_run_before_it_and_one_after_a_new_yes_are_right() -> None:
    tale = Tale()
    tale.say("relay", "engine", RUN, by=tale.say("server", "relay", None))
    tale.say("owner", "relay", Unshare(session="other"))
    tale.say("owner", "relay", Unshare(session="s1"))
    tale.say("owner", "relay", Share(session="s1"))
    tale.say("relay", "engine", RUN, by=tale.say("server", "relay", None))
    assert tale.judge(consent_respected) == []


def test_a_no_that_never_came_binds_nobody() -> None:
    tale = Tale()
    tale.say("owner", "relay", Unshare(session="s1"), lost=True)
    tale.say("relay", "engine", RUN, by=tale.say("server", "relay", None))
    assert tale.judge(consent_respected) == []
