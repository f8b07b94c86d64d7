"""The facade: every public name is there, under the name that it has, and costs nothing unasked."""

import subprocess
import sys
from pathlib import Path

import pytest

import pullcord

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", pullcord.__all__)
def test_a_public_name_is_what_it_says(name: str) -> None:
    value = getattr(pullcord, name)
    assert getattr(value, "__name__", name).rpartition(".")[2] in {name, "Callable"}


def test_completion_offers_the_public_names() -> None:
    assert set(pullcord.__all__) < set(dir(pullcord))


def test_another_name_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match="'pullcord' has no attribute 'Rely'"):
        _ = pullcord.Rely


def test_every_public_name_is_imported_for_type_checkers() -> None:
    source = (ROOT / "pullcord.py").read_text(encoding="utf-8")
    imports = source.partition("if TYPE_CHECKING:")[2].partition("__all__")[0]
    for name in pullcord.__all__:
        assert name in imports.replace(",", " ").split(), name


def test_importing_it_loads_nothing_of_ours() -> None:
    lines = (
        "import sys, pullcord; print(sorted({'actors', 'scenarios', 'trio'} & set(sys.modules)))"
    )
    told = subprocess.check_output([sys.executable, "-c", lines], cwd=ROOT, text=True)
    assert told.strip() == "[]"
