"""A context hands over what its host has; a host has nothing unless it is given."""

from __future__ import annotations

from actors.graphs.seam import Vm, VmLimits, VmPort
from actors.simulator import Simulator
from tests.actors.harness import make_cell


class NoVms:
    def open(self, limits: VmLimits) -> Vm:
        raise NotImplementedError


def test_there_is_no_vm_unless_a_host_is_given_one() -> None:
    one, other = make_cell(), make_cell()
    port: VmPort = NoVms()
    one.vm = port
    assert [one.contexts[name].vm for name in ("engine", "relay")] == [port, port]
    assert other.contexts["engine"].vm is None
    assert Simulator.vm is None
