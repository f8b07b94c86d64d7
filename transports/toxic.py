"""A byte fault that stands in a proxy: its time, the connections that it picked, what it fired.

`Toxic` is what Toxiproxy calls it, whose users meet the name in the control API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Literal

from actors.streams import HashedStream
from transports.faults.byte_fault import ByteFault, Direction, Site, Stage

State = Literal["waiting", "active", "healed"]


def key_of(seed: int) -> bytes:
    """Return the key from which all chance of a proxy with this seed comes."""
    return blake2b(b"proxy/%d" % seed, digest_size=32).digest()


class Toxic:
    """A fault put in place on the `ways` of one proxy.

    `type` and `attributes` are how whoever put it there wrote it. Which connections it acts on
    depends on the key, its name and the order in which it meets them; what it draws on a connection
    on the number of that connection too, so that neither shifts the other.
    """

    def __init__(
        self,
        fault: ByteFault,
        ways: tuple[Direction, ...],
        *,
        type: str,  # noqa: A002  the name that the control API has for it
        attributes: Mapping[str, Any],
    ) -> None:
        self.fault = fault
        self.name = fault.name
        self.ways = ways
        self.type = type
        self.attributes = dict(attributes)
        self.state: State = "waiting"
        self.fired = 0  # how often it did something
        self.met = 0  # how many connections it has met
        self.picked = 0  # how many of them it acted on
        self._stages: dict[int, dict[Direction, Stage]] = {}

    def meet(self, place: str, number: int, key: bytes, now_us: Callable[[], int]) -> None:
        """Decide about a connection of the proxy `place`, once for each."""
        self.met += 1
        purpose = f"{place}/{self.name}"
        if not self.fault.picks(self.met, HashedStream(key, f"{purpose}/pick/{self.met}")):
            return
        self.picked += 1
        self._stages[number] = {
            way: self.fault.stage(
                Site(now_us, HashedStream(key, f"{purpose}/{number}/{way}"), self._fire)
            )
            for way in self.ways
        }

    def stage(self, number: int, way: Direction) -> Stage | None:
        """Return what acts on one direction of a connection, if anything does."""
        return self._stages.get(number, {}).get(way)

    def forget(self, number: int) -> None:
        """Let go of a connection that is over."""
        self._stages.pop(number, None)

    def heal(self) -> tuple[int, ...]:
        """Stop acting, for good; return the numbers of the connections that it acted on."""
        self.state = "healed"
        for stages in self._stages.values():
            for stage in stages.values():
                stage.healed = True
        numbers = tuple(self._stages)
        self._stages.clear()
        return numbers

    def _fire(self) -> None:
        self.fired += 1
