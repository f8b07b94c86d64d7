"""`pullcord report` and `run --report`, as a user calls them, and as a browser shows it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scenarios import run as run_module
from tests.scenarios.commandline import ROOT, SMALL, write
from tests.scenarios.conftest import Call
from tests.scenarios.report.drawings import SPACE
from tests.scenarios.report.test_strip import FAULTS

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (found := shutil.which(name))), None
)  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "default_base", lambda: Path("pullcord-results"))


@pytest.fixture
def results(tmp_path: Path, call: Call) -> str:
    """A results folder."""
    write(tmp_path)
    call("run", "small.toml", "-n", "10", "--out", "out", "-j", "1", "-q")
    return "out"


def test_it_says_where_it_wrote(results: str, call: Call) -> None:
    done = call("report", results)
    assert (done.code, done.out, done.err) == (0, "out/report.html\n", "")
    assert Path("out/report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    done = call("report", "out/results.json", "--out", "deep/there.html")
    assert (done.code, done.out) == (0, "deep/there.html\n")
    assert Path("deep/there.html").read_bytes() == Path("out/report.html").read_bytes()


def test_drawings_are_files_too(results: str, call: Call) -> None:
    assert call("report", results, "--svg", "plots").code == 0
    files = sorted(Path("plots").iterdir())
    assert len(files) == Path("out/report.html").read_text().count("<svg")
    assert any(file.name.startswith("small_wait_relay.poll=5s") for file in files)
    assert all(SPACE.strip("{}") in file.read_text() for file in files)


def test_run_writes_one_too(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    done = call("run", "small.toml", "--report", "-n", "4", "-j", "1")
    assert done.out.endswith("\nreport in pullcord-results/small-1/report.html\n")
    kept = Path("pullcord-results/small-1/report.html").read_bytes()
    assert call("report", "pullcord-results/small-1").code == 0
    assert Path("pullcord-results/small-1/report.html").read_bytes() == kept
    done = call("run", "small.toml", "--report", "-n", "4", "-j", "1", "--format", "json")
    assert "report in" not in done.out
    assert done.err == "report in pullcord-results/small-2/report.html\n"


def test_text_has_a_line_a_metric(results: str, call: Call) -> None:
    done = call("report", results, "--text")
    assert done.code == 0
    assert "10 replications" not in done.err
    assert "20 replications in 2 cells\n" in done.out, "without the time that it took"
    assert re.search(r"^    5s +0\.\d+ (s|ms) [ .:=+*#@▁-█-]{30} ", done.out, re.MULTILINE)
    assert not Path("out/report.html").exists()
    verbose = call("run", "small.toml", "-n", "10", "-j", "1", "-v")
    bars = done.out[done.out.rindex("\n\nsmall\n") :]
    assert verbose.out.endswith(bars)
    assert max(map(len, bars.splitlines())) < 80


@pytest.mark.parametrize(
    ("args", "words", "cure"),
    [
        (["missing"], "missing: there is no such folder", "the last line of pullcord run"),
        (["small.toml"], "small.toml is a file, not a results folder", "name the folder"),
        (["."], ". has no results: there is no journal.jsonl in it", "name the folder"),
        (["out", "--out", "."], ". can't be written: it is a folder", "choose another place"),
        (["out", "--text", "--svg", "x"], "--text: prints on the terminal", ""),
        ([], "", "pullcord report --help"),
    ],
)
def test_mistakes_are_told(
    results: str, call: Call, args: list[str], words: str, cure: str
) -> None:
    assert results == "out"
    done = call("report", *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert cure in done.err
    assert "Traceback" not in done.err


def test_an_interrupted_run_has_no_report(results: str, call: Call) -> None:
    Path(results, "results.json").unlink()
    journal = Path(results, "journal.jsonl")
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    done = call("report", results)
    assert done.code == 2
    assert "out can't be reported: its run was interrupted; of 20 replications it lacks" in done.err
    assert "help: go on with it: pullcord run --resume out" in done.err


# The kept examples

DOCS = ROOT / "docs"
KEPT = re.findall(
    r"^pullcord run (.+) --out (\S+)\npullcord report \2 --out (docs/\S+)$",
    (DOCS / "reports.md").read_text(encoding="utf-8"), re.MULTILINE,
)  # fmt: skip


@pytest.mark.parametrize(("words", "out", "page"), KEPT, ids=[page for *_, page in KEPT])
def test_kept_reports_are_made_by_their_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, words: str, out: str, page: str
) -> None:
    monkeypatch.chdir(ROOT)
    folder = tmp_path / Path(out).name
    assert call("run", *words.split(), "--out", str(folder), "-q", "-j", "1").code in (0, 1)
    assert call("report", str(folder), "--out", str(tmp_path / "page.html")).code == 0
    made = (tmp_path / "page.html").read_text(encoding="utf-8")
    kept = (ROOT / page).read_text(encoding="utf-8")
    version = re.compile(r"(pullcord |<dt>pullcord</dt><dd>)\d[\w.+]*")
    assert version.sub(r"\1", made) == version.sub(r"\1", kept)
    assert len(made.encode()) < 300_000


def test_two_are_kept() -> None:
    assert sorted(page for *_, page in KEPT) == sorted(
        path.relative_to(ROOT).as_posix() for path in DOCS.glob("report*.html")
    )
    assert len(KEPT) == 2


# In a browser

FRAME = """<!doctype html><html><body><iframe id="f" style="width: 360px; height: 600px"
src="{page}"></iframe><script>
onload = () => {{
  const page = document.getElementById("f").contentDocument;
  const out = document.createElement("p");
  const width = page.documentElement.scrollWidth;
  out.textContent = "seen " + width + " of " + page.defaultView.innerWidth;
  document.body.append(out);
}};
</script></body></html>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here to look at the page with")
def test_on_a_telephone_nothing_is_wider_than_the_screen(tmp_path: Path, call: Call) -> None:
    assert BROWSER is not None
    long = FAULTS.replace('"never"', f'"{"never" * 12}"')
    write(tmp_path, SMALL + long + '[[expect]]\nthat = "wait.mean < 0.01s"\n')
    call("run", "small.toml", "-n", "10", "--out", "out", "-j", "1", "-q", "--report")
    pages = [Path("out/report.html"), *sorted(DOCS.glob("report*.html"))]
    for number, page in enumerate(pages):
        shutil.copy(page, tmp_path / f"{number}.html")
        frame = tmp_path / f"frame{number}.html"
        frame.write_text(FRAME.format(page=f"{number}.html"), encoding="utf-8")
        seen = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
             "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'browser'}",
             "--dump-dom", frame.as_uri()],
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout  # fmt: skip
        found = re.search(r"seen (\d+) of (\d+)", seen)
        assert found is not None, seen[-500:]
        assert int(found[1]) <= int(found[2]) <= 360, page
