"""Which tools the agents of a Graph may use: what its owner's settings say, and nothing else.

The settings are a table of Graphs, "*" for all of them, and in each of tools: allow, ask or deny.
What stands under a Graph's own name goes before "*". A tool's name may end in "*", for all that
begin so; the name that says most counts. What no line names is denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

Permission = Literal["allow", "ask", "deny"]
Permissions = Mapping[str, Mapping[str, Permission]]

EVERY = "*"
_STRICTEST_FIRST: tuple[Permission, ...] = ("deny", "ask", "allow")


def check_permissions(table: Permissions) -> None:
    """Refuse names that would never match. ValueError with one sentence."""
    for graph, tools in table.items():
        if not graph:
            raise ValueError('permissions name a Graph, or "*" for every one')
        for tool in tools:
            if not tool or EVERY in tool[:-1]:
                raise ValueError(
                    f'permissions of "{graph}": a tool\'s name may end in "*", and "{tool}" has it '
                    "elsewhere"
                    if tool
                    else f'permissions of "{graph}": a tool has a name'
                )


class Rights:
    """What a table of permissions gives to whom."""

    def __init__(self, table: Permissions) -> None:
        self.table = table

    def of(self, graphs: Sequence[str], tool: str) -> Permission:
        """Return what a Graph may do with a tool that was called by others, the root first.

        The strictest of all: nobody gains a right by calling another, or by being called.
        """
        found = (self._of_one(graph, tool) for graph in graphs)
        return min(found, key=_STRICTEST_FIRST.index, default="deny")

    def _of_one(self, graph: str, tool: str) -> Permission:
        for name in (graph, EVERY):
            tools = self.table.get(name, {})
            if tool in tools:
                return tools[tool]
            fitting = [key for key in tools if key[-1:] == EVERY and tool.startswith(key[:-1])]
            if fitting:
                return tools[max(fitting, key=len)]
        return "deny"

    def may_ask(self, root: str, library: Iterable[str]) -> bool:
        """Whether a run that begins with `root` can come to a call that waits for its owner."""
        tools = {tool: None for table in self.table.values() for tool in table}
        return any(self.of((root, graph), tool) == "ask" for graph in library for tool in tools)
