"""Every name that a scenario file may refer to, read from the code that gives it its meaning.

The keys of the file of `pullcord graph run --tools` are among them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from actors.config import describe
from actors.events import EVENTS
from actors.graph_engine import GraphEngine
from scenarios.cast import BUILT_IN, config_class
from scenarios.checks import CHECKS, sentence_of
from scenarios.fields import (
    Key,
    fault_kind,
    keys_of,
    members,
    toml_value,
    type_words,
    workload_keys,
)
from scenarios.matchers import MESSAGES
from scenarios.problems import Problem, ScenarioError, quote, suggest
from scenarios.spec import (
    FAULTS,
    GRAPH_USE,
    PROFILES,
    ActorTable,
    ExpectTable,
    LinkTable,
    MetricTable,
    RunTable,
    SessionTable,
    StepTable,
    TableTable,
    TopTable,
)
from scenarios.tool_tables import TABLES
from transports.faults.fault import Fault

WIDTH_COLUMNS: Final = 80
NAME_COLUMNS: Final = 24  # a longer name has a line of its own

Group = Literal[
    "keys", "events", "messages", "faults", "checks", "results", "values", "settings"
]  # fmt: skip

ACTORS: Final[Mapping[str, str]] = {
    "server": "queues runs, hands out tickets, lets each run start once",
    "relay": "polls the server from the desktop, and brings back every result",
    "engine": "executes Graphs on the relay's desktop",
    "agent": "queues runs, and polls its tickets",
    "owner": "shares, unshares and renames sessions, by the steps of [[step]]",
}
GRAPH_TITLE: Final = f'use = "{GRAPH_USE}" in [engine]'
GRAPH_MEANING: Final = "runs JavaScript Graphs, and has a model answer their agents"
SWEEP: Final[Mapping[str, tuple[str, str]]] = {
    "product": ("table of lists", 'every combination of the values: "agent.poll" = ["every 2s"]'),
    "zip": ("table of lists", "the first values of all lists together, then the second, and so on"),
    "exclude": ("list of tables", "combinations to leave out"),
}
STATISTICS: Final[Mapping[str, str]] = {
    "mean": "the sum over the number of values",
    "median": "p50",
    "min": "the smallest value",
    "max": "the largest value",
    "sum": "the sum of the values",
    "count": "how many values there are",
    "sd": "the standard deviation, over n - 1",
    "p95": "the value that 95 % don't exceed; likewise p5, p99.9 and every other",
}
EXPECTATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "equals": ("X equals E", "an exact value from theory, at most 3.3 standard errors away"),
    "agrees with": ("X agrees with P", "a figure published from a sample of the same size"),
    "within": ("X within A +/- T", "the 95 % interval lies in this band"),
    "<": ("X < B, X < k * Y", "the 95 % interval, or that of the difference, lies below"),
    "<=": ("X <= B, X <= k * Y", "likewise, or at it"),
    ">": ("X > B, X > k * Y", "the 95 % interval, or that of the difference, lies above"),
    ">=": ("X >= B, X >= k * Y", "likewise, or at it"),
}
DISTRIBUTIONS: Final[Mapping[str, str]] = {
    "25s": "always 25 s",
    "uniform(0s, 40s)": "anything between the two, evenly",
    "triangular(5s, 20s, 1m)": "between first and last, most often near the middle one",
    "exponential(mean=10s)": "the time to the next of events that come at random",
    "normal(mean=1m, sd=5s)": "the bell curve",
    "lognormal(median=1m, sigma=0.8, min=5s)": "run times: half below the median, a long tail",
    "pareto(scale=1s, shape=1.5, max=1h)": "never below the scale, a very long tail",
    "weibull(scale=10s, shape=2)": "life times; shape 1 is exponential",
    "choice(1s, 1s, 9s)": "one of the list, evenly",
}
POLL_PLANS: Final[Mapping[str, str]] = {
    "never": "doesn't poll",
    "every 2s": "2, 2, 2 ... s",
    "backoff 2s x2 max 30s": "2, 4, 8, 16, 30, 30 ... s",
    "wait 20s then every 10s": "20, 10, 10 ... s",
    "after 5s, 10s, 30s": "5, 10, 30, 30 ... s",
    "hinted": "what the server last told, else as wait 20s then every 10s",
    "hinted else every 10s": "what the server last told, else the plan behind else",
}
MATCHERS: Final[Mapping[str, str]] = {
    "run.terminal": "an event",
    "GetGraphRun": "a message; a count has the dropped ones too",
    "run.terminal[status=failed]": "with a filter; several are parted by commas",
    "run.terminal.chars": "with a field, for value",
}


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One name. `type` is in a few words, `takes` is a sentence with units and an example.

    `default` is as TOML writes it, empty for none; `fields` are an event's or a message's.
    """

    name: str
    meaning: str
    type: str = ""
    takes: str = ""
    default: str = ""
    required: bool = False
    fields: tuple[str, ...] = ()


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Names that belong together: a table of the file, or all events."""

    title: str
    group: Group
    meaning: str
    entries: tuple[Entry, ...]


def names(word: str | None = None) -> list[Section]:
    """Return every section; with a word those whose title has it, of the others such entries.

    When no title and no name has the word, entries whose meaning has it are returned. ScenarioError
    if there is none either.
    """
    sections = [*_tables(), *_said(), *_results(), *_values(), *_settings()]
    if word is None:
        return sections
    found = _narrowed(sections, word, lambda entry: entry.name)
    found = found or _narrowed(sections, word, lambda entry: entry.meaning)
    if not found:
        known = [entry.name for section in sections for entry in section.entries]
        near = suggest(word, known)
        cure = f"did you mean {quote(near)}?" if near else "`pullcord names` lists them all"
        message = f"nothing is called {quote(word)}"
        raise ScenarioError([Problem(path="pullcord names", message=message, cure=cure)])
    return found


def _narrowed(sections: list[Section], word: str, text: Callable[[Entry], str]) -> list[Section]:
    wanted = word.casefold()
    found = []
    for section in sections:
        entries = section.entries
        if wanted not in section.title.casefold():
            entries = tuple(entry for entry in entries if wanted in text(entry).casefold())
        if entries:
            found.append(msgspec.structs.replace(section, entries=entries))
    return found


# The sections


def _tables() -> Iterator[Section]:
    """The tables of a file, in the order in which one writes them."""
    yield _table("the top of the file", "what the scenario is", keys_of(TopTable))
    yield _table("[run]", "how often, from which seed, and when it ends", keys_of(RunTable))
    for kind, actor in BUILT_IN.items():
        yield _table(f"[{kind}]", ACTORS[kind], keys_of(config_class(actor)))
        if kind == "engine":
            yield _table(GRAPH_TITLE, GRAPH_MEANING, keys_of(GraphEngine.Config))
    several = "in each of these tables, and in [[relay]] and so on for several that differ"
    yield _table("every actor", several, keys_of(ActorTable))
    yield _table("[workload]", "what all agents queue", workload_keys())
    yield _table("[[session]]", "a saved Graph on a desktop", keys_of(SessionTable))
    yield _table("[[step]]", "what the owner of a desktop does", keys_of(StepTable))
    yield _table("[[link]]", "how long messages take", keys_of(LinkTable))
    fault = "what goes wrong, where and when; nth, every and probability exclude each other"
    yield _table("[[fault]]", fault, (fault_kind(), *keys_of(Fault)))
    sweep = "runs a cell for each value of TABLE.KEY, of NAME.KEY, or of session.NAME.KEY"
    yield Section(
        title="[sweep]",
        group="keys",
        meaning=sweep,
        entries=tuple(
            Entry(name=name, type=kind, meaning=meaning) for name, (kind, meaning) in SWEEP.items()
        ),
    )
    metric = "a count, a value, or a time from one thing to another"
    yield _table("[metrics.NAME]", metric, keys_of(MetricTable))
    yield _table("[[table]]", "what is printed of the results", keys_of(TableTable))
    yield _table("[[expect]]", "what must hold", keys_of(ExpectTable))


def _table(title: str, meaning: str, keys: tuple[Key, ...], *, group: Group = "keys") -> Section:
    entries = tuple(
        Entry(
            name=key.name,
            meaning=key.meaning,
            type=type_words(key.kind, key.limits),
            takes=" or ".join(_takes(kind) for kind in members(key.kind)),
            default=toml_value(key.default),
            required=key.required,
        )
        for key in keys
    )
    return Section(title=title, group=group, meaning=meaning, entries=entries)


def _takes(kind: Any) -> str:
    try:
        return describe(kind)
    except NotImplementedError:
        return type_words(kind)


def _said() -> Iterator[Section]:
    """Events, messages, faults and checks."""
    yield Section(
        title="events",
        group="events",
        meaning="for metrics and [run] until",
        entries=tuple(
            Entry(name=name, meaning=event.meaning, fields=event.fields)
            for name, event in EVENTS.items()
        ),
    )
    yield Section(
        title="messages",
        group="messages",
        meaning="for metrics and faults",
        entries=tuple(
            Entry(name=name, meaning=_docstring(kind), fields=kind.__struct_fields__)
            for name, kind in MESSAGES.items()
        ),
    )
    yield Section(
        title="faults",
        group="faults",
        meaning="kinds of [[fault]], and the keys that only this kind has",
        entries=tuple(
            Entry(name=name, meaning=_docstring(kind), fields=_own_keys(kind))
            for name, kind in FAULTS.items()
        ),
    )
    yield Section(
        title="checks",
        group="checks",
        meaning="for [run] check: what must hold in every replication",
        entries=tuple(
            Entry(name=name, meaning=sentence_of(check)) for name, check in CHECKS.items()
        ),
    )


def _docstring(kind: type[Any]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _own_keys(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    common = {key.name for key in keys_of(Fault)}
    return tuple(key.name for key in keys_of(kind) if key.name not in common)


def _results() -> Iterator[Section]:
    """What is said of results, and the profiles."""
    yield Section(
        title="statistics",
        group="results",
        meaning="of a metric: calls.mean, or calls.mean[every 2s] in one cell",
        entries=tuple(Entry(name=name, meaning=text) for name, text in STATISTICS.items()),
    )
    yield Section(
        title="expectations",
        group="results",
        meaning="X and Y are statistics, the rest numbers or durations",
        entries=tuple(Entry(name=form, meaning=meaning) for form, meaning in EXPECTATIONS.values()),
    )
    yield Section(
        title="profiles",
        group="results",
        meaning="published changes nothing; recommended has these defaults",
        entries=tuple(
            Entry(
                name=f"{kind}.{key}",
                meaning=f"{toml_value(value)}, in the place of {_default(kind, key)}",
                default=toml_value(value),
            )
            for kind, values in PROFILES["recommended"].items()
            for key, value in values.items()
        ),
    )


def _default(kind: Any, name: str) -> str:
    keys = keys_of(config_class(BUILT_IN[kind]))
    return next(toml_value(key.default) for key in keys if key.name == name)


def _values() -> Iterator[Section]:
    """The small languages, by example."""
    yield _examples("distributions", "with a key's own unit; min= and max= clamp", DISTRIBUTIONS)
    yield _examples("poll plans", "how long an agent waits before each poll", POLL_PLANS)
    yield _examples("matchers", "what a metric looks for", MATCHERS)


def _settings() -> Iterator[Section]:
    """The tables of the file of --tools, which is no scenario."""
    for title, (table, meaning) in TABLES.items():
        yield _table(f"[{title}] of --tools", meaning, keys_of(table), group="settings")


def _examples(title: str, meaning: str, texts: Mapping[str, str]) -> Section:
    entries = tuple(Entry(name=text, meaning=said) for text, said in texts.items())
    return Section(title=title, group="values", meaning=meaning, entries=entries)


# As text and as data


def render(word: str | None = None, form: Literal["text", "json"] = "text") -> str:
    """Return the sections of `names(word)`, in 80 columns or as JSON, with a final newline."""
    sections = names(word)
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(sections)).decode() + "\n"
    return "\n\n".join("\n".join(_lines(section)) for section in sections) + "\n"


def _lines(section: Section) -> Iterator[str]:
    heading = f"{section.title}: {section.meaning}"
    yield from textwrap.wrap(heading, WIDTH_COLUMNS, subsequent_indent="    ")
    longest = max(len(entry.name) for entry in section.entries)
    column = min(longest, NAME_COLUMNS) + 4
    for entry in section.entries:
        head = f"  {entry.name}".ljust(column)
        if len(head) > column:
            yield head
            head = " " * column
        for text in (entry.meaning, _details(entry)):
            if text:
                yield from _wrapped(head, text)
                head = " " * column


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH_COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )


def _details(entry: Entry) -> str:
    """Return an entry's second line: its type and default, or its fields."""
    if entry.fields:
        return f"[{', '.join(entry.fields)}]"
    if not entry.type:
        return ""
    if entry.required:
        return f"{entry.type}; required"
    return f"{entry.type}; default {entry.default}" if entry.default else entry.type
