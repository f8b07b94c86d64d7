"""Data written as TOML reads as the same data."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.toml_text import toml_of

if sys.version_info >= (3, 15):
    import tomllib
else:
    import tomli as tomllib

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    TEXTS,
    st.dates(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_any_data_reads_as_it_was(data: dict[str, Any]) -> None:
    assert tomllib.loads(toml_of(data)) == data


def test_a_file_is_laid_out_as_people_write_it() -> None:
    data = {
        "schema": 1,
        "name": 'a "b"',
        "run": {"seed": 2, "check": ["x", "y"]},
        "sweep": {"product": {"relay.poll": ["5s"]}},
        "fault": [{"kind": "drop", "nth": 1}, {"kind": "kill", "at": "5s"}],
        "agent": {"arguments": {"deep": {"x": 0.5}}, "poll": None},
        "empty": {},
    }
    assert toml_of(data) == (
        'schema = 1\nname = "a \\"b\\""\n\n[run]\nseed = 2\ncheck = ["x", "y"]\n'
        '\n[sweep.product]\n"relay.poll" = ["5s"]\n\n[[fault]]\nkind = "drop"\nnth = 1\n'
        '\n[[fault]]\nkind = "kill"\nat = "5s"\n\n[agent.arguments.deep]\nx = 0.5\n\n[empty]\n'
    )


def test_what_is_no_data_is_refused() -> None:
    with pytest.raises(TypeError, match="no object"):
        toml_of({"x": object()})
    with pytest.raises(TypeError, match="no NoneType"):
        toml_of({"x": [None]})
