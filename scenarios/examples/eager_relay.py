"""A relay that polls in the rhythm of its work: often after a run, seldom when all is quiet.

The built-in relay polls at one interval, day and night. This one takes that interval when nothing
goes on, so it can be long, and a short one for a while after each run, so the next one of a series
hardly waits. Compare the two: `pullcord run @examples/eager_relay`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from pullcord import Context, Duration, Relay, messages


class EagerRelay(Relay):
    """Changes when the built-in relay polls; outbox, consent and recovery stay as they are."""

    class Config(Relay.Config, frozen=True, kw_only=True):
        """`poll` is the interval when nothing goes on."""

        poll_us: Annotated[Duration, "the time between two polls when all is quiet"] = (
            msgspec.field(name="poll", default=Duration(30_000_000))
        )
        eager_us: Annotated[Duration, "the time between two polls after a run"] = msgspec.field(
            name="eager", default=Duration(5_000_000)
        )
        for_us: Annotated[Duration, "how long it stays eager after a run"] = msgspec.field(
            name="for", default=Duration(90_000_000)
        )

    config: Config

    def on_start(self, context: Context) -> None:
        """Begin a boot; what it remembers of its work doesn't outlive one."""
        self.eager_until_us = 0
        super().on_start(context)

    def poll(self, context: Context) -> None:
        """Begin a pass, and choose the time to the next; the sync tells the server of it."""
        eager = context.now_us < self.eager_until_us
        self.poll_us = int(self.config.eager_us if eager else self.config.poll_us)
        super().poll(context)

    def finish(
        self, context: Context, command: messages.Command, done: messages.Completion
    ) -> None:
        """Bring a result back, and be eager for a while."""
        super().finish(context, command, done)
        self.eager_until_us = context.now_us + self.config.for_us
        context.set_timer("poll", self.config.eager_us)
