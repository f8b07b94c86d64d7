"""The script API, in this process: what a Graph's author can rely on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.graphs.seam import (
    AgentOptions,
    Failure,
    Notice,
    Request,
    Settlement,
    VmLimitError,
)
from tests.actors.graphs.driver import (
    CEILING,
    FAILED,
    LOW,
    PORT,
    SEED,
    STATE,
    answers,
    drive,
    error_of,
    value_of,
)

# agent


def test_agent_hands_over_prompt_and_options() -> None:
    finished, driven = drive(
        "return agent('hi', {label: 'l', phase: 'p', model: 'm', schema: {type: 'object'},"
        " maxTokens: 5, timeoutMs: 1.5, tools: ['a', 'b']})",
        answer=answers([{"x": 1}]),
    )
    assert finished.value == {"x": 1}
    options = AgentOptions(
        label="l",
        phase="p",
        model="m",
        schema={"type": "object"},
        max_tokens=5,
        timeout_ms=1.5,
        tools=("a", "b"),
    )
    assert driven.requests == [Request(id=1, op="agent", prompt="hi", options=options)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("agent()", "prompt must be a string"),
        ("agent('x', 1)", "options must be an object"),
        ("agent('x', {maxtokens: 1})", 'no option "maxtokens"; there are label'),
        ("agent('x', {maxTokens: 0})", "maxTokens must be a whole number above 0"),
        ("agent('x', {timeoutMs: Infinity})", "timeoutMs must be a number above 0"),
        ("agent('x', {tools: 'a'})", "tools must be an array of names"),
        ("agent('x', {schema: []})", "schema must be a JSON Schema"),
        ("agent('x', {schema: {a: () => 1}})", "agent(): schema: a function at a is not JSON"),
        ("agent('x', {label: 1})", "label must be a string"),
        ("graph(1)", "name must be a string"),
        ("graph('g', {a: [1n]})", "graph(): args: a BigInt at a[0] is not JSON"),
        ("parallel(1)", "tasks must be an array"),
        ("pipeline([1], 2)", "a stage must be a function"),
        ("retry(1)", "task must be a function"),
        ("retry(() => 1, {attempts: 11})", "attempts must be a whole number from 1 to 10"),
        ("retry(() => 1, {backoffMs: -1})", "backoffMs and factor must be finite"),
        ("sleep('soon')", "the time must be a finite number"),
        ("setTimeout('code', 1)", "callback must be a function"),
        ("parallel(new Array(5000))", "at most 4096 items"),
    ],
)
def test_a_wrong_call_is_told_at_its_own_place(call: str, words: str) -> None:
    error = error_of(f"let x = 1;\nawait {call};")
    assert words in error.message
    assert error.name in {"TypeError", "RangeError"}
    assert error.line == 2


def test_a_failed_agent_raises_an_error_with_code_and_place() -> None:
    error = error_of(
        "const ask = async () => {\n  return await agent('q');\n};\nawait ask();",
        answer=answers([FAILED]),
    )
    assert (error.name, error.code, error.message) == ("AgentError", "agent_failed", "no answer")
    assert (error.line, error.column) == (2, 16)
    assert "at ask (graph.js:2:16)" in error.stack
    assert "<input>" not in error.stack


def test_errors_are_of_their_classes_and_say_whether_to_try_again() -> None:
    source = """
    const seen = [];
    for (const ask of [() => agent('a'), () => agent('b'), () => graph('g'), () => graph('h')]) {
      try { await ask() } catch (error) {
        seen.push([error.name, error.code, error.retryable, error instanceof GraphError,
                   error instanceof AgentError, error instanceof BudgetError, error.limit]);
      }
    }
    return seen"""
    failures = [
        FAILED,
        CEILING,
        Failure(kind="graph", message="deep", code="graph_depth", info={"limit": 4}),
        Failure(kind="graph", message="no", code="graph_failed", info={"retryable": False}),
    ]
    assert value_of(source, answer=answers(failures)) == [
        ["AgentError", "agent_failed", True, True, True, False, None],
        ["BudgetError", "token_ceiling", False, True, False, True, None],
        ["GraphError", "graph_depth", False, True, False, False, 4],
        ["GraphError", "graph_failed", False, True, False, False, None],
    ]


# parallel, pipeline


def test_parallel_starts_all_and_keeps_the_order() -> None:
    finished, driven = drive("return parallel(['a', 'b'].map(x => () => agent(x)).concat([1]))")
    assert finished.value == ["a", "b", 1]
    assert [len(turn.requests) for turn in driven.turns] == [2, 0]


@given(st.permutations(range(1, 7)), st.integers(1, 6), st.sets(st.integers(1, 6)))
def test_answers_may_come_in_any_order_and_grouping(
    order: list[int], group: int, failed: set[int]
) -> None:
    source = """
    const ask = i => () => agent('a' + i).then(x => sleep(i).then(() => x));
    const ends = await parallel([1, 2, 3, 4, 5, 6].map(ask), {settle: true});
    return ends.map(end => end.ok ? end.value : end.error.code);"""
    vm = PORT.open(LOW)
    waiting = list(vm.start(source, None, SEED, STATE).requests)
    rank = {number: place for place, number in enumerate(order)}
    while True:
        waiting.sort(key=lambda each: (rank.get(each.id, 0), each.id))
        batch, waiting = waiting[:group], waiting[group:]
        turn = vm.settle(
            [
                Settlement(id=each.id, ok=False, error=FAILED)
                if each.id in failed
                else Settlement(id=each.id, ok=True, value=each.id)
                for each in batch
            ],
            STATE,
        )
        waiting += turn.requests
        if turn.finished is not None:
            break
        assert turn.pending == len(waiting)
    assert turn.finished.value == ["agent_failed" if n in failed else n for n in range(1, 7)]


def test_parallel_rethrows_one_failure_once_all_have_settled() -> None:
    source = "return parallel([() => agent('a'), () => sleep(50).then(() => log('late'))])"
    finished, driven = drive(source, answer=answers([FAILED]))
    assert finished.error is not None
    assert finished.error.code == "agent_failed"
    assert [notice.text for notice in driven.notices] == ["late"]


def test_parallel_gathers_several_failures() -> None:
    error = error_of(
        "return parallel([1, 2, 3].map(i => () => agent('a' + i)))",
        answer=answers([FAILED, "fine", FAILED]),
    )
    assert (error.name, error.message) == ("AggregateError", "2 of 3 parallel tasks failed")
    assert error.errors == ("AgentError: no answer",) * 2


def test_parallel_with_settle_tells_each_end() -> None:
    source = "return parallel([() => agent('a'), () => { throw new Error('b') }], {settle: true})"
    ends = value_of(source, answer=answers([FAILED]))
    assert [each["ok"] for each in ends] == [False, False]
    assert ends[0]["error"] == {
        "name": "AgentError",
        "message": "no answer",
        "code": "agent_failed",
        "retryable": True,
    }
    assert ends[1]["error"] == {"name": "Error", "message": "b"}


@pytest.mark.parametrize("settle", ["", ", {settle: true}"])
def test_the_ceiling_comes_through_with_what_there_is(settle: str) -> None:
    """Reports 3 and 4: the cap swallowed by parallel, and results lost at it."""
    source = f"return parallel([1, 2, 3].map(i => () => agent('a' + i)){settle})"
    error = error_of(source, answer=answers(["one", CEILING, CEILING]))
    assert (error.name, error.code) == ("BudgetError", "token_ceiling")
    assert error.partial == ["one", None, None]


def test_the_ceiling_keeps_results_of_inner_parallels_too() -> None:
    source = """
    const pair = name => () => parallel([() => agent(name + 1), () => agent(name + 2)]);
    return parallel([pair('a'), pair('b')])"""
    error = error_of(source, answer=lambda r: CEILING if r.prompt == "b2" else r.prompt)
    assert error.partial == [["a1", "a2"], ["b1", None]]


def test_pipeline_hands_each_item_on_without_waiting_for_the_others() -> None:
    source = """
    return pipeline(['a', 'b'], (x, item, i) => agent(x + i), async (x, item) => {
      if (item === 'a') await sleep(100);
      log('done', item);
      return [x, item];
    })"""
    finished, driven = drive(source)
    assert finished.value == [["a0", "a"], ["b1", "b"]]
    assert [notice.text for notice in driven.notices] == ["done b", "done a"]


# retry


def test_retry_waits_longer_each_time_and_tells_of_it() -> None:
    finished, driven = drive(
        "return retry(n => agent('try ' + n), {attempts: 4, backoffMs: 100, factor: 3})",
        answer=answers([FAILED, FAILED, "fine"]),
    )
    assert finished.value == "fine"
    assert [each.prompt for each in driven.requests if each.op == "agent"] == [
        "try 1",
        "try 2",
        "try 3",
    ]
    assert driven.notices == [
        Notice(type="retry", text="AgentError: no answer", attempt=1, delay_ms=100, after=1),
        Notice(type="retry", text="AgentError: no answer", attempt=2, delay_ms=300, after=3),
    ]


@pytest.mark.parametrize(
    ("failure", "options"),
    [
        (CEILING, "{}"),
        (Failure(kind="budget", message="m", code="own", info={"retryable": True}), "{}"),
        (Failure(kind="agent", message="gone", code="cancelled"), "{}"),
        (Failure(kind="agent", message="many", code="agent_limit"), "{}"),
        (Failure(kind="agent", message="no", code="agent_failed", info={"retryable": False}), "{}"),
        (FAILED, "{attempts: 1}"),
        (FAILED, "{when: error => error.code !== 'agent_failed'}"),
    ],
)
def test_retry_gives_up_at_once(failure: Failure, options: str) -> None:
    """Report 5: a storm of retries."""
    finished, driven = drive(
        f"return retry(() => agent('a'), {options})", answer=answers([failure, "unreached"])
    )
    assert finished.error is not None
    assert finished.error.code == failure.code
    assert len(driven.requests) == 1


def test_a_backoff_that_grows_without_end_stays_a_number() -> None:
    _, driven = drive(
        "return retry(() => agent('a'), {attempts: 10, backoffMs: 1, factor: 1e200})",
        answer=lambda _: FAILED,
    )
    assert max(each.ms for each in driven.requests) == 86_400_000
    _, driven = drive(
        "return retry(() => agent('a'), {attempts: 10, factor: 1e200})", answer=lambda _: FAILED
    )
    assert {each.op for each in driven.requests} == {"agent"}


# phase, log, budget, args, meta


def test_phases_and_logs_are_told_in_order() -> None:
    finished, driven = drive(
        """
    phase('one');
    await agent('a');
    console.warn('half', 1, {a: [undefined]}, undefined, null, new TypeError('t'), () => 1);
    phase('two');
    await agent('b', {phase: 'own'});
    await agent('c');"""
    )
    assert finished.error is None
    assert [each.options.phase for each in driven.requests] == ["one", "own", "two"]
    assert driven.notices == [
        Notice(type="phase", text="one"),
        Notice(
            type="log",
            text='half 1 {"a":[null]} undefined null TypeError: t () => 1',
            level="warn",
            after=1,
        ),
        Notice(type="phase", text="two", after=1),
    ]


def test_a_long_log_line_is_cut_and_a_huge_value_is_named() -> None:
    _, driven = drive("log('x'.repeat(1e5)); log('y'.repeat(4000)); log(Array(1e5).fill(1), {})")
    assert [len(notice.text) for notice in driven.notices[:2]] == [4001, 4000]
    assert driven.notices[2].text == "a value of more than 64000 characters {}"


def test_what_is_logged_takes_no_room_from_the_result() -> None:
    assert len(value_of("log({a: 1}); return 'x'.repeat(100000)")) == 100_000


def test_the_budget_follows_the_host() -> None:
    source = """
    const seen = [budget.total, budget.spent, budget.remaining];
    await agent('a');
    return [...seen, budget.spent, budget.remaining]"""
    assert value_of(source, total=15) == [15, 0, 15, 10, 5]
    assert value_of("return [budget.total, budget.remaining === Infinity]") == [None, True]
    assert error_of("budget.spent = 0").name == "TypeError"


def test_args_and_results_are_json_both_ways() -> None:
    args = {
        "text": "é\u2028\0\U0001f642",
        "n": [2**40, 2**53, -0.5, 1e300, None, True],
        "__proto__": {"x": 1},
    }
    assert value_of("return args", args=args) == args
    assert value_of("return {a: undefined, b: [undefined], c: new Date(0), d: -0}") == {
        "b": [None],
        "c": "1970-01-01T00:00:00.000Z",
        "d": 0,
    }
    assert value_of("") is None
    assert value_of(r"return '\ud800'") == "\ufffd"  # half a character is none
    assert value_of("return args.length + '\ud800'.length", args="a\ud800") == 3


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("() => 1", "the result: a function is not JSON"),
        ("{a: [1, {b: Symbol()}]}", "the result: a symbol at a[1].b is not JSON"),
        ("[NaN]", "the result: NaN at [0] is not JSON"),
        ("{x: 1n}", "the result: a BigInt at x is not JSON"),
        ("{x: new Map()}", "the result: a Map at x is not JSON"),
        ("{x: agent('a')}", "the result: a Promise at x is not JSON"),
        ("(() => { const a = {}; a.a = {b: a}; return a })()", "a cycle, or a value nested more"),
    ],
)
def test_a_result_that_is_not_json_says_where(value: str, words: str) -> None:
    source = f"const value = {value}; if (value.x?.then) await value.x; return value"
    error = error_of(source)
    assert words in error.message
    assert error.code == "result_not_json"


def test_meta_is_a_plain_constant_in_the_script() -> None:
    source = "// a Graph\nexport const meta = {name: 'g'};\nreturn meta.name + x"
    error = error_of(source)
    assert (error.name, error.line, error.column) == ("ReferenceError", 3, 20)
    assert value_of(source.replace(" + x", "")) == "g"
    broken = error_of("export const meta = {name: f()};")
    assert (broken.name, broken.line, broken.column) == ("SyntaxError", 1, 28)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("let a = ;", (1, 9)),
        ("let x = 1;\n  let b = 2 3;", (2, 13)),
        ("if (true) {\n", (2, 1)),
        ("return 1\n})", (2, 1)),
        ("const f = () => {\n  null.x;\n};\n\nf()", (2, 3)),
        ("await agent('a');\n\nnull.x", (3, 1)),
    ],
)
def test_errors_have_the_place_that_the_user_sees(source: str, place: tuple[int, int]) -> None:
    error = error_of(source)
    assert (error.line, error.column) == place


def test_thrown_values_of_any_kind_are_told() -> None:
    for thrown, name, message in (
        ("'text'", "Error", "text"),
        ("{a: 1}", "Error", '{"a":1}'),
        ("undefined", "Error", "undefined"),
        ("{toString() { for (;;); }}", "Error", "[object Object]"),
        ("Object.assign(new Error('m'), {name: 'Own', code: 'own'})", "Own", "m"),
        ("new Proxy({}, {get() { throw 1 }})", "Error", "a value that has no words"),
        ("{get name() { throw 1 }, toJSON() { throw 2 }}", "Error", "[object Object]"),
    ):
        error = error_of(f"throw {thrown}")
        assert (error.name, error.message) == (name, message), thrown


def test_late_and_unknown_answers_are_ignored() -> None:
    vm = PORT.open(LOW)
    vm.start("return [await agent('a'), await agent('b')]", None, SEED, STATE)
    for _ in range(2):
        turn = vm.settle([Settlement(id=1, ok=True, value=1), Settlement(id=9, ok=True)], STATE)
    turn = vm.settle([Settlement(id=2, ok=True, value=2)], STATE)
    assert turn.finished is not None
    assert turn.finished.value == [1, 2]


def test_a_closed_vm_says_so() -> None:
    vm = PORT.open(LOW)
    vm.start("await agent('a')", None, SEED, STATE)
    vm.close()
    vm.close()
    with pytest.raises(VmLimitError, match="closed"):
        vm.settle([], STATE)


def test_the_same_script_gives_the_same_turns() -> None:
    source = """
    phase('p');
    const ask = i => () => retry(() => agent(`${i} ${Math.random()}`));
    const all = await parallel([1, 2, 3].map(ask));
    log(new Date(), all);
    await sleep(10 * Math.random());
    return {all, at: Date.now()}"""
    runs = [drive(source, total=100)[1].turns for _ in range(2)]
    assert runs[0] == runs[1]
    assert json.dumps(repr(runs[0])) == json.dumps(repr(runs[1]))
