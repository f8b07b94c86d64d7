"""The language of --where: what is wanted, and what is refused with a cure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import messages
from logs.record import EventRecord, type_of
from logs.runs import Runs
from logs.words import kind_of
from scenarios.log_where import is_run, parse_where
from scenarios.problems import ScenarioError
from tests.logs.samples import OUTBOX_RUN, Made, log_of, section

RECORDS = section(log_of("published/outbox")).records
RUNS = Runs(RECORDS)


def wanted(*expressions: str, begin: str | None = None, end: str | None = None) -> list[int]:
    """The numbers of the records that pass."""
    where = parse_where(expressions, begin=begin, end=end)
    return [record.n for record in RECORDS if where.accepts(record, RUNS)]


def numbers(test: object) -> list[int]:
    return [record.n for record in RECORDS if test(record)]  # type: ignore[operator]  # a lambda


@pytest.mark.parametrize(
    ("expression", "test"),
    [
        ("actor=relay", lambda r: r.actor == "relay"),
        ("actor = rel*", lambda r: r.actor == "relay"),
        ("actor=relay|agent", lambda r: r.actor in ("relay", "agent")),
        ("actor!=relay", lambda r: r.actor != "relay"),
        ("kind=drop", lambda r: kind_of(r) == "drop"),
        ("kind==drop|unanswered", lambda r: kind_of(r) in ("drop", "unanswered")),
        ("event=run.*", lambda r: getattr(r, "event", "").startswith("run.")),
        ("event=run.terminal", lambda r: getattr(r, "event", "") == "run.terminal"),
        ("t>=30s", lambda r: r.t >= 30_000_000),
        ("t<2m", lambda r: r.t < 120_000_000),
        ("t=45s", lambda r: r.t == 45_000_000),
        ("n>200", lambda r: r.n > 200),
        ("cause=0", lambda r: r.cause == 0),
        ("message=Complete", lambda r: hasattr(r, "envelope")
         and type_of(r.envelope.body) == "Complete"),
        ("message=Fleet*", lambda r: hasattr(r, "envelope")
         and type_of(r.envelope.body).startswith("Fleet")),
        ("message=GraphRun[status=completed]", lambda r: hasattr(r, "envelope")
         and r.envelope.body.get("status") == "completed"
         and type_of(r.envelope.body) == "GraphRun"),
        ("message=GraphRun[status=completed, replayed=false]|Accepted",
         lambda r: hasattr(r, "envelope") and (type_of(r.envelope.body) == "Accepted"
         or (type_of(r.envelope.body) == "GraphRun"
             and r.envelope.body["status"] == "completed"))),
        ("message=Complete[completion.status=completed]", lambda r: hasattr(r, "envelope")
         and type_of(r.envelope.body) == "Complete"),
        ("message=Commands[commands.delivery=1]", lambda r: hasattr(r, "envelope")
         and type_of(r.envelope.body) == "Commands" and r.envelope.body["commands"]),
        ("fields.status=completed", lambda r: isinstance(r, EventRecord)
         and r.fields.get("status") == "completed"),
        ("body.go=true", lambda r: hasattr(r, "envelope") and r.envelope.body.get("go") is True),
        ("total_tokens>=1200", lambda r: hasattr(r, "envelope")
         and r.envelope.body.get("total_tokens", 0) >= 1200),
        ("source=engine", lambda r: hasattr(r, "envelope") and r.envelope.source == "engine"),
        ("envelope.target=engine", lambda r: hasattr(r, "envelope")
         and r.envelope.target == "engine"),
        ("fault=drop-1", lambda r: getattr(r, "fault", "") == "drop-1"),
        ("timer=end:*", lambda r: getattr(r, "timer", "").startswith("end:")),
        ("delivery=1", lambda r: (isinstance(r, EventRecord) and r.fields.get("delivery") == 1)
         or (hasattr(r, "envelope") and r.envelope.body.get("delivery") == 1)),
        (f"run={OUTBOX_RUN[:8]}", lambda r: OUTBOX_RUN in RUNS.of(r)),
        ("run=3212…000000000001", lambda r: OUTBOX_RUN in RUNS.of(r)),
        ("run!=3212*", lambda r: OUTBOX_RUN not in RUNS.of(r)),
    ],
)  # fmt: skip
def test_what_is_wanted(expression: str, test: object) -> None:
    expected = numbers(test)
    assert expected
    assert wanted(expression) == expected


def test_all_expressions_must_hold_and_times_bound_them() -> None:
    both = wanted("actor=relay", "kind=timer")
    assert both == numbers(lambda r: r.actor == "relay" and kind_of(r) == "timer")
    assert wanted("kind=timer", begin="20s", end="30s") == numbers(
        lambda r: kind_of(r) == "timer" and 20_000_000 <= r.t <= 30_000_000
    )
    assert wanted() == [record.n for record in RECORDS]


@pytest.mark.parametrize(
    ("expression", "told", "cure"),
    [
        ("kind=drp", 'no kind is called "drp"', 'did you mean "drop"?'),
        ("kind=zebra", 'no kind is called "zebra"', "there are start, message, "),
        ("event=run.teminal", 'no event is called "run.teminal"', 'did you mean "run.terminal"?'),
        ("event=GraphRun", "GraphRun is a message", "write message=GraphRun"),
        ("message=GraphRn", 'no message is called "GraphRn"', 'did you mean "GraphRun"?'),
        ("message=run.terminal", "run.terminal is an event", "write event=run.terminal"),
        ("message=GraphRun[stats=x]", 'GraphRun has no field "stats"', 'did you mean "status"?'),
        ("message=GraphRun[status=complete]", 'is never "complete"', 'mean "completed"?'),
        ("message=GraphRun[status]", "is no filter", "write [status=completed]"),
        ("message=Hello[x]", '"x" is no filter', "write [status=completed]"),
        ("message=a b", "is no message", "write message="),
        ("actr=relay", 'no field is called "actr"', 'did you mean "actor"?'),
        ("t>30", "30 has no unit", 'write "30s" for seconds'),
        ("t>soon", "is not a duration", "write a number and a unit"),
        ("n>many", 'n is a whole number, not "many"', "write n>100"),
        ("run>3", "run has no order", "write run=3 or run!=3"),
        ("tokens>many", '"many" is no number', "write tokens>100"),
        ("relay", "this is no condition", "write actor=relay"),
        ("", "this is no condition", "write actor=relay"),
        ("actor=", "actor is compared with nothing", "write actor=relay"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_a_cure(
    expression: str, told: str, cure: str
) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_where([expression])
    [problem] = raised.value.problems
    assert problem.path == f"--where {expression}"
    assert told in problem.message
    assert cure in (problem.cure or "")


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_where(["kind=drp", "actor=ok", "t>1"], begin="5", end="x")
    assert [problem.path for problem in raised.value.problems] == [
        "--from", "--to", "--where kind=drp", "--where t>1"
    ]  # fmt: skip


class Hello(messages.Message, frozen=True, kw_only=True):
    """A user's own message."""

    colour: str


def test_names_that_are_like_none_of_ours_may_be_a_user_s_own() -> None:
    made = Made()
    made.tell.message(0, made.envelope("a", "b", Hello(colour="red")))
    made.tell.event(0, "a", 0, "mine.said", {"colour": "red", "list": [{"deep": 5}]})
    records = made.records()
    for expression, expected in (
        ("message=Hello[colour=red]", [1]),
        ("message=Hello[colour=blue]", []),
        ("event=mine.said", [2]),
        ("colour=red", [1, 2]),
        ("colour!=red", []),
        ("colour!=blue", [1, 2]),
        ("fields.list.deep=5", [2]),
        ("fields.list.deep<5", []),
        ("body.statsu=1", []),
    ):
        where = parse_where([expression])
        assert [record.n for record in records if where.accepts(record)] == expected


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        where = parse_where([text])
    except ScenarioError as error:
        assert error.problems[0].path.startswith("--where")  # noqa: PT017  either is right
    else:
        for record in RECORDS[:60]:
            where.accepts(record, RUNS)


def test_a_run_is_named_by_either_end_or_as_it_is_shown() -> None:
    assert is_run(OUTBOX_RUN, "32128a12")
    assert is_run(OUTBOX_RUN, "0001")
    assert is_run(OUTBOX_RUN, "3212…000000000001")
    assert not is_run(OUTBOX_RUN, "2128")


ONE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("trace=4bf92f", [1, 2, 4]),
        ("trace=0e4736", [1, 2, 4]),
        ("trace=4bf9*4736", [1, 2, 4]),
        ("trace=4bf92f3577b34da6a3ce929d0e0e4736", [1, 2, 4]),
        (f"trace={ONE}", [1, 2, 4]),
        (f"trace={OTHER}", [3]),
        ("trace=9d0", []),
        ("trace!=4bf92f", [3, 5]),
        (f"traceparent={ONE}", [1, 4]),
        ("traceparent=00-0af7*", [3]),
        (f"traceparent!={ONE}", [3, 5]),
    ],
)
def test_a_trace_has_its_messages_and_what_concerns_its_runs(
    expression: str, found: list[int]
) -> None:
    made = Made()
    body = {"type": "GetGraphRun", "command_id": "r1"}
    turn = made.tell.message(0, made.envelope("agent", "server", body, traceparent=ONE))
    made.tell.event(0, "server", turn, "run.queued", {"run": "r1"})
    made.tell.message(0, made.envelope("a", "b", {"type": "Noted"}, traceparent=OTHER))
    made.tell.message(0, made.envelope("a", "b", {"type": "Noted"}, traceparent=ONE))
    made.tell.message(0, made.envelope("a", "b", {"type": "Noted"}))
    records = made.records()
    where = parse_where([expression])
    assert [one.n for one in records if where.accepts(one, Runs(records))] == found


def test_a_trace_has_no_order() -> None:
    with pytest.raises(ScenarioError, match="trace has no order"):
        parse_where(["trace>4"])
