"""The public names of pullcord: the one module that users import, from a checkout or a wheel.

Each is imported when it is asked for, so `import pullcord` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors import messages
    from actors.actor import (
        Actor,
        Context,
        Handler,
        Place,
        Session,
        Step,
        Store,
        Table,
        TableSpec,
        Unanswered,
    )
    from actors.agent import Agent
    from actors.chance import Counts, Durations, Numbers, Sizes, Stream
    from actors.desktop.engine import DesktopEngine
    from actors.desktop.relay import DesktopRelay
    from actors.engine import Engine
    from actors.graph_engine import GraphEngine
    from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel, ToolCall
    from actors.graphs.model import Model, ModelConfig, Planned
    from actors.owner import Owner
    from actors.polls import PollPlan, parse_polls
    from actors.relay import Relay
    from actors.server import Server
    from actors.stores.failures import (
        DamagedStoreError,
        StoreConflictError,
        StoreError,
        StoreFailedError,
        UnreadableRowError,
        UnusableStoreError,
    )
    from actors.stores.postgres import PostgresStore
    from actors.stores.sqlite import SqliteStore, backup, restore, set_aside
    from scenarios.checks import History, Violation
    from scenarios.contract import ContractError, check_actor
    from scenarios.problems import ScenarioError
    from scenarios.results import Results
    from scenarios.run import run
    from transports.envelope import Envelope
    from transports.units import Duration, Size, parse_duration, parse_size

__all__ = [
    "Actor",
    "Agent",
    "AgentAnswer",
    "AgentAsk",
    "AgentCancel",
    "Context",
    "ContractError",
    "Counts",
    "DamagedStoreError",
    "DesktopEngine",
    "DesktopRelay",
    "Duration",
    "Durations",
    "Engine",
    "Envelope",
    "GraphEngine",
    "Handler",
    "History",
    "Model",
    "ModelConfig",
    "Numbers",
    "Owner",
    "Place",
    "Planned",
    "PollPlan",
    "PostgresStore",
    "Relay",
    "Results",
    "ScenarioError",
    "Server",
    "Session",
    "Size",
    "Sizes",
    "SqliteStore",
    "Step",
    "Store",
    "StoreConflictError",
    "StoreError",
    "StoreFailedError",
    "Stream",
    "Table",
    "TableSpec",
    "ToolCall",
    "Unanswered",
    "UnreadableRowError",
    "UnusableStoreError",
    "Violation",
    "backup",
    "check_actor",
    "messages",
    "parse_duration",
    "parse_polls",
    "parse_size",
    "restore",
    "run",
    "set_aside",
]

# Where each name is found. Packages lie at the top in a checkout and under pullcord in the wheel.
_HOMES = {
    ("actors", "actor"): (
        "Actor",
        "Context",
        "Handler",
        "Place",
        "Session",
        "Step",
        "Store",
        "Table",
        "TableSpec",
        "Unanswered",
    ),
    ("actors", "agent"): ("Agent",),
    ("actors", "chance"): ("Counts", "Durations", "Numbers", "Sizes", "Stream"),
    ("actors", "desktop", "engine"): ("DesktopEngine",),
    ("actors", "desktop", "relay"): ("DesktopRelay",),
    ("actors", "engine"): ("Engine",),
    ("actors", "graph_engine"): ("GraphEngine",),
    ("actors", "graphs", "messages"): ("AgentAnswer", "AgentAsk", "AgentCancel", "ToolCall"),
    ("actors", "graphs", "model"): ("Model", "ModelConfig", "Planned"),
    ("actors", "owner"): ("Owner",),
    ("actors", "polls"): ("PollPlan", "parse_polls"),
    ("actors", "relay"): ("Relay",),
    ("actors", "server"): ("Server",),
    ("actors", "stores", "failures"): (
        "DamagedStoreError",
        "StoreConflictError",
        "StoreError",
        "StoreFailedError",
        "UnreadableRowError",
        "UnusableStoreError",
    ),
    ("actors", "stores", "postgres"): ("PostgresStore",),
    ("actors", "stores", "sqlite"): ("SqliteStore", "backup", "restore", "set_aside"),
    ("scenarios", "checks"): ("History", "Violation"),
    ("scenarios", "contract"): ("ContractError", "check_actor"),
    ("scenarios", "problems"): ("ScenarioError",),
    ("scenarios", "results"): ("Results",),
    ("scenarios", "run"): ("run",),
    ("transports", "envelope"): ("Envelope",),
    ("transports", "units"): ("Duration", "Size", "parse_duration", "parse_size"),
}
_MODULES = {"messages": ("actors", "messages"), "pytest_plugin": ("scenarios", "pytest_plugin")}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def main() -> None:
    """Run the command line."""
    from scenarios.cli import main as command_line

    command_line()


def __getattr__(name: str) -> Any:
    """A public name, or `pytest_plugin`, which pytest asks for when it starts."""
    if name in _MODULES:
        value = _module(*_MODULES[name])
    elif name in _HOME_OF:
        value = getattr(_module(*_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return [*__all__, "main"]


def _module(*path: str) -> Any:
    return import_module(".".join(filter(None, (__package__, *path))))
