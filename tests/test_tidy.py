"""The project keeps its rules of style, and each rule catches a tiny bad example."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hatch_build import PACKAGES
from tests import tidy

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tidy.read_tree(ROOT)
SETTINGS = tomllib.loads(PROJECT["pyproject.toml"])
FLOORS: list[str] = next(
    contract["layers"]
    for contract in SETTINGS["tool"]["importlinter"]["contracts"]
    if contract["id"] == "floors"
)

# Packages whose modules are siblings of one another, however many there are.
FAMILIES = ("transports.faults", "actors.stores")

Rule = Callable[[tidy.Tree], Iterator[str]]

LONG_FUNCTION = "def long():\n" + "    x = 1\n" * 69

# Each rule with a tree that breaks it and a tree that is as near as can be and keeps it.
RULES: list[tuple[Rule, dict[str, str], dict[str, str]]] = [
    (
        tidy.long_functions,
        {"actors/relay.py": LONG_FUNCTION},
        {"actors/relay.py": LONG_FUNCTION.replace("    x = 1\n", "", 1)},
    ),
    (
        tidy.possessive_patterns,
        {"scenarios/a.py": 'import re\nA = re.compile(r"(?:a|b)*+")\n'},
        {"scenarios/a.py": 'import re\nA = re.compile(r"(?:a|b)*[*+]\\++")\n'.replace("++", "+")},
    ),
    (tidy.long_files, {"tests/big.py": "x = 1\n" * 500}, {"tests/big.py": "x = 1\n" * 499}),
    (
        tidy.dead_definitions,
        {
            "actors/relay.py": "def again():\n    again()\n",
            "tests/test_relay.py": "from actors.relay import again\nagain()\n",
        },
        {
            "actors/relay.py": "def again(): ...\nLIMIT = 3\nclass Relay:\n    def go(self): ...\n",
            "logs/a.py": "from actors.relay import again, LIMIT\na: 'Relay' = again(LIMIT)\n",
            "scenarios/b.py": "from logs.a import a\na.go\n",
        },
    ),
    (
        tidy.dead_definitions,
        {"actors/relay.py": "class Relay:\n    def go(self): ...\n\n\nRelay()\n"},
        {
            "scenarios/cli.py": 'app.command(f"{__package__}.runner:run")\n',
            "scenarios/runner.py": "def run(): ...\n@app.command\ndef other(): ...\n",
        },
    ),
    (
        tidy.dead_definitions,
        {"logs/write.py": "CHUNK_LINES = 4096\n"},
        {"logs/write.py": "class Writer: ...\n", "pullcord.py": "from logs.write import Writer\n"},
    ),
    (
        tidy.dead_definitions,
        {
            "logs/a.py": "from other.app import App\nclass A(App):\n    def go(self): ...\n",
            "scenarios/b.py": "from logs.a import A\nA()\n",
        },
        {
            "logs/a.py": "from textual.app import App\nclass A(App[int]):\n    def go(self): ...\n",
            "logs/c.py": "import pytest\nclass C(pytest.Item):\n    def run(self): ...\n",
            "logs/d.py": "import trio\nclass D(trio.abc.Clock):\n    async def go(self): ...\n",
            "scenarios/b.py": "from logs.a import A\nfrom logs.c import C\nfrom logs.d import D\n"
            "A(C, D)\n",
        },
    ),
    (
        tidy.unused_files,
        {"logs/read.py": "from logs.record import x\n", "logs/record.py": ""},
        {
            "actors/stores/memory.py": "",
            "scenarios/runner.py": "from actors.stores import memory\n",
            "scenarios/cli.py": 'f"{__package__}.runner:run"\n',
            "pullcord.py": "from scenarios.cli import main\n",
            "tests/test_runner.py": "",
        },
    ),
    (
        tidy.missing_tests,
        {"actors/relay.py": "", "tests/test_relay.py": ""},
        {"actors/relay.py": "", "tests/actors/test_relay.py": "", "actors/__init__.py": ""},
    ),
    (
        tidy.missing_tests,
        {"actors/stores/memory.py": "", "tests/actors/test_memory.py": ""},
        {"actors/stores/memory.py": "", "tests/actors/test_stores.py": ""},
    ),
    (
        tidy.unfinished,
        {"Makefile": f"# {'todo'.upper()}: later\n"},
        {"Makefile": "# TODOS, as a word of its own, is none\n"},
    ),
    (
        tidy.packages_without_layout,
        {"actors/__init__.py": '"""Actors."""\n'},
        {"actors/__init__.py": '"""Actors.\n\none: a\ntwo: b\nthree: c\nfour: d\n"""\n'},
    ),
    (
        tidy.packages_without_layout,
        {"actors/stores/memory.py": ""},
        {"actors/__init__.py": "# one\n# two\n# three\n# four\n# five\n"},
    ),
    (
        tidy.silent_suppressions,
        {"logs/write.py": "import x  # noqa: F401\n"},
        {"logs/write.py": "import x  # noqa: F401  re-exported\n# noqa is a word here\n"},
    ),
    (
        tidy.silent_suppressions,
        {"logs/write.py": "x = y()  # type: ignore[no-untyped-call]\n"},
        {"logs/write.py": "x = y()  # type: ignore[no-untyped-call]  # y has no types\n"},
    ),
    (
        tidy.impure_imports,
        {"actors/relay.py": "import msgspec\nimport time as clock\n"},
        {"actors/simulator.py": "import time\n", "transports/clock.py": "import time\n"},
    ),
    (
        tidy.impure_imports,
        {"actors/relay.py": "def f():\n    from os.path import join\n"},
        {"actors/relay.py": "from timer import x\nfrom statistics import NormalDist\n"},
    ),
    (
        tidy.other_import_forms,
        {"scenarios/cli.py": "import actors.relay\n"},
        {"scenarios/cli.py": "from actors.relay import Relay\nimport actors_of_others\n"},
    ),
    (
        tidy.other_import_forms,
        {"scenarios/cli.py": "from . import runner\n"},
        {"scenarios/templates/own.py": "from pullcord import Relay\n"},
    ),
    (
        tidy.other_import_forms,
        {"scenarios/cli.py": "from pullcord import run\n"},
        {"tests/test_pullcord.py": "from pullcord import run\n"},
    ),
    (
        tidy.written_out_modules,
        {"scenarios/cli.py": 'app.command("scenarios.runner:run")\n'},
        {"scenarios/cli.py": 'app.command(f"{__package__}.runner:run")\n'},
    ),
    (
        tidy.written_out_modules,
        {"scenarios/cli.py": 'load("logs.write")\n', "logs/write.py": ""},
        {"scenarios/cli.py": 'event("logs.written")\n"""Text about logs.write."""\n'},
    ),
    (
        tidy.written_out_modules,
        {"scenarios/places.py": 'resources.files("scenarios")\n'},
        {"scenarios/places.py": 'resources.files(__package__)\npath / "scenarios"\n'},
    ),
]


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _, _ in RULES))
def test_the_project_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(PROJECT)) == []


@pytest.mark.parametrize(("rule", "bad", "good"), RULES)
def test_the_rule_tells_bad_from_good(
    rule: Rule, bad: dict[str, str], good: dict[str, str]
) -> None:
    assert len(list(rule(bad))) == 1
    assert list(rule(good)) == []


def test_what_is_read_is_what_people_wrote(tmp_path: Path) -> None:
    for path in ("actors/a.py", ".ci/run", ".venv/b.py", "logs/results/c.json", "scenarios/d.toml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert sorted(tidy.read_tree(tmp_path)) == [".ci/run", "actors/a.py", "scenarios/d.toml"]


def test_every_rule_that_is_switched_off_says_why() -> None:
    assert list(tidy.silent_ignores(PROJECT["pyproject.toml"])) == []
    one = 'ignore = [\n    "D105",\n    "D203", # the opposite of D211\n]\n'
    two = '[tool.ruff.lint.per-file-ignores]\n# Why.\n"a" = ["X"]\n"b" = ["X"]\n\n"c" = ["X"]\n'
    assert [line.split()[0] for line in tidy.silent_ignores(one + two)] == [
        "pyproject.toml:2:",
        "pyproject.toml:10:",
    ]


def test_every_module_has_its_floor() -> None:
    assert list(tidy.unplaced_modules(PROJECT, FLOORS)) == []
    tree = {"actors/__init__.py": "", "actors/new.py": "", "actors/stores/disk.py": ""}
    assert list(tidy.unplaced_modules(tree, ["actors.relay | (actors.stores)"])) == [
        "actors/new.py: the floors in pyproject.toml don't place it"
    ]
    tree = {"actors/graphs/__init__.py": "", "actors/graphs/seam.py": "", "actors/graphs/b.py": ""}
    assert list(tidy.unplaced_modules(tree, ["actors.graphs.seam"])) == [
        "actors/graphs/b.py: the floors in pyproject.toml don't place it"
    ]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """What import-linter says of a checkout."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_the_floors_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """A checkout with our floors and an empty module in every place that they name."""
    (tmp_path / "pyproject.toml").write_text(PROJECT["pyproject.toml"])
    named = {name.strip(" ()") for layer in FLOORS for name in re.split(r"[|:]", layer)}
    siblings = {f"{package}.{name}" for package in FAMILIES for name in ("one", "other")}
    inner = sorted({name.rpartition(".")[0] for name in named if name.count(".") > 1})
    folders = {*PACKAGES, *FAMILIES, *inner}
    for name in named | siblings | {"scenarios.cli", "transports.faults.fault"}:
        module = tmp_path / (name.replace(".", "/") + ".py")
        module.parent.mkdir(parents=True, exist_ok=True)
        if name not in folders:
            module.write_text("x = 1\n")
    for folder in (name.replace(".", "/") for name in (*PACKAGES, *FAMILIES, *inner)):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "__init__.py").write_text("")
    other = tmp_path / "transports" / "faults" / "other.py"
    other.write_text("from transports.faults.fault import x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("transports/codec.py", "from actors.messages import x\n"),
        ("actors/messages.py", "from actors.relay import x\n"),
        ("actors/relay.py", "from actors.server import x\n"),
        ("actors/relay.py", "from actors.stores.one import x\n"),
        ("transports/memory.py", "from transports.faults.one import x\n"),
        ("transports/faults/one.py", "from transports.faults.other import x\n"),
        ("actors/stores/one.py", "def f():\n    from actors.stores.other import x\n"),
        ("actors/simulator.py", "from scenarios.cli import x\n"),
    ],
)
def test_an_import_upward_or_sideways_is_refused(skeleton: Path, path: str, line: str) -> None:
    (skeleton / path).write_text(line)
    done = lint_imports(skeleton)
    assert (done.returncode, "BROKEN" in done.stdout) == (1, True), done.stdout


def test_an_import_downward_is_allowed(skeleton: Path) -> None:
    (skeleton / "scenarios" / "cli.py").write_text("from actors.relay import x\n")
    (skeleton / "actors" / "relay.py").write_text("from transports.units import x\n")
    done = lint_imports(skeleton)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", sorted(tidy.BANNED_IN_PURE))
def test_the_linter_bans_the_same_from_pure_actors(module: str) -> None:
    assert "TID251" in ruff(f"import {module} as m\n\nm\n", "actors/relay.py")
    assert "TID251" in ruff(f"def f() -> None:\n    from {module} import x\n", "actors/owner.py")


@pytest.mark.parametrize(
    "path", ["actors/simulator.py", "actors/stores/disk.py", "transports/tcp.py", "tests/x.py"]
)
def test_the_linter_bans_nothing_elsewhere(path: str) -> None:
    assert ruff("import trio\n\ntrio.run\n", path) == ""


def ruff(source: str, path: str) -> str:
    """What ruff's ban says of a source, were it the file at `path`."""
    options = ["--select", "TID251", "--quiet", "--output-format", "concise", "--no-cache"]
    done = subprocess.run(
        [Path(sys.executable).with_name("ruff"), "check", *options, "--stdin-filename", path, "-"],
        input=source,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


def test_settings_that_nothing_may_loosen() -> None:
    tool: dict[str, Any] = SETTINGS["tool"]
    assert tool["mypy"]["strict"] is True
    assert tool["pytest"]["filterwarnings"] == ["error"]
    assert tool["pytest"]["xfail_strict"] is True


def test_no_page_has_a_place_that_was_to_be_filled() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        assert "@@" not in page.read_text(encoding="utf-8"), page
