"""Programs' processes: started, heard, greeted, stopped, ended, and none left behind."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.errors import SimulationError
from scenarios import programs
from scenarios.guard import Guard
from scenarios.programs import Launch, ProgramFailedError, ProgramTransport, to_stderr
from tests.contracts.fault import FakeWorld
from tests.scenarios.own_programs import greeter, is_alive, is_gone
from transports.codec import FrameError
from transports.connection import BrokenLinkError
from transports.faults.reset import Reset
from transports.local import RANKS, Wire
from transports.wiring import Wiring

Act = Callable[["Stage"], Awaitable[None]]


class Stage:
    """A transport with one program, and everything that it says and sends."""

    def __init__(self, folder: Path, command: tuple[str, ...], **how: Any) -> None:
        self.said: list[str] = []
        self.frames: list[bytes] = []
        self.ends: list[tuple[str, str]] = []
        self.done: list[str] = []
        self.changed = trio.Event()
        may_end = how.pop("may_end", False)
        launch = Launch(
            name="mine", command=command, folder=folder, environment={"MY_OWN": "word"},
            may_end=may_end,
        )  # fmt: skip
        self.transport = ProgramTransport(
            RANKS | {"mine": 2}, {"mine": launch}, "server", 50.0, say=self.say, **how
        )
        self.transport.on_done = self.end

    def say(self, line: str) -> None:
        self.said.append(line)
        self.happened()

    def end(self, name: str) -> None:
        self.done.append(name)
        self.happened()

    def happened(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    async def handle(self, me: str, peer: str, wire: Wire) -> None:
        self.ends.append((me, peer))
        self.happened()
        while True:
            self.frames.append(await wire.receive())
            self.happened()

    async def until(self, holds: Callable[[], object]) -> None:
        with trio.fail_after(8):
            while not holds():
                await self.changed.wait()

    def number(self, index: int = 0) -> int:
        """The number that a line of it has at its end."""
        return int(self.said[index].split()[-1])

    def play(self, act: Act) -> None:
        """Open the transport, act, and close it; raise the first thing that went wrong."""

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                await self.transport.open(nursery, ["server", "engine"], self.handle)
                await act(self)
                nursery.cancel_scope.cancel()

        try:
            trio.run(main)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None


async def nothing(_stage: Stage) -> None:
    """Close as soon as it has greeted."""


STAYS = greeter("link = dial()\nprint('pid', os.getpid(), flush=True)\nhear(link)")


def test_it_is_told_where_the_server_is_and_joins_it_alone(tmp_path: Path) -> None:
    show = (
        "print(os.getcwd(), os.environ['MY_OWN'], os.environ['PULLCORD_SPEED'], flush=True)\n"
        "link = dial()\nsay(link, [1, 'server'])\nhear(link)"
    )
    stage = Stage(tmp_path, greeter(show))
    stage.play(lambda stage: stage.until(lambda: stage.frames and stage.said))
    assert stage.said == [f"mine: {tmp_path.resolve()} word 50"]
    assert stage.ends == [("server", "mine")]
    assert stage.frames == [b"\x92\x01\xa6server"]


def test_at_the_end_it_is_terminated(tmp_path: Path) -> None:
    stage = Stage(tmp_path, STAYS)
    stage.play(lambda stage: stage.until(lambda: stage.said))
    assert not is_alive(stage.number())


def test_what_ignores_sigterm_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "TERM_LIMIT_S", 0.05)
    stubborn = (
        "import signal, subprocess\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sh', '-c', \"trap '' TERM; sleep 60\"])\n"
        "print('child', child.pid, flush=True)\nprint('pid', os.getpid(), flush=True)\n"
        "hear(dial())\ntime.sleep(60)"
    )
    stage = Stage(tmp_path, greeter(stubborn))
    stage.play(lambda stage: stage.until(lambda: len(stage.said) > 1))
    assert is_gone(stage.number(0))
    assert not is_alive(stage.number(1))


def test_one_that_is_stopped_is_ended_too(tmp_path: Path) -> None:
    tidy = (
        "import signal\ndef tidy(*_):\n    open('tidied', 'w').close()\n    sys.exit()\n"
        "signal.signal(signal.SIGTERM, tidy)\n"
        "link = dial()\nprint('pid', os.getpid(), flush=True)\nhear(link)\ntime.sleep(60)"
    )
    stage = Stage(tmp_path, greeter(tidy))

    async def stop(stage: Stage) -> None:
        await stage.until(lambda: stage.said)
        stage.transport.running["mine"].stop()

    stage.play(stop)
    assert not is_alive(stage.number())
    assert (tmp_path / "tidied").exists(), "it heard SIGTERM, and was not killed at once"


def test_one_that_goes_on_speaks_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, greeter("link = dial()\nwhile True: say(link, 1); time.sleep(0.002)"))

    async def stop_and_go(stage: Stage) -> None:
        await stage.until(lambda: stage.frames)
        stage.transport.running["mine"].stop()
        await trio.sleep(0.03)
        heard = len(stage.frames)
        await trio.sleep(0.05)
        assert len(stage.frames) == heard
        stage.transport.running["mine"].go_on()
        await stage.until(lambda: len(stage.frames) > heard)

    stage.play(stop_and_go)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "with exit code 0"),
        ("echo usage: this >&2; exit 3", "with exit code 3; its last words: usage: this"),
        ("kill -9 $$", "with signal 9"),
    ],
)
def test_one_that_ends_early_is_trouble(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(ProgramFailedError) as raised:
        Stage(tmp_path, ("sh", "-c", script)).play(nothing)
    assert str(raised.value) == f"mine ended before the replication did, {words}"
    assert isinstance(raised.value, SimulationError)


def test_one_that_can_t_be_started_is_told_with_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailedError) as raised:
        Stage(tmp_path, ("./not-there",)).play(nothing)
    assert str(raised.value) == (
        "mine can't be started: ./not-there: No such file or directory "
        f"(looked for from {tmp_path})"
    )


def test_one_that_never_greets_is_trouble_and_ended(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ("sh", "-c", "echo pid $$; exec sleep 60"), greeting_limit_s=0.15)
    with pytest.raises(ProgramFailedError, match=r"mine did not greet server within 0\.15 s: it"):
        stage.play(nothing)
    assert not is_alive(stage.number())


def test_one_with_a_wrong_token_is_told_and_so_are_we(tmp_path: Path) -> None:
    stage = Stage(tmp_path, greeter("dial('guess').recv(999)\nsys.exit(5)"))
    with pytest.raises(ProgramFailedError, match="exit code 5") as raised:
        stage.play(nothing)
    assert "its last connection ended: unknown name or wrong token" in str(raised.value)
    assert "mine: the connection to server ended: unknown name or wrong token" in stage.said


def test_its_new_connection_ends_the_one_before(tmp_path: Path) -> None:
    twice = "one = dial()\none.recv(999)\ntwo = dial()\nhear(one)\nsay(two, 7)\nhear(two)"
    stage = Stage(tmp_path, greeter(twice))
    stage.play(lambda stage: stage.until(lambda: stage.frames))
    assert stage.ends == [("server", "mine")] * 2
    assert stage.said == ["mine: the connection to server ended: it has connected anew"]


def test_nobody_but_the_server_hears_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, STAYS)

    async def call(stage: Stage) -> None:
        class Silent:
            async def send(self, frame: bytes) -> None:
                raise AssertionError(frame)

            def send_nowait(self, frame: bytes) -> bool:
                raise AssertionError(frame)

            async def receive(self) -> bytes:
                raise BrokenLinkError("nothing here")

        with pytest.raises(FrameError, match="business with server alone"):
            await stage.transport._receive("engine", "mine", Silent())

    stage.play(call)


def test_killed_it_stays_down_until_it_is_revived(tmp_path: Path) -> None:
    stage = Stage(tmp_path, STAYS)

    async def kill_and_revive(stage: Stage) -> None:
        program = stage.transport.running["mine"]
        await stage.until(lambda: stage.said)
        program.kill()
        await stage.until(lambda: len(stage.said) > 1)  # the link is down
        assert is_gone(stage.number())
        await wait_all_tasks_blocked(0.02)
        assert program._process is None
        program.revive()
        await stage.until(lambda: len(pids()) == len(stage.ends) == 2)
        program.kill()
        program.revive()  # before its end is noticed
        await stage.until(lambda: len(pids()) == len(stage.ends) == 3)

    def pids() -> set[int]:
        return {int(line.split()[-1]) for line in stage.said if line.startswith("mine: pid")}

    stage.play(kill_and_revive)
    assert not any(map(is_alive, pids()))


def test_should_we_be_killed_a_guard_ends_it_and_knows_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int]] = []
    monkeypatch.setattr(Guard, "add", lambda _self, group: told.append(("add", group)))
    monkeypatch.setattr(Guard, "remove", lambda _self, group: told.append(("remove", group)))
    stage = Stage(tmp_path, STAYS)

    async def kill_and_revive(stage: Stage) -> None:
        program = stage.transport.running["mine"]
        await stage.until(lambda: stage.said)
        program.kill()
        program.revive()
        await stage.until(lambda: len(pids()) == len(stage.ends) == 2)

    def pids() -> list[int]:
        return [int(line.split()[-1]) for line in stage.said if line.startswith("mine: pid")]

    stage.play(kill_and_revive)
    one, other = pids()
    assert told == [("add", one), ("remove", one), ("add", other), ("remove", other)]


def test_one_that_may_end_is_done_when_it_ends_well(tmp_path: Path) -> None:
    stage = Stage(tmp_path, greeter("link = dial()\nlink.recv(9)"), may_end=True)
    stage.play(lambda stage: stage.until(lambda: stage.done))
    assert stage.done == ["mine"]
    failing = Stage(tmp_path, greeter("link = dial()\nlink.recv(9)\nsys.exit(2)"), may_end=True)
    with pytest.raises(ProgramFailedError, match="exit code 2"):
        failing.play(lambda stage: stage.until(lambda: stage.done))
    assert failing.done == []


def test_what_it_prints_is_shown_line_by_line_and_can_t_steer_a_terminal(tmp_path: Path) -> None:
    script = f"printf 'a\\tb\\r\\n\\033[31m\\377\\n%{programs.LINE_LIMIT_BYTES + 2}dlast' 1; exit 1"
    stage = Stage(tmp_path, ("sh", "-c", script))
    with pytest.raises(ProgramFailedError):
        stage.play(nothing)
    assert stage.said[:2] == ["mine: a\tb", "mine: \ufffd[31m\ufffd"]
    assert "".join(line.removeprefix("mine: ") for line in stage.said[2:]).strip() == "1last"
    assert all(len(line) <= programs.LINE_LIMIT_BYTES + 6 for line in stage.said)


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    stage = Stage(tmp_path, STAYS)

    async def interrupt(stage: Stage) -> None:
        await stage.until(lambda: stage.said)
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        stage.play(interrupt)
    assert not is_alive(stage.number())


def test_each_line_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    to_stderr("mine: word")
    assert capsys.readouterr() == ("", "mine: word\n")


def test_byte_faults_leave_a_program_s_link_the_machine_s_times() -> None:
    fault = Reset(source="relay").at_work()
    transport = ProgramTransport({}, {}, "server", 20.0)
    transport.interpose(Wiring(FakeWorld(), [fault]), 20.0)
    assert transport.is_faulty("relay", "server")
    assert transport._timings is None, "its heartbeats go by its own clock"
