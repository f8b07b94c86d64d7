"""Graphs against a real model server, llama.cpp: what it answers, refuses, and how it ends.

The strict server of the other tests is our own reading of the protocol; this one is somebody
else's. Its model babbles, so only what has a schema means anything. `make live` installs it into an
environment of its own and runs these tests.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.actors.edges.models import babbler
from tests.scenarios.commandline import MAIN, ROOT, command, environment

pytestmark = pytest.mark.live

PYTHON = os.environ.get("MODEL_SERVER_PYTHON", str(ROOT / ".venv" / "live" / "bin" / "python"))

TYPED = """
const word = {type: 'string', minLength: 1, maxLength: 8};
const properties = {word, yes: {type: 'boolean'}};
const shape = {type: 'object', properties, required: ['word', 'yes'], additionalProperties: false};
const ask = (n, schema) => () => agent(`number ${n}`, {schema, maxTokens: 300});
const objects = await parallel([1, 2, 3, 4, 5, 6, 7, 8].map(n => ask(n, shape)));
const list = await ask(9, {type: 'array', items: {type: 'integer'}, minItems: 2, maxItems: 2})();
return {objects, list, choice: await ask(10, {enum: ['yes', 'no']})()};
"""
FREE = "return retry(() => agent(PROMPT, {maxTokens: 900}), {attempts: 5})"
FAILING = """
const tries = [
  () => agent('x'.repeat(9000)),
  () => agent('x', {maxTokens: 1}),
  () => agent('x', {timeoutMs: 1}),
];
return (await parallel(tries, {settle: true})).map(each => [each.ok, each.error?.message]);
"""
LONG = """
const schema = {type: 'string', minLength: 300, maxLength: 400};
const ask = n => agent(`long ${n}`, {schema, maxTokens: 1000});
const all = Array.from({length: 400}, (_, n) => () => ask(n));
return (await parallel(all, {settle: true})).filter(each => each.ok).length;
"""


class Server:
    """The server, and how Graphs are run with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [PYTHON, babbler.__file__, str(folder / "babble.gguf")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, "no server: make live installs it"

    def flags(self, graph: str, *more: str, path: str = "/v1") -> list[str]:
        """The command's words that run a Graph."""
        (self.folder / "graph.js").write_text(graph)
        who = ["--backend", "openai", "--base-url", self.address + path, "--model", "babble"]
        return ["graph", "run", "graph.js", *who, *more]

    def run(self, graph: str, *more: str, path: str = "/v1") -> Any:
        """A Graph's result; it must not fail."""
        done = command(self.folder, *self.flags(graph, "--json", *more, path=path))
        last = json.loads(done.out.splitlines()[-1])
        assert (done.code, last["status"]) == (0, "completed"), done
        return last["result"]

    def begin(self, graph: str) -> "subprocess.Popen[str]":
        """Begin a Graph, and return once the first of its agents has been answered."""
        begun = subprocess.Popen(
            [sys.executable, "-c", MAIN, *self.flags(graph, "--json", "--max-concurrency", "32")],
            cwd=self.folder, env=environment(), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert begun.stdout is not None
        while '"agent.finished"' not in begun.stdout.readline():
            assert begun.poll() is None
        return begun

    def close(self) -> None:
        """End it at once."""
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    opened = Server(tmp_path)
    yield opened
    opened.close()


def end_of(begun: "subprocess.Popen[str]") -> dict[str, Any]:
    """The last line of a Graph that began."""
    out, _ = begun.communicate(timeout=60)
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


@pytest.mark.parametrize("path", ["/v1", "", "/v1/"])
def test_answers_fit_their_schemas(server: Server, path: str) -> None:
    result = server.run(TYPED, path=path)
    assert len(result["objects"]) == 8
    for each in result["objects"]:
        assert set(each) == {"word", "yes"}
        assert isinstance(each["yes"], bool)
        assert 1 <= len(each["word"]) <= 8
    assert [type(each) for each in result["list"]] == [int, int]
    assert result["choice"] in {"yes", "no"}


def test_a_recording_of_it_gives_the_same_again(server: Server) -> None:
    first = server.run(TYPED, "--record", "kept.jsonl")
    server.close()
    done = command(server.folder, "graph", "run", "graph.js", "--answers", "kept.jsonl")
    assert (done.code, json.loads(done.out)) == (0, first)


@pytest.mark.parametrize("prompt", ["hello", "", "ä 日本 😀", "\\ud800 \\0 half"])
def test_any_text_may_be_asked(server: Server, prompt: str) -> None:
    answer = server.run(FREE.replace("PROMPT", f"'{prompt}'"))
    assert isinstance(answer, str)


def test_what_it_refuses_or_cuts_is_told_in_its_words(server: Server) -> None:
    long, cut, late = server.run(FAILING)
    assert (long[0], cut[0], late[0]) == (False, False, False)
    assert "exceeds the available context size (2048 tokens)" in long[1]
    assert cut[1].startswith("cut_short: the answer was cut at its limit of tokens, after 1")
    assert late[1] == "the agent did not answer in its time"


def test_a_ceiling_holds_by_the_servers_own_count(server: Server) -> None:
    done = command(server.folder, *server.flags(LONG, "--json", "--token-ceiling", "5000"))
    last = json.loads(done.out.splitlines()[-1])
    assert (done.code, last["status"]) == (1, "failed")
    assert 3_000 < last["tokens"] < 5_000 + 8 * 1_100  # what agents may use is reserved for them


def test_a_cancel_stops_the_server_and_counts_what_was_used(server: Server) -> None:
    begun = server.begin(LONG)
    begun.send_signal(signal.SIGINT)
    last = end_of(begun)
    assert (begun.returncode, last["status"]) == (130, "cancelled")
    assert last["tokens"] > 0
    # Its slots are free again: the next question needs no time-out.
    question = {"max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    answer = httpx.post(server.address + "/v1/chat/completions", json=question, timeout=30)
    assert answer.status_code == 200


def test_a_server_that_dies_fails_its_agents_and_no_more(server: Server) -> None:
    begun = server.begin(LONG)
    server.close()
    last = end_of(begun)
    assert (begun.returncode, last["status"]) == (0, "completed")
    assert 0 < last["result"] < 400
