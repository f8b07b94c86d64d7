"""The VM in this process: for tests, and for scripts that can be trusted to end.

Some native loops never ask the engine's limits (`[].concat(new Array(2**31)).indexOf(1)`), and then
the whole process hangs. edges/vm_process runs the same isolate in a child that can be killed. A
thread that calls it needs a stack larger than the limits' `stack_bytes`: a main thread has 8 MiB.
"""

from __future__ import annotations

import json
from importlib import resources

from actors.graphs.isolate import ARCHIVED, Isolate, OverLimitError
from actors.graphs.seam import VmLimitError, VmLimits, VmMissingError, VmTurn
from actors.graphs.turns import Call, TextVm, read_turn

PACKAGE = __package__  # another one in the wheel
PARTS = ("dates", "flow")  # of the prelude: compiled when a script first needs them
MISSING = "Graphs need the JavaScript engine: pip install 'pullcord[graphs]'"


def read_prelude() -> str:
    """The text that an isolate evaluates: prelude.js, called with its parts."""
    assert PACKAGE is not None
    folder = resources.files(PACKAGE)
    parts = {
        name: folder.joinpath(f"prelude_{name}.js").read_text(encoding="utf-8") for name in PARTS
    }
    prelude = folder.joinpath("prelude.js").read_text(encoding="utf-8")
    return f"0,\n{prelude}({json.dumps(parts)})"


def not_loading(why: str) -> VmMissingError:
    """The error for an engine that is installed and of no use."""
    return VmMissingError(
        why if why == ARCHIVED else f"{MISSING}. The one here doesn't load: {why}"
    )


class ScriptVm(TextVm):
    """A VM of the seam, in this process."""

    def __init__(self, prelude: str, limits: VmLimits) -> None:
        super().__init__(limits)
        try:
            isolate = Isolate(prelude)
        except ModuleNotFoundError:
            raise VmMissingError(MISSING) from None
        except ImportError as error:
            raise not_loading(str(error)) from None
        isolate.limit(
            cpu_s=limits.cpu_us / 1e6,
            memory_bytes=limits.memory_bytes,
            stack_bytes=limits.stack_bytes,
            jobs=limits.jobs,
            output_bytes=limits.output_bytes,
        )
        self.isolate: Isolate | None = isolate

    def turn(self, op: Call, text: str) -> VmTurn:
        """Run one turn; a VM that went over a limit is dropped."""
        if self.isolate is None:
            raise VmLimitError("died", "the script's VM is closed")
        try:
            written = self.isolate.turn(op, text)
        except OverLimitError as error:
            self.close()
            raise VmLimitError(error.kind, error.sentence) from None
        return read_turn(written, self.lines)

    def close(self) -> None:
        """See Vm."""
        self.isolate = None


class ScriptVmPort:
    """Opens VMs in this process."""

    def __init__(self) -> None:
        self.prelude = read_prelude()

    def open(self, limits: VmLimits) -> ScriptVm:
        """See VmPort."""
        return ScriptVm(self.prelude, limits)
