"""Logs in the formats of other tools, read back by those tools' own readers where there are any."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from struct import unpack
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]  # it has no types
    perfetto_trace_pb2 as protos,
)

from logs.export import protobuf
from logs.export.lnav import NAME, SAMPLE, SHOWN, definition
from logs.export.otlp import request, trace_id
from logs.export.perfetto import trace
from logs.export.table import COLUMNS, write_head, write_rows
from logs.read import Section
from logs.record import KINDS, DropRecord, MessageRecord, SendRecord, type_of
from logs.story import summaries
from tests.logs.samples import OUTBOX_RUN, Made, log_of, section

LOGS = ("published/outbox", "chaos/agent_dies", "chaos/swapping", "published/cancel")
BEGIN, END, INSTANT = 1, 2, 3


# The wire format


@given(st.integers(0, (1 << 64) - 1))
def test_a_varint_is_read_back_by_its_rule(number: int) -> None:
    data = protobuf.varint(number)
    assert all(byte & 0x80 for byte in data[:-1])
    assert not data[-1] & 0x80
    assert sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(data)) == number


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False), st.text())
def test_every_field_is_read_back_by_protobuf_itself(
    number: int, amount: float, words: str
) -> None:
    content = protobuf.text(10, words) + protobuf.integer(4, number)
    read = protos.DebugAnnotation.FromString(content)
    assert (read.name, read.int_value) == (words.encode("utf-8", "replace").decode(), number)
    assert protos.DebugAnnotation.FromString(protobuf.double(5, amount)).double_value == amount
    fixed = protos.TrackEvent.FromString(protobuf.fixed64(47, 7) + protobuf.fixed64(47, 1 << 63))
    assert list(fixed.flow_ids) == [7, 1 << 63]
    assert unpack("<Q", protobuf.fixed64(1, 5)[1:]) == (5,)


# Perfetto


def read_trace(*sections: Section) -> Any:
    packets = [packet for number, one in enumerate(sections) for packet in trace(one, number)]
    return protos.Trace.FromString(b"".join(packets))


def events(read: Any, kind: int) -> list[Any]:
    """The packets with an event of a kind, but for those of the runs' own tracks."""
    runs = run_tracks(read)
    return [
        packet
        for packet in read.packet
        if packet.HasField("track_event") and packet.track_event.type == kind
        if packet.track_event.track_uuid not in runs
    ]


def run_tracks(read: Any) -> dict[int, str]:
    """The tracks of runs, with the runs' ids."""
    described = [p.track_descriptor for p in read.packet if p.HasField("track_descriptor")]
    return {
        track.uuid: track.name.removeprefix("run ")
        for track in described
        if track.name.startswith("run ")
    }


def arguments(event: Any) -> dict[str, Any]:
    return {one.name: one for one in event.debug_annotations}


@pytest.mark.parametrize("name", LOGS)
def test_each_turn_is_a_slice_on_its_actor_s_track(name: str) -> None:
    one = section(log_of(name))
    read = read_trace(one)
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in read.packet
        if p.HasField("track_descriptor") and p.track_descriptor.name
    }
    runs = run_tracks(read)
    actors = [name for track, name in tracks.items() if track not in runs]
    assert sorted(actors) == sorted({record.actor for record in one.records})
    turns = {
        record.n: record
        for record in one.records
        if record.__struct_config__.tag in ("start", "message", "timer", "unanswered")
    }
    begun = events(read, BEGIN)
    assert [arguments(p.track_event)["record"].int_value for p in begun] == list(turns)
    for packet in begun:
        record = turns[arguments(packet.track_event)["record"].int_value]
        assert tracks[packet.track_event.track_uuid] == record.actor
        assert packet.timestamp >= record.t * 1000
        assert arguments(packet.track_event)["t_us"].int_value == record.t


@pytest.mark.parametrize("name", LOGS)
def test_slices_of_a_track_follow_each_other_a_microsecond_long(name: str) -> None:
    read = read_trace(section(log_of(name)))
    free: dict[int, int] = {}
    for begin, end in zip(events(read, BEGIN), events(read, END), strict=True):
        track = begin.track_event.track_uuid
        assert end.track_event.track_uuid == track
        assert end.timestamp - begin.timestamp == 1000
        assert begin.timestamp >= free.get(track, 0)
        free[track] = end.timestamp


@pytest.mark.parametrize("name", LOGS)
def test_each_message_is_an_arrow_that_goes_forward_in_time(name: str) -> None:
    one = section(log_of(name))
    read = read_trace(one)
    left: dict[int, Any] = {}
    for packet in read.packet:
        for flow in packet.track_event.flow_ids:
            assert flow not in left
            left[flow] = packet
    arrived = 0
    for packet in read.packet:
        for flow in packet.track_event.terminating_flow_ids:
            arrived += 1
            source = left.pop(flow)
            assert source.timestamp < packet.timestamp
            number = arguments(packet.track_event)["record"].int_value
            cause = one.records[number - 1].cause
            assert arguments(source.track_event)["record"].int_value == cause
    carried = [r for r in one.records if hasattr(r, "envelope") and r.cause]
    assert arrived == len([r for r in carried if not isinstance(r, SendRecord)])
    assert not left


def test_losses_and_faults_are_instants_and_events_are_arguments() -> None:
    one = section(log_of("published/outbox"))
    read = read_trace(one)
    [lost] = events(read, INSTANT)
    assert lost.track_event.name == "lost: Complete to server"
    assert arguments(lost.track_event)["fault"].string_value == "drop-1"
    [queued] = [p for p in events(read, BEGIN) if "run.queued" in arguments(p.track_event)]
    fields = {one.name: one.string_value for one in
              arguments(queued.track_event)["run.queued"].dict_entries}  # fmt: skip
    assert fields["run"] == OUTBOX_RUN
    body = arguments(queued.track_event)["body"].dict_entries
    assert body[0].string_value == "RunGraphSession"
    swapping = read_trace(section(log_of("chaos/swapping")))
    titles = {packet.track_event.name for packet in events(swapping, INSTANT)}
    assert {"pause by relay_swaps", "resume by relay_swaps"} <= titles


@pytest.mark.parametrize("name", [*LOGS, "published/offline"])
def test_a_run_s_track_shows_how_long_it_waited_and_ran(name: str) -> None:
    one = section(log_of(name))
    read = read_trace(one)
    found: dict[str, list[tuple[str, int]]] = {}
    runs = run_tracks(read)
    for packet in read.packet:
        run = runs.get(packet.track_event.track_uuid)
        if run is not None:
            event = packet.track_event
            found.setdefault(run, []).append((event.name, packet.timestamp))
            assert event.type == (BEGIN if event.name else END)
            assert event.name == "" or event.categories[0] == "run"
    known = {summary.run: summary for summary in summaries(one.records)}
    assert list(found) == list(known)
    for run, marks in found.items():
        summary = known[run]
        times = [time_ns for _, time_ns in marks]
        assert times == sorted(times)
        assert marks[0] == ("queued", (summary.queued_us or 0) * 1000)
        if summary.started_us is not None and summary.ended_us is not None:
            assert [name for name, _ in marks] == ["queued", "", "running", ""]
            assert abs(times[2] - summary.started_us * 1000) <= 1000
            assert abs(times[3] - summary.ended_us * 1000) <= 2000
        elif summary.started_us is None:
            assert [name for name, _ in marks] == ["queued", ""]


def test_each_section_is_a_process_with_tracks_of_its_own() -> None:
    one, other = section(log_of("published/outbox")), section(log_of("published/outbox", 1))
    read = read_trace(one, other)
    described = [p.track_descriptor for p in read.packet if p.HasField("track_descriptor")]
    assert len({track.uuid for track in described}) == len(described)
    processes = [track.process for track in described if track.HasField("process")]
    assert [(p.pid, p.process_name) for p in processes] == [(1, one.where), (2, other.where)]
    flows = Counter(flow for p in read.packet for flow in p.track_event.flow_ids)
    assert set(flows.values()) == {1}


def test_two_events_of_a_name_in_one_turn_and_those_of_none() -> None:
    made = Made()
    turn = made.tell.timer(5, "a", 0, "poll")
    made.tell.event(5, "a", turn, "said", {"x": [1, 2.5, True, None, "s", {"y": "deep"}]})
    made.tell.event(5, "a", turn, "said", {"x": 2})
    made.tell.event(6, "a", 0, "alone", {})
    read = read_trace(made.section())
    [slice_] = events(read, BEGIN)
    assert list(arguments(slice_.track_event)) == ["record", "t_us", "timer", "said", "said (2)"]
    [alone] = events(read, INSTANT)
    assert (alone.track_event.name, alone.timestamp) == ("alone", 6000)


# OpenTelemetry


def spans_of(one: Section) -> list[tuple[str, dict[str, Any]]]:
    """Each span with its service, of what JSON has."""
    found = []
    for resource in json.loads(msgspec.json.encode(request(one)))["resourceSpans"]:
        named = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
        for scope in resource["scopeSpans"]:
            found += [(named["service.name"]["stringValue"], span) for span in scope["spans"]]
    return found


@pytest.mark.parametrize("name", LOGS)
def test_spans_are_as_otlp_s_json_has_them(name: str) -> None:
    one = section(log_of(name))
    spans = [span for _, span in spans_of(one)]
    assert len({span["spanId"] for span in spans}) == len(spans)
    by_id = {span["spanId"]: span for span in spans}
    for span in spans:
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert span["kind"] in range(1, 6)
        assert re.fullmatch("[0-9]{19}", span["startTimeUnixNano"])
        assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])
        above = by_id.get(span.get("parentSpanId", ""))
        assert (above is None) == (span["name"] == "run")
        if above is not None:
            assert above["traceId"] == span["traceId"]
            assert int(above["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        for attribute in span["attributes"]:
            assert set(attribute) == {"key", "value"}
            [(kind, value)] = attribute["value"].items()
            wanted = {"stringValue": str, "intValue": str, "doubleValue": float, "boolValue": bool}
            assert isinstance(value, wanted[kind])


def test_a_run_s_trace_has_its_turns_and_what_was_lost_on_the_way() -> None:
    one = section(log_of("published/outbox"))
    spans = spans_of(one)
    assert {span["traceId"] for _, span in spans} == {OUTBOX_RUN.replace("-", "")}
    names = Counter(span["name"] for _, span in spans)
    assert names["run"] == 1
    assert names["Complete"] == 1
    assert names["RunGraphSession"] == 1
    assert names["time-out"] == 1
    assert {service for service, span in spans if span["name"] == "FleetRun"} == {"engine"}
    said = [event["name"] for _, span in spans for event in span.get("events", [])]
    assert said.count("lost: Complete") == 1
    assert {"run.queued", "run.offered", "run.started", "run.terminal"} <= set(said)
    [root] = [span for _, span in spans if span["name"] == "run"]
    assert root["status"] == {"code": 1}
    ticks = int(root["endTimeUnixNano"]) - int(root["startTimeUnixNano"])
    assert ticks == 900 * 10**9


def traced_section(traceparents: list[str], agents: Any) -> Section:
    """A run for each traceparent: it is asked for, answered, polled and answered."""
    made = Made(resolved={"agent": agents})
    for number, asked in enumerate(traceparents):
        body: dict[str, Any] = {"type": "RunGraphSession", "idempotency_key": f"key-{number:04}"}
        call = made.envelope("agent", "server", body, traceparent=asked)
        turn = made.tell.message(1, call)
        made.tell.event(1, "server", turn, "run.queued", {"run": f"r{number}", "agent": "agent"})
        for _ in range(2):
            body = {"type": "GraphRun", "command_id": f"r{number}", "status": "queued"}
            answer = made.envelope("server", "agent", body, turn, call.id, asked)
            turn = made.tell.message(2, answer)
            body = {"type": "GetGraphRun", "command_id": f"r{number}"}
            call = made.envelope("agent", "server", body, turn, 0, asked)
            turn = made.tell.message(3, call)
    return made.section(4)


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("agents", [None, {"runs": 2}, [{"name": "b", "trace": True}]])
def test_a_traced_run_is_one_tree_below_the_span_that_asked_for_it(agents: Any) -> None:
    spans = [span for _, span in spans_of(traced_section([f"00-{TRACE}-{SPAN}-01"] * 2, agents))]
    assert {span["traceId"] for span in spans} == {TRACE}
    assert [span["name"] for span in spans].count("run") == 2
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans) == 12
    outside = [span for span in spans if span["parentSpanId"] not in ids]
    assert [(span["name"], span["parentSpanId"]) for span in outside] == [("run", SPAN)] * 2


def test_a_trace_that_a_scenario_s_agent_made_has_its_root_here() -> None:
    agents = [{"name": "b"}, {"name": "agent", "trace": True}]
    spans = [span for _, span in spans_of(traced_section([f"00-{TRACE}-{SPAN}-01"] * 2, agents))]
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans)
    [root] = [span for span in spans if "parentSpanId" not in span]
    assert (root["name"], root["spanId"], root["traceId"]) == ("run", SPAN, TRACE)
    assert all(span["parentSpanId"] in ids for span in spans if span is not root)


def test_a_run_without_a_good_traceparent_keeps_its_own_trace() -> None:
    spans = [span for _, span in spans_of(traced_section(["", "00-edited"], None))]
    assert {span["traceId"] for span in spans} == {trace_id("r0"), trace_id("r1")}
    assert [span["name"] for span in spans if "parentSpanId" not in span] == ["run", "run"]


@given(st.text())
def test_any_run_has_a_trace_id(run: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", trace_id(run))
    assert trace_id(run).strip("0")


def test_the_zero_id_is_no_trace_s() -> None:
    assert trace_id("0" * 32) != "0" * 32
    assert request(Made().section()) == {"resourceSpans": []}


# CSV


@pytest.mark.parametrize("name", LOGS)
def test_a_row_a_record_with_what_it_has(name: str) -> None:
    one = section(log_of(name))
    out = io.StringIO()
    write_head(out)
    write_rows(one, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert tuple(rows[0]) == COLUMNS
    assert [int(row["n"]) for row in rows] == [record.n for record in one.records]
    for row, record in zip(rows, one.records, strict=True):
        assert (int(row["t_us"]), row["actor"]) == (record.t, record.actor)
        if isinstance(record, MessageRecord | DropRecord):
            assert json.loads(row["data"]) == record.envelope.body
            assert row["message"] == type_of(record.envelope.body)
            assert int(row["id"]) == record.envelope.id
            assert int(row["reply_to"]) == record.envelope.reply_to
            assert (row["source"], row["target"]) == (
                record.envelope.source,
                record.envelope.target,
            )
        assert row["fault"] == getattr(record, "fault", "")


def test_text_of_any_kind_stays_in_its_cell() -> None:
    made = Made(cell='a="1,2"')
    made.tell.event(0, "a", 0, "said", {"x": 'a,"b"\nc'})
    out = io.StringIO()
    write_rows(made.section(), out)
    [row] = list(csv.reader(io.StringIO(out.getvalue())))
    assert row[1] == 'a="1,2"'
    assert json.loads(row[-1]) == {"x": 'a,"b"\nc'}
    assert len(row) == len(COLUMNS)


# lnav


def test_lnav_s_definition_names_fields_that_records_have() -> None:
    table = definition()[NAME]
    fields = {name for kind in KINDS.values() for name in kind.__struct_fields__} | {"kind"}
    for name in table["value"]:
        assert name.partition("/")[0] in fields
    for field, _ in SHOWN:
        assert field in table["value"]
    assert table["timestamp-field"] in fields
    levels = "|".join(table["level"].values())
    for kind in ("drop", "fault", "late", "unanswered", "undone", "timer", "send"):
        assert kind in KINDS
        assert kind in levels
    for level in table["level"].values():
        assert re.fullmatch(level, "none of them") is None
    assert re.fullmatch(table["file-pattern"], "/a/logs/outbox-1.jsonl")


def test_lnav_s_sample_is_a_line_of_ours() -> None:
    assert {"line": SAMPLE} in definition()[NAME]["sample"]
    line = msgspec.json.decode(SAMPLE, type=KINDS["timer"])
    assert msgspec.json.encode(line).decode() == SAMPLE
