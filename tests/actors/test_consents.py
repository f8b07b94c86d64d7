"""What an owner lets run: the whole of it against a model, whatever was said in which order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.actor import Session
from actors.consents import Change, Consents
from actors.messages import Disable, Enable, Rename, Share, Unshare
from actors.stores.memory import MemoryStore
from tests.actors.relaying import command

SESSIONS = tuple(
    Session(id=f"gs_{n}", name=f"s {n}", slug=f"s-{n}", project=f"p{n % 2}", relay="relay")
    for n in range(3)
)
IDS = st.sampled_from([session.id for session in SESSIONS])
PROJECTS = st.sampled_from(["p0", "p1"])
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(Share, session=IDS),
    st.builds(Unshare, session=IDS),
    st.builds(Rename, session=IDS, name=st.sampled_from(["a b", "c"])),
    st.builds(Enable, project=PROJECTS),
    st.builds(Disable, project=PROJECTS),
)


def opened(store: Any, *, strict: bool = False) -> Consents:
    consents = Consents(SESSIONS, strict)
    consents.open(store)
    return consents


@given(st.lists(CHANGES, max_size=12), st.booleans())
def test_what_may_run_is_what_was_said_last_whether_or_not_it_was_reopened(
    changes: list[Change], strict: bool
) -> None:
    store = MemoryStore([])
    consents = opened(store, strict=strict)
    ticked = {session.id: True for session in SESSIONS}
    slugs = {session.id: session.slug for session in SESSIONS}
    enabled = {"p0": True, "p1": True}
    generations = dict.fromkeys(ticked, 0)
    for change in changes:
        before = (dict(ticked), dict(slugs), dict(enabled))
        match change:
            case Share(session=one):
                ticked[one] = True
            case Unshare(session=one):
                ticked[one] = False
            case Rename(session=one, name=name):
                slugs[one] = name.replace(" ", "-")
            case Enable(project=name) | Disable(project=name):
                enabled[name] = isinstance(change, Enable)
        for session in SESSIONS:
            one, project = session.id, session.project
            changed = (ticked[one], slugs[one], enabled[project]) != (
                before[0][one], before[1][one], before[2][project],
            )  # fmt: skip
            generations[one] += changed
        consents.change(change)
    for held in (consents, opened(store, strict=strict)):
        shared = [s.id for s in SESSIONS if ticked[s.id] and enabled[s.project]]
        assert [meta.id for meta in held.shared()] == shared
        for session in SESSIONS:
            asked = command(session=session.id, slug=slugs[session.id], generation=0)
            same = generations[session.id] == 0 or not strict
            assert held.allow(asked) is (session.id in shared and same)
            assert not held.allow(command(session=session.id, slug="other"))
    assert not consents.allow(command(session="gs_9"))
