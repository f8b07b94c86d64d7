"""What the tests of the command line share."""

from collections.abc import Callable, Iterator

import pytest

from scenarios.cli import main
from scenarios.terminal import set_color
from tests.scenarios.commandline import Done

Call = Callable[..., Done]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call the command line in this process: the modules are there already."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args: str) -> Done:
        monkeypatch.setattr("sys.argv", ["pullcord", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capsys.readouterr())

    yield run
    set_color("auto")
