"""What a shrink tries, pass by pass: first fewer faults, then less work, then simpler values.

Each pass takes the search's best data and lets the search pick among what it makes of it. A pass
knows what a scenario file looks like, and nothing of how one is run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

from actors.streams import HashedStream
from scenarios.places import Keys
from scenarios.shrink import Data, Pass, Search, ddmin
from scenarios.shrink_values import is_time, lower, shorter_both, simpler, times_before
from scenarios.spec import KINDS

Table = dict[str, Any]
Explain = Callable[[Data], list[list[Table]]]

EXPLICIT_LIMIT = 4  # single acts that are easier to understand than a probability
ACTS_LIMIT = 2_000  # of one fault, among which the few that matter are looked for
SEEDS = range(1, 33)  # tried for one whose first replication shows it
# Tried for one time, while something else is left out: what was needed at 5 minutes may do at once.
DRAWS = 128  # of several times at once, where changing one was not enough
KEPT = 0.25  # the share of times that a draw leaves as they are
TIMES = ("0s", "1s", "5s", "10s", "15s", "20s", "25s", "30s", "40s", "50s", "1m", "90s", "2m", "5m")
ARRAYS = ("step", "link", "session", *KINDS)
# Without these a fault does more than with them, and is no simpler for it.
NARROWING = frozenset({"kind", "message", "nth", "every", "probability", "for", "from", "to"})
FIXED_IN_RUN = frozenset({"seed", "replications"})
TIMES_IN_RUN = ("until", "limit", "converge")


class Rules(NamedTuple):
    """What must stay as it is: keys that a label holds, and what the goal says of time."""

    fixed: Collection[Keys] = ()
    timed: bool = False
    kind: str = ""


def passes_of(explain: Explain, rules: Rules) -> list[tuple[str, Pass]]:
    """Return the passes in their order, with what each is called.

    `explain` tells for each fault of data which faults would do the same act by act.
    """
    return [
        ("faults", fewer_faults),
        ("the end", partial(earlier_end, rules=rules)),
        ("single acts", partial(single_acts, explain=explain)),
        ("replications", one_replication),
        ("workload", partial(less_work, rules=rules)),
        ("keys", partial(fewer_keys, rules=rules)),
        ("values", partial(simpler_values, rules=rules)),
        ("times", partial(other_times, rules=rules)),
    ]


# Faults


def fewer_faults(search: Search) -> None:
    """Leave faults out until each that is left is needed."""
    _fewer(search, ("fault",))


def single_acts(search: Search, explain: Explain) -> None:
    """Put in a fault's place the few single acts of it that matter.

    One that acts by chance, or strikes again and again, may take a few; what acts on each message
    for a while must become a single one.
    """
    index = 0
    while index < len(search.best.get("fault", [])):
        acts = explain(search.best)[index]
        before = search.best
        table = before["fault"][index]
        again = "probability" in table or isinstance(table.get("every"), str)  # every 5 minutes
        limit = EXPLICIT_LIMIT if again else 1
        done = False
        try:
            left = _needed(search, acts, partial(_in_place, before, index))
            done = 0 < len(left) <= limit
        finally:
            if not done:  # also when the time is up: many acts are no progress
                search.best = before
        index += len(left) if done else 1


def _needed(search: Search, acts: list[Table], put: Callable[[list[Table]], Data]) -> list[Table]:
    """Return those of a fault's acts that are needed, none if they don't do what the fault does."""
    if not 0 < len(acts) <= ACTS_LIMIT or search.pick([acts], put) is None:
        return []
    return ddmin(acts, lambda lists: search.pick(lists, put))


def _in_place(data: Data, index: int, tables: list[Table]) -> Data:
    faults = data["fault"]
    return {**data, "fault": [*faults[:index], *tables, *faults[index + 1 :]]}


# The end, and chance


def earlier_end(search: Search, rules: Rules) -> None:
    """End sooner: by the defaults, else as early as the data still shows it."""
    if rules.kind == "limit reached":
        return
    for key in TIMES_IN_RUN:
        if not (rules.timed and key == "converge"):
            path: Keys = ("run", key)
            search.improve([without(search.best, [path])])
            _simplify(search, path)


def one_replication(search: Search) -> None:
    """Let the first replication show it: by the file's seed, another, or with less chance."""
    data = search.best
    run = data.get("run", {})
    if run.get("replications", 1) == 1:
        return
    kept = {key: value for key, value in run.items() if key not in ("replications", "seed")}
    seeds = dict.fromkeys([run.get("seed", 1), *SEEDS])
    candidates = [{**data, "run": {**kept, "seed": seed}} for seed in seeds]
    engine = data.get("engine", {})
    if isinstance(engine, dict):  # what a Graph takes is by chance unless the file says it
        for text in TIMES[1:]:
            candidates.append({**candidates[0], "engine": {**engine, "duration": text}})
    search.improve(candidates)


# Work


def less_work(search: Search, rules: Rules) -> None:
    """Let there be fewer actors, sessions, steps and ways, and fewer runs."""
    for section in ARRAYS:
        if isinstance(search.best.get(section), list):
            _fewer(search, (section,))
            left = search.best.get(section, [])
            if len(left) == 1 and section in KINDS:
                search.improve([{**search.best, section: left[0]}])
    for path, value in [*leaves(search.best)]:
        if path[-1] in ("runs", "count") and path not in rules.fixed and type(value) is int:
            while search.improve(
                replaced(search.best, path, one) for one in lower(at(search.best, path), 1)
            ):
                pass


# Keys and values


def fewer_keys(search: Search, rules: Rules) -> None:
    """Leave out what the defaults do as well: whole tables first, then single keys."""
    tables = [
        (key,)
        for key, value in search.best.items()
        if isinstance(value, dict) and not any(path[0] == key for path in rules.fixed)
    ]
    _without_needless(search, [path for path in tables if path != ("run",)])
    _without_needless(
        search, [path for path, _ in leaves(search.best) if _may_go(path, search.best, rules)]
    )


def _may_go(path: Keys, data: Data, rules: Rules) -> bool:
    if path in rules.fixed or path in (("schema",), ("name",)):
        return False
    key = path[-1]
    if path[0] == "run":
        asked = key == "check" and not rules.kind
        return key not in FIXED_IN_RUN and not asked and not (rules.timed and key in TIMES_IN_RUN)
    if path[0] != "fault" or key not in NARROWING:
        return True
    # One that acts a single time may lose its place and its end: they don't widen it.
    return key in ("from", "to", "for") and "nth" in at(data, path[:-1])


def simpler_values(search: Search, rules: Rules) -> None:
    """Make what is left rounder, smaller and constant."""
    for path, _ in [*leaves(search.best)]:
        if path not in rules.fixed and path[0] not in ("schema", "name", "run"):
            _simplify(search, path)
    _earlier_together(search, rules)
    earlier_end(search, rules)


def _earlier_together(search: Search, rules: Rules) -> None:
    """Let two things happen earlier by the same time: a kill, and the end of the run that it hits.

    Both become shorter each time, so this ends.
    """

    def pairs() -> Iterator[Data]:
        data = search.best
        own = [(path, at(data, path)) for path in _times(data, rules)]
        for (path, text), (other, beside) in permutations(own, 2):
            if text is not None and beside is not None:
                for one, two in shorter_both(text, beside):
                    yield replaced(replaced(data, path, one), other, two)

    while search.improve(pairs()):
        pass


def other_times(search: Search, rules: Rules) -> None:
    """Leave out a fault or a run, and let something else happen at another time in return.

    A run that ended while its relay was down may be the third, five minutes after the start; the
    first does as well if the relay is killed earlier.
    """
    while search.improve(
        other for one in _with_less(search.best, rules) for other in _at_other_times(one, rules)
    ):
        pass


def _at_other_times(data: Data, rules: Rules) -> Iterator[Data]:
    """Yield data with one of its times or numbers changed, then with all of them drawn anew."""
    times = _times(data, rules)
    own = [text for path in times if (text := at(data, path)) is not None]
    texts = list(dict.fromkeys([*TIMES, *(near for text in own for near in times_before(text))]))
    choices: dict[Keys, Sequence[Any]] = dict.fromkeys(times, texts)
    for path, value in leaves(data):
        if path[-1] == "nth":
            choices[path] = range(1, value + 1)
    yield from (replaced(data, path, one) for path, values in choices.items() for one in values)
    stream = HashedStream(b"shrink", "times")
    for _ in range(DRAWS if len(choices) > 1 else 0):
        drawn = data
        for path, values in choices.items():
            if stream.random() < KEPT and at(data, path) is not None:
                continue
            some = TIMES if path in times else values
            drawn = replaced(drawn, path, some[int(stream.random() * len(some))])
        yield drawn


def _with_less(data: Data, rules: Rules) -> Iterator[Data]:
    """Yield data with less of what counts most: faults, runs, actors."""
    for path, value in leaves(data):
        if path[-1] in ("runs", "count") and path not in rules.fixed and type(value) is int:
            yield from (replaced(data, path, one) for one in lower(value, 1))
    for section in ("fault", *ARRAYS):
        items = data.get(section)
        if isinstance(items, list):
            for index in range(len(items)):
                yield _with_array(data, (section,), [*items[:index], *items[index + 1 :]])


def _times(data: Data, rules: Rules) -> list[Keys]:
    """Return where data has a time, and where it could say how long a Graph takes."""
    found: list[Keys] = [
        path
        for path, value in leaves(data)
        if path[0] != "run" and path not in rules.fixed and is_time(value)
    ]
    engine: Keys = ("engine", "duration")
    if (
        engine not in found
        and engine not in rules.fixed
        and isinstance(data.get("engine", {}), dict)
    ):
        found.append(engine)
    return found


# The means


def _simplify(search: Search, path: Keys) -> None:
    """Make the value at a path simpler, as often as that goes; None stands for no such path."""
    value = at(search.best, path)
    while value is not None:
        search.improve(replaced(search.best, path, one) for one in _simpler(path, value))
        if (after := at(search.best, path)) == value:
            return
        value = after


def _simpler(path: Keys, value: Any) -> Iterator[Any]:
    least = 1 if path[-1] in ("nth", "every", "count", "copies") else 0
    return (one for one in simpler(value) if not isinstance(one, int) or one >= least)


def _fewer(search: Search, path: Keys) -> None:
    """Leave elements of an array out until each that is left is needed."""
    data = search.best
    items = at(data, path)
    if isinstance(items, list) and items:
        ddmin(items, lambda lists: search.pick(lists, partial(_with_array, data, path)))


def _with_array(data: Data, path: Keys, items: Sequence[Any]) -> Data:
    return replaced(data, path, list(items)) if items else without(data, [path])


def _without_needless(search: Search, paths: list[Keys]) -> None:
    """Leave keys out until each that is left is needed."""
    data = search.best

    def keeping(kept: Collection[Keys]) -> Data:
        return without(data, [path for path in paths if path not in kept])

    ddmin(paths, lambda lists: search.pick(lists, keeping))


def leaves(data: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield each value with its path; an array is a value unless tables are in it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list) and any(isinstance(one, dict) for one in data):
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path, data


def at(data: Any, path: Keys) -> Any:
    """Return what is at a path, None if nothing is."""
    for key in path:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def replaced(data: Any, path: Keys, value: Any) -> Any:
    """Return data with a value at a path, whose last key may be new, and the first one's table.

    What does not change is shared.
    """
    key, *rest = path
    copied = list(data) if isinstance(data, list) else dict(data)
    if rest:
        inner = copied.get(key, {}) if isinstance(copied, dict) else copied[int(key)]
        value = replaced(inner, tuple(rest), value)
    copied[key] = value  # type: ignore[index]  # a list's key is an index
    return copied


def without(data: Data, paths: Iterable[Keys]) -> Data:
    """Return data without some keys, and without the tables that this leaves empty.

    A table of an array stays, though it be empty: it stands for an actor.
    """
    gone = frozenset(paths)

    def pruned(value: Any, path: Keys) -> Any:
        if isinstance(value, list):
            return [pruned(one, (*path, index)) for index, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kept = {
            key: pruned(one, (*path, key)) for key, one in value.items() if (*path, key) not in gone
        }
        return {key: one for key, one in kept.items() if one != {} or value[key] == {}}

    result: Data = pruned(data, ())
    return result
