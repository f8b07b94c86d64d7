"""A desktop whose one session is given and not added: `SESSION`, which runs `GRAPH`."""

from __future__ import annotations

from actors.actor import Actor, Place, Session
from actors.graph_engine import GraphEngine
from actors.relay import Relay
from pullcord import main
from scenarios.service import desktop

SESSION = "gs_" + "1" * 32
PROJECT = "shop"
GRAPH = """
export const meta = { name: "greet", description: "Greets one person." };
const words = await agent(`Greet ${args.who}`);
return { words, who: args.who };
"""


def actors_of(relay: Relay.Config, engine: GraphEngine.Config) -> dict[str, Actor]:
    session = Session(id=SESSION, name="Greet", slug="greet", project=PROJECT, relay="relay")
    return {
        "relay": Relay(relay, Place(name="relay", sessions=(session,))),
        "engine": GraphEngine(
            engine, Place(name="engine", sessions=(session,), files={"greet.js": GRAPH})
        ),
    }


if __name__ == "__main__":
    desktop.actors_of = actors_of
    main()
