"""Who answers a desktop's agents, and which tools they have: as its settings say."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import msgspec

from actors.actor import Actor
from actors.graph_engine import GraphEngine
from scenarios.graph_backends import BackendName, Choice, make_model, named_backend
from scenarios.graph_files import Graph, refusal
from scenarios.graph_session import OF_A_COMMAND
from scenarios.problems import listed, quote
from scenarios.service.config import DesktopSettings, Resolved
from scenarios.tool_settings import load_tools
from scenarios.toolbox import Toolbox, engine_fields, make_tools

NOBODYS = Graph(path=Path("none.js"), shown="", text="")  # a desktop has many Graphs, and no usual


def tools_of(resolved: Resolved[DesktopSettings]) -> tuple[Toolbox, dict[str, Any]]:
    """Return the tools of agents, and what the engine's config has of them. ScenarioError.

    Who may use what is said in one place: a permission elsewhere would be overlooked there.
    """
    file, place = resolved.settings.tools, resolved.origins["tools"]
    if "permissions" in (resolved.source.data.get("engine") or {}):
        line = resolved.source.place(("engine", "permissions"))[0]
        cure = "write them into the file that --tools names"
        where = f"{resolved.source.path}:{line}"
        raise refusal(where, "a desktop's permissions stand beside its tools", cure)
    if resolved.settings.backend == "command":
        if file:
            cure = "it goes with every other backend"
            raise refusal(place, "a command has tools of its own", cure)
        return Toolbox(), {"permissions": OF_A_COMMAND}
    if not file:
        return Toolbox(), {}
    settings = load_tools(Path(file).expanduser())
    toolbox = make_tools(settings)
    return toolbox, engine_fields(settings, toolbox)


def model_of(
    resolved: Resolved[DesktopSettings],
    config: GraphEngine.Config,
    toolbox: Toolbox,
    stack: ExitStack,
) -> Actor:
    """Return who answers agents; what it holds is given back at the end. ScenarioError."""
    settings = resolved.settings
    if settings.backend not in get_args(BackendName):
        cure = f"there is {listed(get_args(BackendName), last='and')}"
        what = f"{quote(settings.backend)} is no backend"
        raise refusal(resolved.origins["backend"], what, cure)
    told = {
        key: getattr(settings, key) or None
        for key in ("backend", "model", "base_url", "key_env", "command", "prices")
    }
    answers = Path(settings.answers).expanduser() if settings.answers else None
    if settings.backend == "recorded" and answers is None:
        cure = "answers = FILE in config.toml, or PULLCORD_ANSWERS"
        raise refusal(resolved.origins["backend"], "which answers were recorded?", cure)
    choice = msgspec.convert({**told, "answers": answers}, Choice)
    backend = named_backend(choice, NOBODYS)
    if answers is not None:
        config = msgspec.structs.replace(config, model="scripted", answers=answers.name)
    model, recording = make_model(backend, choice, NOBODYS, config, toolbox.catalogue)
    if recording is not None:
        stack.callback(recording.close)
    return model
