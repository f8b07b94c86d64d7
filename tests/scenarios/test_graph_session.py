"""Between flags and exit code: everything is looked at before anything begins."""

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.messages import Completion
from scenarios.graph_backends import Choice
from scenarios.graph_owner import Nobody, Terminal
from scenarios.graph_progress import Progress
from scenarios.graph_run import Ended
from scenarios.graph_session import Bounds, Session
from scenarios.graph_view import JsonLines, Lines, LiveTree
from scenarios.problems import ScenarioError
from tests.scenarios.graph_serving import write_graph

BOUNDS = Bounds(
    max_concurrency=2, token_ceiling=500, max_agents=7, agent_timeout="5s", deadline="1m"
)
DONE = Completion(execution_id="e", status="completed", result={"a": 1}, total_tokens=3)


def session(tmp_path: Path, speed: float | None = None, **choice: Any) -> Session:
    return Session(write_graph(tmp_path), None, Choice(**choice), BOUNDS, seed=4, speed=speed)


def test_flags_become_the_engines_config(tmp_path: Path) -> None:
    plan = session(tmp_path).plan
    config = plan.config
    assert (config.graph, config.max_concurrency, config.token_ceiling) == ("hello.js", 2, 500)
    assert (config.max_agents, config.agent_timeout_us, config.deadline_us) == (
        7, 5_000_000, 60_000_000,
    )  # fmt: skip
    assert (plan.seed, plan.speed) == (4, None)
    assert "hello.js" in plan.files


def test_models_outside_have_the_machines_time(tmp_path: Path) -> None:
    virtual, real = session(tmp_path), session(tmp_path, backend="command", command="cat")
    assert (virtual.plan.speed, real.plan.speed) == (None, 1.0)
    assert real.plan.epoch_us > virtual.plan.epoch_us
    assert session(tmp_path, speed=5).plan.speed == 5


@pytest.mark.parametrize("speed", [0, -1, float("inf"), float("nan")])
def test_a_speed_that_is_none_is_refused(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ScenarioError, match="speed is more than 0"):
        session(tmp_path, speed=speed)


def test_settings_of_tools_become_the_engines_and_the_models(tmp_path: Path) -> None:
    settings = tmp_path / "tools.toml"
    settings.write_text(
        '[read_file]\nfolders = { here = "." }\n[approvals]\ntimeout = "2m"\n'
        '[graphs."*"]\nread_file = "ask"\n'
    )
    ours = Session(
        write_graph(tmp_path), None, Choice(), BOUNDS, seed=4, speed=None, tools=settings
    )
    assert ours.config.permissions == {"*": {"read_file": "ask"}}
    assert ours.config.approval_timeout_us == 120_000_000
    assert [*ours.toolbox.catalogue] == ["read_file", "list_files"]
    assert ours.plan.speed == 1.0  # a tool outside takes its own time
    assert ours.asks()
    assert not session(tmp_path).asks()
    # A command uses its tools by itself: it is told of all that its script wants.
    command = session(tmp_path, backend="command", command="cat")
    assert command.config.permissions == {"*": {"*": "allow"}}


def test_only_somebody_at_a_terminal_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, view = session(tmp_path), Lines(io.StringIO(), Progress(None))
    assert type(ours.asker("text", view)) is Nobody
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin.fileno", lambda: 0)
    assert type(ours.asker("text", view)) is Terminal
    assert type(ours.asker("json", view)) is Nobody
    assert type(ours.asker("quiet", view)) is Nobody


def test_each_style_has_its_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, progress = session(tmp_path), Progress(None)
    assert type(ours.view("json", progress)) is JsonLines
    assert type(ours.view("text", progress)) is Lines
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert type(ours.view("text", progress)) is LiveTree
    monkeypatch.setenv("NO_COLOR", "1")
    assert type(ours.view("text", progress)) is Lines
    quiet = ours.view("quiet", progress)
    assert isinstance(quiet, Lines)
    assert quiet.quiet


@pytest.mark.parametrize(
    ("completion", "code", "out"),
    [
        (DONE, 0, '{\n  "a": 1\n}\n'),
        (msgspec.structs.replace(DONE, status="failed", result=None, error="no"), 1, ""),
        (msgspec.structs.replace(DONE, status="failed", result=[1], error="no"), 1, "[\n  1\n]\n"),
        (msgspec.structs.replace(DONE, status="cancelled"), 130, ""),
        (msgspec.structs.replace(DONE, result=None, result_truncated=True), 1, ""),
        (msgspec.structs.replace(DONE, result=None), 0, "null\n"),
        (None, 130, ""),
    ],
)
def test_an_end_has_its_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    completion: Completion | None,
    code: int,
    out: str,
) -> None:
    ours, progress = session(tmp_path), Progress(None)
    ended = Ended(completion=completion, interrupted=False)
    assert ours.finish(ended, progress, "text", ours.view("text", progress)) == code
    assert capsys.readouterr().out == out
    assert ours.finish(ended, progress, "json", ours.view("json", progress)) == code
    assert msgspec.json.decode(capsys.readouterr().out)["event"] == "result"
