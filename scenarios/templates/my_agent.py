"""An agent of your own. `pullcord run my_agent.toml` compares it with the built-in one."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pullcord import Agent, Context, Duration, Envelope, messages


class MyAgent(Agent):
    """Polls as its plan says while its run is queued, and more often while it executes."""

    class Config(Agent.Config, frozen=True, kw_only=True):
        """The keys of [agent] in a scenario: the built-in agent's, and these."""

        running_us: Annotated[Duration, "the time between polls of a running run"] = msgspec.field(
            name="running", default=Duration(5_000_000)
        )

    config: Config

    def on_answer(self, context: Context, envelope: Envelope[messages.GraphRun]) -> None:
        """Take an answer, as every agent does, then poll soon if the run executes."""
        asked = self.polled.get(envelope.reply_to)
        super().on_answer(context, envelope)
        if asked is not None and envelope.body.status == "running":
            context.set_timer(f"poll:{asked.number}", self.config.running_us)
