"""Where two logs part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.diff import MISSING, compare, differences, headers, pairs_of, parting
from logs.record import EndRecord, EventRecord, MessageRecord
from logs.seek import entries_of
from tests.logs.samples import OUTBOX_RUN, header, log_of, section

LOG = log_of("published/outbox")


def test_equal_logs_part_nowhere_though_their_headers_differ() -> None:
    other = LOG.replace(b'"python":"3.', b'"python":"4.', 1)
    found = compare(section(LOG), section(other))
    assert found.parting is None
    assert [path for path, _, _ in found.header] == ["python"]


def test_the_first_record_that_differs_is_found_with_its_fields_and_causes() -> None:
    lines = LOG.splitlines(keepends=True)
    lines[45] = lines[45].replace(b'"actor":"relay"', b'"actor":"other"')
    lines[60] = lines[60].replace(b'"t":', b'"t":1')
    found = parting(section(LOG), section(b"".join(lines)))
    assert found is not None
    assert found.equal == 44
    assert [record.n for record in found.before] == [42, 43, 44]
    assert found.fields == [("actor", "relay", "other")]
    assert isinstance(found.left.record, MessageRecord)
    assert (found.left.record.actor, getattr(found.right.record, "actor", "")) == ("relay", "other")
    chain = [record.n for record in found.left.causes]
    assert chain == [record.n for record in found.right.causes]
    assert chain[-1] == found.left.record.cause


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_log_that_ends_before_the_other_parts_where_it_ends(cut: int) -> None:
    whole = section(LOG)
    short = section(b"".join(LOG.splitlines(keepends=True)[:-cut]))
    found = parting(whole, short)
    assert found is not None
    assert found.equal == len(whole.records) - cut + 1
    assert found.right.record is None
    assert isinstance(found.left.record, EndRecord) == (cut == 1)
    other = parting(short, whole)
    assert other is not None
    assert (other.left, other.right) == (found.right, found.left)


def test_ids_may_be_taken_for_the_same_by_where_they_appear() -> None:
    one, other = (
        section(b'{"kind":"header"' + part)
        for part in log_of("published/outbox", 0, 2).split(b'{"kind":"header"')[1:]
    )
    found = parting(one, other)
    assert found is not None
    assert found.equal == 4
    assert parting(one, other, ignore_ids=True) is None
    lines = LOG.splitlines(keepends=True)
    run = OUTBOX_RUN.encode()
    lines[51] = lines[51].replace(run, run.replace(b"1", b"2"))
    swapped = parting(section(LOG), section(b"".join(lines)), ignore_ids=True)
    assert swapped is not None
    assert swapped.equal == 50
    assert [path for path, _, _ in swapped.fields] == ["fields.run"]


def test_what_was_run_is_told_before_its_scenario_and_where_it_was_run_is_not() -> None:
    one = header(seed=1, resolved={"relay": {"poll": "20s"}}, folder="/a", command="a")
    other = header(seed=2, resolved={"relay": {"poll": "5s"}}, folder="/b", command="b")
    assert list(headers(one, other)) == [("seed", 1, 2), ("relay.poll", "20s", "5s")]


def test_sections_are_paired_by_scenario_cell_and_replication(tmp_path: Path) -> None:
    left, right = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    left.write_bytes(log_of("published/outbox", 0, 3))
    right.write_bytes(log_of("published/outbox", 1, 1) + log_of("published/outbox", 0, 2))
    pairs, ours, theirs = pairs_of(entries_of(left), entries_of(right))
    assert [(a.key == b.key, a.replication) for a, b in pairs] == [(True, 0), (True, 1)]
    assert [entry.replication for entry in ours] == [2]
    assert [entry.cell for entry in theirs] == ["relay.outbox=false"]


def test_two_logs_of_one_cell_each_are_compared_by_replication(tmp_path: Path) -> None:
    left, right = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    left.write_bytes(log_of("published/outbox", 0, 2))
    right.write_bytes(log_of("published/outbox", 1, 3))
    pairs, ours, theirs = pairs_of(entries_of(left), entries_of(right))
    assert [(a.replication, b.replication) for a, b in pairs] == [(0, 0), (1, 1)]
    assert (ours, [entry.replication for entry in theirs]) == ([], [2])
    left.write_bytes(log_of("published/outbox", 0, 1))
    right.write_bytes(log_of("published/cancel", 0, 1))
    assert len(pairs_of(entries_of(left), entries_of(right))[0]) == 1


def test_of_sections_with_the_same_name_the_first_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LOG * 2)
    entries = entries_of(path)
    pairs, ours, theirs = pairs_of(entries, entries)
    assert [(a.line, b.line) for a, b in pairs] == [(e.line, e.line) for e in entries]
    assert (ours, theirs) == ([], [])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_values_differ_if_and_only_if_a_field_is_told(left: Any, right: Any) -> None:
    found = list(differences(left, right))
    assert bool(found) == (_encoded(left) != _encoded(right))
    assert [(path, b, a) for path, a, b in found] == sorted_like(found, differences(right, left))
    assert list(differences(left, left)) == []


_encoded = msgspec.json.Encoder(order="sorted").encode


def sorted_like(found: Any, other: Any) -> Any:
    """The differences the other way round, in the order of the first."""
    known = {path: (path, a, b) for path, a, b in other}
    return [known[path] for path, _, _ in found]


def test_a_field_that_one_side_lacks_is_told_as_missing() -> None:
    assert list(differences({"a": [1, {"b": 2}]}, {"a": [1], "c": None})) == [
        ("a[1]", {"b": 2}, MISSING),
        ("c", MISSING, None),
    ]
    one = EventRecord(1, 0, "a", 0, "x", {"f": 1})
    assert list(differences(msgspec.to_builtins(one), msgspec.to_builtins(one))) == []
