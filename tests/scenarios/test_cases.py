"""Failures that happened to systems of this kind, each a test by its number.

Every case is played with the built-in actors on the simulator. Besides what it asserts itself,
every check of `scenarios.checks` holds in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from actors.actor import Commit, Place, Step
from actors.chance import Counts, Durations, Numbers
from actors.engine import Engine
from actors.guarded import simulator
from actors.messages import (
    GO,
    KEY_REUSED,
    NOT_FOUND,
    NOT_SHARED_TEXT,
    CancelGraphRun,
    Commands,
    Complete,
    Failure,
    FleetCancel,
    FleetFinished,
    GetGraphRun,
    GraphRun,
    RunGraphSession,
    StartAnswer,
    Sync,
)
from actors.relay import Relay
from actors.server import Server
from actors.simulator import ActorContext
from actors.stores.memory import Undo
from actors.text import ERROR_LIMIT_CHARS
from scenarios.promises.stage import Script
from tests.actors.harness import SESSION, S, make_cell
from tests.scenarios.case_worlds import (
    ASK,
    PUBLISHED,
    RECOMMENDED,
    SERVER,
    agent,
    answers,
    cancel,
    cell,
    dies_at,
    ends,
    engine,
    fails,
    loses,
    odd,
    play,
    row,
    scripted,
    start,
    sync,
    ticket,
)
from transports.envelope import Envelope
from transports.units import Duration

# A. Crash, stale runs, recovery


def test_case_1_a_restarted_relay_takes_its_run_up_again() -> None:
    hook = fails("relay", dies_at(30), Commit.CRASHED)
    history = play(cell(commit_hook=hook))
    boots = {each.envelope.body.boot for each in history.sent(Sync)}
    assert len(boots) == 2
    assert len(history.events("engine.started")) == 1
    assert ends(history) == ["completed"]


def test_case_1_a_new_boot_that_does_not_hold_the_run_ends_it_in_that_very_sync() -> None:
    relay = Script(
        (1, "server", sync("old")),
        (2, "server", start(1, "old")),
        (3, "server", sync("new")),
        (4, "server", sync("new")),
    )
    history = play(scripted(relay=relay, agent=Script((0, "server", ASK))))
    (end,) = history.events("run.terminal")
    assert (end.t, end.fields["status"]) == (3 * S, "interrupted")


@pytest.mark.parametrize("config", [PUBLISHED, RECOMMENDED])
def test_case_2_a_command_that_died_with_its_relay_is_offered_again(config: Any) -> None:
    hook = fails("relay", dies_at(5), Commit.CRASHED)  # in the turn that would have asked for it
    history = play(cell(commit_hook=hook, relay=config, loss=loses(StartAnswer, until_s=30)))
    assert ends(history) == ["completed"]


def test_case_3_a_run_that_may_have_had_effects_is_never_offered_again() -> None:
    hook = fails("engine", dies_at(30), Commit.CRASHED)
    history = play(cell(commit_hook=hook))
    assert len(history.events("run.offered")) == 1
    assert len(history.events("engine.started")) == 1
    assert set(ends(history)) <= {"completed", "interrupted"}


def test_case_5_a_run_that_the_server_gave_up_is_stopped_before_the_next_starts() -> None:
    server = Server.Config(reconcile=True, run_deadline_us=Duration(20 * S))
    history = play(cell(server=server, agent=agent(runs=2), engine=engine("300s")))
    stopped = [record.t for record in history.events("engine.finished")]
    started = [record.t for record in history.events("engine.started")]
    assert len(started) == 2
    assert started[1] >= stopped[0]
    assert ends(history) == ["interrupted", "interrupted"]
    (first, second) = history.run_rows.values()
    assert first.late is not None
    assert second.late is not None


@pytest.mark.parametrize("nth", range(1, 8))
def test_case_8_the_sweep_may_die_at_any_point(nth: int) -> None:
    server = Server.Config(start_deadline_us=Duration(30 * S), retention_us=Duration(60 * S))
    turns = [0]

    def rule(_context: ActorContext) -> bool:
        turns[0] += 1
        return turns[0] == nth

    sim = cell(
        server=server,
        commit_hook=fails("server", rule, Commit.CRASHED),
        loss=loses(Sync),  # the desktop is away
    )
    history = play(sim)
    assert ends(history) == ["expired"]
    assert history.run_rows == {}  # and what was kept long enough is gone


def test_case_10_what_comes_after_the_server_gave_up_is_kept_beside() -> None:
    server = Server.Config(run_deadline_us=Duration(30 * S))
    history = play(cell(server=server, loss=loses(Complete, until_s=100)))
    assert row(history).status == "interrupted"
    assert row(history).late.status in ("completed", "cancelled")


def test_case_11_server_and_relay_may_die_together() -> None:
    deaths = {"server": dies_at(30), "relay": dies_at(30)}

    def hook(context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        rule = deaths.get(context.name)
        return Commit.CRASHED if rule is not None and rule(context) else Commit.DONE

    history = play(cell(commit_hook=hook))
    assert ends(history) == ["completed"]


# B. Duplicates and reconnects


def test_case_15_leave_for_an_earlier_delivery_is_superseded() -> None:
    relay = Script(
        (1, "server", sync("old")),
        (2, "server", sync("new")),
        (3, "server", start(1, "old")),
        (4, "server", start(1, "new")),
        (5, "server", start(2, "new")),
        (6, "server", start(2, "new")),
    )
    sim = scripted(relay=relay, agent=Script((0, "server", ASK)))
    play(sim)
    superseded = StartAnswer(go=False, reason="superseded")
    assert [answers(sim, "relay")[n] for n in (2, 3, 4, 5)] == [superseded, superseded, GO, GO]


def test_case_19_a_call_that_is_repeated_gets_the_same_ticket() -> None:
    history = play(cell(loss=loses(GraphRun, nth=1)))
    assert len(history.events("run.queued")) == 1
    assert len(history.events("run.replayed")) == 1
    assert history.delivered(GraphRun)[0].envelope.body.replayed
    assert ends(history) == ["completed"]


# C. Completion, outbox, durability


@pytest.mark.parametrize("kind", ["Complete", "Accepted"])
@pytest.mark.parametrize("config", [PUBLISHED, RECOMMENDED])
def test_case_21_a_result_survives_a_cut_on_either_side_of_the_commit(
    kind: str, config: Relay.Config
) -> None:
    def lost(now_us: int, envelope: Envelope[Any]) -> bool:
        return type(envelope.body).__name__ == kind and now_us < 100 * S

    history = play(cell(loss=lost, relay=config))
    assert ends(history) == ["completed"]
    assert list(history.rows("relay", "outbox")) == []


def test_case_22_results_that_can_t_be_posted_stop_neither_presence_nor_work() -> None:
    sim = cell(
        loss=loses(Complete, until_s=3_600),
        agent=agent(runs=5),
        engine=engine("60s"),
    )
    history = play(sim, 4_000)
    started = [record.t for record in history.events("engine.started")]
    assert len(started) == 5
    assert max(started) < 600 * S
    syncs = [each.t for each in history.delivered(Sync)]
    gaps = [later - earlier for earlier, later in pairwise(syncs)]
    assert max(gaps) < 60 * S
    assert ends(history) == ["completed"] * 5


def test_case_23_a_full_queue_is_an_error_that_the_agent_sees() -> None:
    server = Server.Config(reconcile=True, agent_limit=1)
    history = play(cell(server=server, agent=agent(runs=2), engine=engine("20s")))
    codes = {each.envelope.body.code for each in history.delivered(Failure)}
    assert codes == {"queue_full"}
    assert ends(history) == ["completed", "completed"]


def test_case_24_what_the_server_could_not_commit_it_did_not_accept() -> None:
    turns = [0]

    def rule(context: ActorContext) -> bool:
        turns[0] += 60 * S <= context._world.now_us < 150 * S
        return 60 * S <= context._world.now_us < 150 * S

    history = play(cell(commit_hook=fails("server", rule, Commit.FAILED)))
    assert turns[0] > 0
    assert ends(history) == ["completed"]
    (end,) = history.events("run.terminal")
    assert end.t >= 150 * S


def test_case_28_a_full_disk_on_the_desktop_loses_no_result() -> None:
    rule: Callable[[ActorContext], bool] = lambda context: (  # noqa: E731  a rule, as the others
        60 * S <= context._world.now_us < 120 * S
    )
    history = play(cell(commit_hook=fails("relay", rule, Commit.FAILED)))
    reports = history.sent(FleetFinished)
    assert len(reports) > 1  # the engine repeats its report until it is on disk
    assert ends(history) == ["completed"]


@pytest.mark.parametrize("at_s", [5, 6, 65, 65.1, 66, 70, 85])
def test_case_31_a_restart_runs_nothing_again(at_s: float) -> None:
    hook = fails("relay", dies_at(at_s, at_s), Commit.CRASHED)
    history = play(cell(commit_hook=hook))
    assert len(history.events("engine.started")) == 1
    assert ends(history) == ["completed"]


@pytest.mark.parametrize("kind", [StartAnswer, Commands, Sync, Complete])
def test_case_32_a_lost_edge_is_repaired_by_the_next_sync(kind: type[Any]) -> None:
    history = play(cell(loss=loses(kind, nth=1)))
    assert ends(history) == ["completed"]


# D. Cancellation


def test_case_34_a_cancel_that_comes_too_late_is_shown_beside_the_result() -> None:
    sim = cell(agent=agent(cancel_us=Durations.parse("64s")))  # the run ends at 65 s
    history = play(sim)
    assert ends(history) == ["completed"]
    last = history.delivered(GraphRun)[-1].envelope.body
    assert (last.status, last.cancel_requested) == ("completed", True)


def test_case_35_a_cancel_between_pickup_and_start_starts_nothing() -> None:
    relay = Script((1, "server", sync("b")), (3, "server", start(1, "b")))
    sim = scripted(relay=relay, agent=Script((0, "server", ASK), (2, "server", cancel)))
    history = play(sim)
    assert answers(sim, "relay")[1] == StartAnswer(go=False, reason="cancelled")
    assert answers(sim, "agent")[1].status == "cancelled"
    assert history.events("run.started") == ()


def test_case_37_a_run_whose_start_was_refused_is_offered_no_more() -> None:
    lines: list[Any] = [(1, "server", sync("b")), (3, "server", start(1, "b"))]
    lines += [(4 + n, "server", sync("b")) for n in range(20)]
    agent_lines = ((0, "server", ASK), (2, "server", cancel))
    history = play(scripted(relay=Script(*lines), agent=Script(*agent_lines)))
    assert len(history.events("run.offered")) == 1


@pytest.mark.parametrize(("cancel_s", "status"), [(62, "cancelled"), (64, "failed")])
def test_case_40_a_failure_is_a_failure_unless_the_cancel_was_read(
    cancel_s: int, status: str
) -> None:
    sim = cell(
        agent=agent(cancel_us=Durations.parse(f"{cancel_s}s")),
        engine=engine("60s", failure=Numbers.parse(1), stop_us=Duration(5 * S)),
    )
    history = play(sim)
    assert ends(history) == [status]
    assert len(history.events("run.queued")) == 1  # nothing is tried again


@pytest.mark.parametrize("cancel_s", [0, 2, 5, 6, 8, 20, 30, 50])
def test_case_41_a_cancel_is_seen_in_every_phase(cancel_s: int) -> None:
    how = Durations.parse(f"{cancel_s}s") if cancel_s else Durations.parse("1us")
    history = play(cell(agent=agent(cancel_us=how)))
    assert ends(history) == ["cancelled"]


@pytest.mark.parametrize("cancel_s", [10, 11, 12.5])
def test_case_42_the_engine_is_told_within_one_control_poll(cancel_s: float) -> None:
    history = play(cell(agent=agent(cancel_us=Durations.parse(f"{cancel_s}s"))))
    (asked,) = history.delivered(CancelGraphRun)
    (told,) = history.delivered(FleetCancel)
    assert 0 <= told.t - asked.t <= 3 * S


# E. Payload


def test_case_44_an_error_is_cut_to_its_bound() -> None:
    seen = row(odd(status="failed", error="é" * 100_000))
    assert seen.status == "failed"
    assert len(seen.completion.error) == ERROR_LIMIT_CHARS


@pytest.mark.parametrize("alphabet", ["ascii", "japanese", "emoji", "quotes", "control"])
@pytest.mark.parametrize("chars", [16_000, 120_000])
def test_case_45_a_result_arrives_whole_or_not_at_all(alphabet: Any, chars: int) -> None:
    config = engine("5s", result_chars=Counts.parse(chars), alphabet=alphabet)
    seen = row(play(cell(engine=config), 100))
    assert seen.status == "completed"
    assert seen.completion.result_truncated == (chars == 120_000)
    assert len(seen.completion.result or "") == (0 if chars == 120_000 else chars)


def test_case_46_a_lone_surrogate_is_replaced_where_text_enters() -> None:
    seen = row(odd(result={"a": "x\ud83dy", "b": ["\0"]}))
    assert seen.completion.result == {"a": "x\ufffdy", "b": ["\ufffd"]}


def test_case_48_numbers_that_json_has_not_and_deep_nesting_end_a_run_all_the_same() -> None:
    seen = row(odd(result=[float("nan"), float("inf"), 1.5]))
    assert seen.completion.result == [None, None, 1.5]
    deep: Any = []
    for _ in range(1_000):
        deep = [deep]
    seen = row(odd(result=deep))
    assert (seen.status, seen.completion.result) == ("failed", None)


# F. Idempotency keys


@pytest.mark.parametrize("at_s", [1, 3, 50, 200])
def test_case_50_a_key_with_another_meaning_is_refused_in_every_state(at_s: int) -> None:
    other = RunGraphSession(
        graph_session_id=SESSION.id, idempotency_key="key-0001", arguments={"a": 1}
    )
    script = Script((0, "server", ASK), (at_s, "server", other))
    sim = simulator(1, "cases")
    here = (SESSION,)
    sim.add("server", Server(SERVER, Place(name="server", sessions=here)))
    sim.add("relay", Relay(RECOMMENDED, Place(name="relay", sessions=here)))
    sim.add("engine", Engine(engine(), Place(name="engine")))
    sim.add("agent", script)
    sim.connect(lambda _source, _target: None)
    history = play(sim)
    assert script.answers[1] == KEY_REUSED
    assert len(history.events("run.queued")) == 1


def test_case_51_two_calls_at_the_same_instant_get_one_ticket() -> None:
    script = Script((1, "server", ASK), (1, "server", ASK))
    sim = scripted(agent=script)
    history = play(sim)
    first, second = script.answers[0], script.answers[1]
    assert first.command_id == second.command_id
    assert (first.replayed, second.replayed) == (False, True)
    assert len(history.events("run.queued")) == 1


# H. Identity


def test_case_64_not_yours_and_no_such_run_are_one_answer() -> None:
    owner = Script((0, "server", ASK))
    stranger = Script(
        (1, "server", lambda _heard: GetGraphRun(command_id=ticket(owner.heard))),
        (2, "server", lambda _heard: CancelGraphRun(command_id=ticket(owner.heard))),
        (3, "server", GetGraphRun(command_id="none")),
        (4, "server", CancelGraphRun(command_id="none")),
    )
    sim = scripted(claude=owner, eve=stranger)
    history = play(sim)
    assert list(stranger.answers.values()) == [NOT_FOUND] * 4
    assert history.events("run.cancel_asked") == ()


# I. Consent and ordering


def steps(*acts: tuple[float, str]) -> tuple[Step, ...]:
    return tuple(Step(at_us=int(at_s * S), act=act, session=SESSION.id) for at_s, act in acts)


@pytest.mark.parametrize(
    ("config", "acts", "status"),
    [
        (PUBLISHED, ((2, "unshare"),), "cancelled"),
        (RECOMMENDED, ((2, "unshare"),), "cancelled"),
        (PUBLISHED, ((30, "unshare"),), "completed"),
        (RECOMMENDED, ((30, "unshare"),), "cancelled"),
        (RECOMMENDED, ((30, "unshare"), (31, "share")), "cancelled"),
        (RECOMMENDED, ((30, "rename"),), "cancelled"),
        (PUBLISHED, ((2, "disable"),), "cancelled"),
    ],
)
def test_case_66_consent_is_looked_at_until_the_end(
    config: Relay.Config, acts: Any, status: str
) -> None:
    history = play(cell(relay=config, steps=steps(*acts)))
    assert ends(history) == [status]
    if acts[0][0] < 5:
        assert row(history).completion.error == NOT_SHARED_TEXT
        assert history.events("engine.started") == ()
    if status == "cancelled":
        assert history.delivered(GraphRun)[-1].envelope.body.result is None


@pytest.mark.parametrize("dies_s", [0, 1, 4, 6])
def test_case_68_the_very_first_command_arrives_also_after_a_restart(dies_s: int) -> None:
    hook = fails("server", dies_at(dies_s), Commit.CRASHED)
    history = play(cell(commit_hook=hook))
    assert ends(history) == ["completed"]


# J. Load and middleboxes


@pytest.mark.parametrize(("jitter", "in_phase"), [("none", True), ("window", False)])
def test_case_70_windowed_polls_leave_the_phase_that_an_outage_gave_them(
    jitter: Any, in_phase: bool
) -> None:
    relays = 100
    config = Relay.Config(phase_us=Durations.parse("1us"), jitter=jitter)  # all released at once
    sim = simulator(1, "cases")
    sim.add("server", Server(SERVER, Place(name="server")))
    for number in range(relays):
        sim.add(f"relay-{number}", Relay(config, Place(name=f"relay-{number}", sessions=())))
    sim.connect(lambda _source, _target: None)
    history = play(sim, 100)
    peaks: dict[int, int] = {}
    for each in history.delivered(Sync):
        peaks[each.t // S] = peaks.get(each.t // S, 0) + 1
    del peaks[0]
    assert (max(peaks.values()) == relays) == in_phase
    assert in_phase or max(peaks.values()) <= relays // 5  # 5 a second are the ideal mean


@pytest.mark.parametrize("config", [PUBLISHED, RECOMMENDED])
def test_case_72_an_answer_that_was_held_for_a_minute_starts_nothing_that_is_over(
    config: Relay.Config,
) -> None:
    held = {("server", "relay"): 60 * S}
    sim = make_cell(
        server=SERVER,
        relay=config,
        engine=engine(),
        agent=agent(cancel_us=Durations.parse("20s")),
        link=lambda sim, source, target: (
            sim.new_link(latency_us=lambda: held[source, target])
            if (source, target) in held
            else None
        ),
    )
    history = play(sim)
    assert ends(history) == ["cancelled"]
    assert history.events("engine.started") == ()
