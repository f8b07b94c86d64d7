"""`pullcord graph`: what each command prints, and its exit code."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from actors.graphs.scripted import prompt_hash
from actors.graphs.seam import VmMissingError
from tests.actors.edges.models.stub_server import KEY, Reply, anthropic_stream, openai_stream
from tests.scenarios.commandline import MAIN, ROOT
from tests.scenarios.conftest import Call
from tests.scenarios.graph_serving import VARIABLES, serving, write_graph

USAGE = {"prompt_tokens": 11, "completion_tokens": 7}
GOOD = Reply([openai_stream("hello ", "there", usage=USAGE)])


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without keys, in an empty folder, with no saved Graphs."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PULLCORD_GRAPHS", str(tmp_path / "saved"))


def hello() -> str:
    return write_graph(Path())


def test_a_shipped_graph_runs_offline_on_its_recording(call: Call) -> None:
    done = call("graph", "run", "@graphs/triage")
    assert done.code == 0
    result = msgspec.json.decode(done.out)
    assert (result["severity"], result["component"]) == ("high", "server")
    assert done.err.startswith("pullcord: agents are answered by triage.answers.jsonl")
    assert "completed: 4 of 4 agents done; 5,799 tokens; cost 0.0309" in done.err
    path = ROOT / "scenarios" / "graphs" / "triage.js"
    assert call("graph", "run", str(path), "--backend", "recorded").out == done.out


def test_a_prompt_that_was_not_recorded_is_an_error(call: Call) -> None:
    args = ("--args", '{"issue": "Another one."}')
    done = call("graph", "run", "@graphs/triage", "--backend", "recorded", *args)
    assert (done.code, done.out) == (1, "")
    assert "has no answer to this prompt" in done.err


def test_by_chance_it_says_so_and_one_seed_has_one_result(call: Call) -> None:
    one, again = (call("graph", "run", hello(), "--seed", "3") for _ in range(2))
    assert one == again
    assert (one.code, msgspec.json.decode(one.out)) == (0, {"word": "answer to: Say hello"})
    assert "chance (--backend synthetic): what they say means nothing" in one.err


def test_a_text_is_printed_as_it_is_and_quiet_prints_nothing_else(call: Call) -> None:
    path = write_graph(Path(), "return args.word")
    assert call("graph", "run", path, "-q", "--args", '{"word": "a\\nb"}') == (0, "a\nb\n", "")


def test_events_are_lines_of_json_with_the_result_last(call: Call) -> None:
    done = call("graph", "run", hello(), "--json")
    rows = [msgspec.json.decode(line) for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert [row["event"] for row in rows] == [
        "fleet.started", "fleet.phase", "agent.started", "agent.finished", "fleet.finished",
        "result",
    ]  # fmt: skip
    assert rows[-1] == {
        "event": "result",
        "status": "completed",
        "result": {"word": "answer to: Say hello"},
        "tokens": 1200,
        "cost": 0.01,
        "error": None,
    }


def test_a_model_server_answers_and_nobody_sees_the_key(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    record = ("--record", "answers.jsonl", "--prices", "100000/100000")
    with serving(GOOD) as server:
        where = ("--base-url", server.url, "--model", "small", "--key-env", "MINE")
        done = call("graph", "run", hello(), "--backend", "openai", *where, *record)
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert (done.code, msgspec.json.decode(done.out)) == (0, {"word": "hello there"})
    assert "18 tokens; cost 1.80" in done.err
    recorded = Path("answers.jsonl").read_text()
    assert KEY not in done.out + done.err + recorded
    line = msgspec.json.decode(recorded)
    assert (line["hash"], line["value"], line["tokens"]) == (
        prompt_hash("Say hello"), "hello there", 18,
    )  # fmt: skip
    # And it is played again without a server.
    played = call("graph", "run", hello(), "--answers", "answers.jsonl")
    assert (played.code, played.out) == (0, done.out)
    assert "18 tokens; cost 1.80" in played.err


def test_anthropics_server_answers(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Reply([anthropic_stream({"type": "text_delta", "text": "hi"})])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_MODEL", "small")
        done = call("graph", "run", hello(), "--backend", "anthropic")
    assert (done.code, msgspec.json.decode(done.out)) == (0, {"word": "hi"})
    assert server.seen[0].headers["x-api-key"] == KEY


def test_an_answer_that_does_not_fit_is_asked_for_again_and_played_so(call: Call) -> None:
    schema = "{ type: 'array', items: { type: 'integer' } }"
    path = write_graph(Path(), f"return agent('Count', {{ schema: {schema} }})")
    wrong, right = (Reply([openai_stream(text, usage=USAGE)]) for text in ('["a"]', "[1, 2]"))
    with serving(wrong, right) as server:
        where = ("--base-url", server.url, "--model", "small", "--record", "answers.jsonl")
        done = call("graph", "run", path, "--backend", "openai", *where)
    assert (done.code, msgspec.json.decode(done.out)) == (0, [1, 2])
    first, second = (one.body["messages"][0]["content"] for one in server.seen)
    assert first == "Count"
    assert "did not fit" in second
    assert call("graph", "run", path, "--answers", "answers.jsonl").out == done.out


def test_graphs_beside_it_and_saved_ones_are_called_by_name(call: Call) -> None:
    call("graph", "save", write_graph(Path(), "return args.n + 1", "more.js"), "--as", "plus-one")
    write_graph(Path(), "return graph('plus-one', { n: args.n * 10 })", "tens.js")
    path = write_graph(Path(), "return graph('tens', { n: 4 })", "top.js")
    done = call("graph", "run", path)
    assert (done.code, done.out) == (0, "41\n")
    assert "tens/plus-one: ended: completed" in done.err
    told = call("graph", "check", write_graph(Path(), "return graph('plus-on')", "x.js")).err
    assert 'did you mean "plus-one"?' in told


def test_a_server_that_fails_fails_the_graph_which_may_try_again(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    busy = Reply([f'{{"error": {{"message": "slow down {KEY}"}}}}'.encode()], 429)
    path = write_graph(Path(), "return retry(() => agent('x'), { attempts: 2, backoffMs: 1 })")
    with serving(busy, GOOD, busy, busy) as server:
        where = ("--base-url", server.url, "--model", "small", "--key-env", "MINE")
        done = call("graph", "run", path, "--backend", "openai", *where)
        assert (done.code, done.out) == (0, "hello there\n")
        assert "attempt 1 failed, again" in done.err
        failed = call("graph", "run", path, "--backend", "openai", *where, "--json")
        assert failed.code == 1
        assert "rate_limited: the model server is busy (429: slow down [key])" in failed.out
    assert KEY not in done.err + failed.out + failed.err


def test_a_command_answers(call: Call) -> None:
    how = ("--backend", "command", "--command", "sh -c 'tr a-z A-Z'")
    done = call("graph", "run", hello(), *how)
    assert (done.code, msgspec.json.decode(done.out)) == (0, {"word": "SAY HELLO"})


def test_a_recording_that_finds_no_room_ends_the_run(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("actors.edges.models.recording.Recording.write", write)
    how = ("--backend", "command", "--command", "cat", "--record", "answers.jsonl")
    done = call("graph", "run", hello(), *how)
    assert (done.code, done.out) == (2, "")
    assert "\npullcord: No space left on device\n" in done.err


def test_a_failed_graph_is_exit_1_with_its_place(call: Call) -> None:
    done = call("graph", "run", write_graph(Path(), "let a;\nreturn a.b"))
    assert (done.code, done.out) == (1, "")
    assert "pullcord: the Graph failed: TypeError: " in done.err
    assert "(line 2, column " in done.err


def test_a_result_that_is_too_long_is_not_lost_in_silence(call: Call) -> None:
    done = call("graph", "run", write_graph(Path(), "return 'x'.repeat(200000)"))
    assert (done.code, done.out) == (1, "")
    assert "more than 100,000 characters" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nope",), "no Graph is saved under this name"),
        (("nope.js",), "nope.js: no such file"),
        (("bad.js",), "bad.js:1:11: SyntaxError"),
        (("calls.js",), "bad.js:1:11: SyntaxError"),
        (("hello.js", "--args", "[1]"), "it must be a JSON object"),
        (("hello.js", "--max-concurrency", "0"), "--max-concurrency: it is a whole number >= 1"),
        (("hello.js", "--token-ceiling", "0"), "--token-ceiling: "),
        (("hello.js", "--agent-timeout", "5x"), "--agent-timeout: "),
        (("hello.js", "--agent-timeout", "0s"), "--agent-timeout: "),
        (("hello.js", "--deadline", "soon"), "--deadline: "),
        (("hello.js", "--speed", "0"), "--speed: "),
        (("hello.js", "--backend", "command", "--command", "cat", "--speed", "2"), "--speed: "),
        (("hello.js", "--backend", "openai"), "--model: which model answers?"),
        (("hello.js", "--backend", "recorded"), "there are no recorded answers here"),
        (("hello.js", "--backend", "chance"), "pullcord: "),
        (("hello.js", "--max-concurrency", "x"), "pullcord: "),
    ],
)
def test_a_users_mistake_is_exit_2_and_never_a_traceback(
    call: Call, words: tuple[str, ...], told: str
) -> None:
    hello()
    write_graph(Path(), "return 1 +;", "bad.js")
    write_graph(Path(), "return await agent('a') + await graph('bad')", "calls.js")
    done = call("graph", "run", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_without_the_extra_the_cure_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.graph_check.ENGINE_MODULE", "no_such_module")
    done = call("graph", "run", "@graphs/triage")
    assert (done.code, done.out) == (2, "")
    assert "help: pip install 'pullcord[graphs]'" in done.err


@pytest.mark.parametrize(
    ("place", "code"),
    [("graphs.script.ScriptVmPort.open", 2), ("edges.vm_process.ProcessVmPort.open", 1)],
)
def test_an_engine_that_does_not_load_is_told_in_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, place: str, code: int
) -> None:
    def missing(*_: object) -> None:
        raise VmMissingError("the JavaScript engine does not load: install another")

    monkeypatch.setattr(f"actors.{place}", missing)
    done = call("graph", "run", "@graphs/triage")
    assert (done.code, done.out) == (code, "")
    assert "the JavaScript engine does not load: install another\n" in done.err
    assert "Traceback" not in done.err


def test_check_shows_every_mistake(call: Call) -> None:
    path = write_graph(Path(), "agent('x', { lable: 1 })\nawait retry(f, { attempt: 1 })")
    done = call("graph", "check", path)
    assert (done.code, done.out) == (2, "")
    assert [line for line in done.err.split("\n") if line.startswith("hello.js:")] == [
        "hello.js:1:1: nothing waits for this call of agent",
        'hello.js:1:14: agent has no option "lable"',
        'hello.js:2:18: retry has no option "attempt"',
    ]
    assert call("graph", "check", "@graphs/fan", "@graphs/triage") == (
        0, "@graphs/fan: no mistake found\n@graphs/triage: no mistake found\n", "",
    )  # fmt: skip


def test_check_looks_at_what_a_graph_calls_and_tells_it_once(call: Call) -> None:
    Path("main.js").write_text("await graph('helper'); await graph('kept')", encoding="utf-8")
    Path("kept.js").write_text("return 1", encoding="utf-8")
    call("graph", "save", "kept.js")
    Path("kept.js").unlink()
    Path("helper.js").write_text("agent('x')", encoding="utf-8")
    code, _, told = call("graph", "check", "main.js", "helper.js")
    assert code == 2
    assert told.count("nothing waits for this call of agent") == 1
    assert told.startswith("helper.js:1:1: ")
    Path("helper.js").write_text("await agent('x', { tools: ['read_file'] })", encoding="utf-8")
    Path("tools.toml").write_text('[read_file]\nfolders = { here = "." }\n', encoding="utf-8")
    code, _, told = call("graph", "check", "main.js", "--tools", "tools.toml")
    assert code == 2
    assert 'helper.js:1:28: tools.toml does not give "read_file" to helper' in told


def test_saved_listed_shown_and_run_by_name(call: Call, tmp_path: Path) -> None:
    path = write_graph(Path(), 'export const meta = { description: "Does it." };\nreturn 7')
    saved = tmp_path / "saved" / "seven.js"
    assert call("graph", "save", path, "--as", "seven") == (
        0, f"saved {saved}\n\nNext: pullcord graph run seven\n", "",
    )  # fmt: skip
    assert call("graph", "save", path, "--as", "seven").code == 2
    assert call("graph", "save", path, "--as", "seven", "--replace").code == 0
    listed = call("graph", "list")
    assert listed.out.split("\n")[0].split(maxsplit=1) == ["seven", "Does it."]
    rows = msgspec.json.decode(call("graph", "list", "--json").out)
    assert rows[0] == {"name": "seven", "description": "Does it.", "file": str(saved)}
    assert call("graph", "show", "seven").out == saved.read_text() + "\n"
    assert call("graph", "run", "seven", "-q").out == "7\n"


def test_a_graph_with_a_mistake_is_not_saved(call: Call, tmp_path: Path) -> None:
    assert call("graph", "save", write_graph(Path(), "return 1 +;")).code == 2
    assert not (tmp_path / "saved").exists()


def test_a_starter_is_right_and_runs(call: Call) -> None:
    done = call("new", "graph", "nightly-review")
    assert (done.code, done.out.split("\n")[0]) == (0, "wrote nightly-review.js")
    assert call("graph", "check", "nightly-review.js").code == 0
    assert 'name: "nightly-review"' in Path("nightly-review.js").read_text()
    ran = call("graph", "run", "nightly-review.js")
    assert (ran.code, set(msgspec.json.decode(ran.out))) == (0, {"found", "summary"})
    assert call("new", "other.js").code == 0
    assert call("new", "other.js").code == 2


def wait_for(path: Path, count: int) -> None:
    end_s = time.monotonic() + 20
    while len(list(path.iterdir())) < count:
        assert time.monotonic() < end_s, "the agents did not start"
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_cancels_and_leaves_nothing(tmp_path: Path, kind: signal.Signals) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    command = f"sh -c 'touch {pids}/$$; exec sleep 100'"
    path = write_graph(
        tmp_path, "return parallel([1, 2, 3].map((n) => () => agent(`number ${n}`)))"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", MAIN, "graph", "run", path, "--backend", "command", "--command",
         command, "--record", str(tmp_path / "answers.jsonl")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(pids, 3)
    started.send_signal(kind)
    out, err = started.communicate(timeout=20)
    assert (started.returncode, out) == (130, "")
    assert "pullcord: cancelled; 0 of 3 agents done; 3 stopped; " in err
    assert "Traceback" not in err
    for pid in pids.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.name), 0)
    assert (tmp_path / "answers.jsonl").read_text().count("the agent was stopped") == 3
