"""The tables of the settings of tools, as `pullcord names` and docs/tools.md have them."""

import re

import msgspec
import pytest

from scenarios.fields import keys_of
from scenarios.names import names
from scenarios.tool_tables import TABLES
from tests.scenarios.commandline import ROOT

PAGE = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
SECTIONS = {one.title: one for one in names("--tools")}


@pytest.mark.parametrize("title", TABLES)
def test_every_key_is_on_the_page_and_among_the_names(title: str) -> None:
    table, meaning = TABLES[title]
    section = SECTIONS[f"[{title}] of --tools"]
    assert section.meaning == meaning
    assert [one.name for one in section.entries] == [
        one.encode_name for one in msgspec.structs.fields(table)
    ]
    for key in keys_of(table):
        assert key.meaning
        assert re.search(rf"^(# )?{key.name} = |or {key.name} = ", PAGE, re.MULTILINE), key.name
