"""Actors of one's own: what can be wrong with a file, a class and its config, as it is told."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from actors.relay import Relay
from scenarios.cast import BUILT_IN, ForeignActorError, NoConfig, actor_class, config_class
from scenarios.spec import KINDS
from tests.scenarios.loading import load, told

PLAIN = """
class Own:
    def __init__(self, config, place):
        self.handlers = {}
    def on_start(self, context): ...
    def on_timer(self, context, timer): ...
"""
EAGER = """
from __future__ import annotations
import msgspec
from pullcord import Duration, Relay

class Own(Relay):
    class Config(Relay.Config, frozen=True, kw_only=True):
        eager_us: Duration = msgspec.field(name="eager", default=Duration(5_000_000))
"""
USE = '[relay]\nuse = "own.py:Own"\n'


def with_file(folder: Path, source: str, text: str = USE) -> list[str]:
    (folder / "own.py").write_text(source, encoding="utf-8")
    return told(folder, text)


def test_a_class_of_ones_own_with_its_config(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(EAGER)
    plan = load(tmp_path, USE + 'poll = "7s"\neager = "1s"\n')
    relay = next(one for one in plan.scenarios[0].cast if one.kind == "relay")
    assert (relay.use, relay.config.poll_us, relay.config.eager_us) == (
        "own.py:Own",
        7_000_000,
        1_000_000,
    )


def test_a_class_without_a_config_takes_no_key(tmp_path: Path) -> None:
    assert with_file(tmp_path, PLAIN) == []
    assert with_file(tmp_path, PLAIN, USE + 'poll = "5s"\n') == [
        '3 poll: unknown key "poll" in [relay] / "poll" is a key of [agent]'
    ]
    assert config_class(actor_class("relay", "own.py:Own", tmp_path)) is NoConfig


def test_built_in_can_be_swept_against(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(EAGER)
    plan = load(tmp_path, '[sweep.product]\n"relay.use" = ["built-in", "own.py:Own"]\n')
    uses = [[one.use for one in cell.cast if one.kind == "relay"] for cell in plan.scenarios]
    assert uses == [[None], ["own.py:Own"]]
    assert actor_class("relay", "built-in", tmp_path) is Relay


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("own.pyy:Own", '"own.pyy:Own" names no class'),
        ("own.py", '"own.py" names no class'),
        ("own.py:", '"own.py:" names no class'),
        ("", '"" names no class'),
        ("owm.py:Own", 'there is no file "owm.py" / did you mean "own.py"?'),
        ("no/own.py:Own", 'there is no file "no/own.py" / it is looked for in FOLDER/no'),
        ("own.py:Owm", 'own.py has no class Owm / did you mean "Own"?'),
        ("own.py:Relay2", "own.py has no class Relay2 / it has Own"),
        ("own.py:made", "own.py has no class made / it has Own"),
    ],
)
def test_what_names_no_class(tmp_path: Path, use: str, expected: str) -> None:
    source = f"{PLAIN}\ndef made(config, place): return Own(config, place)\n"
    [found] = with_file(tmp_path, source, f'[relay]\nuse = "{use}"\n')
    assert found.startswith(f'2 "{use}": {expected.replace("FOLDER", str(tmp_path))}')


HOOKS = "def on_start(self, c): ...\n    def on_timer(self, c, t): ...\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\n", "own.py has no class Own / it has no class"),
        (
            "\nclass Own:\n    def f(self)\n        pass\n",
            "own.py can't be imported: SyntaxError: expected ':' (line 3)",
        ),
        (
            "import nothere\n",
            "own.py can't be imported: ModuleNotFoundError: No module named 'nothere' (line 1)",
        ),
        (
            "import tried_helper\n",
            (
                "own.py can't be imported: ModuleNotFoundError: No module named 'tried_helper'"
                " (line 1) / a file is imported alone: put what it needs into it, or install that"
            ),
        ),
        (
            "from . import x\n",
            (
                "own.py can't be imported: ImportError: attempted relative import with no known"
                " parent package (line 1)"
                " / a file is imported alone: put what it needs into it, or install that"
            ),
        ),
        (
            "def f():\n    return 1 / 0\n\nf()\n",
            "own.py can't be imported: ZeroDivisionError: division by zero (line 2)",
        ),
        (
            "import sys\nsys.exit(3)\n",
            (
                "own.py can't be imported: it ends the program (line 2)"
                ' / put what a script does below if __name__ == "__main__":'
            ),
        ),
        (
            "class Own:\n    pass\n",
            "Own has no method on_start / `pullcord new actor` writes a complete one",
        ),
        (
            "class Own:\n    on_start = print\n    on_timer = 5\n",
            "Own has no method on_timer / `pullcord new actor` writes a complete one",
        ),
        (
            f"import abc\nclass Own(abc.ABC):\n    @abc.abstractmethod\n    {HOOKS}",
            "Own is abstract: it lacks on_start",
        ),
        ("from pullcord import Agent\nclass Own(Agent): ...\n", "Own plays agent, not relay"),
        (
            f"class Own:\n    class Config: ...\n    {HOOKS}",
            (
                "Own.Config is no msgspec.Struct"
                " / write class Config(msgspec.Struct, frozen=True, kw_only=True)"
            ),
        ),
        (
            EAGER.replace("eager_us: Duration", "eager_us: Durtion"),
            "Own.Config has a type that can't be read: name 'Durtion' is not defined",
        ),
        (
            EAGER.replace('"eager"', '"use"'),
            (
                'Own.Config has the field "use", which is a key of every actor\'s table'
                " / call it otherwise"
            ),
        ),
        (
            f"class Own:\n    {HOOKS}",
            (
                "Own can't be made: TypeError: Own() takes no arguments"
                " / it is called with two values: write def __init__(self, config, place)"
            ),
        ),
        (
            f"class Own:\n    def __init__(self, config, place):\n        config.poll\n    {HOOKS}",
            "Own can't be made: AttributeError: 'NoConfig' object has no attribute 'poll' (line 3)",
        ),
        (
            f"class Own:\n    def __init__(self, config, place): ...\n    {HOOKS}",
            (
                "Own.handlers is no mapping from message types to methods"
                " / set it in __init__, as in self.handlers = {GraphRun: self.on_answer}"
            ),
        ),
    ],
)
def test_what_can_be_wrong_with_a_file(tmp_path: Path, source: str, expected: str) -> None:
    (tmp_path / "tried_helper.py").write_text("x = 1\n")
    assert with_file(tmp_path, source) == [f'2 "own.py:Own": {expected}']


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('eagr = "1s"', '3 eagr: unknown key "eagr" in [relay] / did you mean "eager"?'),
        ('eager = "1"', '3 "1": "eager": 1 has no unit: write "1s" for seconds'),
        ('poll = "1"', '3 "1": "poll": 1 has no unit: write "1s" for seconds'),
    ],
)
def test_a_bad_config_is_told_at_its_key(tmp_path: Path, line: str, expected: str) -> None:
    assert with_file(tmp_path, EAGER, f"{USE}{line}\n") == [expected]


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ('raise ValueError("too eager")', "1 [relay]: [relay]: too eager"),
        ("1 / 0", "1 [relay]: Own.Config can't be made: ZeroDivisionError: division by zero"),
    ],
)
def test_a_config_that_refuses_its_values(tmp_path: Path, check: str, expected: str) -> None:
    source = f"{EAGER}\n        def __post_init__(self):\n            {check}\n"
    assert with_file(tmp_path, source) == [expected]


def test_a_config_with_a_type_that_no_file_can_give(tmp_path: Path) -> None:
    source = EAGER.replace("eager_us: Duration", "eager_us: object")
    assert with_file(tmp_path, source) == []
    assert with_file(tmp_path, source, f'{USE}eager = "1s"\n') == [
        '3 "1s": "eager": a Config can\'t have a field of type object'
    ]


def test_a_workload_for_an_agent_that_has_other_keys(tmp_path: Path) -> None:
    config = "    class Config(msgspec.Struct):\n        runs: str = 'x'\n"
    source = PLAIN.replace("class Own:\n", f"import msgspec\nclass Own:\n{config}")
    text = '[workload]\nruns = 3\nevery = "5s"\n[[agent]]\nuse = "own.py:Own"\n[[agent]]\n'
    assert with_file(tmp_path, source, text) == [
        '2 3: "runs" must be a string, not an integer / put it in quotes: "3"',
        '3 every: Own has no key "every"',
    ]


# Modules


def test_an_edited_file_is_read_anew_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    """Python's own cache would take the older of two versions of one second and size."""
    for number in range(3):
        (tmp_path / "own.py").write_text(f"{PLAIN}    number = {number}\n")
        assert actor_class("relay", "own.py:Own", tmp_path).number == number
    assert [path.name for path in tmp_path.iterdir()] == ["own.py"]


def test_one_content_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PLAIN)
    first = actor_class("relay", "own.py:Own", tmp_path)
    assert actor_class("agent", "own.py:Own", tmp_path) is first


def test_files_of_one_name_and_of_our_names_don_t_clash(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name in ("actors.py", "json.py"):
            (tmp_path / folder / name).write_text(f"{PLAIN}    folder = {folder!r}\n")
    before = dict(sys.modules)
    found = [
        actor_class("relay", f"{folder}/{name}.py:Own", tmp_path).folder
        for folder in ("a", "b")
        for name in ("actors", "json")
    ]
    assert found == ["a", "a", "b", "b"]
    assert {name: sys.modules[name] for name in before} == before
    assert str(tmp_path) not in sys.path


def test_a_file_that_failed_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"import sys\nassert 'tried' in vars(sys)\n{PLAIN}")
    with pytest.raises(ForeignActorError, match=r"AssertionError.*line 2"):
        actor_class("relay", "own.py:Own", tmp_path)
    try:
        vars(sys)["tried"] = True
        assert actor_class("relay", "own.py:Own", tmp_path).__name__ == "Own"
    finally:
        del vars(sys)["tried"]


def test_annotations_are_found_in_the_users_module(tmp_path: Path) -> None:
    config = "import msgspec\nWidth = int\nclass Config(msgspec.Struct):\n    width: Width = 5\n"
    source = f"from __future__ import annotations\n{config}{PLAIN}    Config = Config\n"
    assert with_file(tmp_path, source, f"{USE}width = 7\n") == []


def test_every_kind_has_its_built_in_actor_and_a_config() -> None:
    assert tuple(BUILT_IN) == KINDS
    for actor in BUILT_IN.values():
        assert issubclass(config_class(actor), msgspec.Struct)
