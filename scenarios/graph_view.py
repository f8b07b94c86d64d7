"""What a terminal shows of a Graph that runs: a live tree, or lines, or JSON for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import IO, Any, Protocol, Self

import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from scenarios.graph_progress import (
    SIGNS,
    AgentState,
    GraphState,
    Phase,
    Progress,
    Status,
    line_of,
    money,
)
from scenarios.terminal import colored

REFRESH_S = 0.1  # a hundred agents that end at once are one picture
HEAD_LINES = 8  # of a screen, that agents leave free
LEAST_AGENTS = 4  # shown of a phase, however small the screen
STYLES: dict[Status, str] = {
    "working": "cyan",
    "waiting": "bold magenta",
    "completed": "green",
    "failed": "red",
    "expired": "red",
    "cancelled": "yellow",
    "refused": "yellow",
}


class View(Protocol):
    """Shows a run."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_raised: object) -> None:
        """Leave the terminal as it was."""

    def told(self, now_us: int, event: str, fields: dict[str, Any]) -> None:
        """Show an event."""

    def look(self, now_us: int) -> None:
        """Show that time has passed."""

    def pause(self) -> None:
        """Leave the terminal to a question."""

    def resume(self) -> None:
        """Go on showing."""


class Lines:
    """A line an event, or none of them when `quiet`."""

    def __init__(self, stream: IO[str], progress: Progress, *, quiet: bool = False) -> None:
        self.stream = stream
        self.progress = progress
        self.quiet = quiet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stream.flush()

    def told(self, now_us: int, event: str, fields: dict[str, Any]) -> None:
        """See View."""
        self.progress.take(now_us, event, fields)
        line = None if self.quiet else line_of(now_us, event, fields, self.progress)
        if line is not None:
            self.stream.write(f"{line}\n")
            self.stream.flush()

    def look(self, now_us: int) -> None:
        """See View."""

    def pause(self) -> None:
        """See View: lines are in nobody's way."""

    def resume(self) -> None:
        """See View."""


class JsonLines(Lines):
    """An event a line, as JSON: its time, its name, its fields."""

    def told(self, now_us: int, event: str, fields: dict[str, Any]) -> None:
        """See View."""
        self.progress.take(now_us, event, fields)
        self.write({"at_us": now_us, "event": event, **fields})

    def write(self, line: dict[str, Any]) -> None:
        """Write a line."""
        self.stream.write(msgspec.json.encode(line).decode() + "\n")
        self.stream.flush()


class LiveTree:
    """A tree of phases and agents, redrawn as they go on."""

    def __init__(self, stream: IO[str], progress: Progress, title: str) -> None:
        self.progress = progress
        self.title = title
        self.console = Console(file=stream, no_color=not colored(stream), highlight=False)
        self.live = Live(console=self.console, auto_refresh=False, transient=False)
        self.now_us = 0
        self.paused = False
        self.drawn_s = time.monotonic()

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.draw()
        self.live.stop()

    def told(self, now_us: int, event: str, fields: dict[str, Any]) -> None:
        """See View."""
        self.progress.take(now_us, event, fields)
        self.look(now_us)

    def look(self, now_us: int) -> None:
        """See View."""
        self.now_us = now_us
        if time.monotonic() - self.drawn_s >= REFRESH_S:
            self.draw()

    def pause(self) -> None:
        """See View: what is drawn stays, and the question comes below."""
        self.draw()
        self.paused = True
        self.live.stop()

    def resume(self) -> None:
        """See View."""
        self.paused = False
        self.live.start()

    def draw(self) -> None:
        """Draw the tree as things stand, unless a question is below it."""
        if self.paused:
            return
        self.drawn_s = time.monotonic()
        height = self.console.size.height
        self.live.update(tree_of(self.progress, self.title, self.now_us, height), refresh=True)


def tree_of(progress: Progress, title: str, now_us: int, height_lines: int) -> Tree:
    """Return the picture of a run, which fits on a screen as far as it can."""
    head = Text.assemble((title, "bold"), f"  {progress.status}  {now_us / 1e6:.1f} s")
    tree = Tree(head, guide_style="dim")
    tree.add(Text(progress.totals()))
    phases = sum(len(graph.phases) for graph in progress.graphs.values())
    room = max(LEAST_AGENTS, (height_lines - HEAD_LINES) // max(1, phases) - 2)
    nodes: dict[str, Tree] = {}
    for graph in progress.graphs.values():
        parent = nodes.get(graph.path.rpartition("/")[0], tree)
        node = tree
        if "/" in graph.path:
            node = parent.add(Text(f"{graph.path.rpartition('/')[2]} ({graph.status})", "bold"))
        nodes[graph.path] = node
        _add_phases(node, graph, now_us, room)
    if progress.said:
        tree.add(Text(progress.said, style="dim"))
    return tree


def _add_phases(node: Tree, graph: GraphState, now_us: int, room_lines: int) -> None:
    for phase in graph.phases.values():
        place = node.add(Text(phase.title, "bold")) if phase.title else node
        for line in _agents(phase, now_us, room_lines):
            place.add(line)


def _agents(phase: Phase, now_us: int, room_lines: int) -> Iterator[Text]:
    """Yield a phase's agents: what failed and what works before what is done."""
    hidden = max(0, len(phase.agents) - room_lines)
    if hidden:
        order = {"waiting": 0, "failed": 1, "expired": 1, "working": 2}
        ranked = sorted(phase.agents, key=lambda one: (order.get(one.status, 3), -one.number))
        shown = sorted(ranked[:room_lines], key=lambda one: one.number)
    else:
        shown = phase.agents
    for agent in shown:
        yield _agent(agent, now_us)
    if hidden:
        yield Text(f"and {hidden} more", style="dim")
    if phase.refused:
        yield Text(f"{SIGNS['refused']} {phase.refused} refused", style=STYLES["refused"])


def _agent(agent: AgentState, now_us: int) -> Text:
    took_s = ((now_us if agent.ended_us is None else agent.ended_us) - agent.begun_us) / 1e6
    line = Text.assemble(
        (f"{SIGNS[agent.status]} ", STYLES[agent.status]), agent.shown, (f"  {took_s:.1f} s", "dim")
    )
    if agent.status == "waiting":
        line.append(f"  waiting for you: {agent.tool}", style=STYLES["waiting"])
    elif agent.status == "working" and agent.calls:
        line.append(f"  {agent.calls} × tools, {agent.tool}", style="dim")
    if agent.ended_us is not None:
        line.append(f"  {agent.tokens:,} tokens  {money(agent.cost)}", style="dim")
    if agent.code:
        line.append(f"  {agent.code}", style=STYLES[agent.status])
    return line
