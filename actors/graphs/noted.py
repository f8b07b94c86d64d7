"""VMs whose failures are told, so that a replay has them at the same calls.

What a script does is the same each time; whether a busy machine ends it is not. So a host that
records says of each call that failed the how-manieth of its turn it was, as an event of the turn,
and a replay has that call fail so again, and says so too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from actors.graphs.seam import (
    Seed,
    Settlement,
    Vm,
    VmLimitError,
    VmLimits,
    VmPort,
    VmState,
    VmTurn,
)

VM_FAILED: Final = "vm.failed"  # fields: call, limit, error


class Speaker(Protocol):
    """Whose turn it is."""

    record: int  # the number of its input

    def log(self, event: str, **fields: Any) -> None:
        """Record that something happened."""


class NotedVmPort:
    """Gives out VMs of another port; `known(call)` is how that call of the turn is to fail."""

    def __init__(
        self,
        port: VmPort,
        speaker: Speaker,
        known: Callable[[int], VmLimitError | None] = lambda _call: None,
    ) -> None:
        self._port = port
        self._speaker = speaker
        self._known = known
        self._turn = self._calls = 0

    def open(self, limits: VmLimits) -> Vm:
        """Return a new VM, as the other port does."""
        return NotedVm(self, self.call(self._port.open, limits))

    def call(self, what: Callable[..., Any], *args: Any) -> Any:
        """Make a call, and say if it fails. Raises VmLimitError."""
        if self._turn != self._speaker.record:
            self._turn, self._calls = self._speaker.record, 0
        self._calls += 1
        try:
            failure = self._known(self._calls)
            if failure is not None:
                raise failure
            return what(*args)
        except VmLimitError as error:
            fields = {"call": self._calls, "limit": error.kind, "error": error.sentence}
            self._speaker.log(VM_FAILED, **fields)
            raise


class NotedVm:
    """A VM of such a port."""

    def __init__(self, port: NotedVmPort, vm: Vm) -> None:
        self._port = port
        self._vm = vm

    def start(self, source: str, args: Any, seed: Seed, state: VmState) -> VmTurn:
        """Run the script from its beginning."""
        turn: VmTurn = self._port.call(self._vm.start, source, args, seed, state)
        return turn

    def settle(self, settlements: Sequence[Settlement], state: VmState) -> VmTurn:
        """Answer requests, and run the script on."""
        turn: VmTurn = self._port.call(self._vm.settle, settlements, state)
        return turn

    def hurry(self) -> None:
        """Don't wait for a call that computes on and on."""
        self._vm.hurry()

    def close(self) -> None:
        """Drop the script."""
        self._vm.close()
