"""`pullcord proxy`: its file and flags, its mistakes, and its life from start to signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from scenarios.problems import ScenarioError
from scenarios.proxy import Settings, load_proxy, serve_proxy
from tests.transports.serving import ask, service
from transports.faults.byte_fault import DOWN, UP
from transports.listening import Address
from transports.proxy import Proxies

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "127.0.0.1:6379"


def write(folder: Path, text: str) -> Path:
    path = folder / "proxy.toml"
    path.write_text(text)
    return path


def problems(*args: Any, **flags: Any) -> list[str]:
    """What is wrong, each as PLACE: MESSAGE (CURE)."""
    with pytest.raises(ScenarioError) as caught:
        load_proxy(*args, **flags)
    return [f"{one.place}: {one.message} ({one.cure})" for one in caught.value.problems]


# File and flags


def test_a_file_says_all(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [proxy]
        listen = "127.0.0.1:5000"
        upstream = "127.0.0.1:6379"
        control = "127.0.0.1:8474"
        name = "redis"
        client = "relay"
        [run]
        seed = 7
        [[fault]]
        kind = "delay"
        delay = "5s"
        from = "relay"
        [[fault]]
        kind = "reset"
        name = "rst"
        to = "relay"
        """,
    )
    settings = load_proxy(path)
    assert (settings.name, settings.seed) == ("redis", 7)
    assert settings.listen == Address("127.0.0.1", 5000)
    assert settings.upstream == Address("127.0.0.1", 6379)
    assert settings.control == Address("127.0.0.1", 8474)
    assert [(one.fault.name, one.kind, one.ways) for one in settings.faults] == [
        ("delay-1", "delay", (UP,)),
        ("rst", "reset", (DOWN,)),
    ]


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, f'[proxy]\nlisten = "127.0.0.1:1"\nupstream = "{SERVICE}"\n')
    settings = load_proxy(path, listen="127.0.0.1:2", control="127.0.0.1:3", seed=9)
    assert str(settings.listen) == "127.0.0.1:2"
    assert str(settings.upstream) == SERVICE
    assert (str(settings.control), settings.seed) == ("127.0.0.1:3", 9)


def test_flags_alone_will_do() -> None:
    settings = load_proxy(upstream=SERVICE)
    assert (str(settings.listen), settings.control) == ("127.0.0.1:0", None)
    assert settings.faults == ()
    assert load_proxy(control="127.0.0.1:0").upstream is None


def test_a_scenario_file_is_a_fault_file_too(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        schema = 1
        name = "a-scenario"
        [relay]
        poll = "20s"
        [[fault]]
        kind = "partition"
        from = "relay*"
        to = "server"
        at = "10s"
        for = "5s"
        [proxy]
        client = "relay-1"
        """,
    )
    (one,) = load_proxy(path, upstream=SERVICE).faults
    assert one.ways == (UP, DOWN)
    assert (one.fault.at, one.fault.lasts) == (10_000_000, 5_000_000)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[proxi]", 'unknown key "proxi" (did you mean "proxy"?)'),
        ('[proxy]\nlisen = "x"', 'unknown key "lisen" in [proxy] (did you mean "listen"?)'),
        ('[proxy]\nlisten = "5000"', 'proxy.toml:2:10: "5000" is not an address'),
        ("[proxy]\nlisten = 5000", '"listen" must be a string'),
        ('[proxy]\nupstream = "a:0"', '"a:0" has no port'),
        ("[[fault]]", '[[fault]] needs the key "kind"'),
        ('[[fault]]\nkind = "dely"', 'there is no kind of fault "dely" (did you mean "delay"?)'),
        ("[[fault]]\nkind = 5", 'there is no kind of fault "5"'),
        ('[[fault]]\nkind = "drop"', '"drop" is a fault of messages, and a proxy sees bytes'),
        ('[[fault]]\nkind = "kill"', '"kill" is a fault of actors, and a proxy sees bytes'),
        ('[[fault]]\nkind = "clock_step"', '"clock_step" is a fault of actors'),
        ('[[fault]]\nkind = "delay"', 'needs the key "delay"'),
        ('[[fault]]\nkind = "delay"\ndelay = "5"', "5 has no unit"),
        ('[[fault]]\nkind = "reset"\nafer = "5s"', 'did you mean "after"?'),
        ('[[fault]]\nkind = "reset"\nmessage = "Sync"', "knows no message"),
        ('[[fault]]\nkind = "reset"\non = "run.started"', "knows no event"),
        ('[[fault]]\nkind = "reset"\nnth = 1\nevery = 2', "one of nth, every and probability"),
        ('[[fault]]\nkind = "reset"\nfrom = "agent"', "stands on neither direction"),
        ("fault = [5]", '"fault"'),
        (
            '[[fault]]\nkind = "reset"\nname = "x"\n[[fault]]\nkind = "reset"\nname = "x"',
            'two faults are called "x"',
        ),
        ("[run]\nseed = -1", '"seed" must be at least 0'),
        ("x =", "a value is expected here"),
    ],
)
def test_each_mistake_of_a_file_has_its_place_and_cure(
    tmp_path: Path, text: str, says: str
) -> None:
    found = problems(write(tmp_path, text), upstream=None if "upstream" in text else SERVICE)
    assert len(found) == 1
    assert says in found[0]
    assert found[0].startswith(str(tmp_path / "proxy.toml:"))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = '[proxy]\nlisten = "x"\nupstream = "y"\n[[fault]]\nkind = "z"\n[[fault]]\nkind = "q"'
    assert len(problems(write(tmp_path, text), control="c")) == 5


def test_flags_have_their_mistakes_too() -> None:
    assert problems(upstream="6379")[0].startswith('--upstream 6379: "6379" is not an address')
    assert problems(upstream=SERVICE, seed=-1)[0].startswith("--seed: must be 0 to")
    assert "which service" in problems()[0]
    assert "which service" in problems(listen="127.0.0.1:0", control="127.0.0.1:0")[0]
    assert "there is no such file" in problems("no-such.toml")[0]


def test_faults_without_a_service_are_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, '[[fault]]\nkind = "reset"\n')
    assert "which service" in problems(path, control="127.0.0.1:0")[0]


# Its life


async def serve(settings: Settings, number: signal.Signals) -> tuple[int, list[str], bytes]:
    """Serve, ask once through the proxy, and stop by a signal: code, what was said, answer."""
    said: list[str] = []
    code: list[int] = []
    answer = b""
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[Proxies]) -> None:
            code.append(await serve_proxy(settings, said.append, task_status=task_status))

        proxies: Proxies = await nursery.start(run)
        for proxy in proxies:
            async with await trio.open_tcp_stream(*proxy.address) as client:
                answer = await ask(client, b"hello")
        os.kill(os.getpid(), number)
    return code[0], said, answer


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_it_serves_until_a_signal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    path = write(tmp_path, '[[fault]]\nkind = "delay"\ndelay = "1us"\nfrom = "client"\n')
    async with service() as upstream:
        settings = load_proxy(path, upstream=str(upstream), control="127.0.0.1:0")
        got, said, answer = await serve(settings, number)
    assert (got, answer) == (code, b"hello")
    control, proxy, *ends = said
    assert control.startswith("control: http://127.0.0.1:")
    assert proxy.startswith("proxy: 127.0.0.1:")
    assert proxy.endswith(f" -> {upstream}, 1 fault")
    assert len(ends) == 1
    assert ends[0].startswith("proxy: delay-1 fired ")
    assert ends[0].endswith("on 1 of 1 connections")


@pytest.mark.parametrize("key", ["listen", "control"])
async def test_an_address_in_use_is_a_problem_at_its_place(key: str) -> None:
    async with service() as taken:
        settings = load_proxy(upstream=SERVICE, **{key: str(taken)})  # type: ignore[arg-type]  # texts
        with pytest.raises(ScenarioError) as caught:
            await serve_proxy(settings, print)
    (problem,) = caught.value.problems
    assert problem.place == f"--{key} {taken}"
    assert problem.message == f"{taken} is in use by another program"


def test_as_a_program_it_says_so_on_stderr_and_stops_on_ctrl_c() -> None:
    program = (
        "import sys; from scenarios.proxy import load_proxy, run_proxy;"
        f"sys.exit(run_proxy(load_proxy(upstream={SERVICE!r})))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("pullcord: proxy: 127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        assert process.stderr.read() == ""
