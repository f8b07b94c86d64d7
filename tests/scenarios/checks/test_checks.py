"""The registry, a user's own checks, and no false alarms among the built-in ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from actors.actor import Commit
from actors.messages import GetGraphRun, GraphRun
from actors.simulator import ActorContext
from actors.stores.memory import Undo
from scenarios import checks
from scenarios.build import CellRun
from scenarios.cast import ForeignActorError
from scenarios.checks import (
    CHECKS,
    CheckFailedError,
    History,
    Violation,
    judge,
    load_check,
    sentence_of,
)
from tests.scenarios.checks.chaos import chaos_history, history
from tests.scenarios.checks.tale import Tale
from tests.scenarios.loading import load

FOLDER = Path(checks.__file__).parent
DOCS = Path(__file__).parents[3] / "docs" / "checks.md"
OWN = '''
from scenarios.checks import Violation

def no_lost_messages(history):
    """No message is lost.

    Not one.
    """
    for record in history.records:
        if type(record).__name__ == "DropRecord":
            yield Violation("no_lost_messages", f"{record.fault} lost one", (record.n,))

def no_history(): ...
async def slow(history): ...
LIMIT = 3
'''
SEEDS = range(40)  # times two profiles, times four odds
TURNS = 150  # after which both runs have long ended
SHORT = """
profile = "{profile}"
[run]
until = "720s"
[server]
run_deadline = "5m"
[relay]
phase = "5s"
[engine]
duration = "30s"
[[agent]]
runs = 2
poll = "every 10s"
[[agent]]
cancel = "42s"
poll = "every 10s"
"""
ODDS = (0.0, 0.02, 0.1, 0.25)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "my_checks.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("def broken(\n")
    return tmp_path


# The registry


def test_every_file_is_one_check_under_its_own_name() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "history"}
    assert set(CHECKS) == files
    for name, check in CHECKS.items():
        assert check.__name__ == name
        assert check.__module__.endswith(f"checks.{name}")


def test_a_check_s_sentence_says_what_holds() -> None:
    for check in CHECKS.values():
        assert re.fullmatch(r"[A-Z].{20,}\.", sentence_of(check))
    assert sentence_of(yields()) == ""


def test_the_page_has_every_check_with_its_sentence() -> None:
    page = DOCS.read_text(encoding="utf-8")
    for name, check in CHECKS.items():
        assert f"| `{name}` | {sentence_of(check)} |" in page


# A user's own


def test_a_user_s_own_check_is_loaded_and_judges(own: Path) -> None:
    check = load_check("my_checks.py:no_lost_messages", own)
    assert sentence_of(check) == "No message is lost."
    tale = Tale()
    assert judge(tale.history(), {"own": check}) == []
    lost = tale.say("claude", "server", None, lost=True)
    found = [Violation("no_lost_messages", "drop lost one", (lost,))]
    assert judge(tale.history(), {"own": check}) == found


@pytest.mark.parametrize(
    ("text", "sentence", "cure"),
    [
        ("same_key_one_runs", "names no check", 'did you mean "same_key_one_run"?'),
        ("x", "names no check", 'write "my_checks.py:my_check"'),
        ("my_checks:x", "names no check", 'write "my_checks.py:my_check"'),
        ("my_checks.py:", "names no check", 'write "my_checks.py:my_check"'),
        ("my_check.py:x", "there is no file", 'did you mean "my_checks.py"?'),
        ("my_checks.py:no_lost_message", "has no function", 'did you mean "no_lost_messages"?'),
        (
            "my_checks.py:LIMIT",
            "has no function LIMIT",
            "it has no_lost_messages, no_history and slow",
        ),
        ("my_checks.py:Violation", "has no function Violation", "it has"),
        ("my_checks.py:no_history", "can't be called with a history", "write def no_history"),
        ("my_checks.py:slow", "slow is asynchronous", "write def, not async def"),
        ("broken.py:broken", "broken.py can't be imported: SyntaxError", None),
    ],
)
def test_what_can_t_be_used_is_told_with_a_cure(
    own: Path, text: str, sentence: str, cure: str | None
) -> None:
    with pytest.raises(ForeignActorError) as error:
        load_check(text, own)
    assert sentence in str(error.value)
    if cure is None:
        assert error.value.cure is None
    else:
        assert (error.value.cure or "").startswith(cure)


# Judging


def yields(*values: Any) -> Any:
    def check(_history: History) -> Iterator[Any]:
        yield from values

    return check


def test_violations_come_in_the_order_of_the_checks() -> None:
    first, second, third = (Violation(name, "x") for name in "abc")
    found = judge(Tale().history(), {"one": yields(first, second), "two": yields(third)})
    assert found == [first, second, third]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda _: 1 / 0, "mine raised ZeroDivisionError: division by zero"),
        (lambda _: None, "mine raised TypeError: 'NoneType' object is not iterable"),
        (yields("x"), "mine yielded 'x', which is no Violation"),
    ],
)
def test_a_check_that_can_t_judge_is_named(check: Any, words: str) -> None:
    with pytest.raises(CheckFailedError) as error:
        judge(Tale().history(), {"mine": check})
    assert str(error.value) == words


def test_an_empty_history_violates_nothing() -> None:
    assert judge(History([], kinds={}), CHECKS) == []


def test_the_page_s_example_is_a_check(tmp_path: Path) -> None:
    source = DOCS.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    source = source.replace(
        "from pullcord import Violation, messages",
        "from actors import messages\nfrom scenarios.checks import Violation",
    )
    (tmp_path / "my_checks.py").write_text(source)
    check = load_check("my_checks.py:no_long_silence", tmp_path)
    tale = Tale()
    asked = tale.say("claude", "server", GetGraphRun(command_id="r1"))
    for late_us in (60_000_000, 60_000_001):
        tale.now_us = late_us
        tale.say("server", "claude", GraphRun(command_id="r1", status="queued"), to=asked)
    found = judge(tale.history(), {"no_long_silence": check})
    assert found == [Violation("no_long_silence", "claude waited 60 s", (asked, tale.last))]


# No false alarms


@pytest.mark.parametrize("profile", ["published", "recommended"])
@pytest.mark.parametrize("odds", ODDS)
def test_built_in_actors_hold_every_check_whatever_happens(
    tmp_path: Path, profile: str, odds: float
) -> None:
    wrong = {}
    for seed in SEEDS:
        seen = chaos_history(tmp_path, profile, seed, odds)
        found = judge(seen, CHECKS)
        if found:
            wrong[seed] = found
        assert seen.due_us(0) is not None, "the end is judged too"
    assert wrong == {}


@pytest.mark.parametrize("profile", ["published", "recommended"])
def test_they_hold_at_any_moment(tmp_path: Path, profile: str) -> None:
    wrong = {}
    for seed in SEEDS:
        stop = ('until = "1600s"', f'until = "{10 * seed + 5}s"')
        found = judge(chaos_history(tmp_path, profile, seed, 0.1, stop), CHECKS)
        if found:
            wrong[seed] = found
    assert wrong == {}


class Once:
    """A commit hook that ends one turn badly, counted from 1 over all actors, or none."""

    def __init__(self, turn: int, verdict: Commit) -> None:
        self.turn, self.verdict, self.seen = turn, verdict, 0

    def __call__(self, context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        self.seen += 1
        return self.verdict if self.seen == self.turn else Commit.DONE


@pytest.mark.parametrize("profile", ["published", "recommended"])
@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_they_hold_wherever_a_turn_ends_badly(
    tmp_path: Path, profile: str, verdict: Commit
) -> None:
    world = load(tmp_path, SHORT.format(profile=profile)).scenarios[0]
    bound = {"healed_us": 0, "converge_us": 700_000_000}
    wrong = {}
    turn, turns = 0, 1
    while turn < turns:
        hook = Once(turn, verdict)
        found = judge(history(CellRun(world, 1, "", tmp_path, hook), **bound), CHECKS)
        if found:
            wrong[turn] = found
        turn, turns = turn + 1, min(hook.seen, TURNS)
    assert turn == TURNS
    assert wrong == {}


def test_much_went_wrong_in_those_worlds(tmp_path: Path) -> None:
    kinds: set[str] = set()
    statuses: set[str] = set()
    for seed in SEEDS:
        seen = chaos_history(tmp_path, "recommended", seed, 0.25)
        kinds |= {type(record).__name__ for record in seen.records}
        statuses |= {end.fields["status"] for end in seen.events("run.terminal")}
    assert kinds >= {"DropRecord", "LateRecord", "UndoneRecord", "UnansweredRecord"}
    assert statuses == {"completed", "failed", "cancelled", "interrupted"}
