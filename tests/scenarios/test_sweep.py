"""Product, zip and exclude give cells; subscripts find them again, whatever their values are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.sweep import Cell, cells_of, value_text
from tests.scenarios.loading import load, told

VALUES = st.one_of(
    st.integers(),
    st.booleans(),
    st.sampled_from(["every 2s", "after 5s, 10s, 30s", "lognormal(median=1m, sigma=0.8, min=5s)"]),
    st.text("ab=, .[]", min_size=1, max_size=8),
    st.lists(st.sampled_from(["done", "run.terminal"]), min_size=1, max_size=2),
)
KEYS = st.sampled_from(["agent.poll", "relay.poll", "run.until", "profile", "session.a.shared"])
AXES = st.dictionaries(KEYS, st.lists(VALUES, min_size=1, max_size=3, unique_by=value_text))


def labels(folder: Path, text: str) -> list[str]:
    return [cell.label for cell in load(folder, text).cells]


# Cells


@given(AXES, st.integers(0, 3))
def test_a_product_has_every_combination_once(axes: dict[str, list[Any]], rows: int) -> None:
    zipped = {"zip.a": list(range(rows)), "zip.b": list(range(rows))} if rows else {}
    cells = cells_of(axes, zipped, [])
    assert len(cells) == math.prod(map(len, axes.values())) * max(rows, 1)
    assert len({cell.assignments.__repr__() for cell in cells}) == len(cells)
    for cell in cells:
        assert [key for key, _ in cell.assignments] == [*axes, *zipped]
        if rows:
            assert cell.assignments[-1][1] == cell.assignments[-2][1]


@given(AXES.filter(bool), st.data())
def test_an_excluded_row_takes_out_the_cells_that_have_all_of_it(
    axes: dict[str, list[Any]], data: st.DataObject
) -> None:
    keys = data.draw(st.lists(st.sampled_from(sorted(axes)), min_size=1, unique=True))
    row = {key: data.draw(st.sampled_from(axes[key])) for key in keys}
    left = cells_of(axes, {}, [row])
    taken = math.prod(1 if key in row else len(values) for key, values in axes.items())
    assert len(left) == math.prod(map(len, axes.values())) - taken
    wanted = {key: value_text(value) for key, value in row.items()}
    for cell in left:
        assert wanted.items() - {key: value_text(v) for key, v in cell.assignments}.items()


@given(AXES, st.data())
def test_a_cell_is_found_by_its_label_and_by_part_of_it(
    axes: dict[str, list[Any]], data: st.DataObject
) -> None:
    cells = cells_of(axes, {}, [])
    cell = data.draw(st.sampled_from(cells))
    assert cell.matches(cell.label)
    pairs = data.draw(st.permutations([f"{key}={value_text(v)}" for key, v in cell.assignments]))
    some = pairs[: data.draw(st.integers(1, max(len(pairs), 1)))]
    assert not pairs or cell.matches(", ".join(some).strip())


def test_no_other_cell_has_a_whole_label() -> None:
    values = ["after 5s", "after 5s, 10s", "10s"]
    cells = cells_of({"agent.poll": values, "x.y": ["1", "1, agent.poll=10s"]}, {}, [])
    for cell in cells:
        assert [other for other in cells if other.matches(cell.label)] == [cell]


@pytest.mark.parametrize(
    ("assignments", "label", "subscripts"),
    [
        ((), "", [""]),
        (
            (("agent.poll", "after 5s, 10s"),),
            "agent.poll=after 5s, 10s",
            ["after 5s, 10s", "agent.poll=after 5s, 10s"],
        ),
        ((("relay.outbox", True),), "relay.outbox=true", ["true", "relay.outbox=true"]),
        ((("agent.runs", 5),), "agent.runs=5", ["5"]),
        ((("fault.a.probability", 0.1),), "fault.a.probability=0.1", ["0.1"]),
        ((("run.until", ["done", "1h"]),), "run.until=done, 1h", ["done, 1h"]),
        (
            (("engine.duration", "uniform(1s, 2s)"), ("agent.runs", 5)),
            "engine.duration=uniform(1s, 2s), agent.runs=5",
            [
                "engine.duration=uniform(1s, 2s)",
                "agent.runs=5",
                "agent.runs=5,engine.duration=uniform(1s, 2s)",
            ],
        ),
        ((("a.b", {"x": 1, "y": True}),), "a.b=x 1, y true", ["x 1, y true"]),
    ],
)
def test_labels_and_subscripts(
    assignments: tuple[tuple[str, Any], ...], label: str, subscripts: list[str]
) -> None:
    cell = Cell(assignments)
    assert cell.label == label
    assert all(cell.matches(subscript) for subscript in subscripts)


def test_what_means_no_cell() -> None:
    cell = Cell((("engine.duration", "uniform(1s, 2s)"), ("agent.runs", 5)))
    for subscript in ("", "5", "agent.runs=6", "engine.duration=uniform(1s", "agent.runs=5,", "x"):
        assert not cell.matches(subscript), subscript


# In a file


def test_product_zip_and_exclude_together(tmp_path: Path) -> None:
    text = """
    [sweep.product]
    "agent.poll" = ["every 2s", "never"]
    [sweep.zip]
    "relay.poll" = ["5s", "20s"]
    "agent.runs" = [1, 2]
    [[sweep.exclude]]
    "agent.poll" = "never"
    "agent.runs" = 2
    """
    assert labels(tmp_path, text) == [
        "agent.poll=every 2s, relay.poll=5s, agent.runs=1",
        "agent.poll=every 2s, relay.poll=20s, agent.runs=2",
        "agent.poll=never, relay.poll=5s, agent.runs=1",
    ]


KEYS_OF_A_FILE = """
[[agent]]
name = "slow"
[[agent]]
[[session]]
name = "demo"
[[fault]]
kind = "drop"
name = "lossy"
probability = 0.5
[[link]]
latency = "1s"
[[step]]
at = "5s"
do = "share"
"""


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("slow.poll", '"never", "every 2s"'),
        ("agent.slow.poll", '"never", "every 2s"'),
        ("agent.runs", "1, 2"),
        ("agent.use", '"built-in"'),
        ("relay.count", "1, 3"),
        ("workload.runs", "1, 2"),
        ("session.demo.shared", "true, false"),
        ("session.shared", "true, false"),
        ("fault.lossy.probability", "0.1, 0.9"),
        ("fault.probability", "0.1, 0.9"),
        ("link.latency", '"1s", "2s"'),
        ("step.do", '"share", "unshare"'),
        ("run.until", '"done", ["done", "1h"]'),
        ("run.replications", "1, 2"),
        ("profile", '"published", "recommended"'),
        ("repetition", "1, 2"),
    ],
)
def test_what_can_be_swept_and_set(tmp_path: Path, key: str, values: str) -> None:
    found = labels(tmp_path, f'{KEYS_OF_A_FILE}\n[sweep.product]\n"{key}" = [{values}]\n')
    assert all(label.startswith(f"{key}=") for label in found)
    first = values.partition(", ")[0]
    assert load(tmp_path, KEYS_OF_A_FILE, f"{key}={first}").overrides.keys() == {key}


def test_a_swept_value_reaches_its_table_alone(tmp_path: Path) -> None:
    text = (
        f'{KEYS_OF_A_FILE}\n[sweep.product]\n"slow.runs" = [7]\n"session.demo.shared" = [false]\n'
    )
    scenario = load(tmp_path, text).scenarios[0]
    runs = {one.name: one.config.runs for one in scenario.cast if one.kind == "agent"}
    assert runs == {"slow": 7, "agent-2": 1}
    assert [session.shared for session in scenario.sessions] == [False]


PRODUCT = "[sweep.product]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{PRODUCT}"agent.poll" = []', '2 []: "agent.poll" is swept over no value'),
        (
            f'{PRODUCT}agent.poll = ["never"]',
            '2 agent: "agent" names no value / put the whole key in quotes: "agent.poll" = [...]',
        ),
        (
            f'{PRODUCT}"agent.poll" = "never"',
            (
                '2 "never": "agent.poll" must be an array of values '
                '/ put it in brackets: "agent.poll" = [...]'
            ),
        ),
        (
            f'{PRODUCT}"agent.pol" = ["never", "every 2s"]',
            '2 "agent.pol": unknown key "pol" in [agent] / did you mean "poll"?',
        ),
        (
            f'{PRODUCT}"agnt.poll" = ["never"]',
            '2 "agnt.poll": "agnt.poll" can\'t be swept / did you mean "agent.poll"?',
        ),
        (
            f'{PRODUCT}"profil" = ["published"]',
            '2 "profil": "profil" can\'t be swept / did you mean "profile"?',
        ),
        (
            f'{PRODUCT}"agent.poll" = ["never", "never"]',
            '2 "never": "never" is in the list twice',
        ),
        (f'{PRODUCT}"server.hints" = [true, "true"]', '2 "true": "true" is in the list twice'),
        (
            f'{PRODUCT}"relay.poll" = ["5s", 5]\n"agent.runs" = [1, 2]',
            '2 5: "poll": 5 has no unit: write "5s" for seconds',
        ),
        (
            f'{PRODUCT}"relay.use" = ["built-in", "no.py:X"]',
            '2 "no.py:X": there is no file "no.py" / it is looked for in FOLDER',
        ),
        (
            f'{PRODUCT}"session.dmo.shared" = [true]\n[[session]]\nname = "demo"',
            (
                '2 "session.dmo.shared": "session.dmo.shared" can\'t be swept '
                '/ did you mean "session.demo.shared"?'
            ),
        ),
        (
            f'{PRODUCT}"step.do" = ["share"]',
            '2 "step.do": "step.do" can\'t be swept / the file has no [[step]]',
        ),
        (
            f'{PRODUCT}"agent.session" = ["demo", "x"]',
            '2 "x": there is no session "x" / there is demo',
        ),
        (
            f'{PRODUCT}"relay.count" = [1, 2]\n[engine]\ncount = 2',
            (
                "3 engine: each relay has one engine: there is 1 relay and 2 engines "
                "/ write one [engine] for all, or as many as relays, in their order"
            ),
        ),
        (
            '[sweep.zip]\n"agent.poll" = ["never", "every 2s"]\n"agent.runs" = [1]',
            (
                "1 [sweep.zip]: zipped lists must be equally long: "
                "agent.poll has 2 and agent.runs has 1"
            ),
        ),
        (
            '[sweep.zip]\n"agent.poll" = ["never", "never"]\n"agent.runs" = [1, 1]',
            '2 "never": row 2 of [sweep.zip] is the same as row 1',
        ),
        (
            f'{PRODUCT}"agent.runs" = [1]\n[sweep.zip]\n"agent.runs" = [1]',
            '4 "agent.runs": "agent.runs" is swept twice',
        ),
        (
            f'{PRODUCT}"agent.runs" = [1, 2]\n[[sweep.exclude]]\n"agent.run" = 1',
            '4 "agent.run": "agent.run" is not swept / did you mean "agent.runs"?',
        ),
        (
            f'{PRODUCT}"agent.poll" = ["every 2s"]\n[[sweep.exclude]]\n"agent.poll" = "every 3s"',
            '4 "every 3s": "agent.poll" never has this value / did you mean "every 2s"?',
        ),
        (
            f'{PRODUCT}"agent.runs" = [1]\n[[sweep.exclude]]\n"agent.runs" = 1',
            "3 [[sweep.exclude]]: every cell of the sweep is excluded",
        ),
        (
            f'{PRODUCT}"agent.runs" = [1]\n[[sweep.exclude]]',
            "3 [[sweep.exclude]]: this would exclude every cell",
        ),
        (
            '[sweep]\n"agent.runs" = [1]',
            (
                '2 "agent.runs": unknown key "agent.runs" in [sweep] '
                "/ write it below [sweep.product] or [sweep.zip]"
            ),
        ),
        (
            '[sweep.products]\n"agent.runs" = [1]',
            '1 products: unknown key "products" in [sweep] / did you mean "product"?',
        ),
        ("[sweep]\nproduct = 5", '2 5: "product" must be a table, not an integer'),
        (
            f'{PRODUCT}"agent.runs" = {list(range(200))}\n"relay.count" = {list(range(1, 101))}',
            "1 sweep: this sweep has 20,000 cells; 10,000 are the limit",
        ),
    ],
)
def test_what_is_wrong_with_a_sweep(tmp_path: Path, text: str, expected: str) -> None:
    assert told(tmp_path, text) == [expected.replace("FOLDER", str(tmp_path))]


def test_a_cell_answers_to_its_values_alone() -> None:
    cell = Cell((("agent.poll", "every 2s"), ("relay.poll", "5s")))
    assert cell.matches("every 2s, 5s"), "as a table prints it"
    assert not cell.matches("5s, every 2s")
    assert not cell.matches("every 2s")
