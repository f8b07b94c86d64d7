"""The gateway: the edge of a deployed server at which everybody else connects.

It asks the server who a greeting's token belongs to, and from then on gives what comes over that
connection the source that was proved; what a kind of principal may not say it does not let in. A
principal may have several connections: the switchboard knows whose an answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
import trio
from anyio.abc import ByteStream, Listener

from actors.accounts.messages import (
    GATEWAY,
    MAY_SEND,
    Authenticate,
    Authenticated,
    AuthenticateLocal,
    BeginRotation,
    Denied,
    Pair,
    PrincipalRevoked,
    Rotation,
)
from actors.edges.door import (
    NAMELESS,
    PAIRING,
    MakeLink,
    NewToken,
    PairDevice,
    SignInLink,
    hash_code,
    hash_token,
    make_token,
    network_of,
)
from actors.edges.grants import with_secret
from actors.edges.line import Inside, Line
from actors.edges.switchboard import Switchboard
from actors.messages import Failure, Sync
from transports.acceptor import Acceptor, address_of
from transports.codec import FrameError
from transports.connection import BrokenLinkError, Connection, Log, Peer, Timings
from transports.envelope import Envelope
from transports.handshake import Hello
from transports.wire import WireCodec

SERVER = "server"  # the one actor behind the gateway
ASK_S = 8.0  # for an answer of the server; a greeting has 10 s
DENIAL_S = 0.25  # before which nobody is denied: how long the look-up took can't be told
PAIRING_LIMIT = 8  # strangers with a code at a time
PAIRING_S = 20.0  # a code is typed before connecting
NO_PAGES = Failure(code="no_pages", error="this server has no pages: start it with --http")
BUSY = "the server can't say who you are, it is too busy or its disk is full: try again"


class Guest(msgspec.Struct):
    """Who is at the other end of a connection.

    At `rotate_s` of trio's clock its token is old: the next sync brings it another one.
    """

    principal: str
    kind: Literal["owner", "agent", "device", "pairing"]
    address: str
    rotate_s: float | None = None  # when the next sync brings a new token; None for never
    name: str = ""


class Gateway:
    """See the module's docstring. `key` makes pairing codes into hashes."""

    def __init__(self, me: Peer, inside: Inside, key: bytes, log: Log) -> None:
        self.me = me
        self.log = log
        self._inside = inside
        self._key = key
        self.fingerprint = ""  # of the server's certificate, if desktops must be told it
        self.on_revoked: list[Callable[[str], None]] = []  # who else lets principals in
        self.make_link: Callable[[str, str], SignInLink | Failure] = lambda _id, _name: NO_PAGES
        self._answers: dict[int, Callable[[Any], None]] = {}  # to questions of our own
        self._pairing = 0
        self._codecs: dict[str, WireCodec] = {
            kind: WireCodec(types) for kind, types in MAY_SEND.items()
        }
        self._codecs["owner"] = WireCodec((*MAY_SEND["owner"], MakeLink))
        self._codecs[PAIRING] = WireCodec([PairDevice])
        self._wire = self._codecs["agent"]  # to encode, any of them
        self.board = Switchboard(inside, self._wire)

    # Out

    def take(self, envelope: Envelope[Any]) -> bool:
        """Send a message on its way; False if there is no connection for it."""
        if envelope.target == GATEWAY or envelope.reply_to in self._answers:
            self._hear_server(envelope)
            return True
        if isinstance(envelope.body, PrincipalRevoked):
            self._revoke(envelope.body)
            return True
        return self.board.take(envelope)

    # The server's own words

    async def ask(self, body: Any, source: str = GATEWAY, limit_s: float = ASK_S) -> Any:
        """Ask the server a question of our own, or of an owner who came in by another way.

        The answer has the secret that an owner asked for. None if it doesn't come in time.
        """
        body, amend = with_secret(body, self._key, self.fingerprint)
        number = self._inside.number()
        heard: list[Any] = []
        told = trio.Event()

        def hear(answer: Any) -> None:
            heard.append(answer if amend is None else amend(answer))
            told.set()

        self._answers[number] = hear
        try:
            with trio.move_on_after(limit_s):
                await self._inside.enter(Envelope(number, source, SERVER, 0, 0, body))
                await told.wait()
        finally:
            self._answers.pop(number, None)
        return heard[0] if heard else None

    def _hear_server(self, envelope: Envelope[Any]) -> None:
        hear = self._answers.pop(envelope.reply_to, None)
        if hear is not None:
            hear(envelope.body)
        if isinstance(envelope.body, PrincipalRevoked):
            self._revoke(envelope.body)

    def _revoke(self, notice: PrincipalRevoked) -> None:
        self.board.close(notice.principal, f"revoked: {notice.reason}")
        for hear in self.on_revoked:
            hear(notice.principal)

    # Who is there

    async def admit(self, hello: Hello, address: str, local: bool) -> Guest | str:
        """Return who a greeting comes from, or in a sentence why it is refused."""
        since_s = trio.current_time()
        found = await self._identify(hello, address, local)
        if isinstance(found, str):
            await trio.sleep_until(since_s + DENIAL_S)
        return found

    async def _identify(self, hello: Hello, address: str, local: bool) -> Guest | str:
        if self.board.stopped:
            return "the server is shutting down: try again"
        if hello.name == PAIRING and not local:
            if self._pairing >= PAIRING_LIMIT:
                return "others are being paired: try again in a minute"
            return Guest("", "pairing", network_of(address))
        body: Any = AuthenticateLocal()
        if not local or hello.token:
            name = "" if hello.name in NAMELESS else hello.name
            body = Authenticate(token_hash=hash_token(hello.token), name=name, address=address)
        answer = await self.ask(body)
        if isinstance(answer, Authenticated):
            in_us = answer.rotate_in_us
            rotate_s = None if in_us is None else trio.current_time() + in_us / 1e6
            return Guest(answer.principal, answer.kind, address, rotate_s, answer.name)
        return answer.error if isinstance(answer, Denied) else BUSY

    # In

    async def attend(self, guest: Guest, connection: Connection) -> None:
        """Hear a connection until it ends."""
        if guest.kind == "pairing":
            await self._pair(guest, connection)
            return
        self.log("link.admitted", principal=guest.principal, address=guest.address)
        await self.board.run(guest.principal, connection, partial(self._hear, guest))

    async def _hear(self, guest: Guest, line: Line, frame: bytes) -> None:
        """Let a message in under an id of our own; FrameError for what may not be said."""
        told = self._codecs[guest.kind].decode(frame, guest.principal)
        if told.target != SERVER:
            raise FrameError(f"a message to {told.target}, but only {SERVER} is here")
        if isinstance(told.body, MakeLink):
            self._post(line, guest, told.id, self.make_link(guest.principal, guest.name))
            return
        body, amend = with_secret(told.body, self._key, self.fingerprint)
        due_s = guest.rotate_s
        if due_s is not None and due_s <= trio.current_time() and isinstance(body, Sync):
            guest.rotate_s = None  # the new one is first used by another connection
            assert line.nursery is not None, "it runs"
            line.nursery.start_soon(self._rotate, guest, line)
        await self.board.enter(line, msgspec.structs.replace(told, body=body), amend)

    async def _rotate(self, guest: Guest, line: Line) -> None:
        """Give a device its next token, once the server has it on disk."""
        token = make_token("device")
        answer = await self.ask(BeginRotation(device=guest.principal, token_hash=hash_token(token)))
        if isinstance(answer, Rotation) and answer.begun:
            self._post(line, guest, 0, NewToken(token=token))

    def _post(self, line: Line, guest: Guest, reply_to: int, body: Any) -> None:
        number = self._inside.number()
        line.post(self._wire.encode(Envelope(number, SERVER, guest.principal, reply_to, 0, body)))

    async def _pair(self, guest: Guest, connection: Connection) -> None:
        """Hear one code, and say what came of it."""
        if self._pairing >= PAIRING_LIMIT:  # more may have been greeted at one time
            raise BrokenLinkError("others are being paired")
        self._pairing += 1
        try:
            with trio.move_on_after(PAIRING_S):
                told = self._codecs[PAIRING].decode(await connection.receive(), PAIRING)
                body: PairDevice = told.body
                since_s = trio.current_time()
                answer = await self.ask(
                    Pair(
                        code_hash=hash_code(self._key, body.code),
                        name=body.name,
                        token_hash=hash_token(body.token),
                        old_hash=hash_token(body.old_token) if body.old_token else "",
                        address=guest.address,
                    )
                )
                await trio.sleep_until(since_s + DENIAL_S)
                if answer is None:
                    answer = Denied(reason="unknown", error=BUSY)
                out = Envelope(self._inside.number(), SERVER, PAIRING, told.id, 0, answer)
                await connection.send(self._wire.encode(out))
                await connection.receive()  # the desktop closes once it has read the answer
        finally:
            self._pairing -= 1
        raise BrokenLinkError(f"no code within {PAIRING_S:g} s")


class Door(Acceptor):
    """One address at which the gateway answers; `local` is a socket of this machine's user."""

    def __init__(
        self,
        gateway: Gateway,
        listeners: Sequence[Listener[ByteStream]],
        *,
        local: bool,
        connection_limit: int,
        timings: Timings | None = None,
    ) -> None:
        super().__init__(gateway.me, gateway.log, timings, connection_limit)
        self._gateway = gateway
        self._listeners = listeners
        self._local = local
        self._guests: dict[ByteStream, Guest] = {}

    async def serve(self) -> None:
        """Accept connections until cancelled; the caller closes the listeners."""
        async with trio.open_nursery() as nursery:
            for listener in self._listeners:
                nursery.start_soon(listener.serve, self.take)

    async def take(self, stream: ByteStream) -> None:
        """Greet whoever is at the other end of `stream`, and run the connection."""
        try:
            await super().take(stream)
        finally:
            self._guests.pop(stream, None)

    async def admit(self, hello: Hello, stream: ByteStream) -> str | None:
        """Return why a hello is refused, None if it is not."""
        address = "local" if self._local else address_of(stream)
        found = await self._gateway.admit(hello, address, self._local)
        if isinstance(found, str):
            return found
        self._guests[stream] = found
        return None

    async def attend(self, connection: Connection, stream: ByteStream) -> None:
        """Run a connection."""
        await self._gateway.attend(self._guests.pop(stream), connection)
