"""Every published scenario has the same outcome on both hosts, in memory and over sockets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

import pytest

from actors.world import TrioWorld
from scenarios.build import CellRun
from scenarios.drivers import trio_world
from scenarios.load import Plan, load_plan
from scenarios.problems import ScenarioError
from scenarios.program_world import ProgramWorld
from scenarios.programs import ProgramTransport
from scenarios.reproduce import again
from scenarios.run import load_plans, run
from scenarios.runner import Options
from transports.local import RANKS, TcpTransport

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "published"
PLANS = {path.stem: load_plan(path) for path in sorted(FOLDER.glob("*.toml"))}
REPLICATIONS = 6  # of the ordinary test, some 4 s; all 50 take half a minute
SOAK_REPLICATIONS = 50

World = Callable[[int, str], Any]


def cells(plan: Plan, world: Callable[[Any], World] | None = None) -> Iterator[CellRun]:
    """Each cell of a plan, on the simulator or on the world that is made for its scenario."""
    for scenario, cell in zip(plan.scenarios, plan.cells, strict=True):
        host = None if world is None else world(scenario)
        yield CellRun(scenario, plan.run.seed, cell.label, plan.folder, world=host)


def outcome(cell: CellRun, replication: int) -> tuple[dict[str, list[float]], int]:
    """The metrics' rows of a replication, and when it ended in microseconds."""
    cell.simulator.run(replication)
    rows = {name: metric.rows() for name, metric in cell.metrics.items()}
    return rows, cell.simulator.now_us


# In memory, under a virtual clock: exactly equal


def compare(file: str, replications: int) -> None:
    plan = PLANS[file]
    on_trio = cells(plan, lambda _scenario: TrioWorld)
    for ours, theirs in zip(cells(plan), on_trio, strict=True):
        assert type(theirs.simulator) is TrioWorld
        for replication in range(replications):
            want, got = outcome(ours, replication), outcome(theirs, replication)
            assert got == want, f"{file} {replication}"
            assert [fault.fired for fault in theirs.faults] == [
                fault.fired for fault in ours.faults
            ]


@pytest.mark.parametrize("file", PLANS)
def test_a_published_scenario_has_the_same_outcome_on_trio_in_memory(file: str) -> None:
    compare(file, REPLICATIONS)


@pytest.mark.soak
@pytest.mark.parametrize("file", PLANS)
def test_fifty_replications_have_the_same_outcome_on_trio_in_memory(file: str) -> None:
    compare(file, SOAK_REPLICATIONS)


# Over sockets, on the machine's clock: equal but for what the machine takes


class Tried(NamedTuple):
    """A replication over TCP: how fast, and how many steps its longest metric spans at most.

    A step is a timer or a message that another one waits for: each comes a little late.
    """

    file: str
    speed: float
    replication: int
    steps: int


TRIED = [
    Tried("pickup_wait", 50, 0, 8),
    Tried("consent", 200, 0, 20),
    Tried("cancel", 50, 0, 12),
]
STEP_S = 0.001  # what a step takes on an idle machine: 0.3 ms were measured
STALL_S = 0.010  # a machine that was stalled for longer is asked again,
ATTEMPTS = 4  # so often


class Lateness:
    """How late threads of this process wake while a replication runs, in real seconds."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._late_s: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure)

    def __enter__(self) -> Lateness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.worst_s = max(self._late_s)
        self.usual_s = median(self._late_s)

    def _measure(self) -> None:
        while True:
            due_s = time.perf_counter() + 0.002
            over = self._over.wait(0.002)
            self._late_s.append(max(0.0, time.perf_counter() - due_s))
            if over:
                return


def over_tcp(speed: float) -> Callable[[Any], World]:
    def make(scenario: Any) -> World:
        ranks = {one.name: RANKS[one.kind] for one in scenario.cast}
        return lambda seed, label: TrioWorld(
            seed, label, transport=TcpTransport(ranks), clock=None, speed=speed
        )

    return make


@pytest.mark.parametrize("tried", TRIED, ids=[tried.file for tried in TRIED])
def test_a_published_scenario_has_the_same_outcome_over_sockets(tried: Tried) -> None:
    plan = PLANS[tried.file]
    ours, theirs = next(cells(plan)), next(cells(plan, over_tcp(tried.speed)))
    want, ended_us = outcome(ours, tried.replication)
    attempts = 1
    begun_s = time.perf_counter()
    with Lateness() as late:
        got, got_ended_us = outcome(theirs, tried.replication)
    took_s = time.perf_counter() - begun_s
    while late.worst_s > STALL_S and attempts < ATTEMPTS:
        attempts += 1
        with Lateness() as late:
            got, got_ended_us = outcome(theirs, tried.replication)
    # Each step has the usual lateness; a stall moves what comes after it, and may hit both ends.
    late_s = tried.steps * (late.usual_s + STEP_S) + 2 * late.worst_s
    tolerance_s = late_s * tried.speed
    for name, values in want.items():
        assert len(got[name]) == len(values), name
        if is_time(plan, name):
            assert got[name] == pytest.approx(values, abs=tolerance_s), name
        else:
            assert got[name] == values, name
    assert abs(got_ended_us - ended_us) / 1e6 <= tolerance_s
    assert took_s >= ended_us / 1e6 / tried.speed, "time goes at its speed"


SOCKET_REPLICATIONS = 40
SOCKET_SPEED = 20.0
STEPS = 40  # that one metric spans at most in a published scenario's first cell
PERIOD_S = {"poll_strategies": 2.0}  # of what its first cell counts, where it comes again and again
PERIOD_STEPS = 3  # its timer, its question and the answer, after which the next is set


@pytest.mark.soak
@pytest.mark.parametrize("file", PLANS)
def test_published_scenarios_agree_with_the_simulator_over_sockets(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty replications at twenty times the clock, all at once, since they mostly wait.

    A poll that comes late by the jitter may miss what it would have seen, so single replications
    may differ; their mean difference may not, by more than jitter times speed and what chance has.
    Each poll is set after the one before was answered, so there each period is late by three steps.
    """
    plan = PLANS[file]

    def pair(replication: int) -> tuple[dict[str, float], dict[str, float]]:
        hosts = next(cells(plan)), next(cells(plan, over_tcp(SOCKET_SPEED)))
        want, got = (outcome(host, replication)[0] for host in hosts)
        return tuple({name: sum(rows) for name, rows in one.items()} for one in (want, got))  # type: ignore[return-value]  # two of them

    with Lateness() as late, ThreadPoolExecutor(SOCKET_REPLICATIONS) as threads:
        pairs = list(threads.map(pair, range(SOCKET_REPLICATIONS)))
    # A stall hits few replications: it is among what chance has.
    step_s = (late.usual_s + STEP_S) * SOCKET_SPEED
    for name in plan.scenarios[0].metrics:
        apart = [got[name] - want[name] for want, got in pairs]
        chance = 3.3 * stdev(apart) / SOCKET_REPLICATIONS**0.5
        bound = chance
        if is_time(plan, name):
            bound += STEPS * step_s
        elif file in PERIOD_S:
            late_s = PERIOD_STEPS * step_s
            bound += fmean(want[name] for want, _ in pairs) * late_s / PERIOD_S[file]
        with capsys.disabled():
            print(  # noqa: T201  the figures are what a soak is for
                f"\n{file} {name}: {fmean(apart):+.3f} from the simulator, {bound:.3f} allowed "
                f"(jitter {late.usual_s * 1e3:.2f} ms, times {SOCKET_SPEED:g})",
                end="",
            )
        assert abs(fmean(apart)) <= bound + 1e-9, name


def is_time(plan: Plan, metric: str) -> bool:
    """Whether a metric is in seconds; the others are counts, and must be equal."""
    return plan.scenarios[0].metrics[metric].source is not None


# From the command line


FAULTY = """schema = 1
name = "faulty"
profile = "recommended"
[run]
replications = 2
[engine]
duration = "20s"
[[fault]]
kind = "drop"
message = "Start"
nth = 1
"""


def test_one_flag_takes_a_file_with_faults_from_the_simulator_to_sockets(tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(FAULTY)
    options: dict[str, Any] = {"driver": "trio", "transport": "tcp", "speed": 400.0, "jobs": 1}
    one = run(path, **options).scenarios[0]
    assert list(one.cells[0].fired("drop-1")) == [1, 1]
    assert one.troubles == []
    assert one.found == []
    assert again(one.plan).endswith("--transport tcp --speed 400")
    options |= {"processes": "separate"}
    separate = run(path, {"run.replications": 1}, **options).scenarios[0]
    assert list(separate.cells[0].fired("drop-1")) == [1]
    assert (separate.troubles, separate.found) == ([], [])
    assert again(separate.plan).endswith("--transport tcp --processes separate --speed 400")
    memory = run(path, driver="trio", jobs=1).scenarios[0]
    assert list(memory.cells[0].fired("drop-1")) == [1, 1]
    assert again(memory.plan).endswith("--driver trio")


BROKEN = """schema = 1
name = "broken"
profile = "recommended"
[run]
converge = "5m"
until = ["done", "6m"]
[engine]
duration = "20s"
[[fault]]
kind = "reset"
from = "relay"
at = "10s"
for = "20s"
[[fault]]
kind = "corrupt"
share = 0.05
on = "run.started"
for = "10s"
"""


@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_byte_faults_act_on_the_sockets_between_actors(tmp_path: Path, transport: Any) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(BROKEN)
    options: dict[str, Any] = {"driver": "trio", "transport": transport, "speed": 300.0, "jobs": 1}
    one = run(path, **options).scenarios[0]
    assert all(sum(one.cells[0].fired(name)) for name in ("reset-1", "corrupt-2"))
    assert one.troubles == []
    assert one.found == []


def test_unix_sockets_leave_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(FAULTY)
    sockets = tmp_path / "s"
    sockets.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(sockets))
    options: dict[str, Any] = {"driver": "trio", "transport": "unix", "speed": 400.0, "jobs": 1}
    one = run(path, {"run.replications": 1}, **options).scenarios[0]
    assert list(one.cells[0].fired("drop-1")) == [1]
    assert list(sockets.iterdir()) == []


LOOP = """from pullcord import Relay


class Loop(Relay):
    def on_commands(self, context, envelope):
        while True:
            pass
"""


def test_a_turn_without_an_end_is_ended_over_sockets_too(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    path = tmp_path / "loop.toml"
    path.write_text('schema = 1\nname = "loop"\n[relay]\nuse = "loop.py:Loop"\n')
    options: dict[str, Any] = {"driver": "trio", "transport": "tcp", "speed": 400.0, "jobs": 1}
    one = run(path, **options, patience_s=0.4).scenarios[0]
    ((_, trouble),) = one.troubles
    assert trouble.kind == "stuck"
    assert "relay on Commands from server" in trouble.sentence
    assert "loop.py:" in trouble.sentence


def test_a_world_in_which_nothing_happens_for_long_is_not_stuck(tmp_path: Path) -> None:
    path = tmp_path / "calm.toml"
    path.write_text('schema = 1\nname = "calm"\n[run]\nuntil = "5m"\n[agent]\nruns = 0\n')
    options: dict[str, Any] = {"driver": "trio", "transport": "tcp", "speed": 400.0, "jobs": 1}
    one = run(path, {"relay.poll": "10m"}, **options, patience_s=0.2).scenarios[0]
    assert one.troubles == []


@pytest.mark.parametrize("kind", ["crash", "disk_full", "failed_write", "clock_step"])
def test_what_acts_within_an_actor_is_refused_for_a_program(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "faulty.toml"
    fault = f'[[fault]]\nkind = "{kind}"\nactor = "relay*"\n'
    fault += 'by = "-1h"\n' if kind == "clock_step" else ""
    mine = FAULTY + '[[relay]]\nname = "relay-1"\ncommand = ["./mine"]\n'
    path.write_text(mine + fault)
    for driver in ("sim", "trio"):
        with pytest.raises(ScenarioError, match=f"{kind}-2 acts within relay-1, a program"):
            load_plans([str(path)], Options(driver=driver))
    path.write_text(mine + '[[relay]]\nname = "relay-2"\n' + fault)
    assert load_plans([str(path)], Options(driver="trio", transport="tcp")), "one of them is ours"


@pytest.mark.parametrize("driver", ["sim", "trio"])
def test_what_only_sockets_can_do_is_refused_in_memory(tmp_path: Path, driver: Any) -> None:
    path = tmp_path / "faulty.toml"
    slices = '[[fault]]\nkind = "slice"\nsize = "5B"\n'
    path.write_text(FAULTY + slices)
    with pytest.raises(ScenarioError, match="slice-2 does nothing to a message that arrives whole"):
        run(path, driver=driver, jobs=1)
    path.write_text(FAULTY + slices + 'pause = "1ms"\n')
    assert run(path, driver=driver, jobs=1).scenarios[0].troubles == []


def test_a_scenario_s_world_is_tasks_in_memory_or_sockets_between_ranked_actors() -> None:
    scenario = PLANS["pickup_wait"].scenarios[0]
    assert trio_world(scenario, "memory", 20.0) is TrioWorld
    world = trio_world(scenario, "tcp", 20.0)(1, "")
    assert isinstance(world, TrioWorld)


def test_a_program_is_told_its_sessions_and_is_started_in_the_scenario_s_folder(
    tmp_path: Path,
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'schema = 1\nname = "own"\n[[relay]]\nname = "mine"\ncommand = ["./mine", "fast"]\n'
        '[[relay]]\n[[agent]]\ncommand = ["./asks"]\n'
        '[[session]]\nname = "A b"\nproject = "p"\n[[session]]\nname = "c"\nrelay = "relay-2"\n'
    )
    world = trio_world(load_plan(path).scenarios[0], "tcp", 20.0, tmp_path)(1, "")
    assert isinstance(world, ProgramWorld)
    programs = world._transport
    assert isinstance(programs, ProgramTransport)
    assert programs.server == "server"
    assert not world.shift_clock("mine", "it", 1), "its clock is the machine's"
    assert not world.set_clock_rate("mine", "it", 2_000_000)
    mine, asks = programs.launches["mine"], programs.launches["agent"]
    assert list(programs.launches) == ["mine", "agent"]
    assert (mine.command, mine.folder, mine.may_end) == (("./mine", "fast"), tmp_path, False)
    assert (asks.command, asks.may_end) == (("./asks",), True)
    [told] = json.loads(mine.environment["PULLCORD_SESSIONS"])
    assert (told["name"], told["project"]) == ("A b", "p")
    assert mine.environment["PULLCORD_SESSION"] == told["id"]
    assert mine.environment["PULLCORD_PROJECT"] == "p"
    assert mine.environment["PULLCORD_SLUG"] == told["slug"]
    assert [one["name"] for one in json.loads(asks.environment["PULLCORD_SESSIONS"])] == [
        "A b",
        "c",
    ]
