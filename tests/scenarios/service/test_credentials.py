"""A desktop's tokens: the newest, and those before it for a server that was restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.accounts.tokens import REVOKED, SUPERSEDED, UNKNOWN
from scenarios.service.credentials import KEPT, Credentials, Tokens, read_credentials

UNKNOWN_HERE = f"refused: {UNKNOWN.error}"


def paired(token: str, *earlier: str) -> Credentials:
    return Credentials(server="host:1", token=token, device="dev_1", earlier=earlier)


def test_a_new_token_is_on_the_disk_with_those_before_it(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, paired("one"))
    tokens.keep("two")
    tokens.keep("three")
    assert tokens.token == "three"  # noqa: S105  a test's
    assert read_credentials(tmp_path) == paired("three", "two", "one")


def test_a_server_that_knows_no_token_is_told_them_all_the_newest_first(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, paired("three", "two", "one"))
    tried = []
    for _ in range(4):
        tried.append(tokens.token)
        tokens.refused(UNKNOWN_HERE)
    assert tried == ["three", "two", "one", "three"]


def test_only_what_was_not_tried_is_worth_another_try(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, paired("two", "one"))
    assert tokens.refused(UNKNOWN_HERE)
    assert not tokens.refused(UNKNOWN_HERE), "now its owner has to be told"
    assert not Tokens(tmp_path, paired("one")).refused(UNKNOWN_HERE)


@pytest.mark.parametrize("reason", [REVOKED.error, SUPERSEDED.error, "speaks protocol 9"])
def test_an_earlier_token_is_not_shown_to_a_server_that_knows_this_one(
    reason: str, tmp_path: Path
) -> None:
    tokens = Tokens(tmp_path, paired("two", "one"))
    assert not tokens.refused(f"refused: {reason}")
    assert tokens.token == "two"  # noqa: S105  a test's


def test_what_a_restored_server_gives_follows_what_it_knew(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, paired("three", "two", "one"))
    tokens.refused(UNKNOWN_HERE)
    tokens.keep("other")
    assert tokens.token == "other"  # noqa: S105  a test's
    assert read_credentials(tmp_path) == paired("other", "two", "three", "one")


def test_so_many_are_kept(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, paired("0"))
    for number in range(1, 2 * KEPT):
        tokens.keep(str(number))
    newest = [str(number) for number in reversed(range(2 * KEPT))]
    found = read_credentials(tmp_path)
    assert found is not None
    assert [found.token, *found.earlier] == newest[: KEPT + 1]


def test_a_token_that_can_not_be_written_is_not_used(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "gone", paired("one"))
    with pytest.raises(FileNotFoundError):
        tokens.keep("two")
    assert tokens.token == "one"  # noqa: S105  a test's
