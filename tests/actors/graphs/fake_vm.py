"""A VM whose scripts are Python coroutines: what the tests of the engine's core run Graphs on.

A Graph's source is the name of a coroutine function in the port; promises are the few lines that
they take. So the core is tested without JavaScript, and as fast as Python goes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any

from actors.graphs.seam import (
    AgentOptions,
    Failure,
    Finished,
    Notice,
    Request,
    ScriptFailure,
    Seed,
    Settlement,
    VmLimitError,
    VmLimits,
    VmState,
    VmTurn,
)


class RejectedError(Exception):
    """What a script sees of an operation that failed."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.code = failure.code
        super().__init__(failure.message)


class Promise:
    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.waiters: list[Callable[[], None]] = []

    def settle(self, value: Any = None, error: BaseException | None = None) -> None:
        self.done, self.value, self.error = True, value, error
        for waiter in self.waiters:
            waiter()

    def __await__(self) -> Generator[Promise, None, Any]:
        if not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


class Task(Promise):
    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        super().__init__()
        self.coroutine = coroutine
        self.step()

    def step(self) -> None:
        try:
            awaited = self.coroutine.send(None)
        except StopIteration as end:
            self.settle(end.value)
        except Exception as error:  # noqa: BLE001  whatever a script raises
            self.settle(error=error)
        else:
            awaited.waiters.append(self.step)


class Api:
    """What a script may do."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.notices: list[Notice] = []
        self.pending: dict[int, Promise] = {}
        self.made = 0
        self.state = VmState(0.0, 0, None, 0)

    def ask(self, op: Any, **fields: Any) -> Promise:
        self.made += 1
        self.requests.append(Request(id=self.made, op=op, **fields))
        promise = self.pending[self.made] = Promise()
        return promise

    def agent(self, prompt: str, **options: Any) -> Promise:
        return self.ask("agent", prompt=prompt, options=AgentOptions(**options))

    def graph(self, name: str, args: Any = None) -> Promise:
        return self.ask("graph", name=name, args=args)

    def sleep(self, ms: float) -> Promise:
        return self.ask("sleep", ms=ms)

    def say(self, kind: Any, text: str, **more: Any) -> None:
        self.notices.append(Notice(type=kind, text=text, **more))

    async def settled(self, promises: Sequence[Promise]) -> list[Any]:
        """Wait for all; a failure stands in its place as the exception."""
        found: list[Any] = []
        for promise in promises:
            try:
                found.append(await promise)
            except RejectedError as error:
                found.append(error)
        return found

    async def all(self, promises: Sequence[Promise]) -> list[Any]:
        found = await self.settled(promises)
        for one in found:
            if isinstance(one, Exception):
                raise one
        return found


Main = Callable[[Api, Any], Coroutine[Any, Any, Any]]


class FakeVm:
    def __init__(self, port: FakeVmPort) -> None:
        self.port = port
        self.closed = False
        self.api = Api()
        self.root: Task | None = None

    def start(self, source: str, args: Any, seed: Seed, state: VmState) -> VmTurn:
        self.port.seeds.append(seed)
        self.api.state = state
        return self.taken(
            lambda: setattr(self, "root", Task(self.port.mains[source](self.api, args)))
        )

    def settle(self, settlements: Sequence[Settlement], state: VmState) -> VmTurn:
        assert not self.closed, "a closed VM is left alone"
        self.port.settles += 1
        self.api.state = state

        def settle() -> None:
            for one in settlements:
                promise = self.api.pending.pop(one.id)
                promise.settle(one.value, None if one.error is None else RejectedError(one.error))

        return self.taken(settle)

    def taken(self, act: Callable[[], None]) -> VmTurn:
        act()
        assert self.root is not None
        api = self.api
        requests, notices = tuple(api.requests), tuple(api.notices)
        api.requests.clear()
        api.notices.clear()
        finished = None
        if self.root.done:
            error = self.root.error
            if isinstance(error, VmLimitError):
                raise error
            finished = Finished(
                value=self.root.value, error=None if error is None else failure_of(error)
            )
        return VmTurn(
            requests=requests, notices=notices, finished=finished, pending=len(api.pending)
        )

    def hurry(self) -> None:
        """It computes in no time."""

    def close(self) -> None:
        self.closed = True
        if self.root is not None:
            self.root.coroutine.close()


def failure_of(error: BaseException) -> ScriptFailure:
    code = error.code if isinstance(error, RejectedError) else None
    return ScriptFailure(
        name=type(error).__name__,
        message=str(error),
        code=code,
        partial=getattr(error, "partial", None),
        line=3,
        column=7,
    )


class FakeVmPort:
    """Opens VMs for the given coroutine functions; knows what became of them."""

    def __init__(self, **mains: Main) -> None:
        self.mains: Mapping[str, Main] = mains
        self.vms: list[FakeVm] = []
        self.seeds: list[Seed] = []
        self.settles = 0

    @property
    def files(self) -> dict[str, str]:
        """What a place has of them: the source of each is its name."""
        return {f"{name}.js": name for name in self.mains}

    @property
    def left_open(self) -> int:
        return sum(1 for vm in self.vms if not vm.closed)

    def open(self, limits: VmLimits) -> FakeVm:
        self.vms.append(FakeVm(self))
        return self.vms[-1]
