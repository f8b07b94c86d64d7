"""Every mistake in a file is told once, at its own place, with the others, and with a cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.problems import ScenarioError
from tests.scenarios.loading import load, problems, told

CALLS = '[metrics.calls]\ncount = "GetGraphRun"\n'
SWEEP = '[sweep.product]\n"agent.poll" = ["every 2s", "every 5s"]\n'


def one(cases: str) -> list[tuple[str, str]]:
    """Read cases: a text, and behind an arrow what is told of it."""
    read = []
    for block in cases.strip().split("\n\n"):
        text, _, expected = block.partition("\n=> ")
        read.append((text, expected.replace("\n   ", " ")))
    return read


TABLES = r"""
foo = 1
=> 1 foo: unknown key "foo"

[relays]
poll = "5s"
=> 1 relays: unknown key "relays" / did you mean "relay"?

replications = 5
=> 1 replications: unknown key "replications" / "replications" is a key of [run]

[relay]
pol = "5s"
=> 2 pol: unknown key "pol" in [relay] / did you mean "poll"?

[relay]
duration = "5s"
=> 2 duration: unknown key "duration" in [relay] / "duration" is a key of [engine]

[run]
poll = "5s"
=> 2 poll: unknown key "poll" in [run] / "poll" is a key of [relay] and [agent]

[relay]
poll = 5
=> 2 5: "poll": 5 has no unit: write "5s" for seconds

[relay]
poll = "-5s"
=> 2 "-5s": "poll": "-5s" is not a duration: it can't be negative, write one as in "20s"

relay = 5
=> 1 5: "relay" must be a table, not an integer

relay = []
=> 1 []: a scenario has at least one relay

[server]
count = 2
=> 1 server: a scenario has one server, not 2

[relay]
count = 2
[engine]
count = 3
=> 3 engine: each relay has one engine: there are 2 relays and 3 engines
   / write one [engine] for all, or as many as relays, in their order

[run]
replications = 0
=> 2 0: "replications" must be at least 1

[run]
replications = 1.5
=> 2 1.5: "replications" must be an integer, not a float

[run]
replications = 20000000
=> 2 20000000: "replications" must be at most 10000000

[run]
seed = -1
=> 2 -1: "seed" must be at least 0

[run]
until = "run.terminl"
=> 2 "run.terminl": "run.terminl" is neither "done", nor an event, nor a time
   / did you mean "run.terminal"?

[run]
until = "5"
=> 2 "5": 5 has no unit: write "5s" for seconds

[run]
until = "-5s"
=> 2 "-5s": "-5s" is not a duration: it can't be negative, write one as in "20s"

[run]
until = []
=> 2 []: nothing would end a replication / write "done"

[run]
until = ["done", "x"]
=> 2 "x": "x" is neither "done", nor an event, nor a time / as in "run.terminal" or "1h"

[run]
limit = "5s"
until = ["done", "5s"]
=> 3 "5s": a replication can't last 5s: its limit is 5s / set limit in [run] to more
"""

ACTORS = r"""
[[agent]]
name = "a b"
=> 2 "a b": "name" must be letters, digits, hyphens and underscores, 64 characters at most

[[agent]]
name = "a"
[[agent]]
name = "a"
=> 4 "a": two actors are called "a" / give one of them another name

[[agent]]
name = "relay"
=> 2 "relay": two actors are called "relay" / give one of them another name

[agent]
session = "other"
=> 2 "other": there is no session "other" / there is demo

[[agent]]
[[agent]]
session = "demoo"
=> 3 "demoo": there is no session "demoo" / did you mean "demo"?

[workload]
session = "dmo"
[[agent]]
[[agent]]
=> 2 "dmo": there is no session "dmo" / did you mean "demo"?

[[agent]]
leak_to = "agent-3"
[[agent]]
=> 2 "agent-3": there is no agent "agent-3" / did you mean "agent-1"?

session = []
=> 1 []: agent has no session to run / add a table [[session]]

[[session]]
name = "a"
[[session]]
name = "a"
=> 4 "a": two sessions are called "a"

[[session]]
name = "a"
relay = "relay-2"
=> 3 "relay-2": there is no relay "relay-2" / did you mean "relay"?

[session]
nam = "a"
=> 2 nam: unknown key "nam" in [session] / did you mean "name"?

session = 5
=> 1 5: "session" must be a table, not an integer

[[step]]
at = "5s"
do = "unshare"
session = "x"
=> 4 "x": there is no session "x" / there is demo

[[step]]
at = "5s"
do = "shares"
=> 3 "shares": "do" must be "share", "unshare", "rename", "enable" or "disable"
   / did you mean "share"?

[workload]
runs = 0
[[step]]
at = "5s"
do = "share"
[session]
name = "only"
relay = "rely"
=> 8 "rely": there is no relay "rely" / did you mean "relay"?

[workload]
runz = 3
=> 2 runz: unknown key "runz" in [workload] / did you mean "runs"?

[workload]
start = 5
[[agent]]
[[agent]]
=> 2 5: "start": 5 has no unit: write "5s" for seconds

[workload]
submit = "at onces"
=> 2 "at onces": "submit" must be "at once" or "in turn" / did you mean "at once"?

[[link]]
from = "x*"
latency = "5ms"
=> 2 "x*": there is no actor "x*" / there is server, relay, engine, agent and owner

[link]
latency = "5mss"
=> 2 "5mss": "latency": "5mss" has the unknown unit mss:
   write "5s" (units are us, ms, s, m, h, d)

[[fault]]
kind = "dropp"
=> 2 "dropp": there is no kind of fault "dropp" / did you mean "drop"?

[[fault]]
probability = 0.5
=> 1 [[fault]]: [[fault]] needs the key "kind" / there is drop, delay, duplicate,
   partition, crash, kill, suspend, disk_full and 18 more

[[fault]]
kind = "drop"
message = "GetGraphRunn"
=> 3 "GetGraphRunn": there is no message "GetGraphRunn" / did you mean "GetGraphRun"?

[[fault]]
kind = "drop"
to = "agent-*"
=> 3 "agent-*": there is no actor "agent-*" / did you mean "agent"?

[[fault]]
kind = "drop"
probability = 1.5
=> 3 1.5: "probability" must be at most 1

[[fault]]
kind = "drop"
name = "a"
[[fault]]
kind = "drop"
name = "a"
=> 6 "a": two faults are called "a"

fault = [5]
=> 1 5: element 1 of "fault" must be a table, not an integer
"""

RESULTS = r"""
[metrics.m]
count = "GetGraphRunn"
=> 2 "GetGraphRunn": no event or message is called "GetGraphRunn" / did you mean "GetGraphRun"?

[metrics.m]
count = "Sync"
=> 2 "Sync": Sync belongs to no run / add per = "replication"

[metrics.m]
from = "run.queud"
to = "run.terminal"
=> 2 "run.queud": no event or message is called "run.queud" / did you mean "run.queued"?

[metrics.m]
from = "run.queued"
to = "run.terminal[status=complete]"
=> 3 "run.terminal[status=complete]": run.terminal.status is never "complete"
   / did you mean "completed"?

[metrics.m]
from = "start"
to = "run.terminal"
=> 2 "start": "start" belongs to no run / add per = "replication"

[metrics.m]
from = "run.queued"
=> 1 [metrics.m]: [metrics.m]: a time has both from and to

[metrics.m]
value = "run.terminal.status"
=> 2 "run.terminal.status": run.terminal.status is no number
   / count it, as in count = "run.terminal[status=...]"

[metrics."a.b"]
count = "GetGraphRun"
=> 1 "a.b": "a.b" can't be the name of a metric
   / letters, digits, _ and -, and no digit in front

[metrics]
count = "GetGraphRun"
=> 2 count: "count" is no metric / write it below [metrics.NAME]

[[table]]
columns = ["call.mean"]
=> 2 "call.mean": no metric is called "call" / define it in a table [metrics.NAME]

[table]
columns = []
=> 2 []: "columns" must have at least 1 element, not 0

[[expect]]
that = "calls.mean equals 5"
=> 2 calls: no metric is called "calls" / define it in a table [metrics.NAME]
"""

FIGURES = r"""
[[table]]
columns = ["call.mean"]
=> 4 "call.mean": no metric is called "call" / did you mean "calls"?

[[table]]
columns = ["calls.mean", "calls.men"]
=> 4 "calls.men": there is no statistic "men": did you mean "mean"?

[[table]]
columns = ["calls"]
=> 4 "calls": "calls" names no statistic / write "calls.mean"

[[table]]
columns = ["calls.mean[every 2s]"]
=> 4 "calls.mean[every 2s]": a column has every cell, each in its row:
   "calls.mean[every 2s]" names one / leave out the brackets

[table]
columns = ["calls.mean"]
rows = "agent.poll"
=> 5 "agent.poll": "agent.poll" is not swept / the file sweeps nothing

[[expect]]
that = "calls.mean equal 5"
=> 4 equal: "equal" says nothing that can be judged: did you mean "equals"?

[[expect]]
that = "calls.meen equals 5"
=> 4 meen: there is no statistic "meen": did you mean "mean"?

[[expect]]
that = "calls.mean < 2 * callz.mean"
=> 4 callz: no metric is called "callz" / did you mean "calls"?

[[expect]]
that = "calls.mean[every 2s] equals 5"
=> 4 every 2s: no cell is called [every 2s] / nothing is swept: leave out the brackets

[[expect]]
that = "calls.\u006dean equal 5"
=> 4 "calls.\u006dean equal 5": "equal" says nothing that can be judged: did you mean "equals"?
"""

CELLS = r"""
[[table]]
columns = ["calls.mean"]
rows = "agent.pol"
=> 7 "agent.pol": "agent.pol" is not swept / did you mean "agent.poll"?

[[table]]
columns = ["calls.mean"]
rows = ["agent.poll", "relay.poll"]
=> 7 "relay.poll": "relay.poll" is not swept / the file sweeps agent.poll

[[expect]]
that = "calls.mean[every 3s] equals 5"
=> 6 every 3s: no cell is called [every 3s] / did you mean [every 2s]?

[[expect]]
that = "calls.mean[zzz] equals 5"
=> 6 zzz: no cell is called [zzz] / the first is [agent.poll=every 2s]
"""


@pytest.mark.parametrize(("text", "expected"), one(TABLES) + one(ACTORS) + one(RESULTS))
def test_a_mistake_is_told_once_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert told(tmp_path, text) == [expected]


@pytest.mark.parametrize(("text", "expected"), one(FIGURES))
def test_a_figure_that_nothing_has(tmp_path: Path, text: str, expected: str) -> None:
    assert told(tmp_path, CALLS + text) == [expected]


@pytest.mark.parametrize(("text", "expected"), one(CELLS))
def test_a_cell_that_nothing_sweeps(tmp_path: Path, text: str, expected: str) -> None:
    assert told(tmp_path, CALLS + SWEEP + text) == [expected]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            'schema = 2\nname = "x"\nfoo = 1',
            ["-1 2: this pullcord reads schema 1, not 2 / update pullcord"],
        ),
        (
            'schema = 0\nname = "x"',
            ["-1 0: this pullcord reads schema 1, not 0 / write schema = 1"],
        ),
        (
            'name = "x"',
            ['-1 n: the file needs the key "schema" / write schema = 1'],
        ),
        (
            'schema = "1"\nname = "x"',
            ['-1 "1": "schema" must be an integer, not a string / write it without quotes: 1'],
        ),
        (
            'schema = 1\nname = "X Y"',
            [
                (
                    '0 "X Y": "name" must be lower-case letters, digits and hyphens, '
                    "64 characters at most"
                )
            ],
        ),
        (
            'schema = 1\nname = "x"\nprofile = "recomended"',
            [
                (
                    '1 "recomended": "profile" must be "published" or "recommended" '
                    '/ did you mean "recommended"?'
                )
            ],
        ),
    ],
)
def test_the_top_of_the_file(tmp_path: Path, head: str, expected: list[str]) -> None:
    assert told(tmp_path, "", head=head) == expected


BROKEN = """
foo = 1
[relay]
pol = "x"
[workload]
runs = -1
[[agent]]
[[agent]]
poll = "x"
[[step]]
at = "1s"
do = "share"
session = "q"
[[link]]
latency = "x"
[[fault]]
kind = "x"
[metrics.m]
count = "x"
[[table]]
columns = ["q.mean"]
[[expect]]
that = "m.mean is 5"
[sweep.product]
"relay.polls" = []
"agent.runs" = [1]
[[sweep.exclude]]
"agent.run" = 1
"""


def test_all_mistakes_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = problems(tmp_path, BROKEN)
    assert [one.line - 2 for one in found] == [2, 4, 6, 9, 13, 15, 17, 19, 21, 23, 25, 28]


def test_mistakes_are_shown_in_80_columns(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as error:
        load(tmp_path, '[[link]]\nfrom = "x*"\nlatency = "5ms"\n')
    assert str(error.value).replace(f"{tmp_path}/", "") == (
        'tried.toml:4:8: there is no actor "x*"\n'
        '  4 | from = "x*"\n'
        "    |        ^^^^\n"
        "help: there is server, relay, engine, agent and owner"
    )


def test_a_mistake_in_many_cells_is_told_once(tmp_path: Path) -> None:
    text = '[sweep.product]\n"agent.runs" = [1, 2, 3]\n"relay.poll" = ["1s", "2", "3s"]\n'
    assert told(tmp_path, text + '[engine]\nstop = "20"\n') == [
        '3 "2": "poll": 2 has no unit: write "2s" for seconds',
        '5 "20": "stop": 20 has no unit: write "20s" for seconds',
    ]


def test_no_follow_ups_of_a_broken_table(tmp_path: Path) -> None:
    session = '[[session]]\nnam = "a"\n[[step]]\nat = "1s"\ndo = "share"\nsession = "a"\n'
    assert len(told(tmp_path, session + '[agent]\nsession = "a"\n')) == 1
    relay = '[relay]\ncount = "2"\n[[session]]\nname = "a"\nrelay = "relay-2"\n[engine]\ncount=2\n'
    assert len(told(tmp_path, relay + '[[link]]\nfrom = "relay-2"\nlatency = "1s"\n')) == 1
    sweep = '[sweep.product]\n"agent.runs" = "1"\n[[sweep.exclude]]\n"agent.runs" = 1\n'
    assert len(told(tmp_path, sweep + CALLS + '[expect]\nthat = "calls.mean[1] equals 1"\n')) == 1
