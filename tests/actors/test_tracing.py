"""A run's traceparent goes with it through every hop, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.actor import Commit, Place, Unanswered
from actors.agent import Agent, Job
from actors.chance import Durations
from actors.engine import Engine, Execution
from actors.guarded import simulator
from actors.handover import complete
from actors.journal import Attempt, Posting
from actors.messages import (
    CHANNEL,
    CancelGraphRun,
    Command,
    Commands,
    Complete,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    GetGraphRun,
    GraphRun,
    Noted,
    RunGraphSession,
    StartAnswer,
    Sync,
    Unshare,
)
from actors.polls import parse_polls
from actors.relay import Relay
from actors.replayer import Replayer, Script
from actors.server import Server
from logs.keep import MemoryRecorder
from logs.record import MessageRecord, Record
from tests.actors.harness import SESSION, Bench, S, Sent, body_of
from tests.actors.hosts import COMMITTING_HOST, EVERY_HOST, Hosted, MakeHost
from tests.actors.puppets import Say
from tests.actors.relaying import DONE, Desktop, command
from tests.actors.service import Service
from transports.traceparent import accepted

ONE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
MALFORMED = ["00-x", ONE.upper(), ONE + "-", "00-" + "0" * 32 + "-" + "0" * 16 + "-00", "x" * 9999]


# What contexts do


class Heard(Hosted):
    """Puppets a and b: a acts at its start, and every message's text and trace is kept."""

    def __init__(self, host: MakeHost, **puppets: Any) -> None:
        self.recorder = MemoryRecorder()
        super().__init__(host, until_us=20 * S, **puppets)

    def texts(self) -> list[tuple[str, str]]:
        self.sim.run(0, self.recorder)
        told = [one.envelope for one in self.recorder.records if hasattr(one, "envelope")]
        assert all(one.traceparent == accepted(one.traceparent) for one in told)
        found = [one.envelope for one in self.recorder.records if isinstance(one, MessageRecord)]
        return [(one.body.text, one.traceparent) for one in found if isinstance(one.body, Say)]


def traced(context: Any, traceparent: Any, text: str = "x") -> None:
    context.trace(traceparent)
    context.send("b", Say(text))


@EVERY_HOST
def test_a_reply_carries_its_question_s_trace_even_if_the_turn_speaks_of_another(
    host: MakeHost,
) -> None:
    def say(context: Any, envelope: Any) -> Say | None:
        if context.name == "a":
            return None
        context.trace(OTHER)
        context.send("a", Say("about another"))
        context.reply(envelope, Say("replied"))
        return Say("returned")

    def start(context: Any) -> None:
        context.trace(ONE)
        context.request("b", Say("question"), 10 * S)

    found = Heard(host, a={"start": start, "say": say}, b={"say": say}).texts()
    assert ("question", ONE) in found
    assert ("replied", ONE) in found
    assert ("about another", OTHER) in found


@EVERY_HOST
def test_what_a_handler_returns_carries_its_question_s_trace(host: MakeHost) -> None:
    def start(context: Any) -> None:
        for trace in (ONE, "", OTHER):
            context.trace(trace)
            context.request("b", Say("question " + trace), 10 * S)

    answer = {"say": lambda _context, envelope: Say(envelope.body.text.replace("ques", "solu"))}
    found = Heard(host, a={"start": start}, b=answer).texts()
    texts = [text + trace for text in ("question ", "solution ") for trace in (ONE, "", OTHER)]
    assert sorted(found) == sorted((text, text.split(" ")[1]) for text in texts)


@EVERY_HOST
def test_a_message_s_trace_goes_on_and_ends_with_its_turn(host: MakeHost) -> None:
    def say(context: Any, envelope: Any) -> None:
        context.set_timer("later", S)
        if envelope.body.text == "x":
            context.send("a", Say("because"))

    def timer(context: Any, _timer: str) -> None:
        context.send("a", Say("timer " + context.traceparent))

    found = Heard(
        host, a={"start": partial(traced, traceparent=ONE)}, b={"say": say, "timer": timer}
    )
    assert found.texts() == [("x", ONE), ("because", ONE), ("timer ", "")]


@EVERY_HOST
def test_a_new_boot_begins_without_a_trace(host: MakeHost) -> None:
    starts: list[str] = []

    def start(context: Any) -> None:
        starts.append(context.traceparent)
        traced(context, ONE)

    world = Heard(host, a={"start": start}, b={})
    for replication in range(2):
        world.sim.run(replication)
    assert starts == ["", ""]


@COMMITTING_HOST
@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED, Commit.KILLED])
def test_a_start_after_a_traced_turn_begins_without_a_trace(
    host: MakeHost, verdict: Commit
) -> None:
    starts: list[str] = []

    def start(context: Any) -> None:
        starts.append(context.traceparent)

    world = Heard(
        host, a={"start": partial(traced, traceparent=ONE)}, b={"start": start, "say": traced_on}
    )
    world.sim.add_commit_hook(lambda name, _wrote: verdict if name == "b" else None)
    world.at(5 * S, world.sim.revive, "b", "back")
    world.texts()
    assert starts == ["", ""]


def traced_on(context: Any, _envelope: Any) -> None:
    assert context.traceparent == ONE


@EVERY_HOST
def test_an_unanswered_question_is_about_its_own_trace(host: MakeHost) -> None:
    def start(context: Any) -> None:
        context.trace(ONE)
        context.request("b", Say("question"), S)
        context.trace(OTHER)

    def unanswered(context: Any, envelope: Any) -> None:
        assert isinstance(envelope.body, Unanswered)
        context.send("b", Say("again " + envelope.traceparent))

    acts: Any = {"a": {"start": start, "unanswered": unanswered}, "b": {}}
    world = Heard(host, **acts)
    assert world.texts() == [("question", ONE), ("again " + ONE, ONE)]
    again = Heard(Replayer, **acts).sim
    again.begin(0, Script(world.recorder.records))
    assert [again.take(record) for record in world.recorder.records] == [None] * len(
        world.recorder.records
    )


@EVERY_HOST
def test_a_question_that_is_repeated_keeps_the_trace_that_it_began_with(host: MakeHost) -> None:
    def start(context: Any) -> None:
        context.trace(ONE)
        context.request_every("t", 4 * S, "b", Say("again"), 30 * S)
        context.trace(OTHER)
        context.send("b", Say("once"))

    found = Heard(host, a={"start": start}, b={}).texts()
    assert found[0] == ("once", OTHER)
    assert set(found[1:]) == {("again", ONE)}
    assert len(found) >= 4


@EVERY_HOST
@pytest.mark.parametrize("value", [*MALFORMED, None, 7, b"00"])
def test_of_what_is_malformed_nothing_is_sent(host: MakeHost, value: Any) -> None:
    world = Heard(host, a={"start": partial(traced, traceparent=value)}, b={})
    assert world.texts() == [("x", "")]


# Whole runs


def cell(host: MakeHost, seed: int, runs: int = 2, *, trace: bool = True) -> Any:
    """A cell with an agent whose runs are traced, and one whose runs aren't."""
    sim = host(seed, "")
    here = (SESSION,)
    config = Agent.Config(runs=runs, poll=parse_polls("every 7s"), trace=trace)
    plain = Agent.Config(runs=1, poll=parse_polls("every 9s"))
    relay = Relay.Config(phase_us=Durations.parse("5s"), presence=True)
    engine = Engine.Config(duration_us=Durations.parse("12s"))
    server = Server.Config(reconcile=True)
    sim.add("server", Server(server, Place(name="server", sessions=here)))
    sim.add("relay", Relay(relay, Place(name="relay", sessions=here)))
    sim.add("engine", Engine(engine, Place(name="engine")))
    sim.add("agent", Agent(config, Place(name="agent", sessions=here)))
    sim.add("plain", Agent(plain, Place(name="plain", sessions=here)))
    sim.connect(lambda _source, _target: None)
    sim.on_begin.append(lambda: sim.at(300 * S, sim.finish))
    return sim


def played(sim: Any, replication: int = 0) -> list[Record]:
    recorder = MemoryRecorder()
    sim.run(replication, recorder)
    return recorder.records


def run_of(body: Any, runs: dict[str, str]) -> str | None:
    """The run that a message is about, None for a reply that doesn't say."""
    if hasattr(body, "channel"):
        return str(body.channel).removeprefix(CHANNEL)
    if isinstance(body, RunGraphSession):
        return runs.get(body.idempotency_key)
    return getattr(body, "command_id", None)


def check_every_message(sim: Any, records: Sequence[Record]) -> list[str]:
    """Compare each message's trace with that of its run in the database; return the messages."""
    rows = sim.contexts["server"].store.snapshot()["runs"].values()
    traces = {row.command_id: row.traceparent for row in rows}
    keys = {row.key: row.command_id for row in rows}
    jobs = [*sim.contexts["agent"].store.snapshot()["jobs"].values()]
    assert [traces[job.command_id] for job in jobs] == [job.traceparent for job in jobs]
    assert len({job.traceparent for job in jobs}) == len(jobs)
    assert all(accepted(job.traceparent) for job in jobs)
    asked: dict[int, str] = {}
    seen = []
    for record in records:
        envelope = getattr(record, "envelope", None)
        if envelope is None:
            continue
        body, trace = envelope.body, envelope.traceparent
        if envelope.reply_to:
            assert trace == asked[envelope.reply_to]
        asked.setdefault(envelope.id, trace)
        run = run_of(body, keys)
        if run is not None:
            assert trace == traces[run], envelope
            seen.append(f"{type(body).__name__} to {envelope.target}")
        elif isinstance(body, Sync | Commands):
            assert trace == ""
            for each in getattr(body, "commands", ()):
                assert each.traceparent == traces[each.command_id]
    return seen


HOPS = {
    "RunGraphSession to server", "GraphRun to agent", "GetGraphRun to server", "Start to server",
    "Control to server", "FleetRun to engine", "FleetStarted to relay", "FleetFinished to relay",
    "FleetAcknowledged to engine", "Complete to server", "Accepted to relay",
}  # fmt: skip


@EVERY_HOST
def test_every_message_about_a_run_carries_its_trace(host: MakeHost) -> None:
    sim = cell(host, 1)
    for replication in range(3):
        records = played(sim, replication)
        assert set(check_every_message(sim, records)) >= HOPS


def test_a_trace_changes_nothing_but_itself() -> None:
    def untraced(value: Any) -> Any:
        text = msgspec.json.decode(msgspec.json.encode(value))
        stack = [text]
        while stack:
            one = stack.pop()
            if isinstance(one, dict):
                one.pop("traceparent", None)
                stack += one.values()
            elif isinstance(one, list):
                stack += one
        return text

    for host in (simulator, partial(simulator, guarded=True)):
        with_it, without = played(cell(host, 1)), played(cell(host, 1, trace=False))
        assert untraced(with_it) == msgspec.json.decode(msgspec.json.encode(without))
        assert b"traceparent" not in msgspec.json.encode(without)


@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED, Commit.SILENCED])
@pytest.mark.parametrize("victim", ["server", "relay", "engine", "agent"])
def test_it_outlives_a_death_at_any_turn(victim: str, verdict: Commit) -> None:
    at, turns = [0], [0]

    def hook(name: str, _wrote: bool) -> Commit | None:
        turns[0] += name == victim
        return verdict if name == victim and turns[0] == at[0] else None

    sim = cell(partial(simulator, guarded=True), 1, runs=1)
    sim.add_commit_hook(hook)
    sim.on_begin.append(
        lambda: [sim.at(t * S, lambda: sim.revive(victim, "back")) for t in range(1, 100)]
    )
    played(sim)
    last = min(turns[0], 40)
    assert last >= 4
    for at[0] in range(1, last + 1):
        turns[0] = 0
        records = played(sim)
        check_every_message(sim, records)
        answers = [one.envelope.body for one in records if isinstance(one, MessageRecord)]
        ends = [b for b in answers if isinstance(b, GraphRun) and b.status == "completed"]
        assert ends or verdict is Commit.SILENCED


@EVERY_HOST
def test_it_is_replayed_and_a_difference_in_it_is_found(host: MakeHost) -> None:
    records = played(cell(host, 1))

    def differences(found: Sequence[Record]) -> list[Any]:
        replayer = cell(Replayer, 1)
        replayer.begin(0, Script(found))
        return [one for record in found if (one := replayer.take(record)) is not None]

    assert differences(records) == []
    [index] = [
        n for n, one in enumerate(records)
        if isinstance(one, MessageRecord) and isinstance(one.envelope.body, FleetRun)
    ][:1]  # fmt: skip
    record = records[index]
    assert isinstance(record, MessageRecord)
    changed = msgspec.structs.replace(record.envelope, traceparent=OTHER)
    forged = [*records]
    forged[index] = msgspec.structs.replace(record, envelope=changed)
    if host is simulator:
        assert differences(forged)[0].record.n == record.envelope.cause


# What each actor stores


def test_a_server_stores_it_with_the_run_and_offers_it_after_a_restart() -> None:
    server = Service()
    body = RunGraphSession(graph_session_id=SESSION.id, idempotency_key="key-0001")
    [answer] = server.deliver("agent", body, traceparent=ONE)
    assert answer.traceparent == ONE
    server.start()
    assert server.row(answer.body.command_id).traceparent == ONE  # type: ignore[union-attr]  # it is there
    server.run("key-0002")
    commands = server.sync()
    assert [each.traceparent for each in commands] == [ONE, ""]


def test_the_same_key_in_another_trace_is_answered_in_that_and_changes_nothing() -> None:
    server = Service()
    body = RunGraphSession(graph_session_id=SESSION.id, idempotency_key="key-0001")
    server.deliver("agent", body, traceparent=ONE)
    [again] = server.deliver("agent", body, traceparent=OTHER)
    assert (again.traceparent, again.body.replayed) == (OTHER, True)
    assert server.row(again.body.command_id).traceparent == ONE  # type: ignore[union-attr]  # it is there


def test_a_relay_s_result_keeps_it_in_the_outbox_over_a_restart() -> None:
    desk = Desktop()
    run = command(traceparent=ONE)
    asked = desk.asked_to_start(run)
    assert asked.traceparent == ONE
    told = desk.answer(asked, StartAnswer(go=True))
    assert [each.traceparent for each in told] == [ONE]
    desk.start()
    query = [each for each in desk.started if each.target == "engine"]
    assert [each.traceparent for each in query] == [ONE]
    body = FleetFinished(channel=CHANNEL + run.command_id, completion=DONE)
    sent = desk.deliver("engine", body, traceparent=OTHER)
    assert [(type(each.body), each.traceparent) for each in sent] == [
        (FleetAcknowledged, OTHER),
        (Complete, ONE),
    ]
    desk.start()
    [post] = desk.fire("poll")
    assert (type(post.body), post.traceparent) == (Complete, ONE)
    [sync] = desk.accept(post)
    assert (type(sync.body), sync.traceparent) == (Sync, "")


def test_a_relay_on_a_full_disk_asks_its_engine_later_in_the_run_s_trace() -> None:
    desk = Desktop()
    desk.executing(command(traceparent=ONE))
    desk.context.store.writable = False
    desk.start()
    [query] = desk.fire("ask")
    assert (type(query.body), query.traceparent) == (FleetQuery, ONE)


def test_a_run_is_stopped_in_its_own_trace_whoever_wants_it() -> None:
    desk = Desktop(strict_consent=True)
    desk.executing(command(traceparent=ONE))
    noted, stop = desk.deliver("owner", Unshare(session=SESSION.id), traceparent=OTHER)
    assert (type(noted.body), noted.traceparent) == (Noted, OTHER)
    assert (type(stop.body), stop.traceparent) == (FleetCancel, ONE)
    desk = Desktop()
    run = desk.handed_over(command(traceparent=ONE))
    desk.control(stop=True)
    started = FleetStarted(channel=run.body.channel, execution_id="x")
    [stop] = desk.deliver("engine", started, reply_to=run.id, traceparent=OTHER)
    assert (type(stop.body), stop.traceparent) == (FleetCancel, ONE)


def test_the_next_command_of_a_pass_is_not_in_the_last_one_s_trace() -> None:
    desk = Desktop()
    first = desk.asked_to_start(command("r1", traceparent=ONE), command("r2"))
    second = desk.answer(first, StartAnswer(go=False, reason="superseded"))
    assert [each.traceparent for each in second] == [""]


def test_an_engine_reports_in_the_trace_that_started_it_after_a_restart_too() -> None:
    engine = Bench(Engine(Engine.Config(), Place(name="engine")), "engine")
    run = FleetRun(channel=CHANNEL + "r", session="s", slug="s", arguments={})
    [started] = engine.deliver("relay", run, traceparent=ONE)
    assert started.traceparent == ONE
    assert [each.traceparent for each in engine.start()] == [ONE]


def test_an_agent_asks_for_everything_of_a_run_in_its_trace_after_a_restart_too() -> None:
    cancel_us = Durations.parse("60s")
    config = Agent.Config(runs=2, trace=True, poll=parse_polls("every 5s"), cancel_us=cancel_us)
    agent = Bench(Agent(config, Place(name="agent", sessions=(SESSION,))), "agent")
    first, second = agent.started
    assert first.traceparent != second.traceparent
    assert accepted(first.traceparent) == first.traceparent != ""
    again = agent.unanswered(first)
    assert [each.traceparent for each in again] == [first.traceparent]
    agent.answer(second, GraphRun(command_id="c2", status="queued"))
    resumed = agent.start()
    assert [each.traceparent for each in resumed] == [first.traceparent]
    poll: list[Sent] = agent.fire("poll:1")
    assert body_of(poll, GetGraphRun).command_id == "c2"
    assert poll[0].traceparent == second.traceparent
    assert [each.traceparent for each in agent.unanswered(poll[0])] == [second.traceparent]
    [cancel] = agent.fire("cancel:1")
    assert (type(cancel.body), cancel.traceparent) == (CancelGraphRun, second.traceparent)


# Messages and rows


@given(
    st.one_of(st.sampled_from(MALFORMED), st.text(), st.integers(0, 9), st.none(), st.booleans())
)
def test_a_command_with_a_malformed_traceparent_is_one_without(value: Any) -> None:
    fields = msgspec.to_builtins(command()) | {"traceparent": value}
    for decoded in (
        msgspec.json.decode(msgspec.json.encode(fields), type=Command),
        msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=Command),
    ):
        assert decoded == command()
        assert "traceparent" not in msgspec.to_builtins(decoded)


@pytest.mark.parametrize(
    "row",
    [
        Job(number=1, session="s", key="k"),
        Execution(channel="c", execution_id="e", relay="relay"),
        Posting(complete=complete(command(), "b", DONE), order=1),
        Attempt(command=command()),
    ],
    ids=lambda row: type(row).__name__,
)
def test_rows_of_a_version_without_traces_can_be_read(row: Any) -> None:
    fields = msgspec.to_builtins(row)
    fields.pop("traceparent", None)
    assert "traceparent" not in msgspec.json.encode(fields).decode()
    assert msgspec.convert(fields, type(row)) == row
