"""What a user installs: the wheel, in an environment of its own, beside names like ours."""

import email
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hatch_build import PACKAGES, nest, rewrite

ROOT = Path(__file__).resolve().parent.parent

# PyPI has a distribution of this name: installing pullcord must leave its files as they are.
STRANGER = 'WHOSE = "another project\'s transports"\n'
OWN_ACTORS = 'WHOSE = "the user\'s actors"\n'


@dataclass(frozen=True)
class Installed:
    """A user's project folder and the environment that pullcord's wheel was installed into."""

    wheel: Path
    python: Path
    site: Path
    project: Path

    def finish(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the project to its end."""
        return subprocess.run(
            command,
            cwd=self.project,
            env=bare_environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, *command: str) -> str:
        """Standard output of a command that runs in the project; it must succeed and be silent."""
        done = self.finish(*command)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    @property
    def pullcord(self) -> str:
        """The command."""
        return str(self.python.with_name("pullcord"))

    def evaluate(self, *lines: str) -> str:
        """What a few lines of Python print when they run in the project."""
        return self.run(str(self.python), "-c", "\n".join(lines)).strip()


def bare_environment() -> dict[str, str]:
    """The environment without what would lead Python back to the checkout."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def build(source: Path, target: str, into: Path) -> Path:
    """The one file that hatchling, as it is installed here, makes of the tree at `source`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (built,) = into.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by their path in it."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def shipped(root: Path) -> set[str]:
    """The files of the four packages in the checkout, less results and caches."""
    return {
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"
        and not path.is_relative_to(root / "logs" / "results")
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def install(wheel: Path, folder: Path) -> Installed:
    """The wheel in a fresh environment, without its dependencies and without network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    answer = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-c", answer], text=True).strip())
    command = ["pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([sys.executable, "-m", *command, wheel], check=True, env=bare_environment())
    return Installed(wheel, python, site, users_project(folder))


def lend(installed: Installed, *extras: str) -> None:
    """Put into an environment what its wheel's metadata ask for, as it is installed in this one."""
    for name in sorted(required(metadata(installed.wheel), extras)):
        for top in {file.parts[0] for file in distribution(name).files or ()}:
            there = installed.site / top
            if top not in {"..", "__pycache__"} and not there.exists():
                there.symlink_to(str(distribution(name).locate_file(top)))


def required(asking: Message, extras: Iterable[str]) -> set[str]:
    """The distributions that an installation brings, from its metadata on."""
    ways = [{"extra": extra} for extra in ("", *extras)]
    found: set[str] = set()
    for line in asking.get_all("Requires-Dist", []):
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate(way) for way in ways):
            text = distribution(need.name).read_text("METADATA") or ""
            found |= {need.name} | required(email.message_from_string(text), need.extras)
    return found


def metadata(wheel: Path) -> Message:
    """What a wheel says of itself."""
    return email.message_from_bytes(contents(wheel)["pullcord-0.1.0.dist-info/METADATA"])


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in a fresh environment that borrows all that is installed in this one."""
    made = install(wheel, tmp_path_factory.mktemp("user's machine"))
    site = made.site
    # A .pth file inside a folder that was itself added by a .pth file isn't read: the editable
    # install of this checkout stays invisible.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "transports").mkdir()
    (site / "transports" / "__init__.py").write_text(STRANGER)
    (site / "transports" / "memory.py").write_text(STRANGER)
    return made


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """`pip install pullcord`, with what that brings and nothing else."""
    made = install(wheel, tmp_path_factory.mktemp("plain"))
    lend(made)
    return made


@pytest.fixture(scope="module")
def with_graphs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """`pip install 'pullcord[graphs]'`, with what that brings and nothing else."""
    pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")
    made = install(wheel, tmp_path_factory.mktemp("with graphs"))
    lend(made, "graphs")
    return made


def users_project(folder: Path) -> Path:
    """A project that has names of its own which our packages have too."""
    project = folder / "project"
    for taken in ("logs", "scenarios"):
        (project / taken).mkdir(parents=True)
        (project / taken / "notes.txt").write_text("the user's own\n")
    (project / "actors.py").write_text(OWN_ACTORS)
    return project


def test_everything_lies_under_pullcord(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in contents(wheel)}
    assert tops == {"pullcord", "pullcord-0.1.0.dist-info"}


def test_every_file_of_the_packages_is_shipped_once(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("pullcord/")]
    nested = {f"pullcord/{name}" for name in shipped(ROOT)}
    assert sorted(names) == sorted(nested | {"pullcord/__init__.py", "pullcord/py.typed"})


def test_no_import_of_a_top_level_package_is_left(wheel: Path) -> None:
    for name, source in contents(wheel).items():
        if name.endswith(".py"):
            assert rewrite(source, name) == source, name


def test_the_wheel_built_from_the_source_archive_is_the_same(wheel: Path, tmp_path: Path) -> None:
    archive = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        if hasattr(tarfile, "data_filter"):
            opened.extractall(tmp_path, filter="data")
        else:  # before 3.11.4
            opened.extractall(tmp_path)  # noqa: S202  the archive is our own
    again = build(tmp_path / "pullcord-0.1.0", "wheel", tmp_path / "wheel")
    assert contents(again) == contents(wheel)


def test_an_index_would_refuse_it(wheel: Path) -> None:
    assert "Private :: Do Not Upload" in metadata(wheel).get_all("Classifier", [])


def test_the_command_runs_in_a_project_with_our_names(installed: Installed) -> None:
    helped = installed.run(installed.pullcord, "--help")
    assert "run" in helped
    assert "replay" in helped


def test_imports_go_to_whom_they_belong(installed: Installed) -> None:
    told = installed.evaluate(
        "import pullcord, actors, transports",
        "print(pullcord.__file__, actors.WHOSE, transports.WHOSE, sep='\\n')",
    )
    facade, own, stranger = told.splitlines()
    assert Path(facade) == installed.site / "pullcord" / "__init__.py"
    assert (own, stranger) == ("the user's actors", "another project's transports")


def test_no_package_is_installed_at_the_top(installed: Installed) -> None:
    tops = {path.name for path in installed.site.iterdir()}
    assert tops == {"borrowed.pth", "pullcord", "pullcord-0.1.0.dist-info", "transports"}
    strangers = sorted((installed.site / "transports").rglob("*.py"))
    assert [path.read_text() for path in strangers] == [STRANGER, STRANGER]


def test_every_module_can_be_imported_from_the_wheel(installed: Installed) -> None:
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in contents(installed.wheel)
        if name.endswith(".py") and is_module(installed.site, name)
    ]
    told = installed.evaluate(
        "import importlib, sys",
        f"for name in {modules!r}: importlib.import_module(name)",
        f"print(sorted(set(sys.modules) & set({PACKAGES!r})))",
    )
    assert told == "[]"


def is_module(site: Path, name: str) -> bool:
    """Whether a file of the wheel is a module of ours, and no template or example for users."""
    return (site / name).with_name("__init__.py").exists()


def test_pytest_finds_the_plugin_under_its_nested_name(installed: Installed) -> None:
    told = installed.evaluate(
        "from importlib.metadata import distribution",
        "(found,) = distribution('pullcord').entry_points.select(group='pytest11')",
        "print(found.load().__name__)",
    )
    assert told == "pullcord.scenarios.pytest_plugin"


USERS_RELAY = '''
from pullcord import Relay


class PatientRelay(Relay):
    """Ours, by another name: it shows that a user's class takes the place of the built-in one."""
'''

USERS_SCENARIO = """
schema = 1
name = "own-relay"
[run]
seed = 1
replications = 20
[relay]
use = "my_relay.py:PatientRelay"
poll = "20s"
[workload]
runs = 1
[metrics.calls]
count = "GetGraphRun"
per = "run"
[[expect]]
that = "calls.mean > 0"
"""


def test_a_scenario_runs_with_the_users_own_relay(installed: Installed) -> None:
    (installed.project / "my_relay.py").write_text(USERS_RELAY)
    (installed.project / "own_relay.toml").write_text(USERS_SCENARIO)
    command = installed.pullcord
    told = installed.run(command, "run", "own_relay.toml", "--format", "json", "--no-progress")
    assert "own-relay" in told
    assert sorted(path.name for path in (installed.project / "logs").iterdir()) == ["notes.txt"]
    assert (installed.project / "pullcord-results").is_dir()


def test_a_users_test_suite_collects_scenario_files(installed: Installed) -> None:
    (installed.project / "test_own.py").write_text("def test_nothing() -> None: ...\n")
    pytest_in_project = (str(installed.python), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in installed.run(*pytest_in_project, "test_own.py")


SMALL_GRAPH = "return (await parallel([1, 2].map(n => () => agent(`${n} of ${args.of}`)))).length"
INSTALL_GRAPHS = "pip install 'pullcord[graphs]'"
GRAPH_SCENARIO = 'schema = 1\nname = "graphs"\n[engine]\nuse = "graph"\ngraph = "small.js"\n'


def test_with_the_extra_graphs_run_and_all_that_it_needs_is_named(with_graphs: Installed) -> None:
    command, project = with_graphs.pullcord, with_graphs.project
    (project / "small.js").write_text(SMALL_GRAPH)
    (project / "graphs.toml").write_text(GRAPH_SCENARIO)
    done = with_graphs.finish(
        command, "graph", "run", "small.js", "--args", '{"of": 2}', "--backend", "synthetic"
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert with_graphs.run(command, "graph", "check", "small.js") == "small.js: no mistake found\n"
    assert "1 replication" in with_graphs.run(command, "run", "graphs.toml", "-n", "1")
    # A model server that is not there is asked for, so the client and the schemas are installed.
    (project / "typed.js").write_text("return agent('x', {schema: {type: 'object'}})")
    live = ("--backend", "openai", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    done = with_graphs.finish(command, "graph", "run", "typed.js", *live)
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_extra_all_else_works(plain: Installed) -> None:
    command = plain.pullcord
    assert "passed of" in plain.run(command, "run", "@published/poll_strategies")
    (plain.project / "own.toml").write_text(USERS_SCENARIO.replace("use =", "# use ="))
    plain.run(command, "run", "own.toml", "--out", "out", "--logs", "all")
    assert "the same:" in plain.run(command, "replay", "out/logs")
    (plain.project / "small.js").write_text(SMALL_GRAPH)
    assert "small.js" in plain.run(command, "graph", "check", "small.js")
    assert "@graphs/" in plain.finish(command, "graph", "list").stdout


@pytest.mark.parametrize("what", [("graph", "run", "small.js"), ("run", "graphs.toml")])
def test_without_the_extra_a_graph_says_what_to_install(
    plain: Installed, what: tuple[str, ...]
) -> None:
    (plain.project / "small.js").write_text(SMALL_GRAPH)
    (plain.project / "graphs.toml").write_text(GRAPH_SCENARIO)
    done = plain.finish(plain.pullcord, *what)
    assert done.returncode == 2
    assert INSTALL_GRAPHS in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_editable_checkout_hands_over_its_own_plugin() -> None:
    lines = "import pullcord; print(pullcord.__file__, pullcord.pytest_plugin.__name__, sep='\\n')"
    told = subprocess.check_output([sys.executable, "-c", lines], cwd=ROOT, text=True)
    assert told.splitlines() == [str(ROOT / "pullcord.py"), "scenarios.pytest_plugin"]


@pytest.mark.parametrize(
    ("plain", "nested"),
    [
        ("from actors.relay import Relay\n", "from pullcord.actors.relay import Relay\n"),
        ("from scenarios import cli\n", "from pullcord.scenarios import cli\n"),
        (
            "def f():\n    from logs.write import w\n",
            "def f():\n    from pullcord.logs.write import w\n",
        ),
        ("é = 1; from logs.write import w\n", "é = 1; from pullcord.logs.write import w\n"),
        ("from logs.write import (\n    w,\n)\n", "from pullcord.logs.write import (\n    w,\n)\n"),
        ("from actors_of_others import x\n", "from actors_of_others import x\n"),
        (
            "text = '''\nfrom actors.relay import Relay\n'''\n",
            "text = '''\nfrom actors.relay import Relay\n'''\n",
        ),
        ("from pullcord import Relay\r\n", "from pullcord import Relay\r\n"),
    ],
)
def test_rewriting_touches_imports_alone(plain: str, nested: str) -> None:
    assert rewrite(plain.encode(), "example.py").decode() == nested


def test_a_form_that_cannot_be_nested_stops_the_build() -> None:
    with pytest.raises(SyntaxError, match=r"from actors\.relay import"):
        rewrite(b"import actors.relay\n", "example.py")


def test_results_and_caches_are_not_shipped(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    for package in PACKAGES:
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").write_text("")
    for folder in ("logs/results/r1", "actors/__pycache__", "scenarios/.hidden"):
        (root / folder).mkdir(parents=True)
        (root / folder / "left.py").write_text("")
    (root / "scenarios" / "published").mkdir()
    (root / "scenarios" / "published" / "one.toml").write_text("schema = 1\n")
    (root / "pullcord.py").write_text("from actors.relay import Relay\n")
    nest(root, tmp_path / "nested")
    found = {
        p.relative_to(tmp_path / "nested").as_posix() for p in (tmp_path / "nested").rglob("*.*")
    }
    inits = {f"{package}/__init__.py" for package in PACKAGES}
    assert found == inits | {"__init__.py", "py.typed", "scenarios/published/one.toml"}
    assert "pullcord.actors" in (tmp_path / "nested" / "__init__.py").read_text()
