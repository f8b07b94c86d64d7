"""Files that deployed actors of earlier versions wrote open in this one, and their stories go on.

Which actor has which table, and how a folder is written, stands in `deployed_files`.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors import __path__ as folders_of_actors
from actors.accounts.messages import Authenticated
from actors.actor import TableSpec
from actors.agent import JOBS
from actors.graphs.messages import Decide, Decided, ToolAsk
from actors.graphs.scripted import SERVED
from actors.journal import CONSENTS
from actors.ledger import RUNS, SESSIONS
from actors.messages import Complete, FleetQuery, GraphRun, Sync
from actors.owner import STEPS
from tests.actors.harness import S, body_of, only
from tests.actors.stores.sqlite.deployed_files import (
    RUN,
    TABLES,
    WRITERS,
    EngineFile,
    RelayFile,
    ServerFile,
)
from tests.actors.stores.sqlite.test_upgrade import GOLDEN, rows_of, within
from transports.clock import EPOCH_US

FOLDERS = sorted(GOLDEN.glob("deployed-*"))
# Of actors that are not deployed, and those that a deployed one has in another form.
OTHERS: tuple[TableSpec[Any], ...] = (JOBS, SERVED, STEPS, CONSENTS, RUNS, SESSIONS)
EACH_FOLDER = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def copy(folder: Path, actor: str, to: Path) -> Path:
    return Path(shutil.copy(folder / f"{actor}.db", to))


def test_no_table_is_forgotten() -> None:
    found: dict[int, str] = {}
    for module in pkgutil.walk_packages(folders_of_actors, "actors."):
        if not module.name.startswith(("actors.stores", "actors.edges")):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, TableSpec):
                    found[id(value)] = f"{module.name}.{name}"
    known = {id(spec) for spec in (*OTHERS, *(one for own in TABLES.values() for one in own))}
    assert [place for which, place in found.items() if which not in known] == []


@pytest.mark.parametrize("actor", TABLES)
def test_the_newest_folder_is_what_this_version_writes(tmp_path: Path, actor: str) -> None:
    bench = WRITERS[actor](tmp_path / "open.db")
    assert bench.file is not None
    opened = set(bench.file.snapshot())
    bench.file.close()
    rows = rows_of(tmp_path / "open.db", TABLES[actor])
    assert opened == set(rows) == {spec.name for spec in TABLES[actor]}, "each table has rows"
    want = msgspec.json.decode((FOLDERS[-1] / f"{actor}.json").read_bytes())
    assert within(want, rows), "the form of a row has changed: write another folder"


@EACH_FOLDER
@pytest.mark.parametrize("actor", TABLES)
def test_every_row_means_what_it_meant(tmp_path: Path, folder: Path, actor: str) -> None:
    path = copy(folder, actor, tmp_path)
    want = msgspec.json.decode((folder / f"{actor}.json").read_bytes())
    for _ in range(2):  # brought up to date, and then as this version has it
        found = rows_of(path, TABLES[actor])
        assert {name: set(rows) for name, rows in found.items()} == {
            name: set(rows) for name, rows in want.items()
        }
        assert within(want, found)


@EACH_FOLDER
def test_a_server_goes_on(tmp_path: Path, folder: Path) -> None:
    server = ServerFile(copy(folder, "server", tmp_path))
    signed = [server.sign_in(secret) for secret in ("agent's", "device's")]
    assert all(isinstance(one, Authenticated) for one in signed), "their tokens are good"
    agent, device = [one.principal for one in signed if isinstance(one, Authenticated)]
    kept: Any = server.context.store.snapshot()["runs"].values()
    runs = {row.status: row.command_id for row in kept}
    assert set(runs) == {"completed", "running", "queued"}
    for status, run in runs.items():
        told = server.get(agent, run)
        assert isinstance(told, GraphRun)
        assert told.status == status
    assert server.offers(device) == [runs["queued"]]
    assert server.status(runs["running"]) == "interrupted", "the device no longer holds it"
    assert server.start_run(device, runs["queued"])
    server.complete(device, runs["queued"])
    assert server.status(runs["queued"]) == "completed"
    assert server.acts()[0][1] == "owner.add"
    assert server.file is not None
    server.file.close()


@EACH_FOLDER
def test_a_relay_goes_on(tmp_path: Path, folder: Path) -> None:
    relay = RelayFile(copy(folder, "relay", tmp_path))
    past = relay.history().runs
    assert [one.status for one in past] == ["running", "completed"]
    assert only(relay.started, FleetQuery).body.channel.endswith(RUN)
    relay.accept(relay.finished(RUN))
    post = only(relay.poll(), Complete, "server")
    assert post.body.command_id == "r1"
    assert only(relay.accept(post), Sync).body.open == ()
    assert len(only(relay.poll(), Sync).body.sessions) == 1
    assert relay.file is not None
    relay.file.close()


@EACH_FOLDER
def test_an_engine_goes_on(tmp_path: Path, folder: Path) -> None:
    engine = EngineFile(copy(folder, "engine", tmp_path))
    assert engine.kept_us >= EPOCH_US, "how late it was is kept too"
    [resumed] = engine.events("fleet.resumed")
    assert (resumed["run"], resumed["waiting"]) == (RUN, 1)
    decide = Decide(run=RUN, call=1, allow=True)
    assert body_of(engine.deliver("owner", decide), Decided).known
    (turn,) = [timer for timer in engine.context.timers if timer.startswith("turn:")]
    made = [one.body for one in engine.fire(turn) if isinstance(one.body, ToolAsk)]
    assert [one.arguments for one in made] == [{"command": "ls"}]
    assert engine.context.now_us < S
    assert engine.file is not None
    engine.file.close()
