"""Kill: an actor's process is gone, and started again after a while."""

from __future__ import annotations

from typing import Annotated, ClassVar

from actors.chance import Durations, Stream
from transports.faults.fault import Striking, StrikingFault, World, drawn_us


class Kill(StrikingFault, frozen=True, kw_only=True, tag_field="kind", tag="kill"):
    """Kills the actors that it hits; after `down` each is started in a new boot.

    Only the store stays. Timers, open questions and what waits in the mailbox are gone; messages to
    an actor that is down are lost, what it had sent before is on its way.
    """

    in_flight: ClassVar[str] = "arrives, but at an actor that is down it is lost"

    down: Annotated[Durations, "how long it is down before it is started again"] = Durations.parse(
        "0s"
    )

    def at_work(self) -> Striking:
        """Return what acts in one cell."""
        return Killing(self)


class Killing(Striking):
    """A `Kill` at work in one cell; it fires once for each victim."""

    def __init__(self, fault: Kill) -> None:
        super().__init__(fault)
        self._down = fault.down

    @property
    def until_us(self) -> int | None:
        """When it strikes no more: `for` is how long it goes on."""
        return self.window.end_us

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Kill it, and see to it that it is started again."""
        if not world.kill(name, self.name):
            return None
        up_us = world.now_us + drawn_us(chance, self._down)
        world.at(up_us, lambda: world.revive(name, self.name))
        return up_us
