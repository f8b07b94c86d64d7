"""Actors in processes of their own: the same outcomes, real kills and stops, and nothing left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.actor import Commit
from actors.errors import SimulationError
from actors.messages import TERMINAL, GraphRun, Sync
from logs.keep import MemoryRecorder
from logs.read import raw_sections
from logs.record import (
    DropRecord,
    EventRecord,
    FaultRecord,
    MessageRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from scenarios.build import CellRun
from scenarios.drivers import trio_world
from scenarios.replay import replay
from scenarios.run import run
from scenarios.separate.report import Report
from scenarios.separate.world import ElsewhereError, ProcessWorld
from tests.scenarios.loading import load
from tests.scenarios.own_programs import RELAY
from transports.clock import EPOCH_US

SPEED = 200.0
HEAD = 'schema = 1\nname = "apart"\nprofile = "recommended"\n[run]\nlimit = "20m"\ncheck = "all"\n'
OPTIONS: dict[str, Any] = {"driver": "trio", "transport": "tcp", "processes": "separate"}
QUICK = '[engine]\nduration = "10s"\n[agent]\npoll = "every 5s"\n'


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which each replication keeps what it has on disk."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def build(folder: Path, text: str, speed: float = SPEED, transport: Any = "tcp") -> CellRun:
    plan = load(folder, text, head=HEAD)
    scenario = plan.scenarios[0]
    world = trio_world(scenario, transport, speed, folder, "separate")
    return CellRun(scenario, 1, "", folder, world=world)


def records(cell: CellRun, replication: int = 0) -> list[Any]:
    recorder = MemoryRecorder()
    cell.simulator.run(replication, recorder)
    return recorder.records


def of(found: list[Any], kind: type[Any], actor: str | None = None) -> list[Any]:
    return [one for one in found if type(one) is kind and actor in (None, one.actor)]


def last_answers(found: list[Any]) -> dict[str, GraphRun]:
    bodies = [one.envelope.body for one in of(found, MessageRecord, "agent")]
    return {body.command_id: body for body in bodies if type(body) is GraphRun}


# The same outcome


def test_the_outcome_is_the_simulator_s_and_the_log_reads_the_same(
    tmp_path: Path, temporary: Path
) -> None:
    text = QUICK + '[workload]\nruns = 2\n[metrics.done]\ncount = "Accepted"\nper = "replication"\n'
    plan = load(tmp_path, text, head=HEAD)
    cell = build(tmp_path, text)
    assert type(cell.simulator) is ProcessWorld
    ours = CellRun(plan.scenarios[0], 1, "", tmp_path)
    for replication in range(2):
        want, got = records(ours, replication), records(cell, replication)
        assert last_answers(got) == last_answers(want)  # ids and results: chance is the same
        assert {one.status for one in last_answers(got).values()} == {"completed"}
        assert cell.metrics["done"].rows() == ours.metrics["done"].rows() == [2]
        assert [one.n for one in got] == list(range(1, len(got) + 1))
        assert list(temporary.iterdir()) == []


def test_causes_lead_from_each_record_to_an_earlier_one(tmp_path: Path) -> None:
    found = records(build(tmp_path, QUICK))
    by_number = {one.n: one for one in found}
    assert of(found, TimerRecord, "relay")
    for one in found:
        assert one.cause < one.n
        if type(one) is TimerRecord:
            assert by_number[one.cause].actor == one.actor
        elif type(one) is MessageRecord:
            assert by_number[one.cause].actor == one.envelope.source
        elif type(one) is EventRecord:
            assert by_number[one.cause].actor == one.actor


def test_no_two_messages_have_one_id(tmp_path: Path) -> None:
    found = of(records(build(tmp_path, QUICK)), MessageRecord)
    ids = [one.envelope.id for one in found]
    assert len(set(ids)) == len(ids)


def test_what_actors_hold_in_the_end_is_known_here(tmp_path: Path) -> None:
    cell = build(tmp_path, QUICK)
    records(cell)
    server, relay = cell.simulator.contexts["server"], cell.simulator.contexts["relay"]
    [row] = server.store.snapshot()["runs"].values()
    assert getattr(row, "status", "") == "completed"
    assert "journal" in relay.store.snapshot()
    assert "poll" in relay.timers


def test_a_turn_that_is_told_after_the_state_never_was(tmp_path: Path) -> None:
    world: Any = build(tmp_path, QUICK).simulator
    world._asked["relay"] = trio.Event()
    world._asked["relay"].set()
    world._hub.processes["relay"] = None  # it is asked for nothing
    world.recorder = MemoryRecorder()
    world._hear("relay", Report(1, 2, "message", 3))
    assert world.recorder.records == []


# Kills


def test_killed_by_sigkill_each_goes_on_from_its_disk_and_nothing_is_lost(tmp_path: Path) -> None:
    kills = "".join(
        f'[[fault]]\nkind = "kill"\nactor = "{actor}"\nat = "{at}"\ndown = "15s"\n'
        for actor, at in (("server", "25s"), ("relay", "60s"), ("engine", "100s"), ("agent", "5s"))
    )
    path = tmp_path / "kills.toml"
    path.write_text(HEAD + QUICK + '[workload]\nruns = 6\nevery = "20s"\n' + kills)
    one = run(path, {"run.replications": 2}, jobs=1, speed=100.0, **OPTIONS).scenarios[0]
    assert one.troubles == []
    assert one.found == []
    assert [list(one.cells[0].fired(f"kill-{n}")) for n in range(1, 5)] == [[1, 1]] * 4


def test_a_kill_is_a_new_boot_on_the_same_rows(tmp_path: Path) -> None:
    text = QUICK + '[workload]\nruns = 2\nevery = "60s"\n'
    text += '[[fault]]\nkind = "kill"\nactor = "server"\nat = "40s"\ndown = "10s"\n'
    cell = build(tmp_path, text)
    found = records(cell)
    assert [one.boot for one in of(found, StartRecord, "server")] == [0, 1]
    kill, start = of(found, FaultRecord)
    again = of(found, StartRecord, "server")[1]
    assert kill.t < start.t <= again.t
    assert [one for one in of(found, DropRecord) if one.fault == "down"]
    assert not [one for one in found if one.actor == "server" and kill.n < one.n < start.n]
    ids = {one.envelope.id >> 32 for one in of(found, MessageRecord) if one.actor == "relay"}
    assert ids == {0, 1}
    runs = cell.simulator.contexts["server"].store.snapshot()["runs"]
    assert len(runs) == 2
    assert {one.status for one in last_answers(found).values()} == {"completed"}


def test_what_one_that_stays_down_holds_is_read_from_its_disk(tmp_path: Path) -> None:
    text = QUICK + '[[fault]]\nkind = "kill"\nactor = "server"\nat = "50s"\ndown = "1h"\n'
    cell = build(tmp_path, 'until = "60s"\n' + text)
    found = records(cell)
    assert len(of(found, StartRecord, "server")) == 1
    assert cell.simulator.contexts["server"].store.snapshot()["runs"]


# Commits


def crashed(folder: Path, keys: str, **more: Any) -> tuple[CellRun, list[Any]]:
    text = (
        more.get("run", "")
        + QUICK
        + f'[[fault]]\nkind = "{more.get("kind", "crash")}"\nactor = "relay"\n{keys}'
    )
    cell = build(folder, text, speed=60.0)  # a new process takes a part of a second
    return cell, records(cell)


def test_killed_before_its_commit_a_turn_never_was(tmp_path: Path) -> None:
    cell, found = crashed(tmp_path, 'nth = 3\ndown = "5s"\n')
    [undone] = of(found, UndoneRecord)
    assert (undone.actor, undone.why) == ("relay", Commit.KILLED.value)
    kill, start = of(found, FaultRecord)
    assert (kill.fault, kill.act, start.act) == (Commit.KILLED.value, "kill", "start")
    assert not [one for one in found if one.cause == undone.cause and one is not undone]
    assert [one.boot for one in of(found, StartRecord, "relay")] == [0, 1]
    assert cell.faults[0].fired == 1
    assert {one.status for one in last_answers(found).values()} <= TERMINAL


def test_killed_after_its_commit_a_turn_is_kept_and_nobody_hears_of_it(tmp_path: Path) -> None:
    _, found = crashed(tmp_path, 'at = "20s"\nfor = "20s"\nnth = 1\npoint = "after"\n')
    kill, start = of(found, FaultRecord)
    assert (kill.fault, kill.act, start.act) == (Commit.SILENCED.value, "kill", "start")
    assert not of(found, UndoneRecord)
    turn = [one for one in found if one.actor == "relay" and one.n < kill.n][-1]
    assert not [one for one in found if one.cause == turn.n]
    assert [one.boot for one in of(found, StartRecord, "relay")] == [0, 1]


def test_a_full_disk_is_told_to_the_actor_and_to_its_next_process(tmp_path: Path) -> None:
    keys = 'at = "5s"\nfor = "40s"\n[[fault]]\nkind = "kill"\nactor = "relay"\nat = "25s"\n'
    cell, found = crashed(tmp_path, keys, kind="disk_full", run='until = "60s"\n')
    acts = [one.act for one in of(found, FaultRecord)]
    assert acts == ["unwritable", "kill", "start", "writable"]
    assert {one.why for one in of(found, UndoneRecord)} == {Commit.FAILED.value}
    assert cell.faults[0].fired == len(of(found, UndoneRecord))
    assert {one.status for one in last_answers(found).values()} <= TERMINAL


def test_logs_of_separate_processes_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    path.write_text(
        HEAD + QUICK + '[workload]\nruns = 3\nevery = "20s"\n'
        '[[fault]]\nkind = "crash"\nactor = "server"\nnth = 20\ndown = "5s"\n'
        '[[fault]]\nkind = "suspend"\nactor = "agent"\nat = "12s"\nfor = "9s"\n'
        '[[fault]]\nkind = "crash"\nactor = "relay"\npoint = "after"\nnth = 9\n'
        '[[fault]]\nkind = "failed_write"\nactor = "engine"\nnth = 1\n'
    )
    options: dict[str, Any] = {"jobs": 1, "logs": "all", "out": tmp_path / "out"}
    one = run(path, {"run.replications": 1}, speed=100.0, **options, **OPTIONS).scenarios[0]
    assert (one.troubles, one.found) == ([], [])
    [log] = (tmp_path / "out" / "logs").iterdir()
    done = replay(raw_sections(log))
    assert (done.sections, done.divergence) == (1, None)


# Clocks

WATCHES = """from pullcord import Relay


class Watches(Relay):
    def on_start(self, context):
        super().on_start(context)
        self.look(context)

    def look(self, context):
        context.log("look", stamp_us=context.stamp_us, now_us=context.now_us)
        context.set_timer("look", 10_000_000)

    def on_timer(self, context, timer):
        if timer == "look":
            self.look(context)
        else:
            super().on_timer(context, timer)
"""


def looks(folder: Path, fault: str) -> tuple[list[Any], list[Any]]:
    """What a relay's clocks said of each 10 s of their own, and the faults of two minutes."""
    (folder / "own.py").write_text(WATCHES)
    text = f'until = "120s"\n[relay]\nuse = "own.py:Watches"\n{fault}'
    found = records(build(folder, text))
    return of(found, EventRecord, "relay"), of(found, FaultRecord)


def test_a_clock_that_steps_does_so_in_the_next_process_too(tmp_path: Path) -> None:
    fault = '[[fault]]\nkind = "clock_step"\nactor = "relay"\nat = "45s"\nby = "+2h"\n'
    fault += '[[fault]]\nkind = "kill"\nactor = "relay"\nat = "80s"\n'
    seen, struck = looks(tmp_path, fault)
    [jump] = [one for one in seen if one.event == "clock.jumped"]
    assert [one.act for one in struck] == ["clock +2h", "kill", "start"]
    assert (jump.cause, jump.fields["by_us"]) == (0, 7_200_000_000)
    ahead = [
        round((one.fields["stamp_us"] - EPOCH_US - one.t) / 3.6e9)
        for one in seen
        if one.event == "look"
    ]
    assert ahead == [0] * ahead.count(0) + [2] * ahead.count(2)
    kill = struck[1]
    assert {2} == {
        round((one.fields["stamp_us"] - EPOCH_US - one.t) / 3.6e9)
        for one in seen
        if one.event == "look" and one.n > kill.n
    }


def test_clocks_that_drift_move_timers_that_are_set(tmp_path: Path) -> None:
    fault = '[[fault]]\nkind = "clock_drift"\nactor = "relay"\nrate = 0.25\nat = "5s"\nfor = "1h"\n'
    seen, struck = looks(tmp_path, fault)
    assert [one.act for one in struck] == ["rate 0.25"]
    assert 3 <= len(seen) <= 4  # 33 s of its own; with right clocks there would be 12 or 13
    assert seen[-1].fields["now_us"] - seen[-2].fields["now_us"] < 20_000_000


# Stops


STOP = 'until = "100s"\n[relay]\npoll = "10s"\n'


def stopped(folder: Path, kind: str) -> tuple[list[Any], Any, Any]:
    text = f'[[fault]]\nkind = "{kind}"\nactor = "relay"\nat = "32s"\nfor = "45s"\n'
    found = records(build(folder, STOP + text))
    stop, go_on = of(found, FaultRecord)
    assert (stop.act, go_on.act) == (kind, "resume")
    under_way_us = 2_000_000  # 10 ms of real time
    between = [one for one in found if stop.t + under_way_us < one.t < go_on.t]
    assert not [one for one in between if one.actor == "relay"]
    return found, stop, go_on


def test_what_was_due_in_a_pause_comes_at_its_end(tmp_path: Path) -> None:
    found, _, go_on = stopped(tmp_path, "pause")
    polls = [one for one in of(found, TimerRecord, "relay") if one.timer == "poll"]
    later = [one for one in polls if one.n > go_on.n]
    assert later[0].t - go_on.t < 4_000_000  # it was due 7 s after the pause began, or sooner


def test_a_suspended_clock_stands_still(tmp_path: Path) -> None:
    found, stop, go_on = stopped(tmp_path, "suspend")
    polls = of(found, TimerRecord, "relay")
    before = [one for one in polls if one.timer == "poll" and one.n < stop.n][-1]
    after = next(one for one in polls if one.timer == "poll" and one.n > go_on.n)
    slept_us = go_on.t - stop.t
    assert after.t - before.t - slept_us == pytest.approx(10_000_000, abs=4_000_000)
    assert not of(found, UnansweredRecord, "relay")


def test_one_that_is_stopped_at_the_end_takes_no_more_turns(tmp_path: Path) -> None:
    text = '[[fault]]\nkind = "suspend"\nactor = "relay"\nat = "82s"\nfor = "1h"\n'
    found = records(build(tmp_path, STOP + text))
    stop = of(found, FaultRecord)[0]
    assert not [one for one in found if one.actor == "relay" and one.t > stop.t + 2_000_000]


# Other actors


OWN = """import os
from pullcord import Relay


class Mine(Relay):
    def on_start(self, context):
        super().on_start(context)
        context.log("mine", pid=os.getpid(), draw=context.random("mine").random())


class Raises(Relay):
    def on_commands(self, context, envelope):
        raise ValueError("what is that?")


class Loops(Relay):
    def on_commands(self, context, envelope):
        while True:
            pass


class Exits(Relay):
    def on_commands(self, context, envelope):
        raise SystemExit(3)


class Dies(Relay):
    def on_commands(self, context, envelope):
        print("my last words")
        os._exit(7)


class Strays(Relay):
    def on_commands(self, context, envelope):
        context.send("nobody", envelope.body)


class Misleads(Relay):
    def on_commands(self, context, envelope):
        context.send("agent", envelope.body)


class Odd(Relay):
    def on_commands(self, context, envelope):
        context.log("odd", value=object())
"""


def own(folder: Path, name: str) -> str:
    (folder / "own.py").write_text(OWN)
    return QUICK + f'[relay]\nuse = "own.py:{name}"\n'


def test_a_user_s_own_actor_lives_in_its_own_process_with_the_chance_of_its_name(
    tmp_path: Path,
) -> None:
    text = own(tmp_path, "Mine")
    text += '[[fault]]\nkind = "kill"\nactor = "relay"\nat = "12s"\n'
    plan = load(tmp_path, text, head=HEAD)
    want = of(records(CellRun(plan.scenarios[0], 1, "", tmp_path)), EventRecord, "relay")
    got = of(records(build(tmp_path, text)), EventRecord, "relay")
    assert [one.fields["draw"] for one in got] == [one.fields["draw"] for one in want]
    assert {one.fields["pid"] for one in want} == {os.getpid()}
    pids = {one.fields["pid"] for one in got}
    assert len(pids) == len(got) == 2
    assert os.getpid() not in pids


@pytest.mark.parametrize(
    ("name", "words", "line"),
    [
        ("Raises", r"relay failed on Commands from server at \d.* s: ValueError: what is", 13),
        ("Loops", r"relay on Commands from server at .* did not end within 0\.3 s of real", 0),
        ("Exits", r"relay on Commands from server called sys\.exit\(3\)", 24),
        ("Strays", r"relay sent to 'nobody' on Commands from server, but there are only server", 0),
        ("Misleads", "agent has no handler for Commands", 0),
        (
            "Odd",
            "relay said odd with a value that can't leave its process: a message can't hold",
            0,
        ),
        ("Dies", "relay ended before the replication did, with exit code 7; its last words: my", 0),
    ],
)
def test_what_goes_wrong_in_a_process_is_told_as_in_ours(
    tmp_path: Path, name: str, words: str, line: int
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(HEAD + own(tmp_path, name))
    one = run(path, jobs=1, speed=SPEED, patience_s=0.3, **OPTIONS).scenarios[0]
    [(_, trouble)] = one.troubles
    import re

    assert re.search(words, trouble.sentence), trouble.sentence
    assert trouble.kind == ("stuck" if name == "Loops" else "failed")
    assert trouble.foreign == (name not in ("Strays", "Misleads") or trouble.foreign)
    if line:
        assert f'own.py", line {line}' in trouble.trace


def test_an_error_of_an_actor_names_it(tmp_path: Path) -> None:
    with pytest.raises(ElsewhereError) as raised:
        records(build(tmp_path, own(tmp_path, "Raises")))
    assert isinstance(raised.value, SimulationError)
    assert raised.value.actor == "relay"


def test_a_program_joins_actors_that_are_processes(tmp_path: Path) -> None:
    perl = f'["env", "PULLCORD_POLL_S=0.02", "PULLCORD_RETRY_S=0.005", "perl", "{RELAY}"]'
    text = f'[relay]\ncommand = {perl}\n[agent]\npoll = "every 2s"\n'
    found = records(build(tmp_path, text))
    assert {
        one.envelope.source for one in of(found, MessageRecord) if type(one.envelope.body) is Sync
    } == {"relay"}
    assert {one.status for one in last_answers(found).values()} == {"completed"}


def test_unix_sockets_do_as_well(tmp_path: Path, temporary: Path) -> None:
    found = records(build(tmp_path, QUICK, transport="unix"))
    assert {one.status for one in last_answers(found).values()} == {"completed"}
    assert list(temporary.iterdir()) == []
