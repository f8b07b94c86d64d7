"""How a script ends: with all that it started, or told what it forgot."""

import pytest

from actors.graphs.seam import Finished, Settlement
from tests.actors.graphs.driver import LOW, PORT, SEED, STATE, drive, error_of, value_of


@pytest.mark.parametrize(
    "source",
    [
        "agent('a'); return 1",
        "graph('g'); return 1",
        "const p = agent('a'); await sleep(1000); return 1",
        "const work = async () => { await agent('a') }; work(); return 1",
        "agent('a').then(x => log(x)); return 1",
    ],
)
def test_a_forgotten_agent_is_an_error(source: str) -> None:
    """Report 9: launched, and not awaited."""
    error = error_of(source)
    assert error.code == "unawaited_agents"


def test_the_error_names_the_forgotten_agents() -> None:
    error = error_of("agent('a', {label: 'first'}); agent('b'); graph('g')")
    assert error.message == (
        "the script ended before 3 calls of agent() or graph() that nothing waits for: "
        '"first", "b", "graph g". Await each of them'
    )


@pytest.mark.parametrize(
    "source",
    [
        "return await agent('a').then(x => x)",
        "return agent('a').catch(() => 0).finally(() => 1)",
        "const p = agent('a'); await sleep(5); return p",
        "return (await Promise.all([agent('a'), agent('b')]))[0]",
        "return Promise.race([agent('a'), sleep(1000)])",
        "return Promise.race([sleep(0).then(() => 'a'), agent('b').then(x => sleep(50))])",
        "const [p] = await Promise.allSettled([agent('a')]); return p.value",
        "return new Promise(resolve => agent('a').then(resolve))",
        "Promise.prototype.then = function () { throw 1 }; return await agent('a')",
    ],
)
def test_no_false_alarm_about_forgotten_agents(source: str) -> None:
    """Report 9's other half: alarms that came from patching `then`."""
    assert value_of(source) == "a"


def test_a_script_that_waits_for_nothing_has_failed() -> None:
    assert error_of("await new Promise(() => {})").code == "graph_stalled"
    assert error_of("await agent('a'); await new Promise(() => {})").code == "graph_stalled"


def test_the_loser_of_a_race_is_no_forgotten_agent() -> None:
    vm = PORT.open(LOW)
    turn = vm.start("return Promise.race([agent('a'), sleep(5)])", None, SEED, STATE)
    assert [each.op for each in turn.requests] == ["agent", "sleep"]
    turn = vm.settle([Settlement(id=2, ok=True)], STATE)
    assert turn.finished == Finished()
    assert turn.pending == 1


def test_a_script_that_has_ended_asks_for_nothing() -> None:
    finished, driven = drive("return Promise.race([agent('a'), 1])")
    assert finished.value == 1
    assert driven.requests == []


def test_what_ends_a_script_first_is_its_end() -> None:
    error = error_of("setTimeout(() => { throw new Error('t') }, 5); await sleep(5); return 1")
    assert error.message == "t"


def test_an_agents_promise_leads_to_ordinary_ones() -> None:
    assert value_of("const p = agent('a').then(x => x); await p; return p.constructor === Promise")
    error = error_of(
        "const p = agent('a'); try { Object.getPrototypeOf(p).then = 1 } finally { await p }"
    )
    assert error.name == "TypeError"


def test_what_a_race_left_behind_is_pending_at_the_end() -> None:
    finished, driven = drive("return Promise.race([agent('a'), sleep(1000)])")
    assert finished.value == "a"
    assert driven.turns[-1].pending == 1
    assert driven.turns[-1].requests == ()
