"""`pullcord graph run`: everything between its flags and its exit code."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec

from actors.config import decode_hook
from actors.graph_engine import GraphEngine
from actors.messages import Completion
from scenarios.graph_backends import (
    EXTRA,
    LIVE,
    BackendName,
    Choice,
    answers_key,
    make_model,
    named_backend,
    read_arguments,
)
from scenarios.graph_check import scripts_can_run, syntax_problems
from scenarios.graph_files import find_graph, library_of, reached, refusal
from scenarios.graph_owner import Asker, Nobody, Terminal
from scenarios.graph_progress import Progress, one_line
from scenarios.graph_run import Ended, Plan, run_graph
from scenarios.graph_view import JsonLines, Lines, LiveTree, View
from scenarios.problems import ScenarioError
from scenarios.terminal import colored, write_outside_text
from scenarios.tool_settings import load_tools
from scenarios.toolbox import Toolbox, engine_fields, make_tools
from transports.clock import EPOCH_US

Style = Literal["text", "json", "quiet"]
INTERRUPTED = 130
# It is told what its script wants it to use, and uses it by itself: nothing is called here.
OF_A_COMMAND = {"*": {"*": "allow"}}
TOO_LONG = "the Graph's result has more than 100,000 characters, and is left out"


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may do, as its flags say it."""

    max_concurrency: int
    token_ceiling: int | None
    max_agents: int
    agent_timeout: str
    deadline: str


class Session:
    """One run, ready to go; ScenarioError if something is missing or wrong.

    Everything is looked at before anything begins: no agent is asked for a run with a mistake.
    """

    def __init__(
        self,
        graph: str,
        arguments: str | None,
        choice: Choice,
        bounds: Bounds,
        *,
        seed: int,
        speed: float | None,
        tools: Path | None = None,
    ) -> None:
        self.graph = find_graph(graph)
        if not scripts_can_run():
            raise refusal("pullcord graph run", "a Graph needs a JavaScript engine", EXTRA)
        library = library_of(self.graph)
        for each in reached(self.graph, library):
            if problems := syntax_problems(each):
                raise ScenarioError(problems)
        self.choice = choice
        self.arguments = read_arguments(arguments)
        self.backend = named_backend(choice, self.graph)
        self.settings = None if tools is None else load_tools(tools)
        if tools is not None and self.backend == "command":
            cure = "it goes with every other backend"
            raise refusal("--tools", "a command has tools of its own", cure)
        self.toolbox = Toolbox() if self.settings is None else make_tools(self.settings)
        self.config = self.configured(self.backend, bounds)
        live = self.backend in LIVE or tools is not None
        if live and speed is not None:
            cure = "it goes with --backend recorded or synthetic, without --tools"
            raise refusal("--speed", "a model or a tool outside has a speed of its own", cure)
        if speed is not None and not 0 < speed < float("inf"):
            raise refusal("--speed", "a clock's speed is more than 0", "as in --speed 10")
        self.plan = Plan(
            config=self.config,
            files=library,
            arguments=self.arguments,
            seed=seed,
            speed=1.0 if live else speed,
            epoch_us=time.time_ns() // 1000 if live else EPOCH_US,
        )

    def configured(self, backend: BackendName, bounds: Bounds) -> GraphEngine.Config:
        """Return the engine's config; ScenarioError by the flag that is wrong."""
        fields: dict[str, Any] = {"graph": self.graph.path.name}
        if backend == "recorded":
            fields |= {"model": "scripted", "answers": answers_key(self.choice, self.graph)}
        if self.settings is not None:
            fields |= engine_fields(self.settings, self.toolbox)
        elif backend == "command":
            fields["permissions"] = OF_A_COMMAND
        for name, value in msgspec.structs.asdict(bounds).items():
            fields[name] = value
            try:
                msgspec.convert(fields, GraphEngine.Config, dec_hook=decode_hook)
            except (msgspec.ValidationError, ValueError) as error:
                flag = "--" + name.replace("_", "-")
                words = str(error).partition(" - at")[0]
                raise refusal(
                    flag, words.replace("Expected `int`", "it is a whole number")
                ) from None
        return msgspec.convert(fields, GraphEngine.Config, dec_hook=decode_hook)

    def run(self, style: Style) -> int:
        """Run it, show it, print its result; return the exit code."""
        progress = Progress(self.config.token_ceiling)
        view = self.view(style, progress)
        # Before the view takes the terminal, whose own stream the questions need.
        plan = msgspec.structs.replace(
            self.plan, toolbox=self.toolbox, asker=self.asker(style, view)
        )
        with ExitStack() as stack:
            model, recording = make_model(
                self.backend, self.choice, self.graph, self.config, self.toolbox.catalogue
            )
            if recording is not None:
                stack.callback(recording.close)
            if style == "text":
                self.say(f"agents are answered by {self.answered_by()}")
                if self.asks() and isinstance(plan.asker, Nobody):
                    self.say("nobody can be asked here: tool calls that would wait are denied")
            stack.enter_context(view)
            ended = run_graph(plan, model, view.told, view.look)
        return self.finish(ended, progress, style, view)

    def view(self, style: Style, progress: Progress) -> View:
        """Return what shows the run: on stderr, but JSON; a tree where there are colours."""
        if style == "json":
            return JsonLines(sys.stdout, progress)
        if style == "text" and sys.stderr.isatty() and colored(sys.stderr):
            return LiveTree(sys.stderr, progress, self.graph.shown)
        return Lines(sys.stderr, progress, quiet=style == "quiet")

    def asker(self, style: Style, view: View) -> Asker:
        """Return who decides of calls that wait: whoever is at the terminal, or nobody."""
        if style == "text" and sys.stdin.isatty() and sys.stderr.isatty():
            width_columns = shutil.get_terminal_size().columns
            return Terminal(sys.stdin.fileno(), sys.stderr, view, width_columns)
        return Nobody()

    def asks(self) -> bool:
        """Whether the settings have a tool call wait for its owner."""
        tables = self.config.permissions.values()
        return any(permission == "ask" for tools in tables for permission in tools.values())

    def answered_by(self) -> str:
        """Return who answers, for people."""
        if self.backend == "synthetic":
            return "chance (--backend synthetic): what they say means nothing"
        if self.backend == "recorded":
            return f"{self.choice.answers or self.graph.answers.name} (--backend recorded)"
        return f"--backend {self.backend}"

    def say(self, text: str) -> None:
        """Write a line to stderr."""
        sys.stderr.write(f"pullcord: {text}\n")

    def finish(self, ended: Ended, progress: Progress, style: Style, view: View) -> int:
        """Print what came of a run; return the exit code."""
        done = ended.completion
        if isinstance(view, JsonLines):
            view.write({"event": "result", **_fields(done, progress)})
        if done is None or done.status in ("cancelled", "interrupted"):
            if style != "json":
                self.say(f"cancelled; {progress.totals()}")
            return INTERRUPTED
        if done.status == "failed":
            if style != "json":
                self.say(f"the Graph failed: {one_line(done.error or 'without a reason')}")
                if done.result is not None:
                    self.say("what was done before that is on stdout")
                    write_outside_text(_shown(done.result))
            return 1
        if done.result_truncated:
            if style != "json":
                self.say(TOO_LONG)
            return 1
        if style != "json":
            write_outside_text(_shown(done.result))
        return 0


def _fields(done: Completion | None, progress: Progress) -> dict[str, Any]:
    if done is None:
        return {"status": "cancelled", "result": None, "tokens": progress.tokens,
                "cost": progress.cost, "error": "it was broken off"}  # fmt: skip
    return {
        "status": done.status,
        "result": done.result,
        "tokens": done.total_tokens,
        "cost": done.reported_cost,
        "error": TOO_LONG if done.result_truncated else done.error,
    }


def _shown(result: Any) -> str:
    """Return a result as it is printed: a text as it is, anything else as JSON."""
    if isinstance(result, str):
        return result
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
