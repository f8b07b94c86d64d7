"""The line mode: the page's transcript comes out as it is printed, and no command ends it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.step_lines import HELP, CommandError, LineMode, cut, step_by_lines
from scenarios.stepper import Stepper
from tests.scenarios.stepping import stepper

NAMES = ("server", "relay", "engine", "agent")


def answers(at: Stepper, *commands: str, prompt: bool = False, width_columns: int = 200) -> str:
    out = io.StringIO()
    read = io.StringIO("".join(f"{command}\n" for command in commands))
    step_by_lines(at, read, out, width_columns, prompt=prompt)
    return out.getvalue()


def done(at: Stepper, command: str) -> list[str]:
    return [line.text for line in LineMode(at).do(command)]


def test_each_command_is_repeated_where_nobody_sees_it_typed() -> None:
    assert answers(stepper(), "n", "", "  b  ", "quit", "n").splitlines() == [
        "1  0s  server  starts, boot 0",
        "> n",
        "2  0s  relay  starts, boot 0",
        "> b",
        "1  0s  server  starts, boot 0",
    ]


def test_at_a_terminal_there_is_a_prompt_instead() -> None:
    shown = answers(stepper(), "n", prompt=True)
    assert shown == "1  0s  server  starts, boot 0\n> 2  0s  relay  starts, boot 0\n> \n"
    assert answers(stepper(), "q", prompt=True).endswith("> ")


def test_going() -> None:
    at = stepper()
    assert done(at, "n 4")[0].startswith("5  0s  server  agent → server  RunGraphSession")
    assert done(at, "b 2")[0].startswith("3  0s  engine")
    assert done(at, "n 99999")[0].startswith(f"{len(at.records)}  ")
    assert done(at, "to 1")[0].startswith("1  ")
    assert done(at, "to 12.6s")[0].split()[1].startswith("12.5")
    assert done(at, "next event run.terminal")[0].split()[2:4] == ["server", "run.terminal"]
    assert done(at, "prev relay")[0].split()[0] < str(at.records[-1].n)
    assert at.record.actor == "relay" or "relay →" in done(at, "where")[0]


def test_every_view_is_about_the_record_s_own_actor_unless_one_is_named() -> None:
    at = stepper()
    done(at, "to 5")
    assert done(at, "state")[0] == "server is up, boot 0, after 5 at 0s"
    assert done(at, "state relay")[0] == "relay is up, boot 0, after 5 at 0s"
    assert done(at, "timers")[0] == "1 timer, 0 open questions"
    assert done(at, "timers agent")[0] == "0 timers, 1 open question"
    assert done(at, "mailbox agent")[0].endswith(" under way to agent")
    assert "  runs: 1 row" in done(at, "store")
    assert done(at, "store server runs")[0] == "runs of server: 1 row"
    assert done(at, "causes")[0] == "2 records led here"
    assert done(at, "changed")[0] == done(at, "where")[0]
    assert done(at, "actors") == [f"{name} is up, boot 0" for name in NAMES]
    assert "\n".join(done(at, "help")) == HELP


@pytest.mark.parametrize(
    ("command", "error", "cure"),
    [
        ("frobnicate", "there is no command frobnicate", "help shows what there is"),
        ("stat", "there is no command stat", "did you mean state?"),
        ("b", "this is the first record", "to 1 goes to the first"),
        ("n ten", "ten is no number", "n 10"),
        ("to", "to where", "to 118"),
        ("to 0", "there is no record 0", "give 1 to "),
        ("to ²", "is not a duration", "a record's number, or a time"),
        ("to soon", "is not a duration", "a record's number, or a time"),
        ("next", "the next what", "fault, violation, change, divergence, event or an actor"),
        ("next falt", "falt is neither", "did you mean fault?"),
        ("next xyz", "xyz is neither", "the actors server, relay, engine, agent"),
        ("prev fault", "there is no fault before 1", "next fault looks the other way"),
        ("next event no.pe", "there is no event no.pe after 1", "prev event no.pe"),
        ("state rely", "no actor is called rely", "did you mean relay?"),
        ("mailbox x", "no actor is called x", "there are server, relay"),
        ("store server rnus", "server has no table rnus", "it has runs"),
        ("store agent x", "agent has no table x", "it has none yet"),
    ],
)
def test_a_mistake_is_told_with_its_cure_and_nothing_moves(
    command: str, error: str, cure: str
) -> None:
    at = stepper()
    with pytest.raises(CommandError, match=error.replace("?", r"\?")) as raised:
        LineMode(at).do(command)
    assert cure in raised.value.cure
    assert at.record.n == 1
    shown = answers(at, command, "where").splitlines()
    assert shown[2].startswith("error: ")
    assert shown[3].startswith("help: ")
    assert shown[5] == shown[0]


def test_the_last_record_is_the_end() -> None:
    at = stepper()
    at.at = len(at.records) - 1
    with pytest.raises(CommandError, match="this is the last record"):
        LineMode(at).do("n")


VERBS = "n b to next prev where changed state mailbox timers store causes actors help"
REST = "5 12.5s fault violation change event runs relay server nobody divergence run.* \x1b[31m é"
WORDS = st.sampled_from([*VERBS.split(), *REST.split(), "", "é" * 300])


@given(st.lists(st.lists(WORDS, max_size=3).map(" ".join), max_size=6))
def test_whatever_is_typed_is_answered_in_the_width(commands: list[str]) -> None:
    shown = answers(SHARED, *commands, width_columns=60)
    assert "\x1b" not in shown
    answered = [line for line in shown.splitlines() if not line.startswith(("> ", "error", "help"))]
    assert all(len(line) <= 60 for line in answered if line not in HELP.splitlines())


SHARED: Any = stepper()


def test_what_does_not_fit_ends_with_an_ellipsis() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cut("日本語日本語", 6) == "日本…"
