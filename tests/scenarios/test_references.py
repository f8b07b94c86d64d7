"""Names that one table says of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.references import NAMES_LIMIT, some
from tests.scenarios.loading import told


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], "none"),
        (["a"], "a"),
        (["a", "b", "c"], "a, b and c"),
        ([str(n) for n in range(10)], "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"),
    ],
)
def test_some_names(names: list[str], shown: str) -> None:
    assert some(names) == shown
    assert NAMES_LIMIT == 8


def test_the_right_element_of_several_agents(tmp_path: Path) -> None:
    text = '[[agent]]\n[[agent]]\nsession = "x"\n[[agent]]\nleak_to = "agent-9"\n[[agent]]\n'
    assert [one.partition(" /")[0] for one in told(tmp_path, text)] == [
        '3 "x": there is no session "x"',
        '5 "agent-9": there is no agent "agent-9"',
    ]


def test_globs_match_several_actors(tmp_path: Path) -> None:
    link = '[[link]]\nfrom = "{}"\nto = "{}"\nlatency = "1s"\n'
    text = "[relay]\ncount = 3\n" + "".join(
        link.format(*ends)
        for ends in [("relay-*", "server"), ("*", "*"), ("relay-[12]", "engine-?")]
    )
    assert told(tmp_path, text) == []
    assert told(tmp_path, link.format("*", "serv?")) == [
        '3 "serv?": there is no actor "serv?" / did you mean "server"?'
    ]


def test_a_step_without_any_session(tmp_path: Path) -> None:
    text = 'session = []\n[workload]\nruns = 0\n[[step]]\nat = "5s"\ndo = "share"\n'
    assert told(tmp_path, text) == ["4 [[step]]: this step concerns no session: there is none"]
