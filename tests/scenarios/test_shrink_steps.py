"""The passes by themselves: on data that nobody runs, with predicates that say what is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.places import Keys
from scenarios.shrink import OutOfTimeError, Search, shrink
from scenarios.shrink_steps import (
    Rules,
    at,
    earlier_end,
    fewer_faults,
    fewer_keys,
    leaves,
    less_work,
    one_replication,
    other_times,
    passes_of,
    replaced,
    simpler_values,
    single_acts,
    without,
)
from transports.units import parse_duration

Data = dict[str, Any]
DATA: Data = {
    "schema": 1,
    "name": "tried",
    "run": {"seed": 7, "replications": 4, "until": "1h20m", "converge": "30m", "check": "all"},
    "workload": {"runs": 6, "every": "30s"},
    "agent": [{"poll": "every 10s"}, {"name": "other", "cancel": "uniform(0s, 60s)"}],
    "relay": {"count": 3, "poll": "5s"},
    "step": [{"at": "47.3s", "do": "unshare"}, {"at": "2m", "do": "share"}],
    "fault": [
        {"kind": "drop", "name": "a", "probability": 0.0312, "for": "20m", "from": "relay"},
        {"kind": "kill", "name": "b", "actor": "server", "at": "100s", "down": "12.5s"},
        {"kind": "drop", "name": "c", "message": "Sync", "nth": 9, "for": "20m", "to": "server"},
    ],
}


def searched(holds: Callable[[Data], bool], data: Data = DATA) -> Search:
    """A search whose predicate holds for what it begins with."""
    assert holds(data)
    return Search(data, holds)


def names(data: Data) -> list[str]:
    return [one.get("name", "") for one in data.get("fault", [])]


def no_acts(data: Data) -> list[list[Data]]:
    return [[] for _ in data.get("fault", [])]


def test_faults_that_are_not_needed_go() -> None:
    search = searched(lambda data: "b" in names(data))
    fewer_faults(search)
    assert names(search.best) == ["b"]
    search = searched(lambda _: True)
    fewer_faults(search)
    assert "fault" not in search.best


def test_a_fault_by_chance_becomes_the_acts_that_matter() -> None:
    acts = [{"kind": "drop", "nth": number, "name": f"a-{number}"} for number in range(20, 0, -1)]

    def explain(data: Data) -> list[list[Data]]:
        return [acts if one.get("name") == "a" else [] for one in data["fault"]]

    search = searched(lambda data: "a" in names(data) or {"a-3", "a-17"} <= set(names(data)))
    single_acts(search, explain)
    assert names(search.best) == ["a-17", "a-3", "b", "c"]
    many = {f"a-{number}" for number in range(5, 11)}
    search = searched(lambda data: "a" in names(data) or many <= set(names(data)))
    single_acts(search, explain)
    assert search.best == DATA, "six acts are no simpler than one probability"


def test_a_fault_that_is_sure_becomes_one_act_or_stays() -> None:
    acts = [{"kind": "kill", "actor": "server", "at": f"{at}s", "name": f"b-{at}"} for at in (5, 9)]

    def explain(data: Data) -> list[list[Data]]:
        return [acts if one.get("name") == "b" else [] for one in data["fault"]]

    search = searched(lambda data: bool({"b", "b-9"} & set(names(data))))
    single_acts(search, explain)
    assert names(search.best) == ["a", "b-9", "c"]

    def both(data: Data) -> bool:
        return "b" in names(data) or {"b-5", "b-9"} <= set(names(data))

    search = searched(both)
    single_acts(search, explain)
    assert search.best == DATA
    again = replaced(DATA, ("fault", 1, "every"), "5m")
    search = searched(both, again)
    single_acts(search, explain)
    assert names(search.best) == ["a", "b-5", "b-9", "c"]


def test_a_conversion_that_the_budget_cuts_off_is_none() -> None:
    acts = [{"kind": "drop", "nth": number, "name": f"a-{number}"} for number in range(9, 0, -1)]
    search = Search(DATA, lambda _: True, late=lambda: search.tries >= 1)
    with pytest.raises(OutOfTimeError):
        single_acts(search, lambda _: [acts, [], []])
    assert search.best is DATA


def test_there_are_fewer_actors_steps_and_runs() -> None:
    def holds(data: Data) -> bool:
        agents = data.get("agent", {})
        agents = agents if isinstance(agents, list) else [agents]
        return any("cancel" in one for one in agents) and data["workload"]["runs"] >= 4

    search = searched(holds)
    less_work(search, Rules())
    assert search.best["agent"] == DATA["agent"][1]
    assert "step" not in search.best
    assert search.best["workload"]["runs"] == 4
    assert search.best["relay"]["count"] == 1


def test_keys_that_the_defaults_do_as_well_go_and_what_must_stay_stays() -> None:
    search = searched(lambda data: at(data, ("workload", "runs")) == 6)
    fewer_keys(search, Rules(fixed=[("relay", "poll")]))
    assert search.best == {
        "schema": 1,
        "name": "tried",
        "run": {"seed": 7, "replications": 4, "check": "all"},
        "workload": {"runs": 6},
        "agent": [{}, {}],
        "relay": {"poll": "5s"},
        "step": [{}, {}],
        "fault": [
            {"kind": "drop", "probability": 0.0312, "for": "20m", "from": "relay"},
            {"kind": "kill"},
            {"kind": "drop", "message": "Sync", "nth": 9},
        ],
    }
    search = searched(lambda _: True)
    fewer_keys(search, Rules(timed=True))
    assert search.best["run"] == DATA["run"]


def test_values_become_simple() -> None:
    def holds(data: Data) -> bool:
        down = data["fault"][1]["down"]
        shown = parse_duration(down) > 2_500_000 and down not in ("5s", "10s")
        return data["fault"][2]["nth"] >= 3 and shown

    search = searched(holds)
    simpler_values(search, Rules(fixed=[("relay", "poll")]))
    faults = search.best["fault"]
    assert faults[2]["nth"] == 3
    assert faults[1]["at"] == "0s"
    assert faults[1]["down"] in ("3s", "6s", "9s")
    assert faults[0]["probability"] == 0.03
    assert search.best["agent"][1]["cancel"] == "0s"
    assert search.best["relay"]["poll"] == "5s"
    assert search.best["run"] == {"seed": 7, "replications": 4, "check": "all"}


def test_the_end_comes_sooner_unless_it_is_what_is_looked_at() -> None:
    search = searched(lambda data: data["run"].get("until", "9h") in ("1h20m", "1h"))
    earlier_end(search, Rules(timed=True))
    assert search.best["run"]["until"] == "1h"
    assert search.best["run"]["converge"] == "30m"
    search = searched(lambda _: True)
    earlier_end(search, Rules(kind="limit reached", timed=True))
    assert search.best is DATA


def test_a_seed_or_a_sure_duration_lets_the_first_replication_show_it() -> None:
    def by_seed(data: Data) -> bool:
        return "replications" in data["run"] or data["run"]["seed"] == 19

    search = searched(by_seed)
    one_replication(search)
    assert search.best["run"]["seed"] == 19

    def by_duration(data: Data) -> bool:
        return "replications" in data["run"] or at(data, ("engine", "duration")) == "25s"

    search = searched(by_duration)
    one_replication(search)
    assert search.best["run"]["seed"] == 7
    tries = search.tries
    search.best = {**search.best, "run": {"replications": 1}}
    one_replication(search)
    assert search.tries == tries, "there is one already"


def test_less_may_do_at_another_time() -> None:
    def holds(data: Data) -> bool:
        runs, down = data["workload"]["runs"], at(data, ("fault", 0, "at"))
        return bool(runs == 3 or (runs == 1 and down == "20s"))

    data = {"workload": {"runs": 3}, "fault": [{"kind": "kill", "actor": "x", "at": "5m"}]}
    search = searched(holds, data)
    other_times(search, Rules())
    assert search.best == {"workload": {"runs": 1}, "fault": [{**data["fault"][0], "at": "20s"}]}  # type: ignore[index]  # it has one


def test_several_times_may_have_to_change_at_once() -> None:
    def holds(data: Data) -> bool:
        one, two = (at(data, path) for path in (("workload", "every"), ("agent", "cancel")))
        return "fault" in data or (one == "15s" and two in ("40s", "50s", "1m"))

    data = {
        "workload": {"runs": 1, "every": "30s"},
        "agent": {"cancel": "0s"},
        "fault": [{"kind": "drop", "message": "Sync", "nth": 9}],
    }
    search = searched(holds, data)
    other_times(search, Rules())
    assert "fault" not in search.best


def test_two_things_may_only_come_earlier_together() -> None:
    def holds(data: Data) -> bool:
        kill, ends = (parse_duration(at(data, path)) for path in PAIR)
        return ends - kill == 9_000_000

    data = {
        "engine": {"duration": "6m9s"},
        "fault": [{"kind": "kill", "actor": "relay", "at": "6m"}],
    }
    search = searched(holds, data)
    simpler_values(search, Rules())
    assert [at(search.best, path) for path in PAIR] == ["0s", "9s"]


PAIR: tuple[Keys, Keys] = (("fault", 0, "at"), ("engine", "duration"))


def test_all_passes_together_come_to_an_end_that_can_t_be_made_smaller() -> None:
    def holds(data: Data) -> bool:
        return "c" in names(data) and at(data, ("workload", "runs")) in (2, 4, 6)

    search = searched(holds)
    assert shrink(search, passes_of(no_acts, Rules())) == []
    assert search.best == {
        "schema": 1,
        "name": "tried",
        "run": {"seed": 7, "check": "all"},
        "workload": {"runs": 2},
        "fault": [{"kind": "drop", "name": "c", "message": "Sync", "nth": 1}],
    }


VALUES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=2), VALUES), st.data())
def test_every_leaf_can_be_found_changed_and_taken_away(data: Data, draw: st.DataObject) -> None:
    found = list(leaves(data))
    for path, value in found:
        assert at(data, path) == value
        if path:
            changed = replaced(data, path, "new")
            assert at(changed, path) == "new"
            assert [one for one, _ in leaves(changed)] == [one for one, _ in found]
    paths = [path for path, _ in found if path and isinstance(path[-1], str)]
    gone = draw.draw(st.lists(st.sampled_from(paths), unique=True) if paths else st.just([]))
    left = [path for path, _ in leaves(without(data, gone))]
    assert not set(gone) & set(left)


def test_a_path_may_be_new_and_an_empty_table_goes() -> None:
    assert replaced({}, ("engine", "duration"), "1s") == {"engine": {"duration": "1s"}}
    assert at({"a": [1]}, ("a", 5)) is None
    assert without({"a": {"b": 1}, "c": [{"d": 1}], "e": {}}, [("a", "b"), ("c", 0, "d")]) == {
        "c": [{}],
        "e": {},
    }
