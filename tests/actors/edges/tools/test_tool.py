"""What every tool tells a model."""

import pytest

from actors.edges.tools.tool import NAME, arguments_schema
from actors.graphs.schemas import problem_of


@pytest.mark.parametrize("name", ["read_file", "shell__git-log", "a" * 64])
def test_a_name_that_every_server_takes(name: str) -> None:
    assert NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "a" * 65, "a\n"])
def test_a_name_that_some_server_refuses(name: str) -> None:
    assert not NAME.fullmatch(name)


def test_arguments_have_their_members_and_no_others() -> None:
    schema = arguments_schema({"one": {"type": "string"}}, two={"type": "integer"})
    assert problem_of(schema, {"one": "a"}) is None
    assert problem_of(schema, {"one": "a", "two": 2}) is None
    assert problem_of(schema, {"two": 2}) is not None
    assert problem_of(schema, {"one": "a", "three": 3}) is not None
