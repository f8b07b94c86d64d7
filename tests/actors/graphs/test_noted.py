"""VMs whose failures are told, at the call at which they were."""

from __future__ import annotations

from typing import Any

import pytest

from actors.graphs.noted import VM_FAILED, NotedVmPort
from actors.graphs.seam import STOPPED, Settlement, VmLimitError, VmLimits, VmState
from tests.actors.graphs.fake_vm import Api, FakeVm, FakeVmPort

STATE = VmState(0.0, 0, None, 0)
SEED = (1, 2, 3, 4)


class Speaker:
    """Whose turn it is, and what it said."""

    def __init__(self) -> None:
        self.record = 1
        self.said: list[tuple[str, dict[str, Any]]] = []

    def log(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))


async def main(api: Api, _args: Any) -> Any:
    return await api.sleep(5)


def test_a_script_runs_as_in_the_other_port() -> None:
    speaker, port = Speaker(), FakeVmPort(main=main)
    vm = NotedVmPort(port, speaker).open(VmLimits())
    [request] = vm.start("main", None, SEED, STATE).requests
    assert vm.settle([Settlement(id=request.id, ok=True)], STATE).finished is not None
    vm.close()
    assert port.left_open == 0
    assert speaker.said == []


def test_a_failure_is_said_with_its_place_in_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise VmLimitError("wall", "too slow")

    hurried: list[bool] = []
    monkeypatch.setattr(FakeVm, "start", fails)
    monkeypatch.setattr(FakeVm, "hurry", lambda _: hurried.append(True))
    speaker = Speaker()
    port = NotedVmPort(FakeVmPort(main=main), speaker)
    first = port.open(VmLimits())
    for turn, call in ((1, 2), (2, 1), (2, 2)):
        speaker.record = turn
        with pytest.raises(VmLimitError, match="too slow"):
            first.start("main", None, SEED, STATE)
        fields = {"call": call, "limit": "wall", "error": "too slow"}
        assert speaker.said.pop() == (VM_FAILED, fields)
    first.hurry()
    assert hurried == [True]


def test_what_is_known_to_fail_fails_and_is_said_too() -> None:
    speaker, inner = Speaker(), FakeVmPort(main=main)
    known = {2: VmLimitError("cpu", STOPPED)}
    port = NotedVmPort(inner, speaker, known.get)
    vm = port.open(VmLimits())
    with pytest.raises(VmLimitError, match="cancelled"):
        vm.start("main", None, SEED, STATE)
    assert speaker.said == [(VM_FAILED, {"call": 2, "limit": "cpu", "error": STOPPED})]
    assert vm.start("main", None, SEED, STATE).requests, "it was not begun by the call that failed"
