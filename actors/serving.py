"""Deployments: a world on the trio host that runs until a signal, and then finishes its work."""

from __future__ import annotations

import signal

import trio

from actors.host import HostedWorld
from actors.network import Network
from logs.record import Recorder

DRAIN_S = 10.0  # real time; what supervises processes usually kills them after that
DRAIN_TICK_S = 0.01


class ServedWorld(HostedWorld):
    """What of a world is there for deployments."""

    def __init__(self, seed: int, cell: str) -> None:
        self._serving = self._draining = False
        self._grace_s = DRAIN_S
        self._network: Network | None = None
        self._nursery: trio.Nursery | None = None
        super().__init__(seed, cell)

    def serve(self, recorder: Recorder | None = None, *, grace_s: float = DRAIN_S) -> None:
        """Run until SIGTERM or SIGINT, then drain: for deployments, in the main thread.

        To drain is to read no more, to finish what waits in the mailboxes, and to write what that
        sends. Timers fire no more. After `grace_s`, or at a second signal, it ends as it is.
        """
        self._serving, self._grace_s = True, grace_s
        try:
            self.run(0, recorder)
        finally:
            self._serving = False

    async def _drain_on_signals(self, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            assert self._nursery is not None, "it is the parent of this task"
            async for _ in signals:
                if self._draining:
                    self._nursery.cancel_scope.cancel()
                    return
                self._draining = True
                self._nursery.start_soon(self._drain)

    async def _drain(self) -> None:
        self._stop_reading()
        with trio.move_on_after(self._grace_s):
            while self._is_busy() or not self._all_is_sent():  # noqa: ASYNC110  rest is not one task's event
                await trio.sleep(DRAIN_TICK_S)
        self.finish()

    def _stop_reading(self) -> None:
        """Take no more messages in."""
        assert self._network is not None, "messages are sent while the world runs"
        self._network.stop_reading()

    def _all_is_sent(self) -> bool:
        """Whether nothing waits to be written."""
        return self._network is None or self._network.idle
