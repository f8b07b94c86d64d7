"""What docs/graph-commands.md shows is what the commands print."""

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from actors.edges.models.failures import FailureCode
from scenarios.graph_backends import BASE_URLS, KEYS, MODELS, BackendName
from tests.scenarios.commandline import ROOT
from tests.scenarios.conftest import Call, call

__all__ = ["call"]  # the fixture, for this file

TEXT = (ROOT / "docs" / "graph-commands.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(\$ pullcord .*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_what_is_shown_is_what_is_printed(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULLCORD_GRAPHS", "saved")
    script = re.search(r"^```js\n(phase.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert script is not None
    Path("review.js").write_text(script[1])
    for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = shown.partition("\n")
        done = call(*shlex.split(line)[1:])
        # A command's list says on stderr where it looks.
        printed = (done.out if "list" in line else done.err + done.out).splitlines()
        lines = expected.splitlines()
        cut = lines.index("...") if "..." in lines else len(lines)
        assert printed[:cut] == lines[:cut]
        tail = lines[cut + 1 :]
        assert not tail or printed[-len(tail) :] == tail
        assert "..." in lines or len(printed) == len(lines)


def test_every_code_backend_and_variable_is_on_the_page() -> None:
    for word in (*get_args(FailureCode), *get_args(BackendName)):
        assert f"| `{word}` |" in TEXT
    for word in (*KEYS.values(), *MODELS.values(), *(name for name, _ in BASE_URLS.values())):
        assert f"`{word}`" in TEXT
