"""What a host can give its actors besides messages and time: ports that only some actors need.

A port's calls are synchronous and bounded. An actor whose turns use one that may block says so with
`blocking = True`, and a host on a real clock takes its turns in a worker thread. If it has a method
`hurry(body)`, that is called in the host's thread with each message that arrives during such a turn
and has to wait for its end: it may break off what its ports are at, and touches nothing else.
"""

from __future__ import annotations

from actors.graphs.seam import VmPort


class PortedHost:
    """A host with ports; who builds it sets those that its actors need."""

    vm: VmPort | None = None  # where Graphs' scripts run


class PortedContext:
    """What a context hands over of its host's ports."""

    __slots__ = ()

    _world: PortedHost

    @property
    def vm(self) -> VmPort | None:
        """Where this actor gets VMs for scripts, None where there are none."""
        return self._world.vm
