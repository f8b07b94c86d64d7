"""The deployed relay: its owner's sessions, the history, how it stands, and what it takes up."""

from __future__ import annotations

import pytest

from actors.desktop.chronicle import key_of
from actors.desktop.messages import (
    PAGE_LIMIT,
    AddSession,
    DropGraph,
    GetHistory,
    GraphSaved,
    HistoryOf,
    ListHistory,
    ListOutbox,
    ListSessions,
    Outbox,
    RemoveSession,
    SaveGraph,
    SaveSession,
    SessionList,
    SessionSaved,
)
from actors.desktop.rows import HISTORY
from actors.messages import (
    CHANNEL,
    Commands,
    Complete,
    Completion,
    Failure,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetRun,
    FleetStarted,
    Message,
    Rename,
    Share,
    Start,
    StartAnswer,
    Sync,
    Unshare,
)
from actors.relay import OUTBOX_LIMIT
from tests.actors.desktop.owned import TEXTS, Owned
from tests.actors.harness import S, only
from tests.actors.relaying import DONE, command


def shared(name: str = "demo", **config: object) -> tuple[Owned, str]:
    """A desktop that shares one session."""
    desk = Owned(**config)
    session = desk.add(name)
    assert desk.share(session) == (name,)
    return desk, session


# Sessions


def test_a_session_is_added_once_its_graph_is_saved_and_outlives_a_restart() -> None:
    desk = Owned()
    session = desk.add("My Graph")
    assert session.startswith("gs_")
    assert len(session) == 35
    for restart in (False, True):
        if restart:
            desk.start()
        (state,) = desk.told(SessionList, ListSessions()).sessions
        meta = state.meta
        assert (meta.id, meta.name, meta.slug, meta.project) == (
            session,
            "My Graph",
            "my-graph",
            "p",
        )
        assert (meta.project, meta.version, meta.description) == ("p", 1, "Does it")
        assert (state.shared, state.enabled, state.uploaded) == (False, True, False)
    assert desk.share(session) == ("my-graph",)
    (state,) = desk.told(SessionList, ListSessions()).sessions
    assert state.uploaded


def test_adding_the_same_again_is_answered_and_another_graph_of_its_name_is_not() -> None:
    desk = Owned()
    session = desk.add()
    same = AddSession(name="demo", project="p", entry="main", texts=TEXTS)
    assert desk.told(SessionSaved, same).session.meta.id == session
    for other in (
        AddSession(name="Demo", project="p", entry="main", texts={"main": "2"}),
        AddSession(name="demo", project="q", entry="main", texts=TEXTS),
    ):
        assert desk.told(Failure, other).code == "name_taken"


def test_of_two_that_are_added_at_once_under_one_name_the_first_is_there() -> None:
    desk = Owned()
    bodies = [AddSession(name="a", project="p", entry="m", texts={"m": t}) for t in ("1", "2")]
    asks = [only(desk.deliver("owner", body), SaveGraph) for body in bodies]
    desk.save(asks[0])
    late = GraphSaved(session=asks[1].body.session, version=1, sha256="x")
    dropped, refusal = desk.answer(asks[1], late)
    assert dropped.body == DropGraph(session=asks[1].body.session)
    assert (refusal.target, refusal.body.code) == ("owner", "name_taken")


def test_what_the_engine_refuses_its_owner_is_told_and_a_silent_one_leaves_nothing() -> None:
    desk = Owned()
    body = AddSession(name="a", project="p", entry="main", texts=TEXTS)
    ask = only(desk.deliver("owner", body), SaveGraph, "engine")
    full = Failure(code="too_many", error="full")
    assert only(desk.answer(ask, full), Failure, "owner").body == full
    ask = only(desk.deliver("owner", body), SaveGraph)
    assert desk.unanswered(ask) == []
    assert desk.actor.saving == {}
    assert desk.told(SessionList, ListSessions()).sessions == ()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (AddSession(name="!", project="p", entry="main", texts=TEXTS), "bad_request"),
        (AddSession(name="a", project="", entry="main", texts=TEXTS), "bad_request"),
        (AddSession(name="a", project="p", entry="other", texts=TEXTS), "no_graph"),
        (SaveSession(session="gs_9", entry="main", texts=TEXTS), "not_found"),
        (Share(session="gs_9"), "not_found"),
        (Unshare(session="gs_9"), "not_found"),
        (Rename(session="gs_9", name="b"), "not_found"),
        (GetHistory(id="x"), "not_found"),
        (ListSessions(limit=0), "bad_request"),
        (ListHistory(limit=PAGE_LIMIT + 1), "bad_request"),
        (ListOutbox(limit=-1), "bad_request"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else value,
)
def test_what_can_t_be_done_is_said_with_a_code(body: Message, code: str) -> None:
    assert Owned().told(Failure, body).code == code


def test_a_full_disk_takes_no_session_but_always_lets_one_be_unshared() -> None:
    desk, session = shared()
    desk.context.store.writable = False
    body = AddSession(name="b", project="p", entry="main", texts=TEXTS)
    assert desk.told(Failure, body).code == "not_writable"
    desk.deliver("owner", Unshare(session=session))
    assert desk.uploaded() == ()


def test_saving_anew_makes_a_version_and_leaves_who_may_run_it() -> None:
    desk, session = shared()
    queued = desk.command_for(session)
    ask = only(
        desk.deliver("owner", SaveSession(session=session, entry="m", texts={"m": "2"})), SaveGraph
    )
    saved = desk.save(ask, version=2)
    assert (saved.session.meta.version, saved.session.uploaded) == (2, True)
    desk.actor.passing = False
    assert only(desk.offer(queued), Start), "what was queued before still runs"


def test_a_rename_to_a_name_that_is_taken_is_refused_and_to_its_own_is_not() -> None:
    desk = Owned()
    one, _ = desk.add("a"), desk.add("b")
    assert desk.told(Failure, Rename(session=one, name="B")).code == "name_taken"
    desk.deliver("owner", Rename(session=one, name="A"))
    listed = desk.told(SessionList, ListSessions()).sessions
    assert [state.meta.name for state in listed] == ["A", "b"]


def test_sessions_come_in_pages() -> None:
    desk = Owned()
    for name in ("c", "a", "b", "d"):
        desk.add(name)
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = desk.told(SessionList, ListSessions(after=after, limit=3))
        seen += [state.meta.slug for state in page.sessions]
        after = page.next
    assert seen == ["a", "b", "c", "d"]


@pytest.mark.parametrize("strict", [False, True])
def test_a_session_that_is_removed_while_its_run_executes(strict: bool) -> None:
    desk, session = shared(strict_consent=strict)
    desk.executing(desk.command_for(session))
    sent = desk.deliver("owner", RemoveSession(session=session))
    bodies = [each.body for each in sent]
    assert DropGraph(session=session) in bodies
    assert (FleetCancel(execution_id="x-1") in bodies) is strict
    post = desk.finished()
    assert post.body.completion.status == ("cancelled" if strict else "completed")
    (run,) = desk.history().runs
    assert (run.session, run.status) == (session, post.body.completion.status)
    assert desk.told(SessionList, ListSessions()).sessions == ()


def test_a_command_of_a_session_that_was_removed_is_refused() -> None:
    desk, session = shared()
    queued = desk.command_for(session)
    desk.deliver("owner", RemoveSession(session=session))
    desk.actor.passing = False
    assert desk.refused(desk.offer(queued)).status == "cancelled"


# The history


def test_a_run_is_in_the_history_from_its_start_with_what_was_posted_at_its_end() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session))
    (run,) = desk.history().runs
    assert (run.status, run.finished_us, run.version) == ("running", None, 1)
    desk.finished()
    desk.start()
    for name in ("r1", "x-1"):
        told = desk.told(HistoryOf, GetHistory(id=name))
        assert (told.result, told.run.status, told.run.total_tokens) == ("R", "completed", 7)


def test_a_run_that_consent_refused_is_in_it_and_one_that_was_stopped_as_it_was_posted() -> None:
    desk, session = shared()
    refused = desk.command_for(session)
    desk.accept(only(desk.offer(command("r0", session=session, slug="old")), Complete))
    desk.executing(refused)
    desk.control(stop=True)
    desk.finished()
    stopped, other = desk.history().runs
    assert (other.command_id, other.status, other.started_us) == ("r0", "cancelled", None)
    assert (stopped.status, stopped.kept) == ("cancelled", False)


def test_an_attempt_that_is_refused_again_leaves_the_history_as_it_was() -> None:
    desk, session = shared()
    desk.accept(desk.run_to_end(session))
    again = only(desk.offer(desk.command_for(session)), Complete)
    assert again.body.completion == DONE, "a server that forgot it is told once more"
    (run,) = desk.history().runs
    assert run.status == "completed"


def test_the_history_comes_in_pages() -> None:
    desk, session = shared()
    for number in range(5):
        desk.accept(desk.run_to_end(session, f"r{number}"))
    page = desk.told(type(desk.history()), ListHistory(limit=3))
    assert [run.command_id for run in page.runs] == ["r4", "r3", "r2"]
    page = desk.told(type(page), ListHistory(before=page.next, limit=3))
    assert [run.command_id for run in page.runs] == ["r1", "r0"]
    assert page.next is None


# How it stands


def test_an_idle_desktop_says_so() -> None:
    desk, _ = shared()
    status = desk.status()
    assert (status.running, status.waiting, status.outbox, status.outbox_age_us) == ((), 0, 0, None)
    assert (status.writable, status.refuses, status.adopted) == (True, None, 0)
    assert (status.sessions, status.uploaded, status.left_out) == (1, 1, 0)


def test_when_a_sync_was_answered_and_how_many_were_not() -> None:
    desk = Owned()
    assert (desk.status().synced_us, desk.status().silent) == (None, 0)
    desk.answer(desk.sync(), Commands(commands=()))
    desk.context.now_us += 7 * S
    assert (desk.status().synced_us, desk.status().silent) == (7 * S, 0)
    for _ in range(2):
        desk.unanswered(desk.sync())
    assert desk.status().silent == 2
    desk.answer(desk.sync(), Commands(commands=()))
    assert (desk.status().synced_us, desk.status().silent) == (0, 0)


def test_a_run_is_told_with_its_phase_and_since_when_it_has_its_slot() -> None:
    desk, session = shared()
    start = desk.asked_to_start(desk.command_for(session), desk.command_for(session, "r2"))
    assert [run.phase for run in desk.status().running] == ["asking"]
    fleet = only(desk.answer(start, StartAnswer(go=True)), FleetRun)
    desk.answer(fleet, FleetStarted(channel=fleet.body.channel, execution_id="x-1"))
    desk.context.now_us += 3 * S
    (run,) = desk.status().running
    assert (run.command_id, run.execution_id, run.phase, run.for_us) == (
        "r1",
        "x-1",
        "running",
        3 * S,
    )
    assert desk.status().waiting == 1
    desk.control(stop=True)
    assert desk.status().running[0].phase == "stopping"
    desk.finished()
    assert desk.status().running[0].phase == "posting"


def test_results_that_wait_are_told_with_their_age_and_refuse_new_work_when_they_are_many() -> None:
    desk, session = shared()
    names = [f"r{number}" for number in range(OUTBOX_LIMIT)]
    sent = desk.offer(*(desk.command_for(session, name) for name in names))
    for name in names:
        fleet = only(desk.answer(only(sent, Start), StartAnswer(go=True)), FleetRun)
        desk.answer(fleet, FleetStarted(channel=fleet.body.channel, execution_id="x"))
        sent = desk.unanswered(desk.finished(name))
    desk.context.now_us += 60 * S
    status = desk.status()
    assert status.outbox == OUTBOX_LIMIT
    assert status.outbox_age_us is not None
    assert status.outbox_age_us >= 60 * S
    assert status.refuses == "50 results wait for the server: it must take some first"
    page = desk.told(Outbox, ListOutbox(limit=30))
    assert (len(page.unsent), page.depth) == (30, OUTBOX_LIMIT)
    assert page.next is not None
    rest = desk.told(Outbox, ListOutbox(after=page.next, limit=30))
    runs = [each.command_id for each in (*page.unsent, *rest.unsent)]
    assert runs == names
    assert rest.next is None


def test_a_disk_that_is_full_is_told_and_no_waiting_run_starts_until_it_heals() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session), desk.command_for(session, "r2"))
    desk.context.store.writable = False
    assert desk.accept(desk.finished()) == [], "the result is kept and posted, r2 is not begun"
    status = desk.status()
    assert (status.writable, status.waiting) == (False, 1)
    assert "full" in (status.refuses or "")
    sync = only(desk.poll(), Sync)
    assert (sync.body.capacity, sync.body.open) == (0, ("r2",))
    desk.context.store.writable = True
    assert only(desk.answer(sync, Commands(commands=())), Start).body.command_id == "r2"


# A lost or an older store


def test_a_result_of_a_run_that_the_journal_does_not_know_is_posted_and_starts_nothing() -> None:
    desk = Owned()
    finished = FleetFinished(channel=CHANNEL + "r9", completion=DONE)
    sent = desk.deliver("engine", finished)
    assert [each.body for each in sent if each.target == "engine"] == [
        FleetAcknowledged(channel=CHANNEL + "r9")
    ]
    post = only([each for each in sent if each.target == "server"], Complete)
    assert (post.body.command_id, post.body.completion) == ("r9", DONE)
    assert desk.status().adopted == 1
    assert only(desk.accept(post), Sync).body.open == ()
    assert [run.command_id for run in desk.history().runs] == ["r9"]
    told_again = desk.deliver("engine", finished)
    assert [type(each.body) for each in told_again] == [FleetAcknowledged]


def test_a_run_whose_result_was_taken_up_is_never_started() -> None:
    desk, session = shared()
    desk.deliver("engine", FleetFinished(channel=CHANNEL + "r1", completion=DONE))
    desk.actor.passing, desk.actor.flushing = False, []
    sync = only(desk.accept(only(desk.poll(), Complete)), Sync)
    (post,) = desk.answer(sync, Commands(commands=(desk.command_for(session),)))
    assert post.body.completion == DONE, "it is told again, and nothing is done again"


def test_a_run_whose_end_is_forgotten_was_attempted_and_is_never_started() -> None:
    desk, session = shared()
    desk.deliver("engine", FleetFinished(channel=CHANNEL + "r1", completion=DONE))
    desk.actor.passing, desk.actor.flushing = False, []
    sync = only(desk.accept(only(desk.poll(), Complete)), Sync)
    desk.context.store.table(HISTORY).delete(key_of(1))
    (post,) = desk.answer(sync, Commands(commands=(desk.command_for(session),)))
    assert post.body.completion.status == "interrupted"


def test_a_run_that_waits_is_not_begun_once_its_result_was_taken_up() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session), desk.command_for(session, "r2"))
    desk.deliver("engine", FleetFinished(channel=CHANNEL + "r2", completion=DONE))
    assert desk.accept(desk.finished("r1")) == []
    post = only(desk.poll(), Complete)
    assert (post.body.command_id, post.body.completion) == ("r2", DONE)


def test_while_busy_what_was_taken_up_waits_for_the_next_pass() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session))
    sent = desk.deliver("engine", FleetFinished(channel=CHANNEL + "r9", completion=DONE))
    assert [each.target for each in sent] == ["engine"]
    desk.accept(desk.finished())
    assert only(desk.poll(), Complete).body.command_id == "r9"


def test_a_bounded_result_is_what_is_kept() -> None:
    desk, session = shared()
    desk.executing(desk.command_for(session))
    desk.finished(done=Completion(execution_id="x-1", status="completed", result="x" * 100_000))
    (run,) = desk.history().runs
    assert (run.truncated, run.kept, run.result_bytes) == (True, False, 0)
