"""Commits on the trio host: hooks decide what becomes of each turn, as in the guarded simulator.

Nothing that a turn sends, says or sets is released before its hooks were asked, and a turn that
fails never was, but for its record in the log. So a fault of commits or of disks is one and the
same everywhere, whether a turn ran in the host's own thread or in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from actors.actor import Commit
from actors.host import START, HostContext, HostedWorld

MEANWHILE = "the actor was killed during its turn"


class CommittingWorld(HostedWorld):
    """A trio host's commits; `actors.world` asks `_commits` once a turn has come to its end."""

    def __init__(self, seed: int, cell: str) -> None:
        super().__init__(seed, cell)
        self._hooks: list[Callable[[str, bool], Commit | None]] = []

    def kill(self, name: str, fault: str) -> bool:
        """End an actor; see `actors.world`."""
        raise NotImplementedError

    def add_commit_hook(self, hook: Callable[[str, bool], Commit | None]) -> None:
        """Ask `hook(actor, wrote)` what becomes of each turn but the starts.

        The first that says something else than DONE counts.
        """
        self._hooks.append(hook)

    def set_writable(self, name: str, fault: str, writable: bool) -> None:
        """Say whether the actor's store can be written, from its next turn on."""
        context = self.contexts[name]

        def change() -> None:
            if context.store.writable is not writable:
                context.store.writable = writable
                self.tell(name, fault, "writable" if writable else "unwritable")

        context.between_turns(change)

    async def _in_thread(self, actor: HostContext, act: Callable[..., None], *args: Any) -> None:
        """Take a turn in a worker thread; what must not change within it waits for its end."""
        actor.threaded = True
        try:
            await trio.to_thread.run_sync(act, actor, *args)
        finally:
            actor.threaded = False

    def _commits(self, actor: HostContext, turn: Any) -> bool:
        """Ask the hooks whether a turn commits; if not, its actor is down, or must be started."""
        if not self._hooks or turn is START:
            return True
        verdict = self._ask_hooks(actor.name, bool(actor.journal))
        if verdict is not Commit.DONE:
            self._fails(actor, verdict)
        return verdict is Commit.DONE

    def _ask_hooks(self, name: str, wrote: bool) -> Commit:
        """Ask the hooks what becomes of a turn; those behind the first that says are not asked."""
        for hook in self._hooks:
            verdict = hook(name, wrote)
            if verdict is not None and verdict is not Commit.DONE:
                return verdict
        return Commit.DONE

    def _fails(self, actor: HostContext, verdict: Commit) -> None:
        if verdict is Commit.SILENCED:
            actor.silence()
        else:
            self._take_back(actor, verdict.value)
        if verdict in (Commit.KILLED, Commit.SILENCED):
            self.kill(actor.name, verdict.value)
        elif verdict is Commit.CRASHED:
            actor.begin_boot()
        else:
            actor.forget()  # the same boot goes on
            actor.turn_us = self.now_us

    def _take_back(self, actor: HostContext, why: str) -> None:
        """Undo a turn, and record that it never was."""
        actor.undo()
        if self.recorder is not None:
            self.recorder.undone(self.now_us, actor.name, actor.record, why)
