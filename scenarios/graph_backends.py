"""Who answers a Graph's agents: chance, recorded answers, a model server, or a command.

Keys come from the environment alone, and are in no file, error or log. Nothing goes to a model
server unless its backend is asked for by name.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, json

from actors.actor import Actor, Place
from actors.edges.models.anthropic import AnthropicDialect
from actors.edges.models.backend import Backend
from actors.edges.models.command import CommandBackend
from actors.edges.models.http import HttpBackend, ModelUrlError, check_base_url, http_is_installed
from actors.edges.models.live import LiveModel
from actors.edges.models.openai import OpenAiDialect
from actors.edges.models.recording import Recording
from actors.edges.models.tool_calls import NO_TOOLS, Catalogue
from actors.edges.models.usage import Prices
from actors.graph_engine import GraphEngine
from actors.graphs.scripted import AnswersError, ScriptedModel
from actors.graphs.synthetic import SyntheticModel
from scenarios.graph_files import Graph, refusal, text_of
from scenarios.problems import quote

BackendName = Literal["recorded", "synthetic", "openai", "anthropic", "command"]
EXTRA: Final = "pip install 'pullcord[graphs]'"
KEYS: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
BASE_URLS: Final = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}
MODELS: Final = {"openai": "OPENAI_MODEL", "anthropic": "ANTHROPIC_MODEL"}
OPENAI_HOST: Final = "https://api.openai.com/"
_PRICE: Final = re.compile(r"\d{1,6}(?:\.\d{1,6})?")
LIVE: Final = ("openai", "anthropic", "command")


class Choice(Struct, frozen=True, kw_only=True):
    """What a user says of who answers. `prices` is "INPUT/OUTPUT", of a million tokens."""

    backend: BackendName | None = None
    answers: Path | None = None
    record: Path | None = None
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    command: str | None = None
    prices: str | None = None


def named_backend(choice: Choice, graph: Graph) -> BackendName:
    """Return the backend that is meant: by default recorded answers where there are, else chance.

    ScenarioError for a flag that its backend has no use for.
    """
    name = choice.backend
    if name is None:
        recorded = choice.answers is not None or graph.answers.is_file()
        name = "recorded" if recorded else "synthetic"
    uses = {
        "--answers": (choice.answers, ("recorded",)),
        "--record": (choice.record, LIVE),
        "--model": (choice.model, ("openai", "anthropic")),
        "--base-url": (choice.base_url, ("openai", "anthropic")),
        "--key-env": (choice.key_env, ("openai", "anthropic")),
        "--command": (choice.command, ("command",)),
        "--prices": (choice.prices, LIVE),
    }
    for flag, (value, backends) in uses.items():
        if value is not None and name not in backends:
            cure = f"it goes with --backend {' or '.join(backends)}"
            raise refusal(flag, f"the backend {name} has no use for it", cure)
    return name


def make_model(
    name: BackendName,
    choice: Choice,
    graph: Graph,
    config: GraphEngine.Config,
    tools: Catalogue = NO_TOOLS,
) -> tuple[Actor, Recording | None]:
    """Return the model of a run, and the recording that is to be closed at its end.

    A model server is told of `tools`; a command has its own.
    ScenarioError if it can't be made: a file, a key or a name is missing or wrong.
    """
    if name == "synthetic":
        return SyntheticModel(config, Place(name="model")), None
    if name == "recorded":
        return _recorded(choice.answers or graph.answers, config), None
    prices = _prices(choice.prices)
    backend = _command(choice) if name == "command" else _server(name, choice, tools)
    recording = None
    if choice.record is not None:
        try:
            recording = Recording(choice.record)
        except OSError as error:
            cure = "choose another name: a recording is never overwritten"
            exists = isinstance(error, FileExistsError)
            message = f"it can't be written: {error.strerror}"
            raise refusal(str(choice.record), message, cure if exists else None) from None
    return LiveModel(backend, prices, recording), recording


def answers_key(choice: Choice, graph: Graph) -> str:
    """Return how a file of answers is named in errors."""
    return (choice.answers or graph.answers).name


def _recorded(path: Path, config: GraphEngine.Config) -> Actor:
    if not path.is_file():
        cure = "record them: pullcord graph run FILE --backend openai --record ANSWERS"
        raise refusal(str(path), "there are no recorded answers here", cure)
    assert config.answers is not None, "the config of recorded answers names them"
    place = Place(name="model", files={config.answers: text_of(path, str(path))})
    try:
        return ScriptedModel(config, place)
    except AnswersError as error:
        raise refusal(str(path), str(error)) from None


def _command(choice: Choice) -> Backend:
    try:
        words = shlex.split(choice.command or "")
    except ValueError as error:
        raise refusal("--command", f"it can't be read: {error}") from None
    if not words:
        cure = "as in --command 'llm -m mistral': it gets the prompt on stdin"
        raise refusal("--command", "which command answers?", cure)
    return CommandBackend(words, _secrets(os.environ))


def _server(name: Literal["openai", "anthropic"], choice: Choice, tools: Catalogue) -> Backend:
    if not http_is_installed():
        raise refusal(f"--backend {name}", "a model server needs HTTP", EXTRA)
    variable, usual = BASE_URLS[name]
    url = choice.base_url or os.environ.get(variable) or usual
    try:
        url = check_base_url(url)
    except ModelUrlError as error:
        shown = "--base-url" if choice.base_url else variable
        raise refusal(shown, str(error), "as in http://127.0.0.1:11434/v1") from None
    model = choice.model or os.environ.get(MODELS[name])
    if not model:
        raise refusal("--model", "which model answers?", f"give --model, or set {MODELS[name]}")
    key = _key(name, choice, needed=url == usual)
    if name == "anthropic":
        return HttpBackend(AnthropicDialect(model, tools=tools), url.removesuffix("/v1"), key)
    new_names = url.startswith(OPENAI_HOST)
    return HttpBackend(OpenAiDialect(model, new_names=new_names, tools=tools), url, key)


def _key(name: str, choice: Choice, *, needed: bool) -> str | None:
    """Return the key that a server wants, from the environment; a server of one's own needs none.

    The usual variable goes with the usual server, or with the one that the environment names: a
    base URL that is given by a flag gets a key only by a flag.
    """
    variable = choice.key_env
    if variable is None:
        if choice.base_url is not None or not (needed or os.environ.get(KEYS[name])):
            return None
        variable = KEYS[name]
    key = (os.environ.get(variable) or "").strip()
    if not key:
        raise refusal(variable, "this variable holds no key", f"export {variable}=...")
    if not key.isascii() or not key.isprintable():
        raise refusal(variable, "what this variable holds can't be a key: it is not plain text")
    return key


def _secrets(environ: Mapping[str, str]) -> list[str]:
    """Return what must not be said although a command knows it."""
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    secret = [value for key, value in environ.items() if any(word in key for word in words)]
    return [value for value in secret if len(value) >= 8]


def _prices(text: str | None) -> Prices:
    if text is None:
        return Prices()
    found = re.fullmatch(rf"({_PRICE.pattern})/({_PRICE.pattern})", text)
    if found is None:
        cure = "as in --prices 3/15: of a million tokens read and written"
        raise refusal("--prices", f"{quote(text)} is no pair of prices", cure)
    return Prices(input=float(found[1]), output=float(found[2]))


def read_arguments(text: str | None) -> dict[str, Any]:
    """Return a Graph's arguments from JSON, or from the file that `@FILE` names.

    ScenarioError if that is no JSON object.
    """
    if text is None:
        return {}
    source = text
    if text.startswith("@"):
        source = text_of(Path(text[1:]), text[1:])
    try:
        value = json.decode(source)
    except (ValueError, RecursionError) as error:
        cure = """as in --args '{"files": ["a.py"]}', or --args @args.json"""
        raise refusal("--args", f"it is no JSON: {error}", cure) from None
    if not isinstance(value, dict):
        raise refusal("--args", "it must be a JSON object", """as in --args '{"topic": "tea"}'""")
    return value
