"""What was answered is played again by the scripted model, and holds no prompt."""

from pathlib import Path

import msgspec
import pytest

from actors.edges.models.recording import Recording, line_of
from actors.graphs.messages import AgentAnswer, Round, ToolCall, ToolResult
from actors.graphs.scripted import prompt_hash, read_answers
from tests.actors.edges.models.stub_server import ask

ANSWER = AgentAnswer(run="r", agent=1, outcome="ok", value={"a": [1]}, tokens=12, cost=0.5)


def test_a_recording_is_what_the_scripted_model_reads(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    recording = Recording(path)
    recording.write(ask("a secret plan"), ANSWER, 3.2164)
    failed = msgspec.structs.replace(ANSWER, outcome="failed", error="busy", retryable=False)
    recording.write(ask("a secret plan"), failed, 0.5)
    recording.close()
    first, second = read_answers(path.read_text())[prompt_hash("a secret plan")]
    assert (first.value, first.tokens, first.cost, first.latency) == ({"a": [1]}, 12, 0.5, 3216000)
    assert (second.error, second.retryable, second.value) == ("busy", False, None)
    assert "secret" not in path.read_text()


def test_an_agent_that_was_stopped_has_its_line_too() -> None:
    stopped = msgspec.structs.replace(ANSWER, outcome="cancelled", error=None, value=None)
    line = line_of(ask(), stopped, -1.0)
    assert (line["error"], line["tokens"], line["latency"]) == ("cancelled", 12, "0ms")


def test_lines_are_there_as_soon_as_they_are_written(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "a")
    recording.write(ask(), ANSWER, 1)
    assert (tmp_path / "a").read_text().endswith("\n")
    recording.close()


def test_no_file_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(FileExistsError):
        Recording(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "mine"


def test_rounds_of_tools_are_played_by_their_number(tmp_path: Path) -> None:
    call = ToolCall(id="a", tool="read_file", arguments={"path": "x"})
    result = ToolResult(id="a", ok=True, text="a secret file")
    wanted = msgspec.structs.replace(ANSWER, outcome="tools", value="hm", calls=(call,))
    one = Round(text="hm", calls=(call,), results=(result,))
    recording = Recording(tmp_path / "a")
    recording.write(ask(), wanted, 1)
    recording.write(ask(rounds=(one,)), ANSWER, 1)
    recording.close()
    text = (tmp_path / "a").read_text()
    assert "secret" not in text  # what came of a call is asked for again
    [first], [second] = read_answers(text).values()
    assert (first.calls, first.value, first.round) == ((call,), "hm", 0)
    assert (second.calls, second.round) == ((), 1)
