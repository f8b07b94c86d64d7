"""The history: every run once, the latest first, bounded by count, age and bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.desktop.chronicle import Chronicle
from actors.desktop.messages import PastRun
from actors.desktop.rows import RESULTS
from actors.messages import Completion
from actors.stores.memory import MemoryStore
from tests.actors.relaying import command


def opened(store: Any = None, runs: int = 100, age_us: int = 10**9, size: int = 10**6) -> Chronicle:
    chronicle = Chronicle(runs, age_us, size)
    chronicle.open(store or MemoryStore([]))
    return chronicle


def done(result: Any = None, status: Any = "completed", **more: Any) -> Completion:
    return Completion(execution_id="x", status=status, result=result, **more)


def ids(page: list[PastRun]) -> list[str]:
    return [run.command_id for run in page]


def test_a_run_is_there_from_its_start_and_has_its_end_once() -> None:
    chronicle = opened()
    chronicle.began(command("r1"), 3, 100)
    (run,) = chronicle.page(None, 9, None)
    assert (run.status, run.started_us, run.finished_us, run.version) == ("running", 100, None, 3)
    chronicle.ended(command("r1"), 4, done("abc", total_tokens=5, reported_cost=0.5), 250)
    chronicle.ended(command("r1"), 4, done(status="interrupted"), 900)
    (run,) = chronicle.page(None, 9, None)
    assert (run.status, run.started_us, run.finished_us, run.version) == ("completed", 100, 250, 3)
    assert (run.total_tokens, run.reported_cost, run.result_bytes, run.kept) == (5, 0.5, 5, True)
    assert (run.execution_id, run.slug, run.session) == ("x", "demo", command().session)


@pytest.mark.parametrize("name", ["r1", "x"])
def test_it_is_found_by_ticket_and_by_execution(name: str) -> None:
    chronicle = opened()
    chronicle.ended(command("r1"), 1, done({"a": [1]}), 1)
    past = chronicle.find(name)
    assert past is not None
    assert chronicle.result_of(past) == {"a": [1]}
    assert chronicle.find("other") is None


@pytest.mark.parametrize(
    "end",
    [
        done({"a": [1]}, total_tokens=5, reported_cost=0.5, result_truncated=True),
        done(),
        done(status="failed", error="it broke"),
    ],
)
def test_an_end_is_told_again_as_it_was_posted(end: Completion) -> None:
    chronicle = opened()
    chronicle.began(command("r1"), 1, 100)
    assert chronicle.end_of("r1") is None, "it has none yet"
    chronicle.ended(command("r1"), 1, end, 250)
    assert chronicle.end_of("r1") == end
    assert chronicle.end_of("r2") is None


def test_an_end_whose_result_is_forgotten_is_not_told() -> None:
    chronicle = opened(size=4)
    chronicle.ended(command("r1"), 1, done("ab"), 1)
    chronicle.ended(command("r2"), 1, done("cd"), 2)
    assert (chronicle.end_of("r1"), chronicle.end_of("r2")) == (None, done("cd"))


def test_a_run_that_was_refused_never_started() -> None:
    chronicle = opened()
    refused = Completion(execution_id=None, status="cancelled", error="not shared")
    chronicle.ended(command("r1"), 1, refused, 7)
    (run,) = chronicle.page(None, 9, None)
    assert (run.started_us, run.finished_us, run.status, run.kept) == (None, 7, "cancelled", False)
    assert run.error == "not shared"


@given(st.integers(0, 25), st.integers(1, 6), st.integers(1, 30))
def test_pages_show_every_run_once_the_latest_first(count: int, limit: int, most: int) -> None:
    chronicle = opened(runs=most)
    for number in range(count):
        mine = command(f"r{number}", session=f"gs_{number % 2}")
        chronicle.ended(mine, 1, done(), number)
    kept = [f"r{number}" for number in reversed(range(count))][:most]
    choices: tuple[str | None, ...] = (None, "gs_1")
    for session in choices:
        seen: list[str] = []
        before: int | None = None
        while page := chronicle.page(before, limit, session):
            assert len(page) <= limit
            seen += ids(page)
            before = page[-1].number
        assert seen == [one for one in kept if session is None or int(one[1:]) % 2 == 1]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "end", "refuse", "reopen"]), st.integers(0, 60)),
        max_size=40,
    ),
    st.integers(1, 6),
    st.integers(1, 120),
    st.integers(5, 200),
)
def test_it_is_what_a_plain_list_would_be_within_its_bounds(
    acts: list[tuple[str, int]], most: int, age_us: int, size: int
) -> None:
    store = MemoryStore([])
    chronicle = opened(store, most, age_us, size)
    now_us, begun = 0, 0
    executing: list[str] = []
    all_runs: dict[str, int | None] = {}  # when each ended
    for act, number in acts:
        now_us += number
        if act == "reopen":
            chronicle = opened(store, most, age_us, size)
            continue
        if act == "end" and executing:
            run = executing.pop(0)
        else:
            begun += 1
            run = f"r{begun}"
            all_runs[run] = None
        if act == "begin":
            executing.append(run)
            chronicle.began(command(run), 1, now_us)
        else:
            all_runs[run] = now_us
            chronicle.ended(command(run), 1, done("y" * number), now_us)
        page = chronicle.page(None, 10**6, None)
        assert set(executing) <= set(ids(page)), "what executes is never forgotten"
        assert ids(page) == list(reversed(list(all_runs)))[: len(page)], "the oldest go first"
        if executing[:1] != ids(page)[-1:]:
            assert len(page) <= most
        kept = [run for run in page if run.kept]
        assert sum(run.result_bytes for run in kept) <= size
        assert len(store.table(RESULTS).values()) == len(kept)
        assert chronicle.kept_bytes == sum(run.result_bytes for run in kept)
