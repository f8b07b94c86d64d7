"""Hostile scripts end within their limits, with an error that says which, and the port goes on.

None of their processes is left. That they can write nothing is a limit of the process itself, which
test_vm_process looks at.
"""

from collections.abc import Iterator

import pytest
import trio

from actors.edges.vm_process import ProcessVm, ProcessVmPort
from actors.graphs.seam import VmLimitError, VmLimits, VmTurn
from tests.actors.edges.leftovers import wait_until_gone
from tests.actors.graphs.driver import SEED, STATE


class Port(ProcessVmPort):
    """A port that keeps the number of every process that it had."""

    def __init__(self) -> None:
        super().__init__()
        self.had: set[int] = set()

    def open(self, limits: VmLimits) -> ProcessVm:
        vm = super().open(limits)
        self.had.update(worker.process.pid for worker in self.workers)
        return vm


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with Port() as opened:
        yield opened
    assert opened.had
    trio.run(wait_until_gone, *opened.had)


def first_turn(port: ProcessVmPort, source: str, limits: VmLimits) -> VmTurn:
    vm = port.open(limits)
    try:
        return vm.start(source, None, SEED, STATE)
    finally:
        vm.close()


# The kinds of limit, or the names of the language's errors, that each may end with.
HOSTILE = {
    "for (;;);": {"cpu"},
    "const x = {get a() { for (;;); }}; return x": {"cpu"},
    "return {toJSON() { for (;;); }}": {"cpu"},
    "return new Proxy({}, {ownKeys() { for (;;); }})": {"cpu"},
    "throw {get message() { for (;;); }}": {"cpu"},
    "throw {get stack() { for (;;); }}": {"cpu"},
    "class E extends Error { get name() { for (;;); } }; throw new E()": {"cpu"},
    "try { for (;;); } finally { for (;;); }": {"cpu"},
    "const f = async () => { for (;;); }; for (;;) await f().catch(() => 1)": {"cpu"},
    "const f = () => Promise.resolve().then(f); await f()": {"jobs"},
    "const f = async () => { await null; f(); f() }; f(); await sleep(1)": {"jobs", "memory"},
    "for await (const x of (async function* () { for (;;) yield 1 })());": {"jobs", "cpu"},
    "await {then(resolve) { resolve(this) }}": {"jobs", "cpu"},
    "await Promise.all([...Array(1e6)].map(async () => 1))": {"jobs", "memory"},
    "[].concat(new Array(2 ** 31)).indexOf(1)": {"wall"},
    "new Array(2 ** 32 - 1).fill(0)": {"cpu", "wall", "memory"},
    "new Array(2 ** 31).join('x')": {"cpu", "wall", "memory", "InternalError", "RangeError"},
    "[...new Array(2 ** 31)]": {"cpu", "memory"},
    "return new Array(2 ** 31)": {"output", "cpu"},
    "/(a+)+$/.test('a'.repeat(50) + 'b')": {"cpu", "wall"},
    "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))": {"cpu", "wall"},
    "/(x+x+)+y/.exec('x'.repeat(60))": {"cpu", "wall"},
    "1n << (1n << 40n)": {"RangeError", "memory"},
    "let n = 3n; for (;;) n *= n": {"cpu", "memory", "RangeError", "wall"},
    "const all = []; for (;;) all.push({all})": {"memory"},
    "const all = []; for (;;) all.push(new Uint8Array(1e6))": {"memory"},
    "let s = 'x'; for (;;) s += s": {"memory", "InternalError"},
    "'x'.repeat(2 ** 29)": {"memory"},
    "'x'.repeat(2 ** 30)": {"memory", "RangeError", "InternalError"},
    "new ArrayBuffer(2 ** 40)": {"memory", "RangeError"},
    "JSON.parse('['.repeat(1e6))": {"SyntaxError", "RangeError", "memory"},
    "const f = () => f() + 1; f()": {"RangeError"},
    "const a = []; a[0] = a; let b = a; for (;;) b = [b]": {"memory"},
    "let b = []; for (let i = 0; i < 1e5; i++) b = [b]; JSON.stringify(b)": {
        "RangeError",
        "memory",
    },
    "let b = []; for (let i = 0; i < 1e5; i++) b = [b]; return b": {"RangeError", "TypeError"},
    "let b = {}; for (let i = 0; i < 1e5; i++) b = {toJSON: () => b}; return b": {
        "RangeError",
        "TypeError",
    },
    "eval('('.repeat(1e6))": {"SyntaxError", "RangeError", "memory"},
    "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))": {"SyntaxError", "RangeError", "InternalError"},
    "for (;;) log('x'.repeat(4000))": {"output"},
    "return 'x'.repeat(9e6)": {"output"},
    "for (;;) agent('x').catch(() => 1)": {"output", "memory", "cpu"},
    "for (;;) setTimeout(() => 1)": {"output", "memory", "cpu"},
    "for (;;) try { for (;;) [].push(...Array(1e5)) } catch {}": {"cpu", "wall"},
    "return {get a() { throw 1 }}": {"Error"},
    "Object.prototype.then = function () { for (;;); }; return {}": {"cpu"},
    "Object.defineProperty(Error.prototype, 'message', {get() { throw 1 }}); null.x": {"TypeError"},
    "async function* g() { yield* g() }; for await (const x of g());": {
        "RangeError",
        "memory",
        "jobs",
        "cpu",
    },
}


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_script_ends_within_its_limits(source: str, port: ProcessVmPort) -> None:
    """Reports 10, 11 and 12 among them: caught interruptions, getters and throws, small pieces."""
    limits = VmLimits(
        cpu_us=80_000,
        wall_us=300_000,
        memory_bytes=16 << 20,
        jobs=20_000,
        output_bytes=1 << 20,
    )
    try:
        turn = first_turn(port, source, limits)
    except VmLimitError as error:
        kind: str = error.kind
    else:
        assert turn.finished is not None
        assert turn.finished.error is not None
        kind = turn.finished.error.name
    assert kind in HOSTILE[source] | {"cpu", "wall"}  # on a slow machine time may end first
    after = first_turn(port, "return 42", limits)
    assert after.finished is not None
    assert after.finished.value == 42
