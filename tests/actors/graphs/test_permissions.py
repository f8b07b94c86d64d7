"""Who may use which tool: the nearest line counts, the strictest caller too, silence denies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.graphs.permissions import Permission, Rights, check_permissions

RIGHTS = Rights(
    {
        "*": {"read_file": "allow", "shell": "ask", "mcp__docs__*": "allow"},
        "triage": {"shell": "allow", "read_file": "deny", "mcp__docs__write": "ask"},
        "open": {"*": "ask", "http_*": "allow"},
    }
)
STRICTNESS = ("deny", "ask", "allow")


@pytest.mark.parametrize(
    ("graph", "tool", "permission"),
    [
        ("any", "read_file", "allow"),
        ("any", "shell", "ask"),
        ("any", "http_get", "deny"),
        ("any", "mcp__docs__search", "allow"),
        ("any", "mcp__docs", "deny"),
        ("triage", "shell", "allow"),
        ("triage", "read_file", "deny"),
        ("triage", "mcp__docs__write", "ask"),
        ("triage", "mcp__docs__search", "allow"),
        ("open", "anything", "ask"),
        ("open", "http_get", "allow"),
        ("open", "read_file", "ask"),
        ("any", "*", "deny"),
    ],
)
def test_the_line_that_says_most_counts(graph: str, tool: str, permission: str) -> None:
    assert RIGHTS.of((graph,), tool) == permission


def test_without_a_line_everything_is_denied() -> None:
    assert Rights({}).of(("triage",), "read_file") == "deny"
    assert RIGHTS.of((), "read_file") == "deny"


def test_a_graph_has_no_more_rights_than_those_that_call_it() -> None:
    assert RIGHTS.of(("any", "triage"), "shell") == "ask"
    assert RIGHTS.of(("triage", "any"), "read_file") == "deny"


NAMES = st.sampled_from(["a", "b", "*", "ab", "a*"])
TABLES = st.dictionaries(
    st.sampled_from(["*", "one", "two"]),
    st.dictionaries(NAMES, st.sampled_from(STRICTNESS), max_size=4),
)


@given(table=TABLES, graphs=st.lists(st.sampled_from(["one", "two", "three"]), max_size=4))
def test_each_caller_more_makes_it_stricter_or_leaves_it(
    table: dict[str, dict[str, Permission]], graphs: list[str]
) -> None:
    rights = Rights(table)
    for tool in ("a", "ab", "b", "c"):
        found = [rights.of(graphs[:n], tool) for n in range(1, len(graphs) + 1)]
        strictness = [STRICTNESS.index(one) for one in found]
        assert strictness == sorted(strictness, reverse=True)


@pytest.mark.parametrize(
    ("table", "asks"),
    [
        ({}, False),
        ({"*": {"shell": "allow"}}, False),
        ({"*": {"shell": "ask"}}, True),
        ({"main": {"shell": "allow"}, "part": {"shell": "ask"}}, True),
        ({"part": {"shell": "ask"}}, False),
        ({"stranger": {"shell": "ask"}}, False),
        ({"main": {"mcp__*": "ask"}, "part": {"*": "allow"}}, True),
    ],
)
def test_whether_a_run_can_come_to_ask(table: dict[str, dict[str, Permission]], asks: bool) -> None:
    assert Rights(table).may_ask("main", ["main", "part"]) is asks


@pytest.mark.parametrize("table", [{"": {}}, {"main": {"": "ask"}}, {"*": {"mcp__*__x": "ask"}}])
def test_names_that_never_match_are_refused(table: dict[str, dict[str, Permission]]) -> None:
    with pytest.raises(ValueError, match="permissions"):
        check_permissions(table)
