"""The commands of `pullcord graph`: checking, running and keeping Graphs.

As in `commands`, each turns its flags into a call, and what it does is imported when it runs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from scenarios.choices import Color
from scenarios.flags import flag, switch
from scenarios.json_text import indented

if TYPE_CHECKING:
    from scenarios.graph_backends import Choice

Flat = Parameter(name="*")  # a class's fields are flags of their own
GraphArgument = flag("A Graph: FILE.js, the NAME of a saved one, or a shipped one as @graphs/NAME.")


@dataclass(frozen=True, kw_only=True)
class BackendFlags:
    """Who answers a Graph's agents."""

    backend: Annotated[
        Literal["recorded", "synthetic", "openai", "anthropic", "command"] | None,
        flag("Who answers agents: recorded, a file of answers, the default if NAME.answers.jsonl "
             "lies beside the Graph; synthetic, chance, the default else; openai, any server that "
             "speaks like it; anthropic; command, any program."),
    ] = None  # fmt: skip
    answers: Annotated[Path | None, flag("The file of recorded answers.")] = None
    record: Annotated[
        Path | None, flag("Write every answer to this new file, to be played by --answers.")
    ] = None
    model: Annotated[
        str | None, flag("The model of agents that name none; or OPENAI_MODEL, ANTHROPIC_MODEL.")
    ] = None
    base_url: Annotated[
        str | None,
        flag("The model server, as in http://127.0.0.1:11434/v1; or OPENAI_BASE_URL, "
             "ANTHROPIC_BASE_URL."),
    ] = None  # fmt: skip
    key_env: Annotated[
        str | None,
        flag("The variable that holds the key; by default OPENAI_API_KEY, ANTHROPIC_API_KEY, which "
             "a server given by --base-url does not get."),
    ] = None  # fmt: skip
    command: Annotated[
        str | None, flag("The command that gets the prompt on stdin, as in 'llm -m mistral'.")
    ] = None
    prices: Annotated[
        str | None, flag("The price of a million tokens read and written, as in 3/15.")
    ] = None

    def choice(self) -> Choice:
        """Return the same for those who make models."""
        from scenarios.graph_backends import Choice

        return Choice(**vars(self))


NO_BACKEND = BackendFlags()


def run(
    graph: Annotated[str, GraphArgument],
    /,
    *,
    args: Annotated[
        str | None, flag("The Graph's arguments: a JSON object, or @FILE that holds one.")
    ] = None,
    who: Annotated[BackendFlags, Flat] = NO_BACKEND,
    tools: Annotated[
        Path | None,
        flag("The file that says which tools agents may use; without it none. See docs/tools.md."),
    ] = None,
    max_concurrency: Annotated[int, flag("How many agents work at once.")] = 8,
    token_ceiling: Annotated[
        int | None, flag("No agent starts once so many tokens are used.")
    ] = None,
    max_agents: Annotated[int, flag("How many agents may start.")] = 1_000,
    agent_timeout: Annotated[str, flag("How long an agent may take.")] = "10m",
    deadline: Annotated[str, flag("How long the run may take; 0s for ever.")] = "24h",
    seed: Annotated[int, flag("The seed of the script's chance, and of synthetic agents.")] = 1,
    speed: Annotated[
        float | None,
        flag("With synthetic or recorded agents: how many of their seconds pass in one of yours. "
             "Without it nothing is waited for."),
    ] = None,
    json: Annotated[bool, switch("Print every event as a line of JSON, the result last.")] = False,
    quiet: Annotated[bool, switch("Print the result alone.", "--quiet", "-q")] = False,
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:  # fmt: skip
    """Run a Graph: its result on stdout, all else on stderr.

    Exit codes: 0 completed, 1 failed, 2 bad file or flag, 130 cancelled.
    """
    from scenarios.graph_session import Bounds, Session
    from scenarios.terminal import set_color

    set_color(color)
    bounds = Bounds(
        max_concurrency=max_concurrency,
        token_ceiling=token_ceiling,
        max_agents=max_agents,
        agent_timeout=agent_timeout,
        deadline=deadline,
    )
    session = Session(graph, args, who.choice(), bounds, seed=seed, speed=speed, tools=tools)
    return session.run("json" if json else "quiet" if quiet else "text")


def check(
    graphs: Annotated[list[str], GraphArgument],
    /,
    *,
    tools: Annotated[
        Path | None, flag("Also look for tools that the settings in this file don't give.")
    ] = None,
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:
    """Look for mistakes in Graphs, and in those that they call, without running any.

    Exit codes: 0 there are none, 2 there are.
    """
    from scenarios.graph_check import problems_of
    from scenarios.graph_files import find_graph, library_of, reached
    from scenarios.problems import ScenarioError
    from scenarios.terminal import set_color

    set_color(color)
    found = [find_graph(one) for one in graphs]
    libraries = [library_of(graph) for graph in found]
    problems = [
        one
        for graph, library in zip(found, libraries, strict=True)
        for each in reached(graph, library)
        for one in problems_of(each, library)
    ]
    if tools is not None:
        from scenarios.tool_check import tool_problems
        from scenarios.tool_settings import load_tools

        settings = load_tools(tools)
        for graph, library in zip(found, libraries, strict=True):
            problems += tool_problems(graph, library, settings)
    if problems:
        # One that several call, or that is named besides, is told of once.
        raise ScenarioError(list({one.render(): one for one in problems}.values()))
    sys.stdout.writelines(f"{graph.shown}: no mistake found\n" for graph in found)
    return 0


def list_(
    *,
    json: Annotated[bool, switch("Print JSON.")] = False,
    color: Annotated[
        Color, flag("Whether to colour: a terminal is coloured unless NO_COLOR is set.")
    ] = "auto",
) -> int:
    """List the saved and the shipped Graphs, and what each is for."""
    from scenarios.graph_files import listing, saved_folder
    from scenarios.terminal import set_color

    set_color(color)
    found = list(listing())
    if json:
        rows = [dict(zip(("name", "description", "file"), one, strict=True)) for one in found]
        sys.stdout.write(indented(rows))
        return 0
    from scenarios.graph_progress import one_line

    width = max(len(name) for name, _, _ in found)
    sys.stdout.writelines(
        f"{name:{width}}  {one_line(description)}".rstrip() + "\n" for name, description, _ in found
    )
    sys.stderr.write(f"saved Graphs lie in {saved_folder()}\n")
    return 0


def save(
    graph: Annotated[str, GraphArgument],
    /,
    *,
    as_: Annotated[str | None, flag("The name; by default the file's.", "--as")] = None,
    replace: Annotated[bool, switch("Take the place of one that has this name.")] = False,
) -> int:
    """Save a Graph under a name, to be run from anywhere: PULLCORD_GRAPHS is the folder."""
    from scenarios.graph_check import problems_of
    from scenarios.graph_files import find_graph, library_of
    from scenarios.graph_files import save as keep
    from scenarios.problems import ScenarioError

    found = find_graph(graph)
    problems = problems_of(found, library_of(found))
    if problems:
        raise ScenarioError(problems)
    name = found.name if as_ is None else as_
    path = keep(found, name, replace=replace)
    sys.stdout.write(f"saved {path}\n\nNext: pullcord graph run {name}\n")
    return 0


def show(graph: Annotated[str, GraphArgument], /) -> int:
    """Print a Graph's source."""
    from scenarios.graph_files import find_graph
    from scenarios.terminal import write_outside_text

    write_outside_text(find_graph(graph).text)
    return 0
