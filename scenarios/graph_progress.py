"""What is known of a Graph that runs, from its events: its phases, agents, tokens and cost."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from scenarios.problems import printable

Status = Literal["working", "waiting", "completed", "failed", "expired", "cancelled", "refused"]
SIGNS: dict[Status, str] = {
    "working": "…",
    "waiting": "?",
    "completed": "✓",
    "failed": "✗",
    "expired": "⌛",
    "cancelled": "-",
    "refused": "!",
}
ENDINGS: dict[Status, str] = {"failed": "failed", "expired": "too late", "cancelled": "stopped"}
_OF_CALLS = ("tool.started", "approval.waiting", "approval.decided")
_WORDS_OF_CALLS = {
    "tool.withheld": "! {who} does not get {tool}: no permission",
    "tool.started": "· {who} calls {tool}",
    "tool.finished": "· {who} has {tool}: {status}, {chars} characters",
    "approval.waiting": "? {who} waits for you: {tool}",
    "approval.decided": "? {who}: {tool} {said} (by {by})",
}
TEXT_LIMIT_CHARS = 200  # of what a script says, in one line


class AgentState(Struct):
    """One agent: how to name it, how it stands, since when, and what it has used."""

    number: int
    label: str | None
    begun_us: int
    status: Status = "working"
    code: str | None = None
    ended_us: int | None = None
    tokens: int = 0
    cost: float = 0.0
    waits: int = 0  # how many of its tool calls wait for their owner
    tool: str = ""  # the tool that it used last, or wants to
    calls: int = 0  # how many tool calls were made

    @property
    def shown(self) -> str:
        """Its name for people."""
        return one_line(self.label) if self.label else f"agent {self.number}"


class Phase(Struct):
    """One phase of one Graph, in the order of its first event; "" before the first."""

    title: str
    agents: list[AgentState] = field(default_factory=list)
    refused: int = 0


class GraphState(Struct):
    """One Graph of the run: the root, or one that it called, by its path of names."""

    path: str
    status: str = "working"
    phase: str = ""
    phases: dict[str, Phase] = field(default_factory=dict)

    def at(self, title: str) -> Phase:
        """Return a phase; made if it is new."""
        return self.phases.setdefault(title, Phase(title))


class Progress:
    """Takes events in, and has the state of the run. `ceiling` is None for none."""

    def __init__(self, ceiling: int | None) -> None:
        self.ceiling = ceiling
        self.graphs: dict[str, GraphState] = {}
        self.agents: dict[int, AgentState] = {}
        self.tokens = 0
        self.costs_micro = 0  # whole millionths, so that their sum has no rest
        self.refused = 0
        self.calls = 0
        self.status = "working"
        self.said = ""  # the last thing that a script said

    @property
    def cost(self) -> float:
        """What the run has cost so far."""
        return self.costs_micro / 1e6

    @property
    def left(self) -> int | None:
        """The tokens that are left under the ceiling, None without one."""
        return None if self.ceiling is None else max(0, self.ceiling - self.tokens)

    def count(self, status: Status) -> int:
        """Return how many agents stand so."""
        return sum(one.status == status for one in self.agents.values())

    def take(self, now_us: int, event: str, fields: dict[str, Any]) -> None:
        """Take an event in; those that say nothing of what is shown are left."""
        if event == "agent.finished":
            self._end(now_us, fields)
            return
        if event == "fleet.finished":
            self.status, self.tokens = fields["status"], fields["tokens"]
            self.costs_micro = round(fields["cost"] * 1e6)
            return
        graph = self._graph(fields["graph"])
        if event == "agent.started":
            number = fields["agent"]
            agent = AgentState(number, fields["label"], now_us)
            self.agents[number] = agent
            graph.at(one_line(fields["phase"] or "")).agents.append(agent)
        elif event in _OF_CALLS:
            self._take_call(event, self.agents[fields["agent"]], fields)
        elif event == "agent.refused":
            self.refused += 1
            graph.at(graph.phase).refused += 1
        elif event == "graph.finished":
            graph.status = fields["status"]
        elif event == "fleet.phase":
            graph.phase = one_line(fields["text"])
            graph.at(graph.phase)
        elif event in ("fleet.log", "fleet.retry"):
            self.said = one_line(fields["text"])

    def _take_call(self, event: str, agent: AgentState, fields: dict[str, Any]) -> None:
        agent.tool = one_line(fields["tool"])
        if event == "tool.started":
            agent.calls += 1
            self.calls += 1
            return
        agent.waits += 1 if event == "approval.waiting" else -1
        if agent.ended_us is None:
            agent.status = "waiting" if agent.waits else "working"

    def _graph(self, path: str) -> GraphState:
        return self.graphs.setdefault(path, GraphState(path))

    def _end(self, now_us: int, fields: dict[str, Any]) -> None:
        agent = self.agents[fields["agent"]]
        agent.status, agent.code, agent.ended_us = fields["status"], fields["code"], now_us
        agent.tokens, agent.cost = fields["tokens"], fields["cost"]
        self.tokens = fields["spent"]
        self.costs_micro += round(agent.cost * 1e6)

    def totals(self) -> str:
        """Return the run's account in one line."""
        parts = [f"{self.count('completed')} of {len(self.agents)} agents done"]
        for status, words in ENDINGS.items():
            count = self.count(status)
            if count:
                parts.append(f"{count} {words}")
        if self.refused:
            parts.append(f"{self.refused} refused")
        if self.calls:
            parts.append(f"{self.calls} tool call{'s' if self.calls > 1 else ''}")
        tokens = f"{self.tokens:,} tokens"
        if self.ceiling is not None:
            tokens = f"{self.tokens:,} of {self.ceiling:,} tokens, {self.left:,} left"
        parts += [tokens, f"cost {money(self.cost)}"]
        return "; ".join(parts)


def money(cost: float) -> str:
    """Return a cost with as many digits as tell anything."""
    return f"{cost:.2f}" if cost >= 1 or not cost else f"{cost:.4f}"


def one_line(text: str) -> str:
    """Return a text from outside as it may stand in a line of a terminal."""
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= TEXT_LIMIT_CHARS else shown[: TEXT_LIMIT_CHARS - 1] + "…"


def line_of(now_us: int, event: str, fields: dict[str, Any], progress: Progress) -> str | None:
    """Return what a terminal without a tree is told of an event that `progress` has taken in."""
    words = _words(event, fields, progress)
    if words is None:
        return None
    _, _, inner = fields.get("graph", "").partition("/")
    where = f"{inner}: " if inner else ""
    return f"{now_us / 1e6:8.1f} s  {where}{words}"


def _words(event: str, fields: dict[str, Any], progress: Progress) -> str | None:
    if event in ("agent.started", "agent.finished"):
        return _of_agent(progress.agents[fields["agent"]])
    if event in _WORDS_OF_CALLS:
        who = progress.agents[fields["agent"]].shown
        texts = {key: one_line(str(value)) for key, value in fields.items()}
        return _WORDS_OF_CALLS[event].format(**texts, who=who, said=_said(fields))
    words = {
        "fleet.started": "{graph} started as {run}",
        "fleet.phase": "phase {text}",
        "fleet.log": "{text}",
        "fleet.retry": "attempt {attempt} failed, again: {text}",
        "agent.refused": "agent {agent} refused: {code}",
        "graph.finished": "ended: {status}",
        "fleet.finished": "{status}: {totals}",
    }.get(event)
    if words is None:
        return None
    texts = {key: one_line(str(value)) for key, value in fields.items()}
    return words.format(**texts, totals=progress.totals())


def _said(fields: dict[str, Any]) -> str:
    return "allowed" if fields.get("allow") else "denied"


def _of_agent(agent: AgentState) -> str:
    if agent.ended_us is None:
        return f"{SIGNS[agent.status]} {agent.shown}"
    took_s = (agent.ended_us - agent.begun_us) / 1e6
    why = f" {agent.code}" if agent.code else ""
    return (
        f"{SIGNS[agent.status]} {agent.shown} {agent.status}{why} after {took_s:.1f} s, "
        f"{agent.tokens:,} tokens, cost {money(agent.cost)}"
    )
