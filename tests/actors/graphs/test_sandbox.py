"""What a script finds around it, and what it can't reach: time, chance, the global object."""

import sys
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.graphs.script import ScriptVmPort
from actors.graphs.seam import Request, Settlement, VmLimitError, VmLimits, VmMissingError
from tests.actors.graphs.driver import (
    CEILING,
    FAILED,
    LOW,
    PORT,
    SEED,
    STATE,
    drive,
    error_of,
    value_of,
)

# time and chance


def test_time_is_the_hosts_and_passes_only_while_the_script_waits() -> None:
    source = """
    const seen = [Date.now(), new Date().getTime()];
    for (let i = 0; i < 1e5; i++);
    seen.push(Date.now());
    await sleep(2500);
    seen.push(Date.now(), new Date().toISOString());
    return seen"""
    assert value_of(source) == [1000, 1000, 1000, 3500, "1970-01-01T00:00:03.500Z"]


def test_timers_fire_in_order_and_can_be_taken_back() -> None:
    source = """
    const seen = [];
    setTimeout((a, b) => seen.push(a + b), 20, 'l', 'ate');
    setTimeout(() => seen.push('soon'));
    clearTimeout(setTimeout(() => seen.push('never'), 10));
    await sleep(30);
    return seen"""
    assert value_of(source) == ["soon", "late"]


@pytest.mark.parametrize("callback", ["() => { throw x() }", "async () => x()"])
def test_an_error_in_a_timer_ends_the_script(callback: str) -> None:
    error = error_of(f"setTimeout({callback}, 1);\nawait sleep(5)")
    assert (error.name, error.line) == ("ReferenceError", 1)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/St_Johns"])
def test_dates_are_utc_wherever_the_machine_stands(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    source = """
    const day = new Date(2026, 0, 2, 3, 4, 5);
    day.setHours(6);
    return [day.toISOString(), String(day), day.toDateString(), day.toTimeString(), day.getHours(),
      day.getTimezoneOffset(), day.toLocaleString(), day.toLocaleDateString(), `${new Date('?')}`,
      ...['2026-01-02', '2026-01-02T03:04', '2026-01-02T03:04+09:00', 'Jan 2, 2026 03:04',
          'Fri, 02 Jan 2026 03:04:00 GMT', '01-02-2026'].map(x => new Date(x).toJSON()),
      Date.parse('2026-01-02T00:00') - Date.UTC(2026, 0, 2), new Date(day).getTime() - day,
      new Date(0).getYear(), typeof Date(), new Date(null).getTime()]"""
    try:
        seen = value_of(source)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert seen == [
        "2026-01-02T06:04:05.000Z",
        "Fri Jan 02 2026 06:04:05 GMT+0000 (Coordinated Universal Time)",
        "Fri Jan 02 2026",
        "06:04:05 GMT+0000 (Coordinated Universal Time)",
        6,
        0,
        "2026-01-02 06:04:05",
        "2026-01-02",
        "Invalid Date",
        "2026-01-02T00:00:00.000Z",
        "2026-01-02T03:04:00.000Z",
        "2026-01-01T18:04:00.000Z",
        "2026-01-02T03:04:00.000Z",
        "2026-01-02T03:04:00.000Z",
        "2026-01-02T00:00:00.000Z",
        0,
        0,
        70,
        "string",
        0,
    ]


def test_no_back_door_leads_to_the_machines_time() -> None:
    """Report 14: the constructor of Date's prototype."""
    source = """
    class Own extends Date {}
    const doors = [Date.prototype.constructor, new Date().constructor, new Own().constructor,
      Object.getPrototypeOf(Own), Function('return Date')(), (0, eval)('Date'),
      (async () => {}).constructor('return Date')];
    const found = [];
    for (const door of doors) {
      const kind = door.name === 'anonymous' ? await door() : door;
      found.push(kind.now(), new kind().getTime());
    }
    return [...new Set(found)]"""
    assert value_of(source) == [1000]


def test_chance_comes_from_the_seed() -> None:
    source = "return [Math.random(), Math.random()]"
    first = value_of(source)
    assert first == value_of(source)
    assert all(0 <= each < 1 for each in first)
    other = PORT.open(LOW).start(source, None, (1, 2, 3, 2**32 - 1), STATE)
    assert other.finished is not None
    assert other.finished.value != first
    error = error_of("Math.random = () => 0")
    assert error.name == "TypeError"


def test_the_global_object_holds_nothing_but_the_language_and_the_api() -> None:
    """Report 13, and every trap about what a script may find."""
    names = set(value_of("return Object.getOwnPropertyNames(globalThis)"))
    api = {
        *("agent", "parallel", "pipeline", "retry", "graph", "sleep", "setTimeout"),
        *("clearTimeout", "phase", "log", "console", "budget"),
        *("AgentError", "BudgetError", "GraphError"),
    }
    assert api <= names
    other = {name for name in names - api if not name[0].isupper()}
    assert other == {
        *("parseInt", "parseFloat", "isNaN", "isFinite", "decodeURI", "decodeURIComponent"),
        *("encodeURI", "encodeURIComponent", "escape", "unescape", "undefined", "eval"),
        *("globalThis", "btoa", "atob"),
    }
    assert names.isdisjoint({"WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics"})


@pytest.mark.parametrize(
    "source",
    [
        "return Object.constructor('return typeof process + typeof require + typeof std')()",
        "return (async () => {}).constructor('return typeof process+typeof require+typeof std')()",
        'return Function(\'return Object.getOwnPropertyNames(this).includes("os") + ""\')()',
    ],
)
def test_function_constructors_reach_the_sandbox_alone(source: str) -> None:
    """Report 13: the escape through the function constructor."""
    assert value_of(source) in {"undefined" * 3, "false"}


def test_nothing_can_be_imported() -> None:
    assert error_of("await import('/etc/passwd')").name == "ReferenceError"
    assert error_of("import fs from 'fs'").name == "SyntaxError"


# What a script does to the built-ins harms the script alone


@pytest.mark.parametrize(
    "trick",
    [
        "Object.prototype.toJSON = () => ({requests: []})",
        "Array.prototype.toJSON = String.prototype.toJSON = () => 'forged'",
        "JSON.stringify = () => 'forged'; JSON.parse = () => ({})",
        "Map.prototype.get = Map.prototype.set = Map.prototype.delete = () => { throw 1 }",
        "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 1",
        "Array.prototype.push = Array.prototype[Symbol.iterator] = () => { throw 1 }",
        "Object.defineProperty(Array.prototype, 0, {set() { throw 1 }})",
        "Object.defineProperty(Object.prototype, 'get', {get() { throw 1 }})",
        "Object.prototype.kind = 'agent'; Object.prototype.label = Object.prototype.value = 1",
        "Object.keys = Object.create = Reflect.apply = () => { throw 1 }",
        "Error = undefined; globalThis.Promise = undefined; globalThis.String = undefined",
        "Error.stackTraceLimit = 0",
        "Object.defineProperty(Error.prototype, 'code', {get() { throw 1 }})",
        "Object.setPrototypeOf(agent('z').constructor, null)",
    ],
)
def test_tricks_with_prototypes_forge_nothing(trick: str) -> None:
    source = f"""
    try {{ {trick} }} catch {{}}
    try {{ await agent('f') }} catch (error) {{ log(error.code) }}
    return [await agent('a')]"""
    finished, driven = drive(source, answer=lambda r: FAILED if r.prompt == "f" else r.prompt)
    if "agent('z')" in trick:
        assert finished.error is not None
        assert finished.error.code == "unawaited_agents"
    else:
        assert finished.value == ["a"]
        prompts = [Request(id=1, op="agent", prompt="f"), Request(id=2, op="agent", prompt="a")]
        assert driven.requests == prompts
        assert [notice.text for notice in driven.notices] == ["agent_failed"]


VALUES = (
    *("1", "'s'", "null", "undefined", "NaN", "[]", "[, 1]", "() => 1", "10n", "-1", "1e308"),
    *("{}", "Symbol()", "agent", "agent('p')", "sleep(1)", "new Date(NaN)", "new Error('e')"),
    *("Object.create(null)", "Promise.reject(5)", "{then(r) { r(1) }}", "{get then() { throw 3 }}"),
    "globalThis",
    *("{toJSON() { return this }}", "{toString() { throw 4 }}", "new Proxy([], {})", "'\\ud800'"),
    *("new Proxy({}, {get() { throw 1 }})", "{length: 1e9}", "Object.freeze(new BudgetError())"),
    *("(function* () { yield () => agent('g') })()", "{attempts: 2}", "{settle: true}"),
)
FUNCTIONS = (
    *("agent", "parallel", "pipeline", "retry", "graph", "sleep", "setTimeout", "clearTimeout"),
    *("phase", "log", "console.warn", "new Date", "Date.parse", "Date.UTC", "Promise.all"),
    *("Promise.race", "Promise.any", "new AggregateError", "new GraphError", "Array.from"),
)
OWNERS = ("Object", "Array", "Promise", "Error", "String", "Function", "Map", "Date")
NAMES = (
    *("then", "constructor", "toJSON", "toString", "length", "push", "map", "get", "set", "value"),
    *("name", "message", "stack", "code", "call", "apply", "partial", "errors", "status", "kind"),
)
CALLS = st.builds(
    lambda way, name, given: f"{way}{name}({', '.join(given)});",
    st.sampled_from(["", "await "]),
    st.sampled_from(FUNCTIONS),
    st.lists(st.sampled_from(VALUES), max_size=3),
)
CHANGES = st.builds(
    lambda owner, name, value: f"{owner}.prototype.{name} = {value};",
    st.sampled_from(OWNERS),
    st.sampled_from(NAMES),
    st.sampled_from(VALUES),
)
GETTERS = st.builds(
    lambda owner, name, act: (
        f"Object.defineProperty({owner}.prototype, '{name}', {{get() {{ {act} }}}});"
    ),
    st.sampled_from(OWNERS),
    st.sampled_from(NAMES),
    st.sampled_from(["return 1", "throw 1", "return this"]),
)
STATEMENTS = st.recursive(
    CALLS | CHANGES | GETTERS | st.sampled_from(VALUES).map(lambda value: f"throw {value};"),
    lambda inner: inner.map(lambda inside: f"try {{ {inside} }} catch (e) {{ log(e) }}"),
    max_leaves=2,
)


@settings(deadline=None)
@given(st.lists(STATEMENTS, max_size=6), st.booleans())
def test_whatever_a_script_does_its_turns_are_turns(statements: list[str], ok: bool) -> None:
    vm = PORT.open(LOW)
    kind = ""
    try:
        turn = vm.start("\n".join(statements), None, SEED, STATE)
        for _ in range(5):
            if turn.finished is not None:
                break
            assert turn.pending > 0
            answers = [
                Settlement(id=each.id, ok=ok, value={"v": 1}, error=CEILING)
                for each in turn.requests
            ]
            turn = vm.settle(answers, STATE)
    except VmLimitError as error:
        kind = error.kind
    assert kind != "died"


@pytest.mark.parametrize(
    "trick",
    [
        "Array.prototype[Symbol.iterator] = function* () {}",
        "RegExp.prototype.exec = () => null",
        "String.prototype.slice = Date => 'forged'",
        "Object.defineProperty = Reflect.construct = () => {}",
        "Object.defineProperty(Object.prototype, 'writable', {get() { throw 1 }})",
        "globalThis.eval = () => { throw 1 }",
        "Object.defineProperty(Array.prototype, 0, {set() { throw 1 }})",
        "try { const f = () => f(); f() } catch {}",
    ],
)
def test_what_is_compiled_at_its_first_use_is_what_it_always_was(
    trick: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    source = f"""
    {trick};
    const zone = new Date(0).getTimezoneOffset() + new Date(0).getHours();
    await new Promise(resolve => setTimeout(resolve, 5));
    return '' + zone + ' ' + Date.now() + ' ' + new Date(0)"""
    shown = "0 1005 Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)"
    try:
        seen = value_of(source)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert seen == shown


def test_what_is_compiled_at_its_first_use_needs_room_for_it() -> None:
    with pytest.raises(VmLimitError) as caught:
        value_of(
            "const all = []; try { for (;;) all.push(new Array(64).fill(1)) } catch {}\n"
            "for (;;) { try { Date.now() } catch { all.push({}) } }",
            limits=LOW,
        )
    assert caught.value.kind in {"memory", "cpu"}


def test_the_api_is_given_by_its_names() -> None:
    names = ["parallel", "pipeline", "retry", "setTimeout", "clearTimeout", "agent", "Date"]
    assert value_of(f"return [{', '.join(names)}].map(each => each.name)") == names


def test_the_preludes_own_functions_are_out_of_reach() -> None:
    source = """
    const names = Object.getOwnPropertyNames(globalThis);
    try { Error.prepareStackTrace = (e, frames) => frames.map(f => f.getFunction?.()) } catch {}
    const stack = new Error('x').stack;
    return [names.some(n => ['start', 'settle', 'take', 'write'].includes(n)), typeof stack,
            agent.caller === undefined]"""
    error = error_of(source)  # reading a strict function's caller is an error of the language
    assert error.name == "TypeError"
    assert value_of(source.replace("agent.caller === undefined", "1")) == [False, "string", 1]


def test_a_script_cannot_replace_the_api() -> None:
    for name in ("agent", "budget", "Date", "setTimeout"):
        assert error_of(f"globalThis.{name} = 1").name == "TypeError"
        assert value_of(f"const {name} = 1; return {name}") == 1


# Without the engine


def test_without_the_engine_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "_quickjs", None)
    with pytest.raises(VmMissingError, match=r"pip install 'pullcord\[graphs\]'"):
        ScriptVmPort().open(VmLimits())


def test_the_archived_engine_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        """An engine of before 2023."""

        def set_max_stack_size(self, limit: int) -> None: ...

        def eval(self, source: str) -> Any:
            raise engine.JSException("SyntaxError: unexpected token in expression: '??'")

    engine: Any = import_module("_quickjs")
    monkeypatch.setattr(engine, "Context", Old)
    with pytest.raises(VmMissingError, match="archived package quickjs"):
        ScriptVmPort().open(VmLimits())
