"""The relay in Perl speaks the wire format: a server that follows a script hears what it should."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from anyio.abc import ByteStream

from actors.messages import (
    GO,
    Accepted,
    Command,
    Commands,
    Complete,
    Control,
    ControlAnswer,
    Start,
    StartAnswer,
    Sync,
)
from transports.acceptor import serve
from transports.connection import LOST, BrokenLinkError, Connection, Peer, Timings
from transports.envelope import Envelope
from transports.frames import pack, pack_greeting
from transports.handshake import PROTOCOL, accept_tokens
from transports.tcp import listen_tcp
from transports.wire import WireCodec

RELAY = Path(__file__).resolve().parents[2] / "scenarios" / "foreign" / "relay.pl"
WORD = "öpen sesame"
CODEC = WireCodec([Sync, Start, Control, Complete, Commands, StartAnswer, ControlAnswer, Accepted])
# Every form of msgpack that JSON's values have.
ARGUMENTS: dict[str, Any] = {
    "text": ["", "ä🙂", "x" * 40, "y" * 300, "z" * 70_000],
    "numbers": [0, -1, 127, 128, -33, -200, 300, 70_000, -70_000, 2**40, -(2**40), 1.5],
    "others": [None, True, False, {}, [], list(range(20)), {str(n): n for n in range(20)}],
}
COMMAND = Command(
    command_id="run-1", delivery=300, session="gs_1", slug="schön", generation=0,
    arguments=ARGUMENTS,
)  # fmt: skip

pytestmark = pytest.mark.skipif(shutil.which("perl") is None, reason="there is no perl on PATH")


class Script:
    """A server that offers one command over and over, and keeps what it hears.

    `faults` are questions that break the link instead of being answered, once each. The relay is
    stopped when `enough` says so of what was heard and logged; else it ends by itself.
    """

    def __init__(
        self,
        *faults: type[Any],
        start: StartAnswer = GO,
        enough: Callable[[list[str]], bool] = lambda _kinds: False,
    ) -> None:
        self.faults = list(faults)
        self.start = start
        self.enough = enough
        self.stop = trio.Event()
        self.heard: list[Any] = []
        self.logged: list[tuple[str, dict[str, Any]]] = []

    def log(self, event: str, /, **fields: Any) -> None:
        self.logged.append((event, fields))
        self.check([event for event, _ in self.logged])

    async def handle(self, connection: Connection) -> None:
        number = 1 << 32
        while True:
            question = CODEC.decode(await connection.receive(), connection.peer.name)
            assert (question.source, question.target) == ("relay", "server")
            self.heard.append(question.body)
            self.check(self.kinds())
            if type(question.body) in self.faults:
                self.faults.remove(type(question.body))
                raise BrokenLinkError("as the script says")
            number += 1
            answer = Envelope(number, "server", "relay", question.id, 0, self.answer(question.body))
            await connection.send(CODEC.encode(answer))

    def answer(self, body: Any) -> Any:
        if isinstance(body, Sync):
            return Commands(commands=(COMMAND,))
        return self.start if isinstance(body, Start) else Accepted(command_id=body.command_id)

    def check(self, kinds: list[str]) -> None:
        if self.enough(kinds):
            self.stop.set()

    def kinds(self) -> list[str]:
        return [type(body).__name__ for body in self.heard]


async def run_relay(
    script: Script,
    word: str = WORD,
    handle: Callable[[Connection], Any] | None = None,
    listening: Callable[[ByteStream], Any] | None = None,
) -> str:
    """Run it against the script until it ends or is stopped; return what it prints.

    `handle` takes the script's part in a connection, `listening` the whole server's on a stream.
    """
    printed: list[bytes] = []
    me = Peer(protocol=PROTOCOL, name="server", boot="s1")

    async def serving() -> None:
        if listening is not None:
            await listener.serve(listening)
        await serve(
            listener,
            me,
            accept=accept_tokens({"relay": WORD}),
            handle=handle or script.handle,
            log=script.log,
            timings=Timings(handshake_s=2),
        )

    async with await listen_tcp("127.0.0.1", 0) as listener, trio.open_nursery() as nursery:
        nursery.start_soon(serving)
        process = await trio.lowlevel.open_process(
            ["perl", str(RELAY), "127.0.0.1", str(listener.port), "relay"],
            env={
                "PATH": "/usr/bin:/bin", "PULLCORD_TOKEN": word, "PULLCORD_SESSION": "gs_1",
                "PULLCORD_PROJECT": "p", "PULLCORD_SLUG": "schön", "PULLCORD_POLL_S": "0.02",
                "PULLCORD_RETRY_S": "0.005", "PULLCORD_RUNS": "1",
            },
            stderr=subprocess.PIPE,
        )  # fmt: skip

        async def stopping() -> None:
            await script.stop.wait()
            process.kill()

        nursery.start_soon(stopping)
        try:
            with trio.fail_after(10):
                assert process.stderr is not None
                printed += [bytes(piece) async for piece in process.stderr]
                await process.wait()
        finally:
            process.kill()
            await process.wait()
        nursery.cancel_scope.cancel()
    assert script.stop.is_set() or process.returncode == 0
    return b"".join(printed).decode()


async def test_it_syncs_starts_runs_and_completes() -> None:
    script = Script()
    assert await run_relay(script) == ""
    assert script.kinds() == ["Sync", "Start", "Complete"]
    sync, start, complete = script.heard
    assert [(meta.id, meta.project, meta.slug) for meta in sync.sessions] == [
        ("gs_1", "p", "schön")
    ]
    assert (sync.open, sync.capacity, sync.poll_us) == ((), 1, 20_001)
    assert (start.command_id, start.delivery, start.boot) == ("run-1", 300, sync.boot)
    assert (complete.command_id, complete.delivery, complete.boot) == ("run-1", 300, sync.boot)
    assert complete.completion.status == "completed"
    assert complete.completion.result["ran"] == "schön"
    assert script.logged[0][0] == "link.up"
    assert WORD not in repr(script.logged)


async def test_a_result_is_posted_again_and_a_run_never_done_again() -> None:
    script = Script(Complete, Complete)
    printed = await run_relay(script)
    assert script.kinds() == ["Sync", "Start", "Complete", "Complete", "Complete"]
    assert script.heard[2] == script.heard[3] == script.heard[4]
    assert printed == "relay: the server closed the connection\n" * 2


async def test_a_lost_start_is_asked_again_for_the_same_boot() -> None:
    script = Script(Start, Sync)
    await run_relay(script)
    assert script.kinds() == ["Sync", "Sync", "Start", "Sync", "Start", "Complete"]
    starts = [body for body in script.heard if isinstance(body, Start)]
    assert len(starts) == 2
    assert starts[0] == starts[1]


async def test_a_run_that_may_not_start_is_left_alone() -> None:
    script = Script(
        start=StartAnswer(go=False, reason="closed"), enough=lambda kinds: kinds.count("Start") > 1
    )
    await run_relay(script)
    assert script.kinds()[:4] == ["Sync", "Start", "Sync", "Start"]
    assert "Complete" not in script.kinds()


async def test_a_wrong_token_is_told_by_both_sides() -> None:
    script = Script(enough=lambda kinds: kinds.count("link.refused") > 1)
    printed = await run_relay(script, word="guess")
    assert printed.startswith("relay: refused: unknown name or wrong token\n")
    assert script.heard == []
    assert script.logged[0][0] == "link.refused"
    assert "guess" not in printed + repr(script.logged)


async def test_what_is_no_json_ends_its_connection_and_it_comes_back() -> None:
    script = Script()
    said = [b"\xc4\x01x", b"\x91" * 200, b"\x92\x01", b"\xc0\xc0", b"\xdd\xff\xff\xff\xff"]
    left = list(said)

    async def handle(connection: Connection) -> None:
        if left:
            await connection.receive()
            await connection.send(left.pop(0))
            await connection.receive()
        await script.handle(connection)

    printed = await run_relay(script, handle=handle)
    assert [line.removeprefix("relay: ") for line in printed.splitlines()] == [
        "not a value that JSON has: msgpack's 0xc4",
        "not msgpack: nested too deeply",
        "not msgpack: it ends too early",
        "not msgpack: bytes are left over",
        "not msgpack: it ends too early",
    ]
    assert script.kinds() == ["Sync", "Start", "Complete"]


async def test_damage_ends_its_connection_and_it_comes_back() -> None:
    script = Script()
    damages = [2, 4, 11, 12]  # the length, both checksums, the content
    left = list(damages)

    async def handle(connection: Connection) -> None:
        if left:
            await connection.receive()
            damaged = bytearray(pack(b"\x95\0\0\0\0\x80"))
            damaged[left.pop(0)] ^= 0x10
            await connection._stream.send(pack(b"") + bytes(damaged))
            await connection.receive()
        await script.handle(connection)

    printed = await run_relay(script, handle=handle)
    assert [line.removeprefix("relay: ") for line in printed.splitlines()] == [
        *["a frame's header has a wrong checksum"] * 3,
        "a frame has a wrong checksum",
    ]
    assert script.kinds() == ["Sync", "Start", "Complete"]


@pytest.mark.parametrize(
    ("protocol", "damage", "said"),
    [
        (1, None, "server speaks protocol 1, this relay 2"),
        (2, 35, "the greeting has a wrong checksum"),
        (2, -1, "the greeting has a wrong checksum"),
    ],
)
async def test_a_welcome_of_another_protocol_or_that_is_damaged_is_not_taken(
    protocol: int, damage: int | None, said: str
) -> None:
    """From a server of the first protocol no checksum comes, and none is waited for."""
    fields = {"type": "welcome", "protocol": protocol, "name": "server", "boot": "s1"}
    welcome = bytearray(pack_greeting(msgspec.msgpack.encode(fields)))
    if damage is None:
        del welcome[-4:]
    else:
        welcome[damage] ^= 1
    script = Script()

    async def handle(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(bytes(welcome))
        with suppress(*LOST):
            await stream.receive()
        await stream.aclose()
        script.stop.set()

    assert said in await run_relay(script, listening=handle)
