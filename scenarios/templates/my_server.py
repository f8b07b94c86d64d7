"""A server of your own. `pullcord run my_server.toml` compares it with the built-in one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from pullcord import Duration, Server, messages


class MyServer(Server):
    """Tells agents to come back soon while their run executes."""

    class Config(Server.Config, frozen=True, kw_only=True):
        """The keys of [server] in a scenario: the built-in server's, and these."""

        soon_us: Annotated[Duration, "the time to the next poll of a running run"] = msgspec.field(
            name="soon", default=Duration(5_000_000)
        )

    config: Config

    def answer(self, run: Any) -> messages.GraphRun:
        """Build what an agent sees of a run, as every server does, with a hint; and keep it."""
        seen = super().answer(run)
        if seen.status == "running":
            seen = msgspec.structs.replace(seen, poll_after_us=int(self.config.soon_us))
            self.answers[run.command_id] = (run, seen)
        return seen
