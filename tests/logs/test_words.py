"""Records in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import messages
from logs.words import Narrator, brief, id_text, seconds, short, value_text
from tests.logs.samples import OUTBOX_RUN, Made

SHORT_RUN = "3212…000000000001"


@pytest.mark.parametrize(
    ("t_us", "text"),
    [(0, "0s"), (250, "250us"), (1000, "0.001s"), (12_800_000, "12.8s"), (905_000_000, "905s"),
     (1_234_567, "1.235s")],
)  # fmt: skip
def test_times(t_us: int, text: str) -> None:
    assert seconds(t_us) == text


def test_ids_keep_both_ends() -> None:
    assert short(f"graph:external:{OUTBOX_RUN}") == f"graph:external:{SHORT_RUN}"
    assert short("gs_d8dc2ceb9b23ce6e5998c42156807f5f") == "gs_d8dc…7f5f"
    assert short("end: no id") == "end: no id"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (messages.GetGraphRun(command_id="r", wait_us=5), "GetGraphRun(command_id=r, wait_us=5)"),
        (messages.Commands(commands=()), "Commands(0)"),
        (messages.CONTINUE, "ControlAnswer(stop=false)"),
        (messages.GO, "StartAnswer(go=true)"),
        (messages.GraphRun(command_id=OUTBOX_RUN, status="queued"),
         f"GraphRun(command_id={SHORT_RUN}, status=queued)"),
        (messages.Accepted(command_id="r"), "Accepted(r)"),
        (messages.Share(session="x" * 100), f"Share({'x' * 59}…)"),
    ],
)  # fmt: skip
def test_bodies_in_short(body: Any, text: str) -> None:
    assert brief(msgspec.json.decode(msgspec.json.encode(body))) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_whatever_a_stranger_sent_has_words(body: Any) -> None:
    assert isinstance(brief(body), str)
    assert len(value_text(body)) <= 400  # a number of any length is told whole


def test_every_kind_of_record_has_its_words() -> None:
    made = Made()
    asked = made.envelope("agent", "server", messages.GetGraphRun(command_id="r"))
    other = made.envelope("agent", "server", messages.GetGraphRun(command_id="s"), 1)
    tell = made.tell
    tell.start(0, "agent", 2)
    tell.send(0, asked)
    tell.drop(1, asked, "lossy")
    tell.unanswered(2, "agent", 1, asked.id)
    tell.unanswered(2, "agent", 1, (1 << 32) + 7)
    tell.message(3, other)
    tell.late(3, made.envelope("server", "agent", messages.GO, 6, other.id))
    tell.timer(4, "agent", 1, "poll")
    tell.fault(5, "agent", "killer", "kill")
    tell.event(6, "server", 6, "run.queued", {"run": OUTBOX_RUN, "why": None, "new": [1, 2]})
    tell.undone(7, "server", 6, "the commit failed")
    narrator = Narrator()
    assert [narrator.words(record) for record in made.records()] == [
        "starts, boot 2",
        "sends agent → server  GetGraphRun(command_id=r)",
        "dropped by lossy: agent → server  GetGraphRun(command_id=r)",
        "time-out: no answer to GetGraphRun to server",
        "time-out: no answer to message 1:7",
        "agent → server  GetGraphRun(command_id=s)",
        "late: server → agent  StartAnswer(go=true)",
        "timer poll",
        "fault killer: kill",
        f"run.queued  new=[2]  run={SHORT_RUN}  why=null",
        "undone, turn 6: the commit failed",
    ]


def test_an_id_shows_its_boot_after_the_first() -> None:
    assert (id_text(7), id_text((3 << 32) + 7)) == ("7", "3:7")
