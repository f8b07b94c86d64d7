"""What stands for a program here, and what a file may say of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.messages import Commands, StartAnswer
from scenarios.build import CellRun, places_of
from scenarios.cast import BUILT_IN, ForeignActorError, make_actor
from scenarios.stand_in import StandIn
from tests.scenarios.loading import load, told

PROGRAM = '[relay]\ncommand = ["./mine", "fast"]\n'


def test_a_program_s_command_and_its_part_s_default_config(tmp_path: Path) -> None:
    [relay] = [one for one in load(tmp_path, PROGRAM).scenarios[0].cast if one.kind == "relay"]
    assert (relay.name, relay.use, relay.command) == ("relay", None, ("./mine", "fast"))
    assert relay.config == BUILT_IN["relay"].Config()


def test_a_profile_and_the_workload_are_not_for_programs(tmp_path: Path) -> None:
    text = 'profile = "recommended"\n[workload]\nruns = 7\n[agent]\ncommand = ["a"]\n' + PROGRAM
    cast = load(tmp_path, text).scenarios[0].cast
    configs = {one.kind: one.config for one in cast}
    assert configs["agent"] == BUILT_IN["agent"].Config()
    assert configs["relay"] == BUILT_IN["relay"].Config()


def test_several_programs_of_one_table(tmp_path: Path) -> None:
    cast = load(tmp_path, '[relay]\ncount = 2\ncommand = ["a"]\n').scenarios[0].cast
    assert [one.command for one in cast if one.kind == "relay"] == [("a",), ("a",)]


def test_a_command_may_be_swept(tmp_path: Path) -> None:
    text = '[sweep.product]\n"relay.command" = [["a"], ["b", "c"]]\n'
    found = [
        one.command
        for scenario in load(tmp_path, text).scenarios
        for one in scenario.cast
        if one.kind == "relay"
    ]
    assert found == [("a",), ("b", "c")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[relay]\ncommand = ["a"]\nuse = "built-in"\n',
            (
                "3 use: a relay is either a class of this process or a program of its own"
                " / leave out use or command"
            ),
        ),
        (
            '[relay]\ncommand = ["a"]\npoll = "5s"\n',
            '3 poll: a program does not read "poll" / say it in its command, as an argument',
        ),
        (
            '[server]\ncommand = ["a"]\n',
            (
                "2 command: the server can't be a program of its own"
                " / only relay and agent dial the server and so can join it"
            ),
        ),
        (
            '[relay]\ncommand = ["a", ""]\n',
            '2 ["a", ""]: an argument is empty or has a NUL / write ["perl", "my.pl"]',
        ),
        (
            PROGRAM + '[[step]]\nat = "1s"\ndo = "unshare"\n',
            (
                "3 [[step]]: relay is a program of its own, whose sessions no step can change"
                " / let the program do it"
            ),
        ),
    ],
)
def test_what_a_file_can_t_say_of_a_program(tmp_path: Path, text: str, expected: str) -> None:
    assert told(tmp_path, text) == [expected]


@pytest.mark.parametrize("value", ["[]", '"perl"', "[1]"])
def test_a_command_is_a_list_of_texts(tmp_path: Path, value: str) -> None:
    [problem] = told(tmp_path, f"[relay]\ncommand = {value}\n")
    assert problem.startswith("2 ")


def test_a_step_at_another_relay_s_desktop_is_allowed(tmp_path: Path) -> None:
    text = (
        '[[relay]]\ncommand = ["a"]\n[[relay]]\n[[step]]\nat = "1s"\ndo = "unshare"\n'
        'session = "demo-relay-2"\n'
    )
    assert told(tmp_path, text) == []


def test_it_understands_what_its_part_does_and_does_nothing(tmp_path: Path) -> None:
    scenario = load(tmp_path, PROGRAM).scenarios[0]
    [relay] = [one for one in scenario.cast if one.kind == "relay"]
    actor = make_actor(relay, places_of(scenario)["relay"], tmp_path)
    assert isinstance(actor, StandIn)
    assert {Commands, StartAnswer} <= set(actor.handlers)
    nothing: Any = None
    assert [handle(nothing, nothing) for handle in set(actor.handlers.values())] == [None]
    actor.on_start(nothing)
    actor.on_timer(nothing, "poll")


def test_no_simulator_has_a_program(tmp_path: Path) -> None:
    plan = load(tmp_path, PROGRAM)
    with pytest.raises(ForeignActorError, match="relay is a program of its own") as raised:
        CellRun(plan.scenarios[0], 1, "", tmp_path)
    assert raised.value.cure == "give --transport tcp"
