"""Whatever a log says, as long as its records have their fields: every reader takes it."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]  # it has no types
    perfetto_trace_pb2 as protos,
)

from actors.events import EVENTS
from logs.causes import Causes
from logs.diff import compare
from logs.export.otlp import request
from logs.export.perfetto import trace
from logs.export.table import write_rows
from logs.read import Section
from logs.record import (
    DropRecord,
    EventRecord,
    FaultRecord,
    LateRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from logs.stats import Tally
from logs.story import story, summaries
from logs.words import Narrator
from scenarios.checks import CHECKS, judge
from scenarios.log_history import history_of_log
from scenarios.matchers import MESSAGES
from tests.logs.samples import SCENARIOS, header, log_of, section
from transports.envelope import Envelope

NAMES = st.sampled_from(["server", "relay", "engine", "agent", "x"])
RUN = st.sampled_from(["r", "r-1", "", "graph:external:r"])
PLAIN = st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text(max_size=5)
VALUES = st.recursive(
    RUN | PLAIN | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
FIELDS = sorted(
    {name for kind in MESSAGES.values() for name in kind.__struct_fields__}
    | {name for event in EVENTS.values() for name in event.fields}
)
TABLES = st.dictionaries(st.sampled_from(FIELDS), VALUES | RUN, max_size=4)
BODIES = VALUES | st.builds(
    lambda name, fields: {"type": name} | fields, st.sampled_from([*MESSAGES, "Hello"]), TABLES
)
COUNT = st.integers(0, 12)
ENVELOPES = st.builds(Envelope[Any], COUNT, NAMES, NAMES, COUNT, COUNT, BODIES)
COMMON = (st.just(0), st.integers(0, 10**12), NAMES, COUNT)
RECORDS = st.one_of(
    st.builds(StartRecord, *COMMON, COUNT),
    st.builds(MessageRecord, *COMMON, ENVELOPES),
    st.builds(TimerRecord, *COMMON, st.text(max_size=5) | RUN),
    st.builds(UnansweredRecord, *COMMON, COUNT),
    st.builds(LateRecord, *COMMON, ENVELOPES),
    st.builds(DropRecord, *COMMON, NAMES, ENVELOPES),
    st.builds(SendRecord, *COMMON, ENVELOPES),
    st.builds(FaultRecord, *COMMON, NAMES, st.text(max_size=5)),
    st.builds(UndoneRecord, *COMMON, st.text(max_size=5)),
    st.builds(EventRecord, *COMMON, st.sampled_from([*EVENTS, "mine"]), TABLES),
)


NAMED = sorted(
    f"{path.parent.name}/{path.stem}"
    for folder in ("published", "recommended", "chaos", "examples")
    for path in (SCENARIOS / folder).glob("*.toml")
)


@pytest.mark.parametrize("name", NAMED)
def test_every_shipped_scenario_s_log_has_its_stories_and_keeps_its_word(name: str) -> None:
    one = section(log_of(name))
    told = {summary.run: story(one.records, summary.run) for summary in summaries(one.records)}
    queued = [
        record.fields["run"]
        for record in one.records
        if isinstance(record, EventRecord) and record.event == "run.queued"
    ]
    assert set(queued) <= set(told)
    for run in queued:
        texts = [line.text for line in told[run]]
        assert any("queued it for" in text for text in texts)
        assert not [text for text in texts if "says" in text or " → " in text]  # all are ours
    read = protos.Trace.FromString(b"".join(trace(one, 0)))
    left = [flow for packet in read.packet for flow in packet.track_event.flow_ids]
    arrived = [flow for packet in read.packet for flow in packet.track_event.terminating_flow_ids]
    assert sorted(left) == sorted(arrived)
    spans = [
        span
        for resource in request(one)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert len({span["traceId"] for span in spans}) == len(told)
    cut = history_of_log(one)
    assert cut.missing == ()
    assert judge(cut.history, CHECKS) == []


@st.composite
def sections(draw: st.DrawFn) -> Section:
    """A section whose records have the right fields and say anything."""
    given = draw(st.lists(RECORDS, max_size=10))
    records = [msgspec.structs.replace(one, n=n) for n, one in enumerate(given, 1)]
    return Section(path="a", line=1, header=header(), records=list[Record](records))


@settings(max_examples=100, deadline=None)
@given(sections(), sections())
def test_every_reader_takes_it(one: Section, other: Section) -> None:
    narrator = Narrator()
    assert all(isinstance(narrator.words(record), str) for record in one.records)
    runs = summaries(one.records)
    for summary in runs:
        assert all(line.n <= len(one.records) for line in story(one.records, summary.run))
    tally = Tally()
    tally.add(one)
    assert sum(tally.stats().kinds.values()) == len(one.records)
    parting = compare(one, other).parting
    assert (parting is None) == (one.records == other.records)
    assert compare(one, one, ignore_ids=True).parting is None
    causes = Causes(one.records)
    for record in one.records:
        assert causes.chain(record.n)[-1] is record
    read = protos.Trace.FromString(b"".join(trace(one, 0)))
    begun = [
        p for p in read.packet if p.track_event.type == 1 and "run" not in p.track_event.categories
    ]
    assert len(begun) == tally.stats().turns
    assert json.loads(msgspec.json.encode(request(one)))
    write_rows(one, io.StringIO())
