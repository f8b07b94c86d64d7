"""What a deployed desktop keeps comes back from bytes, and is found by what its rows have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.actor import TableSpec
from actors.desktop.messages import PastRun
from actors.desktop.rows import (
    GRAPHS,
    HISTORY,
    OWN_SESSIONS,
    PINNED,
    RESULTS,
    KeptResult,
    OwnSession,
    Past,
    Saved,
)
from actors.journal import CONSENTS, Consent
from actors.messages import SessionMeta

RUN = PastRun(
    number=1, command_id="r", execution_id=None, session="gs", slug="s", version=1,
    started_us=None, finished_us=None, status="running",
)  # fmt: skip
META = SessionMeta(id="gs", project="p", name="n", slug="s")
SAVED = Saved(session="gs", entry="m", texts={"m": "日"}, version=1, sha256="a", saved_us=1)
ROWS: list[tuple[TableSpec[Any], msgspec.Struct]] = [
    (OWN_SESSIONS, OwnSession(meta=META, shared=True, slug="s", place=3)),
    (HISTORY, Past(number=1, command_id="r", execution_id=None, session="gs", run=RUN)),
    (RESULTS, KeptResult({"a": [1, None]})),
    (GRAPHS, SAVED),
    (PINNED, SAVED),
]


@pytest.mark.parametrize(("spec", "row"), ROWS, ids=[spec.name for spec, _ in ROWS])
def test_a_row_comes_back_and_its_indexes_are_fields(spec: Any, row: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(row), type=spec.row) == row
    for fields in spec.indexes.values():
        assert set(fields) <= set(spec.row.__struct_fields__)
    assert spec.row.__struct_config__.frozen


def test_the_sessions_are_in_the_table_of_every_relay() -> None:
    assert OWN_SESSIONS.name == CONSENTS.name
    assert issubclass(OwnSession, Consent)
