"""The relay: the order of a pass, leave to start, consent at both turns, presence."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from actors.chance import Durations
from actors.journal import JOURNAL
from actors.messages import (
    CHANNEL,
    NOT_SHARED_TEXT,
    Accepted,
    Commands,
    Complete,
    Completion,
    Control,
    Disable,
    Enable,
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
from actors.relay import CAPACITY, START_TRIES
from actors.text import slug_of
from tests.actors.harness import SESSION, S, Sent, only
from tests.actors.relaying import DONE, Desktop, command
from transports.units import Duration

CHANGES: list[Message] = [
    Unshare(session=SESSION.id),
    Rename(session=SESSION.id, name="demo renamed"),
    Disable(project="default"),
]


# A pass


def test_a_pass_posts_syncs_and_takes_the_commands_in_order() -> None:
    desktop = Desktop()
    desktop.executing(command("r0"))
    desktop.unanswered(desktop.finished("r0"))
    post = only(desktop.poll(), Complete, "server")
    assert post.body.command_id == "r0", "the outbox first"
    sync = only(desktop.accept(post), Sync, "server")
    assert (sync.body.open, sync.body.capacity) == ((), CAPACITY)
    commands = Commands(commands=(command("r1"), command("r2")))
    start = only(desktop.answer(sync, commands), Start)
    assert start.body.command_id == "r1"
    run = only(desktop.answer(start, StartAnswer(go=True)), FleetRun, "engine")
    assert run.body == FleetRun(
        channel="graph:external:r1", session=SESSION.id, slug="demo", arguments={"to": "x"}
    )
    desktop.answer(run, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1"))
    start = only(desktop.accept(desktop.finished("r1")), Start)
    assert start.body.command_id == "r2", "serial: the second after the first has ended"


def test_a_sync_carries_the_whole_view() -> None:
    desktop = Desktop(presence=True)
    idle = desktop.sync()
    assert idle.body.open == ()
    assert [meta.id for meta in idle.body.sessions] == [SESSION.id]
    assert idle.body.poll_us == 20 * S
    boot = idle.body.boot
    desktop.answer(idle, Commands(commands=()))
    desktop.executing(command("r0"))
    desktop.unanswered(desktop.finished("r0"))
    post = only(desktop.poll(), Complete)
    sync = only(desktop.unanswered(post), Sync)
    assert sync.body.open == ("r0",), "what is in the outbox is held"
    commands = Commands(commands=(command("r1"), command("r2"), command("r3")))
    desktop.answer(sync, commands)
    sync = desktop.sync()
    assert set(sync.body.open) == {"r0", "r1", "r2", "r3"}
    assert (sync.body.capacity, sync.body.boot) == (0, boot)


def test_an_answered_pass_ends_and_the_next_poll_begins_another() -> None:
    desktop = Desktop()
    assert desktop.context.timers == {"poll": 5 * S}
    assert desktop.offer() == []
    assert desktop.context.timers == {"poll": 25 * S}
    assert desktop.offer() == []


def test_a_busy_relay_skips_its_poll() -> None:
    desktop = Desktop()
    sync = desktop.sync()
    assert desktop.poll() == []
    start = only(desktop.answer(sync, Commands(commands=(command(),))), Start)
    assert desktop.poll() == []
    run = only(desktop.answer(start, StartAnswer(go=True)), FleetRun)
    assert desktop.poll() == []
    desktop.answer(run, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1"))
    assert desktop.poll() == []
    post = desktop.finished()
    assert desktop.poll() == []
    assert desktop.accept(post) == []
    assert only(desktop.poll(), Sync)


def test_a_lost_sync_ends_the_pass() -> None:
    desktop = Desktop()
    sync = desktop.sync()
    assert sync.timeout_us == 10 * S
    assert desktop.unanswered(sync) == []
    assert only(desktop.poll(), Sync)


def test_an_old_sync_s_answer_is_no_answer_to_the_new_one() -> None:
    desktop = Desktop(presence=True)
    desktop.executing(command("r1"), command("r2"))
    report = desktop.sync()
    assert desktop.answer(report, Commands(commands=(command("r9"),))) == []
    start = only(desktop.accept(desktop.finished()), Start)
    assert start.body.command_id == "r2", "the answer to a report brought no command"


@pytest.mark.parametrize("poll", ["20s", "7s"])
def test_without_jitter_the_poll_keeps_its_phase(poll: str) -> None:
    desktop = Desktop(poll_us=Duration(int(poll[:-1]) * S))
    times = []
    for _ in range(4):
        desktop.offer()
        times.append(desktop.context.now_us)
    assert times == [5 * S + n * int(poll[:-1]) * S for n in range(4)]


def test_the_first_poll_is_anywhere_in_one_interval() -> None:
    first = set()
    for number in range(30):
        desktop = Desktop(phase_us=None)
        for _ in range(number):
            desktop.start()
        first.add(desktop.context.timers["poll"])
    assert len(first) == 30
    assert all(0 <= due_us < 20 * S for due_us in first)
    assert min(first) < 5 * S < 15 * S < max(first)


@pytest.mark.parametrize("phase", ["0s", "5s", "20s"])
def test_windowed_jitter_polls_once_in_each_window(phase: str) -> None:
    desktop = Desktop(jitter="window", phase_us=Durations.parse(phase))
    windows, places = [], []
    for _ in range(60):
        desktop.offer()
        windows.append(desktop.context.now_us // (20 * S))
        places.append(desktop.context.now_us % (20 * S))
    assert windows == list(range(windows[0], windows[0] + 60))
    assert len(set(places)) == 60
    assert max(places) - min(places) > 15 * S


# Leave to start, and consent


def test_leave_is_asked_with_boot_and_delivery() -> None:
    desktop = Desktop()
    start = desktop.asked_to_start(command(delivery=3))
    assert start.body == Start(command_id="r1", boot=desktop.actor.boot, delivery=3)


def test_without_leave_it_goes_on_to_the_next_command() -> None:
    desktop = Desktop()
    start = desktop.asked_to_start(command("r1"), command("r2"))
    start = only(desktop.answer(start, StartAnswer(go=False, reason="cancelled")), Start)
    assert start.body.command_id == "r2"
    assert desktop.answer(start, StartAnswer(go=False, reason="superseded")) == []
    assert only(desktop.poll(), Sync), "the pass has ended"
    assert desktop.unsent() == []


def test_an_unanswered_start_is_asked_three_times_and_begins_the_next_pass() -> None:
    desktop = Desktop()
    start = desktop.asked_to_start(command("r1"), command("r2"))
    first = start
    for _ in range(START_TRIES - 1):
        start = only(desktop.unanswered(start), Start)
        assert start.body == first.body, "the same question"
    assert desktop.unanswered(start) == []
    again = only(desktop.poll(), Start)
    assert again.body == first.body, "before any sync"
    assert only(desktop.answer(again, StartAnswer(go=True)), FleetRun).body.channel.endswith("r1")


def test_the_commands_behind_an_unsettled_start_wait_for_a_new_offer() -> None:
    desktop = Desktop()
    start = desktop.asked_to_start(command("r1"), command("r2"))
    for _ in range(START_TRIES):
        (start,) = desktop.unanswered(start) or [start]
    start = only(desktop.poll(), Start)
    assert desktop.answer(start, StartAnswer(go=False, reason="cancelled")) == []
    assert desktop.sync().body.open == ()


def test_a_start_that_is_not_settled_is_still_held() -> None:
    """Else a report of presence would tell the server that this boot lost the run."""
    desktop = Desktop(presence=True)
    desktop.executing(command("r0"))
    desktop.unanswered(desktop.finished("r0"))
    post = only(desktop.poll(), Complete)
    sync = only(desktop.unanswered(post), Sync)
    start = only(desktop.answer(sync, Commands(commands=(command("r1"),))), Start)
    for _ in range(START_TRIES):
        (start,) = desktop.unanswered(start) or [start]
    only(desktop.poll(), Complete)
    report = only(desktop.poll(), Sync)
    assert set(report.body.open) == {"r0", "r1"}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_consent_is_checked_in_the_turn_that_asks_for_leave(change: Message) -> None:
    desktop = Desktop()
    sync = desktop.sync()
    assert desktop.owner(change) == [], "busy: the change waits for the next pass"
    done = desktop.refused(desktop.answer(sync, Commands(commands=(command(),))))
    assert done == Completion(execution_id=None, status="cancelled", error=NOT_SHARED_TEXT)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_consent_is_checked_again_in_the_turn_that_gets_leave(change: Message) -> None:
    desktop = Desktop()
    start = desktop.asked_to_start()
    desktop.owner(change)
    done = desktop.refused(desktop.answer(start, StartAnswer(go=True)))
    assert done == Completion(execution_id=None, status="cancelled", error=NOT_SHARED_TEXT)
    assert desktop.context.store.table(JOURNAL).get("r1") is None, "it was never handed over"


def test_a_command_of_another_session_or_slug_is_refused() -> None:
    for changed in ({"session": "gs_" + "9" * 32}, {"slug": "old"}):
        desktop = Desktop()
        assert desktop.refused(desktop.offer(command(**changed))).status == "cancelled"


def test_a_refused_run_is_posted_as_any_other_and_the_next_goes_on() -> None:
    desktop = Desktop()
    post = only(desktop.offer(command("r1", slug="old"), command("r2")), Complete)
    assert desktop.unsent() == ["r1"]
    start = only(desktop.accept(post), Start)
    assert (start.body.command_id, desktop.unsent()) == ("r2", [])


@pytest.mark.parametrize("strict", [False, True])
def test_share_again_before_the_start_runs_unless_consent_is_strict(strict: bool) -> None:
    desktop = Desktop(strict_consent=strict)
    sync = desktop.sync()
    desktop.owner(Unshare(session=SESSION.id))
    desktop.owner(Share(session=SESSION.id))
    sent = desktop.answer(sync, Commands(commands=(command(),)))
    if strict:
        assert desktop.refused(sent).error == NOT_SHARED_TEXT
    else:
        assert only(sent, Start)


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (Unshare(session=SESSION.id), Share(session=SESSION.id)),
        (Disable(project="default"), Enable(project="default")),
        (Rename(session=SESSION.id, name="x"), Rename(session=SESSION.id, name="demo")),
    ],
    ids=["share", "enable", "rename"],
)
def test_every_change_makes_a_new_generation_and_a_repeated_one_does_not(
    change: Message, back: Message
) -> None:
    desktop = Desktop()

    def generation() -> int:
        (meta,) = desktop.sync().body.sessions
        assert isinstance(meta.generation, int)
        desktop.actor.passing = False
        return meta.generation

    assert generation() == 0
    for message in (change, change, back, back, back):
        desktop.owner(message)
        desktop.actor.passing = False
    assert generation() == 2, "an owner whose acknowledgement was lost says it again"


def test_a_repeated_share_does_not_stop_a_run() -> None:
    desktop = Desktop(strict_consent=True)
    desktop.executing()
    assert desktop.owner(Share(session=SESSION.id)) == []
    assert desktop.owner(Enable(project="default")) == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
@pytest.mark.parametrize("strict", [False, True])
def test_a_change_stops_the_run_that_executes_only_if_consent_is_strict(
    strict: bool, change: Message
) -> None:
    desktop = Desktop(strict_consent=strict)
    desktop.executing()
    sent = desktop.owner(change)
    assert [each.body for each in sent] == ([FleetCancel(execution_id="x-1")] if strict else [])
    done = desktop.finished().body.completion
    assert done.status == ("cancelled" if strict else "completed")
    assert (done.result is None) is strict


def test_an_owner_s_change_is_durable_acknowledged_and_synced_right_after() -> None:
    desktop = Desktop()
    sync = only(desktop.owner(Unshare(session=SESSION.id)), Sync)
    assert sync.body.sessions == ()
    desktop.start()
    assert desktop.sync().body.sessions == ()


def test_a_project_that_is_disabled_shares_nothing_until_it_is_enabled() -> None:
    desktop = Desktop()
    assert only(desktop.owner(Disable(project="default")), Sync).body.sessions == ()
    desktop.actor.passing = False
    assert len(only(desktop.owner(Enable(project="default")), Sync).body.sessions) == 1


def test_a_rename_changes_name_and_slug() -> None:
    desktop = Desktop()
    sync = only(desktop.owner(Rename(session=SESSION.id, name="My  Demo, 2nd!")), Sync)
    (meta,) = sync.body.sessions
    assert (meta.name, meta.slug) == ("My  Demo, 2nd!", "my-demo-2nd")
    assert slug_of("Ärger über Öl") == "ärger-über-öl"


def test_a_change_of_a_session_that_isn_t_here_is_acknowledged() -> None:
    desktop = Desktop()
    assert only(desktop.owner(Unshare(session="gs_" + "9" * 32)), Sync).body.sessions


# Presence


def test_presence_reports_while_busy_and_takes_nothing() -> None:
    desktop = Desktop(presence=True)
    desktop.executing(command("r1"), command("r2"))
    report = desktop.sync()
    assert (set(report.body.open), report.body.capacity) == ({"r1", "r2"}, 0)
    assert desktop.unanswered(report) == [], "a lost report is no end of the pass"
    assert only(desktop.poll(), Sync)


def test_posts_go_to_the_server_and_runs_to_the_engine_of_its_place() -> None:
    desktop = Desktop()
    targets: dict[str, set[str]] = {}

    def note(sent: list[Sent]) -> list[Sent]:
        for each in sent:
            targets.setdefault(type(each.body).__name__, set()).add(each.target)
        return sent

    sync = note(desktop.poll())[0]
    start = note(desktop.answer(sync, Commands(commands=(command(),))))[0]
    run = note(desktop.answer(start, StartAnswer(go=True)))[0]
    note(desktop.answer(run, FleetStarted(channel=run.body.channel, execution_id="x-1")))
    note(desktop.fire("control"))
    finished = FleetFinished(channel=CHANNEL + "r1", completion=DONE)
    post = note(desktop.deliver("engine", finished))[1]
    assert note(desktop.answer(post, Accepted(command_id="r1"))) == []
    assert targets == {
        "Sync": {"server"},
        "Start": {"server"},
        "Control": {"server"},
        "Complete": {"server"},
        "FleetRun": {"engine"},
        "FleetAcknowledged": {"engine"},
    }


def test_what_waits_for_the_owner_goes_to_the_server_with_the_next_control_poll() -> None:
    desktop = Desktop()
    desktop.executing()
    assert only(desktop.fire("control"), Control).body.waiting is UNSET
    started = FleetStarted(channel=CHANNEL + "r1", execution_id="x-1", waiting=1)
    assert desktop.deliver("engine", started) == []
    assert only(desktop.fire("control"), Control).body.waiting == 1
    other = FleetStarted(channel=CHANNEL + "r2", execution_id="x-2", waiting=7)
    desktop.deliver("engine", other)
    assert only(desktop.fire("control"), Control).body.waiting == 1
    desktop.deliver("engine", FleetStarted(channel=CHANNEL + "r1", execution_id="x-1", waiting=0))
    assert only(desktop.fire("control"), Control).body.waiting == 0
    desktop.finished()
    desktop.deliver("engine", started)
    assert "control" not in desktop.context.timers
