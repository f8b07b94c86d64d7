"""What a recorded log says of each actor survives its way through the header."""

from __future__ import annotations

import msgspec

from logs.record import HeaderRecord
from logs.write import line_of
from scenarios.service.recorded import RecordedActor


def test_an_actor_comes_back_out_of_a_header() -> None:
    actors = {"server": RecordedActor(kind="K", config={"retention": "3d"}, store="SQLite")}
    header = HeaderRecord(
        scenario="server",
        digest="",
        seed=1,
        cell="",
        replication=1,
        command="",
        pullcord="0",
        python="3",
        actors=msgspec.to_builtins(actors),
        resolved={},
    )
    read = msgspec.json.decode(line_of(header), type=HeaderRecord)
    assert msgspec.convert(read.actors, dict[str, RecordedActor]) == actors
