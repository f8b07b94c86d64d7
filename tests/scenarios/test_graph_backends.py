"""Who answers: what a user may say of it, and where keys go."""

from pathlib import Path
from typing import Any

import pytest

from actors.edges.models.http import HttpBackend
from actors.edges.models.live import LiveModel
from actors.edges.models.usage import Prices
from actors.graph_engine import GraphEngine
from actors.graphs.synthetic import SyntheticModel
from scenarios import graph_backends
from scenarios.graph_backends import Choice, make_model, named_backend, read_arguments
from scenarios.graph_files import Graph
from scenarios.problems import ScenarioError
from tests.actors.edges.models.stub_server import KEY
from tests.scenarios.graph_serving import VARIABLES

CONFIG = GraphEngine.Config(graph="g.js")
SERVER = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph(path=tmp_path / "g.js", shown="g.js", text="return 1")


def live(graph: Graph, name: Any, **fields: Any) -> LiveModel:
    model, _ = make_model(name, Choice(backend=name, **fields), graph, CONFIG)
    assert isinstance(model, LiveModel)
    return model


def key_of(graph: Graph, name: Any = "openai", **fields: Any) -> str | None:
    """The key that a model server gets."""
    backend = live(graph, name, model="m", **fields).backend
    assert isinstance(backend, HttpBackend)
    return backend._key


def refused(graph: Graph, name: Any, **fields: Any) -> str:
    choice = Choice(backend=name, **fields)
    with pytest.raises(ScenarioError) as error:
        make_model(named_backend(choice, graph), choice, graph, CONFIG)
    return error.value.render()


def test_recorded_answers_are_the_default_where_there_are_some(graph: Graph) -> None:
    assert named_backend(Choice(), graph) == "synthetic"
    assert isinstance(make_model("synthetic", Choice(), graph, CONFIG)[0], SyntheticModel)
    assert named_backend(Choice(answers=Path("x")), graph) == "recorded"
    graph.answers.write_text("")
    assert named_backend(Choice(), graph) == "recorded"
    assert named_backend(Choice(backend="synthetic"), graph) == "synthetic"


@pytest.mark.parametrize(
    ("fields", "cure"),
    [
        ({"backend": "openai", "answers": Path("x")}, "it goes with --backend recorded"),
        ({"record": Path("x")}, "it goes with --backend openai or anthropic or command"),
        ({"backend": "command", "model": "m"}, "--backend openai or anthropic"),
        ({"backend": "command", "base_url": SERVER}, "--backend openai or anthropic"),
        ({"backend": "recorded", "key_env": "K"}, "--backend openai or anthropic"),
        ({"backend": "openai", "command": "cat"}, "--backend command"),
        ({"backend": "synthetic", "prices": "1/2"}, "--backend openai or anthropic or command"),
    ],
)
def test_a_flag_without_use_is_refused(graph: Graph, fields: Any, cure: str) -> None:
    with pytest.raises(ScenarioError) as error:
        named_backend(Choice(**fields), graph)
    assert cure in error.value.render()


def test_the_usual_server_gets_the_usual_key(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OPENAI_API_KEY: this variable holds no key" in refused(graph, "openai", model="m")
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other-key")
    assert key_of(graph) == KEY
    assert key_of(graph, "anthropic") == "other-key"


def test_a_server_given_by_a_flag_gets_a_key_by_a_flag_alone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MINE", "my-key")
    assert key_of(graph, base_url=SERVER) is None
    assert key_of(graph, base_url=SERVER, key_env="MINE") == "my-key"
    monkeypatch.setenv("OPENAI_BASE_URL", SERVER)
    assert key_of(graph) == KEY
    monkeypatch.delenv("OPENAI_API_KEY")
    assert key_of(graph) is None


@pytest.mark.parametrize("value", ["", "  ", "a\nb", "ключ"])
def test_what_is_no_key_is_refused_and_not_shown(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MINE", value)
    told = refused(graph, "openai", model="m", key_env="MINE")
    assert told.startswith("MINE: ")
    assert "ключ" not in told


def test_the_model_is_a_flag_or_a_variable(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set OPENAI_MODEL" in refused(graph, "openai", base_url=SERVER)
    monkeypatch.setenv("OPENAI_MODEL", "small")
    backend = live(graph, "openai", base_url=SERVER).backend
    assert isinstance(backend, HttpBackend)
    assert backend.base_url == SERVER


def test_anthropics_base_url_may_end_in_its_version(graph: Graph) -> None:
    backend = live(graph, "anthropic", model="m", base_url="http://127.0.0.1:1/v1/").backend
    assert isinstance(backend, HttpBackend)
    assert backend.base_url == "http://127.0.0.1:1"


def test_a_base_url_that_is_none_is_told_by_where_it_stands(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(graph, "openai", model="m", base_url="x").startswith("--base-url: ")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "ftp://x")
    assert refused(graph, "anthropic", model="m").startswith("ANTHROPIC_BASE_URL: ")


def test_without_http_the_cure_is_the_extra(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_backends, "http_is_installed", lambda: False)
    assert "pip install 'pullcord[graphs]'" in refused(graph, "openai", model="m")


@pytest.mark.parametrize("command", [None, "", "  ", "'open"])
def test_a_command_that_is_none_is_refused(graph: Graph, command: str | None) -> None:
    assert refused(graph, "command", command=command).startswith("--command: ")


def test_prices(graph: Graph) -> None:
    assert live(graph, "command", command="cat", prices="3/15.5").prices == Prices(3, 15.5)
    for wrong in ("3", "3/", "a/b", "-1/2", "nan/1", "1/2/3", "1e9/1"):
        assert "no pair of prices" in refused(graph, "command", command="cat", prices=wrong)


def test_recorded_answers_are_read_before_anything_begins(graph: Graph) -> None:
    config = GraphEngine.Config(graph="g.js", model="scripted", answers="g.answers.jsonl")
    with pytest.raises(ScenarioError, match="no recorded answers here"):
        make_model("recorded", Choice(), graph, config)
    graph.answers.write_text('{"prompt": "x"}\n{"prompt": 3}\n')
    with pytest.raises(ScenarioError, match="line 2: "):
        make_model("recorded", Choice(), graph, config)


def test_a_recording_is_a_new_file(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("mine")
    told = refused(graph, "command", command="cat", record=tmp_path / "old")
    assert "a recording is never overwritten" in told
    assert "No such file" in refused(graph, "command", command="cat", record=tmp_path / "a" / "b")


def test_arguments_are_json_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "args.json").write_text('{"a": [1]}')
    assert read_arguments(None) == {}
    assert read_arguments('{"a": "ä"}') == {"a": "ä"}
    assert read_arguments(f"@{tmp_path / 'args.json'}") == {"a": [1]}


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "null", "[" * 10_000, "@/no/such/file"])
def test_arguments_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        read_arguments(text)
