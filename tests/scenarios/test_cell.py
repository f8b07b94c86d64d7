"""One cell: its actors by kind and name, whose values they get, and what is decoded once."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest

from scenarios.cell import CellLoader, Part, tables_of
from scenarios.decode import Decoder
from scenarios.problems import ScenarioError
from scenarios.source import Source
from scenarios.spec import Cast, Scenario
from tests.scenarios.loading import HEAD, load, told


def cast(folder: Path, text: str) -> list[Cast]:
    return list(load(folder, text).scenarios[0].cast)


def names(folder: Path, text: str) -> list[str]:
    return [one.name for one in cast(folder, text)]


def configs(folder: Path, text: str, kind: str) -> list[Any]:
    return [one.config for one in cast(folder, text) if one.kind == kind]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "server relay engine agent owner"),
        (
            "[relay]\ncount = 2\n",
            "server relay-1 relay-2 engine-1 engine-2 agent owner-1 owner-2",
        ),
        ("[agent]\ncount = 2\n", "server relay engine agent-1 agent-2 owner"),
        ('[agent]\ncount = 2\nname = "a"\n', "server relay engine a-1 a-2 owner"),
        ('[[agent]]\n[[agent]]\nname = "slow"\n', "server relay engine agent-1 slow owner"),
        ("[[agent]]\ncount = 2\n[[agent]]\n", "server relay engine agent-1 agent-2 agent-3 owner"),
        ("agent = []\n", "server relay engine owner"),
        (
            '[relay]\ncount = 2\n[[engine]]\nname = "fast"\n[[engine]]\n',
            "server relay-1 relay-2 fast engine-2 agent owner-1 owner-2",
        ),
        (
            '[relay]\ncount = 2\n[engine]\nname = "e"\n',
            "server relay-1 relay-2 e-1 e-2 agent owner-1 owner-2",
        ),
    ],
)
def test_names_of_actors(tmp_path: Path, text: str, expected: str) -> None:
    assert names(tmp_path, text) == expected.split()


def test_values_of_an_agent_its_own_over_the_workloads_over_the_default(tmp_path: Path) -> None:
    text = '[workload]\nruns = 3\nstart = "5s"\n[[agent]]\nruns = 7\n[[agent]]\n'
    first, second = configs(tmp_path, text, "agent")
    assert (first.runs, second.runs) == (7, 3)
    assert first.start_us.constant == second.start_us.constant == 5_000_000


def test_values_of_a_profile_under_the_files_own(tmp_path: Path) -> None:
    text = 'profile = "recommended"\n[relay]\njitter = "none"\n'
    [relay] = configs(tmp_path, text, "relay")
    [server] = configs(tmp_path, text, "server")
    assert (relay.jitter, relay.presence, server.hints) == ("none", True, True)
    [server] = configs(tmp_path, "", "server")
    assert server.hints is False


def test_profile_and_count_may_be_swept_together(tmp_path: Path) -> None:
    text = '[sweep.product]\nprofile = ["published", "recommended"]\n"relay.count" = [1, 3]\n'
    found = [
        (sum(one.kind == "engine" for one in cell.cast), cell.cast[0].config.hints)
        for cell in load(tmp_path, text).scenarios
    ]
    assert found == [(1, False), (3, False), (1, True), (3, True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("demo", "relay")]),
        ("[relay]\ncount = 2\n", [("demo-relay-1", "relay-1"), ("demo-relay-2", "relay-2")]),
        ('[session]\nname = "a"\n', [("a", "relay")]),
        (
            '[relay]\ncount = 2\n[[session]]\nname = "a"\nrelay = "relay-2"\n[[session]]\nname="b"',
            [("a", "relay-2"), ("b", "relay-1")],
        ),
        ("session = []\n[workload]\nruns = 0\n", []),
    ],
)
def test_sessions(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    sessions = load(tmp_path, text).scenarios[0].sessions
    assert [(one.name, one.relay) for one in sessions] == expected


def test_faults_get_names(tmp_path: Path) -> None:
    text = '[[fault]]\nkind = "drop"\n[[fault]]\nkind = "drop"\nname = "mine"\n'
    assert [one.name for one in load(tmp_path, text).scenarios[0].faults] == ["drop-1", "mine"]
    clash = '[[fault]]\nkind = "drop"\n[[fault]]\nkind = "drop"\nname = "drop-1"\n'
    assert told(tmp_path, clash) == ['5 "drop-1": two faults are called "drop-1"']


def test_places_after_a_broken_element(tmp_path: Path) -> None:
    text = '[[link]]\nlatency = "x"\n[[link]]\nfrom = "nobody"\nlatency = "1s"\n'
    assert [one.split(":")[0] for one in told(tmp_path, text)] == ['2 "x"', '4 "nobody"']


def test_tables_of_an_array_and_of_a_single_table() -> None:
    assert list(tables_of("link", {"a": 1})) == [(("link",), {"a": 1})]
    assert list(tables_of("link", [1, 2])) == [(("link", 0), 1), (("link", 1), 2)]
    assert list(tables_of("link", ({},))) == [(("link", 0), {})]


def load_cell(
    data: dict[str, Any], known: dict[Hashable, Part]
) -> tuple[Scenario | None, list[str]]:
    decoder = Decoder(Source("cell.toml", HEAD, data))
    scenario = CellLoader(decoder, data, Path(), known).load()
    return scenario, [problem.message for problem in decoder.problems]


def test_parts_are_decoded_once_by_identity() -> None:
    known: dict[Hashable, Part] = {}
    data = {"schema": 1, "name": "x", "relay": {"poll": "5s"}, "agent": {"runs": 2}}
    first, _ = load_cell(data, known)
    second, _ = load_cell({**data, "agent": {"runs": 3}}, known)
    third, _ = load_cell({**data, "relay": {"poll": "5s"}}, known)
    assert first is not None
    assert second is not None
    assert third is not None
    assert [a.config is b.config for a, b in zip(first.cast, second.cast, strict=True)] == [
        one.kind != "agent" for one in first.cast
    ]
    assert [a.config is b.config for a, b in zip(first.cast, third.cast, strict=True)] == [
        one.kind not in ("relay", "agent") for one in first.cast
    ]


def test_a_part_with_problems_spoils_each_cell_that_has_it_and_is_told_once() -> None:
    known: dict[Hashable, Part] = {}
    data = {"schema": 1, "name": "x", "relay": {"poll": 5}}
    assert load_cell(data, known) == (None, ['"poll": 5 has no unit: write "5s" for seconds'])
    assert load_cell({**data, "agent": {"runs": 2}}, known) == (None, [])


def test_workload_is_an_agents_too_when_it_changes() -> None:
    known: dict[Hashable, Part] = {}
    data: dict[str, Any] = {"schema": 1, "name": "x"}
    for runs in (1, 2):
        scenario, _ = load_cell({**data, "workload": {"runs": runs}}, known)
        assert scenario is not None
        assert [one.config.runs for one in scenario.cast if one.kind == "agent"] == [runs]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[relay]\npoll = "0s"\n', "poll must be longer than 0s"),
        ('[relay]\ncontrol = "0s"\n', "control must be longer than 0s"),
        ('[agent]\ntimeout = "0s"\n', "timeout must be longer than 0s"),
        ('[engine]\nreport = "0s"\n', "report must be longer than 0s"),
        ("[engine]\nfailure = 5\n", "failure must be a probability, 0 to 1"),
        ("[server]\nagent_limit = -3\n", '"agent_limit" must be at least 1'),
    ],
)
def test_what_would_go_on_without_end_or_means_nothing_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(ScenarioError, match=re.escape(sentence)):
        load(tmp_path, text)
