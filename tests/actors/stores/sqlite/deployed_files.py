"""Files of deployed actors, written by the actors themselves in the middle of a story.

`python -m tests.actors.stores.sqlite.deployed_files tests/golden/deployed-N` writes a folder of
them, with their rows as JSON. One is never written again: a version that changes the form or a row
adds a folder. Every table has a row.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from actors.accounts.rows import (
    AUDIT,
    CODES,
    OWNED_RUNS,
    OWNED_SESSIONS,
    PRINCIPALS,
    TOKENS,
    TRIES,
)
from actors.actor import Place, TableSpec
from actors.config import decode_hook
from actors.desktop.engine import DesktopEngine
from actors.desktop.rows import ACKNOWLEDGED, GRAPHS, HISTORY, OWN_SESSIONS, PINNED, RESULTS
from actors.engine import EXECUTIONS
from actors.graph_engine import SPENDINGS
from actors.graphs.approvals import APPROVALS
from actors.graphs.messages import AgentAnswer, AgentAsk
from actors.graphs.trail import BEGINNINGS, TURNS
from actors.hints import ENOUGH, PACES
from actors.journal import JOURNAL, OUTBOX, PROJECTS
from actors.ledger import DEVICES, TICKETS
from actors.ledger import TURNS as FAIR_TURNS
from actors.messages import (
    CHANNEL,
    Commands,
    Complete,
    Disable,
    FleetAcknowledged,
    FleetFinished,
    FleetRun,
    FleetStarted,
    Start,
    StartAnswer,
    Sync,
)
from actors.stores.sqlite import SqliteStore, backup
from tests.actors.accounts.deployed import Deployed
from tests.actors.desktop.owned import Owned
from tests.actors.desktop.test_engine import Machine
from tests.actors.graphs.fake_vm import Api, FakeVmPort
from tests.actors.graphs.graph_world import FAST
from tests.actors.graphs.tool_world import ASK, wants
from tests.actors.harness import Bench, S, Sent, only
from tests.actors.stores.sqlite.test_upgrade import rows_of

TABLES: dict[str, tuple[TableSpec[Any], ...]] = {
    "server": (
        PRINCIPALS, TOKENS, CODES, TRIES, AUDIT, OWNED_RUNS, OWNED_SESSIONS, TICKETS, DEVICES,
        FAIR_TURNS, PACES,
    ),
    "relay": (OWN_SESSIONS, PROJECTS, JOURNAL, OUTBOX, HISTORY, RESULTS),
    "engine": (
        EXECUTIONS, GRAPHS, PINNED, SPENDINGS, BEGINNINGS, TURNS, APPROVALS, ACKNOWLEDGED,
    ),
}  # fmt: skip
RUN = "r2"  # the desktop's run that executes


class OnDisk(Bench):
    """An actor on a bench whose store is a file; one that was written before goes on, later."""

    path: Path
    file: SqliteStore | None = None
    kept_us = 0  # how late it was by the file

    def start(self) -> list[Sent]:
        if self.file is None:
            if self.path.exists():
                self.context.ids = 1_000  # its ids are others
                self.context.wall_us += 60 * S
            self.file = SqliteStore(self.path)
            self.kept_us = self.file.keep_stamps(lambda: self.context.stamp_us)
            self.context.store = self.file  # type: ignore[assignment]  # one that is on disk
        return super().start()

    def take(self) -> list[Sent]:
        assert self.file is not None
        self.file.commit()
        return super().take()


class ServerFile(OnDisk, Deployed):
    """A deployed server on a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__()


class RelayFile(OnDisk, Owned):
    """A deployed relay on a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__()


async def main(api: Api, _args: Any) -> Any:
    return await api.agent("in the root", tools=("shell",))


class EngineFile(OnDisk, Machine):
    """A deployed engine on a file; its Graphs are the coroutine above."""

    actor: DesktopEngine

    def __init__(self, path: Path) -> None:
        self.path = path
        keys = {**FAST, "permissions": ASK}
        config = msgspec.convert(keys, DesktopEngine.Config, dec_hook=decode_hook)
        place = Place(name="engine", approver="terminal")
        Bench.__init__(self, DesktopEngine(config, place), "engine")

    def start(self) -> list[Sent]:
        self.context.vm = FakeVmPort(main=main)
        return super().start()


def write_server(path: Path) -> ServerFile:
    """Runs that ended, one that runs, one that waits; a code that is good, and one that was not."""
    server = ServerFile(path)
    agent, device = server.add_agent(bearer="agent's"), server.add_device(bearer="device's")
    server.code()
    server.pair("a guess", address="192.0.2.9")
    server.share(device, 1)
    for _ in range(ENOUGH):
        run = server.queued(agent)
        server.start_run(device, run)
        server.context.now_us += S
        server.complete(device, run)
    server.start_run(device, server.queued(agent))
    server.queued(agent)
    server.get(agent, "no run of its own")
    return server


def write_relay(path: Path) -> RelayFile:
    """A result that waits for the server, and a run that executes."""
    relay = RelayFile(path)
    session = relay.add()
    relay.share(session)
    relay.deliver("owner", Disable(project="other"))
    relay.unanswered(relay.run_to_end(session, "r1"))
    relay.actor.passing = False
    post = only(relay.poll(), Complete, "server")
    sync = only(relay.unanswered(post), Sync, "server")
    commands = Commands(commands=(relay.command_for(session, RUN),))
    leave = only(relay.answer(sync, commands), Start, "server")
    run = only(relay.answer(leave, StartAnswer(go=True)), FleetRun, "engine")
    relay.answer(run, FleetStarted(channel=run.body.channel, execution_id="x-2"))
    return relay


def write_engine(path: Path) -> EngineFile:
    """A run whose end the relay has, and one of which a call waits for its owner."""
    engine = EngineFile(path)
    engine.save("main")
    turn = "turn:" + engine.run("r1")
    question = only(engine.fire(turn), AgentAsk, "model")
    engine.answer(question, AgentAnswer(run="r1", agent=1, outcome="ok", value="done"))
    only(engine.fire(turn), FleetFinished, "relay")
    engine.deliver("relay", FleetAcknowledged(channel=CHANNEL + "r1"))
    execution = engine.run(RUN)
    turn = "turn:" + execution
    question = only(engine.fire(turn), AgentAsk, "model")
    said = wants("shell", arguments={"command": "ls"})
    engine.answer(question, AgentAnswer(run=RUN, agent=1, tokens=9, cost=0.5, **said))
    engine.fire(turn)
    return engine


WRITERS = {"server": write_server, "relay": write_relay, "engine": write_engine}


def write(folder: Path) -> None:
    """Write a folder of files, and what is in them."""
    folder.mkdir()
    for name, writer in WRITERS.items():
        with tempfile.TemporaryDirectory() as made:
            bench = writer(Path(made) / "open.db")
            assert bench.file is not None
            bench.file.close()
            backup(bench.path, folder / f"{name}.db")
        rows = rows_of(folder / f"{name}.db", TABLES[name])
        encoded = msgspec.json.encode(rows, order="sorted")
        (folder / f"{name}.json").write_bytes(msgspec.json.format(encoded) + b"\n")
    for left in (*folder.glob("*.lock"), *folder.glob("*.reserve")):
        left.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
