"""Programs among the actors: the shipped relay in Perl, its faults, and programs that misbehave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from actors.errors import UnhandledMessageError
from actors.messages import Accepted, Commands, Complete, GraphRun, Sync
from logs.keep import MemoryRecorder
from logs.record import DropRecord, FaultRecord, MessageRecord, StartRecord
from scenarios.build import CellRun
from scenarios.checks import CHECKS
from scenarios.drivers import trio_world
from scenarios.preview import _keys
from scenarios.problems import ScenarioError
from scenarios.program_world import ProgramWorld
from scenarios.programs import ProgramFailedError
from scenarios.run import load_plans, run
from scenarios.runner import Options
from scenarios.shipped import shipped
from tests.scenarios.loading import load
from tests.scenarios.own_programs import RELAY, greeter
from transports.envelope import Envelope

SPEED = 200.0
PERL = json.dumps(["env", "PULLCORD_POLL_S=0.02", "PULLCORD_RETRY_S=0.005", "perl", str(RELAY)])
HEAD = 'schema = 1\nname = "tried"\n[run]\nlimit = "20m"\ncheck = "all"\n'
QUICK = f'[relay]\ncommand = {PERL}\n[agent]\npoll = "every 2s"\n'

COMMANDS_TO = """link = dial()
say(link, [1, "{}", 0, 0, {{"type": "Commands", "commands": []}}])
hear(link)
"""

needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="there is no perl on PATH")


def build(folder: Path, text: str, run_keys: str = "") -> CellRun:
    plan = load(folder, text, head=HEAD + run_keys)
    scenario = plan.scenarios[0]
    world = trio_world(scenario, "tcp", SPEED, folder)
    return CellRun(scenario, 1, "", folder, world=world)


def records(cell: CellRun, replication: int = 0) -> list[Any]:
    recorder = MemoryRecorder()
    cell.simulator.run(replication, recorder)
    return recorder.records


def bodies(found: list[Any], kind: type[Any], record: type[Any] = MessageRecord) -> list[Any]:
    """The records of one kind of message."""
    return [one for one in found if type(one) is record and type(one.envelope.body) is kind]


def command(then: str, of: str = "relay") -> str:
    return f"[{of}]\ncommand = {json.dumps(list(greeter(then)))}\n"


# The shipped example


@needs_perl
def test_the_shipped_example_holds() -> None:
    options: dict[str, Any] = {"driver": "trio", "transport": "tcp", "speed": 50.0, "jobs": 1}
    one = run(shipped()["foreign/perl_relay"], **options).scenarios[0]
    assert one.troubles == []
    assert one.found == []
    assert one.cells[0].samples["completed"].values.tolist() == [3.0, 3.0]
    assert [judgement.verdict for _, judgement in one.judgements] == ["pass"]


# What a program says and hears


@needs_perl
def test_its_messages_are_recorded_and_counted_like_any_actor_s(tmp_path: Path) -> None:
    metric = '[metrics.told]\ncount = "Commands"\nper = "replication"\n'
    cell = build(tmp_path, QUICK + metric)
    assert "engine" not in cell.simulator.contexts
    for replication in range(2):
        found = records(cell, replication)
        syncs, answers = bodies(found, Sync), bodies(found, Commands)
        assert {one.envelope.source for one in syncs} == {"relay"}
        assert {one.envelope.target for one in answers} == {"relay"}
        assert {one.envelope.cause for one in syncs} == {0}
        assert {one.envelope.reply_to for one in answers} <= {one.envelope.id for one in syncs}
        assert cell.metrics["told"].rows() == [len(answers)]
        assert bodies(found, Accepted)
        last = bodies(found, GraphRun)[-1].envelope.body
        assert (last.status, last.result["ran"]) == ("completed", "demo")
        assert [one.boot for one in found if type(one) is StartRecord and one.actor == "relay"] == [
            0
        ]


@needs_perl
def test_latency_and_losses_stand_on_its_link(tmp_path: Path) -> None:
    text = (
        '[[link]]\nfrom = "relay"\nlatency = "8s"\nboth = false\n'
        '[[fault]]\nkind = "drop"\nmessage = "Complete"\nnth = 1\n'
    )
    found = records(build(tmp_path, QUICK + text))
    assert bodies(found, Sync)[0].t >= 8_000_000
    [lost] = bodies(found, Complete, DropRecord)
    assert (lost.fault, lost.envelope.source) == ("drop-1", "relay")
    again = bodies(found, Complete)[0].envelope.body
    assert again == lost.envelope.body


@needs_perl
def test_killed_it_comes_back_and_the_scenario_ends(tmp_path: Path) -> None:
    text = '[[fault]]\nkind = "kill"\nactor = "relay"\nat = "6s"\ndown = "5s"\n'
    text += '[workload]\nruns = 2\nevery = "15s"\n'
    cell = build(tmp_path, QUICK + text)
    found = records(cell)
    assert [one.act for one in found if type(one) is FaultRecord] == ["kill", "start"]
    assert [one.boot for one in found if type(one) is StartRecord and one.actor == "relay"] == [
        0,
        1,
    ]
    assert len({one.envelope.body.boot for one in bodies(found, Sync)}) == 2
    assert cell.faults[0].fired == 1


@needs_perl
def test_a_byte_fault_breaks_its_connection_and_it_dials_again(tmp_path: Path) -> None:
    text = '[[fault]]\nkind = "reset"\nfrom = "relay"\nto = "server"\nat = "8s"\nnth = 1\n'
    text += '[workload]\nruns = 2\nevery = "20s"\n'
    cell = build(tmp_path, QUICK + text)
    found = records(cell)
    assert cell.faults[0].fired == 1
    (cut,) = (one for one in found if type(one) is FaultRecord)
    assert (cut.actor, cut.act) == ("relay", "disconnect")
    assert [one for one in bodies(found, Sync) if one.t > cut.t], "it is heard again"
    assert len(list(bodies(found, Accepted))) == 2


@needs_perl
@pytest.mark.parametrize("kind", ["pause", "suspend"])
def test_stopped_it_is_silent_until_it_goes_on(tmp_path: Path, kind: str) -> None:
    text = f'[[fault]]\nkind = "{kind}"\nactor = "relay"\nat = "10s"\nfor = "20s"\n'
    text += '[workload]\nruns = 2\nevery = "35s"\n'
    found = records(build(tmp_path, QUICK + text))
    stopped, went_on = (one for one in found if type(one) is FaultRecord)
    assert (stopped.act, went_on.act) == (kind, "resume")
    under_way_us = 2_000_000  # 10 ms of real time
    assert not [one for one in bodies(found, Sync) if stopped.t + under_way_us < one.t < went_on.t]
    assert bodies(found, Sync)[-1].t > went_on.t


def test_an_agent_s_program_is_done_when_it_ends_well(tmp_path: Path) -> None:
    cell = build(tmp_path, command("link = dial()\nlink.recv(999)", of="agent"))
    records(cell)
    assert cell.simulator.finished


def test_what_it_says_of_a_cause_is_not_believed(tmp_path: Path) -> None:
    sync = {"type": "Sync", "boot": "b", "sessions": [], "open": [], "capacity": 0, "poll_us": 1}
    then = f"link = dial()\nsay(link, [5, 'server', 0, 77, {sync}])\nhear(link)"
    text = command(then) + '[metrics.heard]\ncount = "Sync"\nper = "replication"\n'
    cell = build(tmp_path, text, 'until = "5s"\n')
    [heard] = bodies(records(cell), Sync)
    assert (heard.envelope.id, heard.envelope.cause) == (5, 0)
    assert cell.metrics["heard"].rows() == [1]


# Programs that misbehave


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("sys.exit(4)", "relay ended before the replication did, with exit code 4"),
        (
            "link = dial()\nsend(link, b'\\xc1')\nhear(link)\nsys.exit(6)",
            "exit code 6; its last connection ended: not an envelope",
        ),
        (
            "link = dial()\nlink.sendall(bytes(12))\nhear(link)\nsys.exit(6)",
            "exit code 6; its last connection ended: a frame's header has a wrong checksum",
        ),
        (
            "link = dial()\nlink.sendall(b'GET / HTTP/1.1')\nhear(link)\nsys.exit(7)",
            "exit code 7; its last connection ended: this is HTTP, no frame",
        ),
        (
            COMMANDS_TO.format("agent") + "sys.exit(8)",
            "exit code 8; its last connection ended: a message to agent, but this is server",
        ),
        (
            COMMANDS_TO.format("server") + "sys.exit(9)",
            "exit code 9; its last connection ended: server does not understand Commands",
        ),
    ],
)
def test_what_a_program_did_wrong_stands_in_the_sentence(
    tmp_path: Path, then: str, words: str
) -> None:
    with pytest.raises(ProgramFailedError) as raised:
        records(build(tmp_path, command(then)))
    assert words in str(raised.value)


def test_a_trouble_of_a_run_names_the_program(tmp_path: Path) -> None:
    path = tmp_path / "early.toml"
    path.write_text(HEAD + '[relay]\ncommand = ["sh", "-c", "exit 3"]\n')
    one = run(path, driver="trio", transport="tcp", speed=SPEED, jobs=1).scenarios[0]
    [(_, trouble)] = one.troubles
    assert trouble.sentence == "relay ended before the replication did, with exit code 3"
    assert trouble.foreign


@pytest.mark.parametrize("options", [{}, {"driver": "trio"}])
def test_without_sockets_it_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="relay is a program of its own") as raised:
        run(shipped()["foreign/perl_relay"], jobs=1, **options)
    [problem] = raised.value.problems
    assert problem.cure == "give --transport tcp"


def test_a_file_with_a_program_is_valid_by_itself() -> None:
    [plan] = load_plans([str(shipped()["foreign/perl_relay"])], Options(), to_run=False)
    relay = next(one for one in plan.scenarios[0].cast if one.kind == "relay")
    assert _keys(relay) == "command = perl relay.pl"


# What the world itself decides


def world_of(folder: Path) -> ProgramWorld:
    world = build(folder, '[relay]\ncommand = ["unused"]\n').simulator
    assert isinstance(world, ProgramWorld)
    return world


def test_nobody_but_the_server_reaches_a_program(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    lost: list[str] = []
    world.observe_drops(Commands, lambda _now, envelope: lost.append(envelope.source))
    world.deliver_now(Envelope(1, "agent", "relay", 0, 0, Commands(commands=())))
    assert lost == ["agent"]


@pytest.mark.parametrize("queued", [True, False])
def test_what_its_connection_does_not_take_is_not_delivered(tmp_path: Path, queued: bool) -> None:
    class Wires:
        def send(self, _envelope: Envelope[Any], _now_us: int) -> bool:
            return queued

    text = (
        '[relay]\ncommand = ["unused"]\n[metrics.told]\ncount = "Commands"\nper = "replication"\n'
    )
    cell = build(tmp_path, text)
    world: Any = cell.simulator
    world._network, world.recorder = Wires(), MemoryRecorder()
    world.deliver_now(Envelope(1, "server", "relay", 0, 0, Commands(commands=())))
    assert len(world.recorder.records) == queued
    assert cell.metrics["told"].rows() == [queued]


def test_what_a_program_can_t_understand_is_the_sender_s_mistake(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    envelope = Envelope(1, "server", "relay", 0, 0, GraphRun(command_id="c", status="queued"))
    with pytest.raises(UnhandledMessageError, match="relay, a program, has no use for GraphRun"):
        world.deliver_now(envelope)


def test_what_an_engine_said_is_judged_only_where_one_was_heard(tmp_path: Path) -> None:
    judging = build(tmp_path, '[relay]\ncommand = ["unused"]\n').judging()
    assert judging is not None
    assert set(judging._checks) == set(CHECKS) - {"result_from_engine"}
