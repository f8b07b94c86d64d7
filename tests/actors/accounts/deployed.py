"""A deployed server on a bench, with the words in which gateways and owners speak to it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, TypeVar

from actors.accounts.messages import (
    GATEWAY,
    AddAgent,
    AddOwner,
    Audit,
    AuditEntry,
    Authenticate,
    Authenticated,
    AuthenticateLocal,
    CodeAccepted,
    Denied,
    ListAudit,
    NewPairingCode,
    Pair,
    Paired,
    PrincipalAdded,
)
from actors.accounts.rows import OWNED_RUNS, PRINCIPALS, OwnedRun, Principal
from actors.accounts.server import AccountedServer
from actors.accounts.tokens import LOCAL_OWNER
from actors.actor import Place
from actors.messages import (
    Accepted,
    Commands,
    Complete,
    Completion,
    Failure,
    GetGraphRun,
    GraphRun,
    Message,
    RunGraphSession,
    SessionMeta,
    Start,
    StartAnswer,
    Sync,
)
from tests.actors.harness import Bench, S, Sent, body_of

BodyT = TypeVar("BodyT", bound=Message)
RESULT = Completion(execution_id="x", status="completed", result="R", total_tokens=7)


def hashed(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def meta(number: int, project: str = "default") -> SessionMeta:
    return SessionMeta(id=f"gs_{number:032x}", project=project, name="demo", slug="demo")


class Deployed(Bench):
    """A deployed server, with the words in which gateways and owners speak to it."""

    actor: AccountedServer

    def __init__(self, **config: Any) -> None:
        place = Place(name="server")
        super().__init__(AccountedServer(AccountedServer.Config(**config), place), "server")
        self.serial = 0
        self.told(GATEWAY, AuthenticateLocal(), Authenticated)

    def told(self, source: str, body: Any, kind: type[BodyT]) -> BodyT:
        """Say something and return the answer, which is of this type; notices are left out."""
        answers = [each for each in self.deliver(source, body) if each.target == source]
        return body_of(answers[-1:], kind)

    def owner(self, body: Any, kind: type[BodyT], owner: str = LOCAL_OWNER) -> BodyT:
        """Say something as an owner."""
        return self.told(owner, body, kind)

    def secret(self) -> str:
        self.serial += 1
        return f"secret-{self.serial}"

    # Who there is

    def add_owner(self, name: str = "") -> str:
        secret = self.secret()
        body = AddOwner(name=name or secret, token_hash=hashed(secret))
        return self.owner(body, PrincipalAdded).principal

    def add_agent(self, owner: str = LOCAL_OWNER, bearer: str = "", **more: Any) -> str:
        bearer = bearer or self.secret()
        name = more.pop("name", f"agent-{self.serial}")
        body = AddAgent(name=name, token_hash=hashed(bearer), **more)
        return self.owner(body, PrincipalAdded, owner).principal

    def code(self, owner: str = LOCAL_OWNER) -> str:
        secret = self.secret()
        self.owner(NewPairingCode(code_hash=hashed(secret)), CodeAccepted, owner)
        return secret

    def pair(self, code: str, bearer: str = "", **more: Any) -> Paired | Denied:
        """Bring a code; with the token that the desktop is to have."""
        body = Pair(
            code_hash=hashed(code),
            name=more.pop("name", "laptop"),
            token_hash=hashed(bearer or self.secret()),
            **more,
        )
        (sent,) = self.deliver(GATEWAY, body)
        assert isinstance(sent.body, Paired | Denied)
        return sent.body

    def add_device(self, owner: str = LOCAL_OWNER, bearer: str = "", **more: Any) -> str:
        paired = self.pair(self.code(owner), bearer, **more)
        assert isinstance(paired, Paired)
        return paired.device

    def sign_in(self, secret: str, name: str = "", address: str = "") -> Authenticated | Denied:
        body = Authenticate(token_hash=hashed(secret), name=name, address=address)
        (sent,) = self.deliver(GATEWAY, body)
        assert isinstance(sent.body, Authenticated | Denied)
        return sent.body

    def principal(self, name: str) -> Principal:
        row = self.context.store.table(PRINCIPALS).get(name)
        assert isinstance(row, Principal)
        return row

    # Runs

    def share(self, device: str, *numbers: int, project: str = "default") -> list[Sent]:
        sessions = tuple(meta(number, project) for number in numbers)
        return self.sync(device, sessions)

    def sync(
        self,
        device: str,
        sessions: tuple[SessionMeta, ...],
        *held: str,
        boot: str = "boot-1",
        capacity: int = 0,
    ) -> list[Sent]:
        body = Sync(boot=boot, sessions=sessions, open=held, capacity=capacity, poll_us=20 * S)
        return self.deliver(device, body)

    def run(self, agent: str, session: int = 1, key: str = "") -> Message:
        body = RunGraphSession(
            graph_session_id=meta(session).id, idempotency_key=key or f"key-{self.secret()}"
        )
        (sent,) = self.deliver(agent, body)
        assert isinstance(sent.body, Message)
        return sent.body

    def queued(self, agent: str, session: int = 1) -> str:
        answer = self.run(agent, session)
        assert isinstance(answer, GraphRun), answer
        return answer.command_id

    def get(self, agent: str, run: str) -> GraphRun | Failure:
        (sent,) = self.deliver(agent, GetGraphRun(command_id=run))
        assert isinstance(sent.body, GraphRun | Failure)
        return sent.body

    def start_run(self, device: str, run: str, session: int = 1) -> bool:
        """Let a device take a run and start it."""
        self.sync(device, (meta(session),), capacity=100)
        row = self.row(run)
        assert row is not None
        body = Start(command_id=run, boot=row.boot, delivery=row.delivery)
        return self.told(device, body, StartAnswer).go

    def complete(self, device: str, run: str, done: Completion = RESULT) -> None:
        body = Complete(command_id=run, boot="boot-1", delivery=1, completion=done)
        self.told(device, body, Accepted)

    def offers(self, device: str, session: int = 1) -> list[str]:
        (sent,) = self.sync(device, (meta(session),), capacity=100)
        assert isinstance(sent.body, Commands)
        return [command.command_id for command in sent.body.commands]

    def row(self, run: str) -> OwnedRun | None:
        return self.context.store.table(OWNED_RUNS).get(run)

    def status(self, run: str) -> str:
        row = self.row(run)
        return "none" if row is None else row.status

    def keep(self) -> None:
        """Let the server do what it does now and then, until nothing is left to do at once."""
        self.fire("keep")
        while self.context.timers["keep"] <= self.context.now_us:
            self.fire("keep")

    # The audit

    def audit(self, owner: str = LOCAL_OWNER, *, everybody: bool = False) -> list[AuditEntry]:
        """Every row of a book, the newest first."""
        entries: list[AuditEntry] = []
        cursor = ""
        while True:
            body = ListAudit(everybody=everybody, cursor=cursor, limit=7)
            page = self.owner(body, Audit, owner)
            entries += page.entries
            cursor = page.cursor
            if not cursor:
                return entries

    def acts(self, owner: str = LOCAL_OWNER) -> list[tuple[str, str, str, str]]:
        """Who did what on what with what outcome, the oldest first."""
        rows = [(row.who, row.act, row.subject, row.outcome) for row in self.audit(owner)]
        return rows[::-1]
