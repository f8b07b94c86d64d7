"""Jobs of actors' processes, for tests."""

from __future__ import annotations

from typing import Any

from actors.actor import Place
from scenarios.cast import BUILT_IN
from scenarios.separate.report import Job
from scenarios.spec import Cast


def job_for(kind: Any, **how: Any) -> Job:
    """Return the job of an actor that is called as its kind."""
    cast = Cast(kind=kind, name=kind, use=None, config=BUILT_IN[kind].Config())
    fields: dict[str, Any] = {
        "cast": cast,
        "place": Place(name=kind),
        "folder": ".",
        "cwd": ".",
        "import_path": (),
        "index": 1,
        "names": ("server", "relay", "engine"),
        "seed": 1,
        "cell": "",
        "replication": 0,
        "boot": 0,
        "ids": 0,
        "draws": {},
        "speed": 1.0,
        "patience_s": 10.0,
        "asks": False,
        "store": "",
        "token": "",
    }
    return Job(**(fields | how))
