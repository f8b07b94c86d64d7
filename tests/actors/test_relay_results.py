"""The relay from a start on: cancel, results and the outbox, restarts."""

from __future__ import annotations

from actors.journal import JOURNAL
from actors.messages import (
    CHANNEL,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
    Start,
    StartAnswer,
    Sync,
)
from actors.relay import CAPACITY, OUTBOX_LIMIT
from tests.actors.harness import S, body_of, only
from tests.actors.relaying import DONE, Desktop, command

# Cancel


def test_the_control_poll_asks_every_3_s_while_a_run_executes() -> None:
    desktop = Desktop()
    desktop.executing()
    for number in (1, 2, 3):
        assert desktop.context.timers["control"] == 5 * S + number * 3 * S
        (question,) = desktop.fire("control")
        assert question.body == Control(command_id="r1", boot=desktop.actor.boot)
        assert question.timeout_us == 10 * S
        assert desktop.answer(question, ControlAnswer(stop=False)) == []
    desktop.accept(desktop.finished())
    assert "control" not in desktop.context.timers


def test_a_lost_control_poll_is_made_good_by_the_next() -> None:
    desktop = Desktop()
    desktop.executing()
    (question,) = desktop.fire("control")
    assert desktop.unanswered(question) == []
    assert [each.body for each in desktop.control(stop=True)] == [FleetCancel(execution_id="x-1")]


def test_a_cancel_is_sent_once_and_kept_though_the_graph_completes() -> None:
    desktop = Desktop()
    desktop.executing()
    assert [each.body for each in desktop.control(stop=True)] == [FleetCancel(execution_id="x-1")]
    assert desktop.control(stop=True) == []
    done = desktop.finished().body.completion
    assert (done.status, done.result, done.execution_id) == ("cancelled", None, "x-1")
    assert done.total_tokens == 7, "what it cost is told"


def test_a_graph_that_finished_before_the_flag_was_read_is_completed() -> None:
    desktop = Desktop()
    desktop.executing()
    (question,) = desktop.fire("control")
    post = desktop.finished()
    assert desktop.answer(question, ControlAnswer(stop=True, reason="cancel")) == []
    assert post.body.completion == DONE


def test_a_cancel_before_the_execution_s_id_is_known_is_sent_with_it() -> None:
    desktop = Desktop()
    run = desktop.handed_over()
    assert desktop.control(stop=True) == []
    sent = desktop.answer(run, FleetStarted(channel=run.body.channel, execution_id="x-9"))
    assert [each.body for each in sent] == [FleetCancel(execution_id="x-9")]


def test_a_cancel_that_was_read_outlives_a_restart() -> None:
    desktop = Desktop()
    desktop.executing()
    desktop.control(stop=True)
    query = only(desktop.start(), FleetQuery, "engine")
    sent = desktop.answer(query, FleetStarted(channel=query.body.channel, execution_id="x-1"))
    assert [each.body for each in sent] == [FleetCancel(execution_id="x-1")]
    assert desktop.finished().body.completion.status == "cancelled"


def test_a_cancelled_run_that_the_engine_never_got_is_cancelled() -> None:
    desktop = Desktop()
    run = desktop.handed_over()
    desktop.control(stop=True)
    (query,) = desktop.unanswered(run)
    (post,) = desktop.answer(query, FleetUnknown(channel=query.body.channel))
    assert (post.body.completion.status, post.body.completion.result) == ("cancelled", None)


def test_a_cancel_of_one_run_is_none_of_the_next() -> None:
    desktop = Desktop()
    desktop.executing(command("r1"), command("r2"))
    desktop.control(stop=True)
    start = only(desktop.accept(desktop.finished("r1")), Start)
    run = only(desktop.answer(start, StartAnswer(go=True)), FleetRun)
    desktop.answer(run, FleetStarted(channel=run.body.channel, execution_id="x-2"))
    assert desktop.finished("r2").body.completion.status == "completed"


def test_only_its_own_execution_s_id_is_taken() -> None:
    desktop = Desktop()
    query = only(desktop.unanswered(desktop.handed_over(command("r1"), command("r2"))), FleetQuery)
    start = only(desktop.accept(desktop.finished("r1")), Start)
    second = only(desktop.answer(start, StartAnswer(go=True)), FleetRun)
    assert desktop.answer(query, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1")) == []
    desktop.control(stop=True)
    sent = desktop.answer(second, FleetStarted(channel=CHANNEL + "r2", execution_id="x-2"))
    assert [each.body for each in sent] == [FleetCancel(execution_id="x-2")]


def test_an_execution_s_id_that_comes_after_its_end_is_no_harm() -> None:
    desktop = Desktop()
    run = desktop.handed_over()
    desktop.accept(desktop.finished())
    assert desktop.answer(run, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1")) == []
    assert desktop.offer() == []


def test_a_control_poll_without_an_answer_is_not_asked_of_the_engine() -> None:
    desktop = Desktop()
    desktop.handed_over()
    (question,) = desktop.fire("control")
    assert desktop.unanswered(question) == []


def test_an_engine_whose_answer_was_late_is_asked_no_more_once_the_id_is_known() -> None:
    desktop = Desktop()
    query = only(desktop.unanswered(desktop.handed_over()), FleetQuery)
    desktop.answer(query, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1"))
    desktop.start()
    (query,) = desktop.started
    desktop.answer(query, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1"))
    assert desktop.control(stop=False) == []


def test_a_graph_that_failed_while_it_was_stopped_is_cancelled() -> None:
    desktop = Desktop()
    desktop.executing()
    desktop.control(stop=True)
    failed = Completion(execution_id="x-1", status="failed", error="the Graph failed")
    assert desktop.finished(done=failed).body.completion.status == "cancelled"


# Results and the outbox


def test_a_result_is_in_the_outbox_before_it_is_posted_and_until_it_is_accepted() -> None:
    desktop = Desktop()
    desktop.executing()
    post = desktop.finished()
    assert desktop.unsent() == ["r1"]
    assert post.body == Complete(
        command_id="r1", boot=desktop.actor.boot, delivery=1, completion=DONE
    )
    desktop.unanswered(post)
    assert desktop.unsent() == ["r1"]
    again = only(desktop.poll(), Complete)
    assert again.body == post.body
    desktop.accept(again)
    assert desktop.unsent() == []


def test_without_an_outbox_a_lost_post_is_lost() -> None:
    desktop = Desktop(outbox=False)
    desktop.executing()
    desktop.unanswered(desktop.finished())
    assert desktop.unsent() == []
    assert only(desktop.poll(), Sync).body.open == ()


def test_a_result_is_bounded_before_it_is_kept() -> None:
    desktop = Desktop()
    desktop.executing()
    huge = Completion(execution_id="x-1", status="completed", result="x" * 100_000)
    done = desktop.finished(done=huge).body.completion
    assert (done.result, done.result_truncated, done.status) == (None, True, "completed")
    desktop.start()
    assert only(desktop.poll(), Complete).body.completion == done


def unsent_results(desktop: Desktop, *runs: str) -> None:
    """Let runs end while the server answers syncs and starts, but no post."""
    sent = desktop.offer(*map(command, runs))
    for run in runs:
        fleet = only(desktop.answer(only(sent, Start), StartAnswer(go=True)), FleetRun)
        desktop.answer(fleet, FleetStarted(channel=fleet.body.channel, execution_id="x-" + run))
        sent = desktop.unanswered(desktop.finished(run))
    assert sent == []


def test_the_outbox_is_flushed_oldest_first_and_one_lost_post_does_not_hold_the_others() -> None:
    desktop = Desktop()
    unsent_results(desktop, "r3", "r1", "r2")
    desktop.start()
    first = only(desktop.poll(), Complete)
    second = only(desktop.unanswered(first), Complete)
    third = only(desktop.accept(second), Complete)
    assert [each.body.command_id for each in (first, second, third)] == ["r3", "r1", "r2"]
    assert only(desktop.accept(third), Sync).body.open == ("r3",)
    assert desktop.unsent() == ["r3"]


def test_a_result_after_a_restart_goes_behind_those_of_before() -> None:
    desktop = Desktop()
    unsent_results(desktop, "r8", "r9")
    desktop.start()
    (sent,) = desktop.poll()
    while isinstance(sent.body, Complete):
        (sent,) = desktop.unanswered(sent)
    start = only(desktop.answer(sent, Commands(commands=(command("r1"),))), Start)
    fleet = only(desktop.answer(start, StartAnswer(go=True)), FleetRun)
    desktop.answer(fleet, FleetStarted(channel=fleet.body.channel, execution_id="x-r1"))
    desktop.unanswered(desktop.finished("r1"))
    assert desktop.unsent() == ["r8", "r9", "r1"]


def test_a_full_outbox_takes_no_new_work_and_says_so() -> None:
    desktop = Desktop()
    runs = [f"r{number:02}" for number in range(OUTBOX_LIMIT)]
    unsent_results(desktop, *runs)
    (sent,) = desktop.poll()
    while isinstance(sent.body, Complete):
        (sent,) = desktop.unanswered(sent)
    assert sent.body.capacity == 0
    assert sent.body.open == tuple(runs)


def test_results_beyond_the_limit_are_held_too_and_keep_their_order() -> None:
    desktop = Desktop()
    runs = [f"r{number:03}" for number in range(OUTBOX_LIMIT + 20)]
    unsent_results(desktop, *runs)
    desktop.start()
    (sent,) = desktop.poll()
    posted = []
    while isinstance(sent.body, Complete):
        posted.append(sent.body.command_id)
        (sent,) = desktop.unanswered(sent)
    assert posted == runs[: len(posted)]
    assert set(sent.body.open) == set(runs)
    desktop.answer(sent, Commands(commands=()))
    assert desktop.unsent() == runs


def test_a_relay_that_can_t_write_takes_no_new_work() -> None:
    desktop = Desktop()
    desktop.context.store.writable = False
    assert desktop.sync().body.capacity == 0


def test_an_end_that_is_told_again_is_acknowledged_again() -> None:
    desktop = Desktop()
    desktop.executing()
    desktop.accept(desktop.finished())
    finished = FleetFinished(channel=CHANNEL + "r1", completion=DONE)
    (sent,) = desktop.deliver("engine", finished)
    assert sent.body == FleetAcknowledged(channel=CHANNEL + "r1")
    assert desktop.unsent() == []


def test_an_end_that_is_told_again_while_it_is_posted_is_not_posted_twice() -> None:
    desktop = Desktop()
    desktop.executing(command("r1"), command("r2"))
    post = desktop.finished("r1")
    finished = FleetFinished(channel=CHANNEL + "r1", completion=DONE)
    (sent,) = desktop.deliver("engine", finished)
    assert sent.body == FleetAcknowledged(channel=CHANNEL + "r1")
    assert only(desktop.accept(post), Start).body.command_id == "r2"


def test_accepted_results_make_room() -> None:
    desktop = Desktop()
    for number in range(OUTBOX_LIMIT + 5):
        desktop.executing(command(f"r{number}"))
        desktop.accept(desktop.finished(f"r{number}"))
    sync = desktop.sync()
    assert (sync.body.capacity, sync.body.open) == (CAPACITY, ())


# Restarts


def test_a_relay_that_can_t_write_waits_before_it_asks_the_engine() -> None:
    desktop = Desktop()
    desktop.executing()
    desktop.context.store.writable = False
    assert desktop.start() == [], "or question, answer and failed write would go round at one time"
    query = only(desktop.fire("ask"), FleetQuery, "engine")
    assert query.body.channel == CHANNEL + "r1"


def test_a_run_that_was_handed_over_is_looked_after_by_the_next_boot() -> None:
    desktop = Desktop()
    desktop.executing()
    boot = desktop.actor.boot
    query = only(desktop.start(), FleetQuery, "engine")
    assert query.body.channel == CHANNEL + "r1"
    assert desktop.actor.boot != boot
    assert desktop.context.timers == {"poll": 5 * S, "control": 3 * S}
    assert desktop.poll() == [], "busy with it"
    desktop.answer(query, FleetStarted(channel=CHANNEL + "r1", execution_id="x-1"))
    assert [each.body for each in desktop.control(stop=True)] == [FleetCancel(execution_id="x-1")]
    done = desktop.finished().body
    assert (done.boot, done.completion.status) == (desktop.actor.boot, "cancelled")


def test_a_run_that_never_reached_the_engine_is_interrupted_and_never_started() -> None:
    desktop = Desktop()
    run = desktop.handed_over()
    query = only(desktop.unanswered(run), FleetQuery, "engine")
    sent = desktop.answer(query, FleetUnknown(channel=run.body.channel))
    assert body_of(sent, Complete).completion.status == "interrupted"


def test_an_engine_that_doesn_t_answer_is_asked_until_it_does() -> None:
    desktop = Desktop()
    question = desktop.handed_over()
    for _ in range(5):
        question = only(desktop.unanswered(question), FleetQuery)
    assert (
        desktop.answer(question, FleetStarted(channel=question.body.channel, execution_id="x-1"))
        == []
    )


def test_a_report_of_presence_after_a_restart_holds_the_run() -> None:
    desktop = Desktop(presence=True)
    desktop.executing()
    desktop.start()
    assert desktop.sync().body.open == ("r1",)


def test_a_result_outlives_a_restart() -> None:
    desktop = Desktop()
    desktop.executing()
    desktop.finished()
    assert desktop.start() == [], "nothing is asked of the engine: the run has ended"
    post = only(desktop.poll(), Complete)
    assert (post.body.command_id, post.body.completion) == ("r1", DONE)
    assert only(desktop.accept(post), Sync).body.open == ()


def test_a_run_that_was_attempted_is_never_started_again() -> None:
    """As after a backup of the server was restored: it is told what became of the run."""
    desktop = Desktop()
    desktop.executing()
    desktop.accept(desktop.finished())
    for restart in (False, True):
        if restart:
            desktop.start()
        post = only(desktop.offer(command(delivery=7), command("r2", slug="old")), Complete)
        assert (post.body.command_id, post.body.delivery) == ("r1", 7)
        assert post.body.completion.status == "interrupted"
        assert desktop.context.store.table(JOURNAL).get("r1") is not None
        next_post = only(desktop.accept(post), Complete)
        assert next_post.body.command_id == "r2", "the queue behind it goes on"
        desktop.accept(next_post)


def test_a_crash_before_leave_leaves_nothing_behind() -> None:
    desktop = Desktop()
    desktop.asked_to_start()
    assert desktop.start() == []
    assert desktop.sync().body.open == ()
