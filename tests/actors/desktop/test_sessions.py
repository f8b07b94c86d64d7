"""Sessions of a deployed desktop: what is uploaded, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.desktop.messages import GraphSaved
from actors.desktop.sessions import (
    NAME_LIMIT_CHARS,
    TEXTS_LIMIT_BYTES,
    UPLOADED_LIMIT,
    Sessions,
    description_of,
    digest_of,
)
from actors.messages import Disable, Rename, Share, Unshare
from actors.stores.memory import MemoryStore


def opened(store: Any = None) -> Sessions:
    sessions = Sessions((), strict=False)
    sessions.open(store or MemoryStore([]))
    return sessions


def add(sessions: Sessions, name: str, project: str = "p") -> str:
    row = sessions.add(f"gs_{name}", name, project)
    sessions.enable_new(project)
    sessions.save(row, GraphSaved(session=row.meta.id, version=1, sha256="x"))
    return row.meta.id


def slugs(sessions: Sessions) -> list[str]:
    return [meta.slug for meta in sessions.shared()]


def test_a_new_session_is_shared_by_nobody_until_it_is_ticked() -> None:
    sessions = opened()
    one = add(sessions, "My Graph")
    assert slugs(sessions) == []
    sessions.change(Share(session=one))
    assert slugs(sessions) == ["my-graph"]


def test_the_first_hundred_that_were_ticked_are_uploaded_and_the_next_comes_in_for_one() -> None:
    store = MemoryStore([])
    sessions = opened(store)
    ids = [add(sessions, f"s{number:03}") for number in range(UPLOADED_LIMIT + 2)]
    for one in reversed(ids):
        sessions.change(Share(session=one))
    expected = [f"s{number:03}" for number in reversed(range(2, UPLOADED_LIMIT + 2))]
    assert slugs(sessions) == expected == slugs(opened(store))
    states = {state.meta.slug: state for state in sessions.states("", 1_000)}
    assert [slug for slug, state in states.items() if not state.uploaded] == ["s000", "s001"]
    sessions.change(Unshare(session=ids[50]))
    assert slugs(sessions)[-1] == "s001"
    sessions.change(Share(session=ids[50]))
    assert "s050" not in slugs(sessions), "it is behind those that were ticked before"


def test_ticking_again_or_renaming_keeps_the_place() -> None:
    sessions = opened()
    ids = [add(sessions, name) for name in ("a", "b")]
    for one in (*ids, ids[0]):
        sessions.change(Share(session=one))
    sessions.change(Rename(session=ids[0], name="z"))
    assert slugs(sessions) == ["z", "b"]
    assert sessions.named("a") is None
    assert sessions.named("z") is not None


def test_a_disabled_project_makes_room() -> None:
    sessions = opened()
    for name, project in (("a", "p"), ("b", "q")):
        sessions.change(Share(session=add(sessions, name, project)))
    sessions.change(Disable(project="p"))
    assert slugs(sessions) == ["b"]
    assert [state.enabled for state in sessions.states("", 9)] == [False, True]


def test_saving_anew_is_no_other_consent() -> None:
    sessions = opened()
    one = add(sessions, "a")
    sessions.change(Share(session=one))
    row = sessions.named("a")
    assert row is not None
    now = sessions.save(row, GraphSaved(session=one, version=2, sha256="y", description="D"))
    assert (now.meta.version, now.meta.description, now.sha256) == (2, "D", "y")
    assert now.meta.generation == row.meta.generation
    assert slugs(sessions) == ["a"]


@pytest.mark.parametrize("name", ["", "  ", "!!", "a" * (NAME_LIMIT_CHARS + 1), "a\0", "a\ud800"])
def test_a_name_without_a_slug_or_an_end_is_refused(name: str) -> None:
    refusal = opened().misnamed(name)
    assert refusal is not None
    assert refusal.code == "bad_request"


def test_a_name_is_taken_by_another_and_not_by_itself() -> None:
    sessions = opened()
    one = add(sessions, "My Graph")
    refusal = sessions.misnamed("my  GRAPH!")
    assert refusal is not None
    assert (refusal.code, "'My Graph'" in refusal.error) == ("name_taken", True)
    assert sessions.misnamed("my  GRAPH!", one) is None


@pytest.mark.parametrize(
    ("entry", "texts", "why"),
    [
        ("main", {}, "no text for the Graph 'main'"),
        ("main", {"main": "é" * TEXTS_LIMIT_BYTES}, "524,288 bytes at most, and this 1,048,576"),
        ("main", {"main": "\ud800"}, "'main' is no Unicode text"),
        ("main", {"main": "1", "x": "export const meta = {a: b}"}, "x: line 1, column 25: meta"),
    ],
)
def test_texts_that_are_no_graph_are_refused_with_the_place(
    entry: str, texts: dict[str, str], why: str
) -> None:
    refusal = opened().unfit(entry, texts)
    assert refusal is not None
    assert refusal.code == "no_graph"
    assert why in refusal.error


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=9), min_size=1, max_size=4))
def test_a_digest_names_the_texts_whatever_their_order(texts: dict[str, str]) -> None:
    entry = next(iter(texts))
    assert digest_of(entry, dict(reversed(texts.items()))) == digest_of(entry, texts)
    for name, text in texts.items():
        assert digest_of(entry, texts | {name: text + "x"}) != digest_of(entry, texts)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("export const meta = {description: 'Does it'}\n", "Does it"),
        ("export const meta = {description: 7}\n", ""),
        ("return 1", ""),
        (f"export const meta = {{description: '{'d' * 2_000}'}}\n", "d" * 1_000),
    ],
)
def test_a_description_is_what_the_graph_says_of_itself(text: str, description: str) -> None:
    assert description_of(text) == description
