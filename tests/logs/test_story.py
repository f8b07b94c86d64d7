"""One run's story."""

from __future__ import annotations

from msgspec import UNSET

from actors import messages
from logs.story import Line, story, summaries
from tests.logs.samples import OUTBOX_RUN, Made, log_of, section


def told(name: str, run: str = OUTBOX_RUN, cell: int = 0) -> list[str]:
    return [line.text for line in story(section(log_of(name, cell)).records, run)]


def test_the_story_of_a_result_that_was_lost_and_brought_again() -> None:
    assert told("published/outbox") == [
        "agent asked for it (attempt 1)",
        "server queued it for agent",
        "agent got its ticket",
        "relay synced and was offered it (delivery 1)",
        "relay asked server whether it may start (delivery 1)",
        "server let it start on relay",
        "server let relay go",
        "relay handed it to engine",
        "engine began to execute it",
        "engine ended its execution: completed",
        "engine told relay how it ended: completed",
        "lost on the way: its result from relay to server (by drop-1)",
        "relay has its end on disk, engine knows",
        "relay gave up waiting for an answer to its result",
        "server got its result from relay: completed",
        "server closed it as completed; it was running",
        "relay knows that server has its result",
        "agent read from server that it is completed",
    ]


def test_sentences_have_the_numbers_and_times_of_their_records() -> None:
    records = section(log_of("published/outbox")).records
    lines = story(records, OUTBOX_RUN)
    assert [line.n for line in lines] == sorted(line.n for line in lines)
    for line in lines:
        assert records[line.n - 1].t == line.t


def test_losses_that_go_on_are_told_once_with_their_number() -> None:
    records = section(log_of("chaos/cut_cancel")).records
    [run] = [summary.run for summary in summaries(records)]
    lost = [line for line in story(records, run) if "lost on the way: a control poll" in line.text]
    assert len(lost) == 1
    assert lost[0].times > 20
    assert lost[0].until_us > lost[0].t


def test_losses_are_counted_anew_after_something_else_has_happened() -> None:
    made = Made()
    poll = made.envelope("agent", "server", messages.GetGraphRun(command_id="r"))
    for t in (1, 2):
        made.tell.drop(t, poll, "lossy")
    made.tell.event(3, "server", 0, "run.started", {"run": "r", "device": "relay"})
    made.tell.drop(4, poll, "lossy")
    lines = story(made.records(), "r")
    lost = "lost on the way: a poll from agent to server (by lossy)"
    assert [(line.text, line.times, line.until_us) for line in lines] == [
        (lost, 2, 2), ("server let it start on relay", 1, 0), (lost, 1, 0)
    ]  # fmt: skip


def test_faults_and_new_boots_of_those_who_have_to_do_with_it_are_told_until_it_ends() -> None:
    records = section(log_of("chaos/swapping")).records
    texts = [line.text for line in story(records, summaries(records)[0].run)]
    assert "relay: pause (by relay_swaps)" in texts
    ended = next(index for index, text in enumerate(texts) if "closed it as" in text)
    assert not [text for text in texts[ended:] if "pause" in text]


def test_a_call_that_is_repeated_under_its_key_is_a_second_attempt() -> None:
    records = section(log_of("chaos/agent_dies")).records
    first = summaries(records)[0].run
    texts = [line.text for line in story(records, first)]
    assert "agent asked for it (attempt 2)" in texts
    assert "server gave the same key its ticket again" in texts
    assert "agent asked for it (attempt 2)" not in [
        line.text for line in story(records, summaries(records)[1].run)
    ]


class Hello(messages.Message, frozen=True, kw_only=True):
    """A user's own message."""

    command_id: str
    colour: str


def test_strangers_are_told_as_they_are() -> None:
    made = Made()
    made.tell.message(0, made.envelope("a", "b", Hello(command_id="r", colour="red")))
    made.tell.event(1, "relay", 1, "mine.said", {"run": "r", "times": 2})
    made.tell.event(1, "relay", 1, "mine.thought", {"run": "r"})
    made.tell.event(1, "server", 1, "run.queued", {"run": "r"})
    made.tell.event(1, "server", 1, "run.terminal", {"run": "r", "status": "{odd}"})
    assert [line.text for line in story(made.records(), "r")] == [
        "a → b: Hello(command_id=r, colour=red)",
        "relay says mine.said: times=2",
        "relay says mine.thought",
        "server queued it for ?",
        "server closed it as {odd}; it was ?, by ?".replace(", by ?", ""),
    ]


def test_refusals_stops_and_undone_turns() -> None:
    made = Made()
    ask = made.envelope("relay", "server", messages.Start(command_id="r", boot="b", delivery=1))
    made.tell.message(0, ask)
    no = messages.StartAnswer(go=False, reason="closed")
    made.tell.message(0, made.envelope("server", "relay", no, 1, ask.id))
    poll = made.envelope("relay", "server", messages.Control(command_id="r", boot="b"))
    made.tell.message(1, poll)
    made.tell.message(1, made.envelope("server", "relay", messages.CONTINUE, 3, poll.id))
    made.tell.message(2, made.envelope("server", "relay", messages.STOP_CANCELLED, 3, poll.id))
    made.tell.undone(3, "server", 1, "the commit failed")
    made.tell.late(4, made.envelope("server", "relay", messages.Accepted(command_id="r")))
    assert [line.text for line in story(made.records(), "r")] == [
        "relay asked server whether it may start (delivery 1)",
        "server did not let relay start it: closed",
        "server told relay to stop it: cancel",
        "server's turn 1 was undone: the commit failed",
        "the notice that its result was accepted from server to relay came too late",
    ]


def test_what_waits_for_its_owner_is_told() -> None:
    made = Made()
    call = {"run": "r", "graph": "g", "agent": 1, "call": 2, "tool": "shell"}
    made.tell.event(1, "engine", 0, "approval.waiting", call | {"timeout_us": 9})
    for t, waiting in ((2, 1), (3, 1), (4, UNSET)):
        answer = messages.GraphRun(command_id="r", status="running", awaiting_approval=waiting)
        made.tell.message(t, made.envelope("server", "agent", answer))
    made.tell.event(5, "engine", 0, "fleet.resumed", {"run": "r", "turns": 3, "waiting": 1})
    decided = call | {"allow": False, "by": "timeout", "waited_us": 9}
    made.tell.event(6, "engine", 0, "approval.decided", decided)
    assert [line.text for line in story(made.records(), "r")] == [
        "engine lets call 2, of shell, wait for its owner",
        "agent read from server that it is running, and waits for its owner (1)",
        "agent read from server that it is running, after a poll that read the same",
        "engine goes on with it where it stood; calls that wait: 1",
        "engine lets call 2, of shell, wait no more; timeout: allow=false",
    ]


def test_what_was_sent_and_never_came_is_still_under_way() -> None:
    made = Made()
    sent = made.envelope("agent", "server", messages.GetGraphRun(command_id="r"))
    came = made.envelope("agent", "server", messages.CancelGraphRun(command_id="r"))
    made.tell.send(0, came)
    made.tell.send(5, sent)
    made.tell.message(6, came)
    assert story(made.records(), "r") == [
        Line(2, 5, "a poll from agent to server was still under way at the end")
    ]


def test_a_run_whose_server_says_nothing_is_known_by_what_its_agent_read() -> None:
    made = Made()
    for status in ("queued", "running", "failed"):
        made.tell.message(
            0, made.envelope("s", "bob", messages.GraphRun(command_id="r", status=status))
        )
    [one] = summaries(made.records())
    assert (one.agent, one.status, one.queued_us) == ("bob", "failed", None)


def test_a_line_a_run() -> None:
    [one] = summaries(section(log_of("published/outbox")).records)
    assert (one.run, one.agent, one.status) == (OUTBOX_RUN, "agent", "completed")
    assert (one.queued_us, one.started_us, one.ended_us) == (0, 5_000_000, 45_000_000)
    assert one.records > 30
    [other] = summaries(section(log_of("published/outbox", 1)).records)
    assert (other.status, other.ended_us) == ("running", None)
    assert story([], "r") == []
    assert summaries([]) == []
