"""A relay of your own. `pullcord run my_relay.toml` compares it with the built-in one."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pullcord import Context, Duration, Relay, messages


class MyRelay(Relay):
    """Polls again soon after it has finished a run, since work often comes in series."""

    class Config(Relay.Config, frozen=True, kw_only=True):
        """The keys of [relay] in a scenario: the built-in relay's, and these."""

        again_us: Annotated[Duration, "from the end of a run to the next poll"] = msgspec.field(
            name="again", default=Duration(1_000_000)
        )

    config: Config

    def finish(
        self, context: Context, command: messages.Command, done: messages.Completion
    ) -> None:
        """Bring a result back, as every relay does, then poll soon."""
        super().finish(context, command, done)
        context.set_timer("poll", self.config.again_us)
