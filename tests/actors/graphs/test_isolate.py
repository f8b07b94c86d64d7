"""The limits of one JavaScript context, in this process, for scripts that the engine can stop."""

import json
import threading

import pytest

from actors.graphs.isolate import Isolate, OverLimitError
from tests.actors.graphs.driver import PORT

STATE = {"now_ms": 0, "spent": 0, "total": None}


def isolate(**limits: float) -> Isolate:
    usual = {
        "cpu_s": 0.1,
        "memory_bytes": 16 << 20,
        "stack_bytes": 256 << 10,
        "jobs": 20_000,
        "output_bytes": 1 << 20,
    }
    made = Isolate(PORT.prelude)
    made.limit(**(usual | limits))  # type: ignore[arg-type]  # whole numbers
    return made


def run(source: str, **limits: float) -> dict[str, object]:
    """The first turn of a script."""
    message = {"source": source, "args": None, "seed": [1, 2, 3, 4], "room": 1 << 20, **STATE}
    turn = isolate(**limits).turn("start", json.dumps(message))
    assert isinstance(turn, bytes)
    read = json.loads(turn)
    assert isinstance(read, dict)
    return read


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("for (;;);", "cpu", "computed for 0.1 s without waiting"),
        ("throw {get message() { for (;;); }}", "cpu", "computed for 0.1 s"),
        ("const f = () => Promise.resolve().then(f); f(); await sleep(1)", "jobs", "ran 20000"),
        ("const all = []; for (;;) all.push({all})", "memory", "more than 16 MiB"),
        # Report 12: many small pieces. Not even an error has room then.
        ("const all = []; for (;;) all.push({})", "memory", "more than 16 MiB"),
        ("const all = {}; for (let i = 0;; i++) all['k' + i] = i", "memory", "more than 16 MiB"),
        ("const of = new Map(); for (let i = 0;; i++) of.set(i, {})", "memory", "16 MiB"),
        ("let s = []; for (;;) s = [s]", "memory", "16 MiB"),
        ("globalThis.k = []; for (;;) k.push({}); throw 1", "memory", "16 MiB"),
        ("new ArrayBuffer(1e9)", "memory", "16 MiB"),
        ("for (;;) log('x'.repeat(3000))", "output", "too large"),
        ("return 'x'.repeat(1100000)", "output", "too large"),
        ("return '\\u20ac'.repeat(400000)", "output", "too large"),  # 3 bytes each
        # Report 10: the interruption that a `.catch` loop swallows.
        (
            "const f = async () => { for (;;); }; for (;;) await f().catch(() => 1)",
            "cpu",
            "computed",
        ),
    ],
)
def test_a_limit_is_told_by_its_kind(source: str, kind: str, words: str) -> None:
    with pytest.raises(OverLimitError, match=words) as caught:
        run(source, cpu_s=0.1 if kind == "cpu" else 10)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("throw null", "Error", "null was thrown: by the script"),
        ("await null; throw null", "Error", "null was thrown: by the script"),
        ("await Promise.reject(null)", "Error", "null was thrown: by the script"),
        ("setTimeout(() => { throw null }); await sleep(9)", "Error", "null was thrown: "),
        ("await parallel([() => { throw null }])", "Error", "null was thrown: by the script"),
        # Nobody can tell: the engine throws null when it has no room for an error.
        ("const a = []; try { for (;;) a.push({}) } catch (e) { throw e }", "Error", "for want of"),
        ("throw undefined", "Error", "undefined"),
        ("throw 0", "Error", "0"),
        ("throw Symbol('s')", "Error", "Symbol(s)"),
        ("throw {name: 'InternalError', message: 'out of memory, said a tool'}", "InternalError",
         "out of memory, said a tool"),
        ("throw new Error('out of memory')", "Error", "out of memory"),
        ("throw new Error('interrupted')", "Error", "interrupted"),
        ("throw 'interrupted'", "Error", "interrupted"),
        ("await new Promise(() => {})", "GraphError", "waits for a promise"),
    ],
)  # fmt: skip
def test_what_a_script_throws_is_its_own_error_and_no_limit(
    source: str, name: str, message: str
) -> None:
    vm = isolate()
    start = {"source": source, "args": None, "seed": [1, 2, 3, 4], "room": 1 << 20, **STATE}
    turn = json.loads(vm.turn("start", json.dumps(start)))
    if "finished" not in turn:  # a timer is due
        turn = json.loads(
            vm.turn("settle", json.dumps({"settlements": [[1, True, None]], **STATE}))
        )
    error = turn["finished"]["error"]
    assert error["name"] == name
    assert message in error["message"]


def test_a_forged_output_of_memory_message_is_no_limit() -> None:
    turn = run(
        """throw new Error('"finished":{"error":{"name":"InternalError","message":"out of')"""
    )
    assert "Error" in str(turn["finished"])


def test_computing_is_counted_over_all_jobs_of_a_turn_and_anew_in_each_turn() -> None:
    burn = "const burn = () => { let n = 0; for (let i = 0; i < 2e5; i++) n += i; return n };"
    with pytest.raises(OverLimitError) as caught:
        run(burn + "for (;;) { burn(); await null }")
    assert caught.value.kind == "cpu"
    vm = isolate()
    message = {"source": burn + "for (;;) { burn(); await sleep(1) }", "args": None}
    vm.turn("start", json.dumps(message | {"seed": [1, 2, 3, 4], "room": 1 << 20, **STATE}))
    for number in range(1, 30):
        settled = {"settlements": [[number, True, None]], **STATE}
        assert b'"op":"sleep"' in vm.turn("settle", json.dumps(settled))


def test_deep_recursion_is_an_error_that_a_script_may_catch() -> None:
    source = "const f = () => { f() }; try { f() } catch (e) { return e.message }"
    assert run(source)["finished"] == {"value": "Maximum call stack size exceeded"}


def test_the_stack_is_as_deep_as_the_limit_says() -> None:
    source = "let n = 0; const f = () => { n++; f() }; try { f() } catch { return n }"
    shallow, deep = (
        int(str(run(source, stack_bytes=size << 10)["finished"]).strip("{}").partition(":")[2])
        for size in (256, 4096)
    )
    assert 100 < shallow < deep / 8


def test_a_context_works_in_any_thread_and_keeps_its_stack_limit() -> None:
    vm = isolate()
    source = """
    const f = n => n ? 1 + f(n - 1) : 0;
    await sleep(1);
    try { return f(1e6) } catch { return f(50) }"""
    message = {"source": source, "args": None, "seed": [1, 2, 3, 4], "room": 1 << 20, **STATE}
    vm.turn("start", json.dumps(message))
    seen: list[bytes] = []
    settled = json.dumps({"settlements": [[1, True, None]], **STATE})
    thread = threading.Thread(target=lambda: seen.append(vm.turn("settle", settled)))
    thread.start()
    thread.join()
    assert b'"finished":{"value":50}' in seen[0]


def test_each_turn_has_the_whole_room_for_output() -> None:
    vm = isolate(output_bytes=10_000)
    source = "for (let i = 0; i < 5; i++) { log('x'.repeat(3000)); await sleep(1) }"
    message = {"source": source, "args": None, "seed": [1, 2, 3, 4], "room": 10_000, **STATE}
    turn = vm.turn("start", json.dumps(message))
    for number in range(1, 6):
        turn = vm.turn("settle", json.dumps({"settlements": [[number, True, None]], **STATE}))
    assert b'"finished":{"value":null}' in turn
