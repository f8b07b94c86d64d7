"""Pairing: the token is on disk before the code leaves, and a lost answer is asked for again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.accounts.messages import Denied, Paired
from actors.edges.door import PairDevice
from scenarios.problems import ScenarioError
from scenarios.service import pairing
from scenarios.service.client import NoAnswerError
from scenarios.service.config import ReachSettings
from scenarios.service.credentials import Credentials, read_credentials, write_credentials
from scenarios.service.reach import Reach

SETTINGS = ReachSettings(server="127.0.0.1:9")
ORIGINS = dict.fromkeys(ReachSettings.__struct_fields__, "--flag")
PAIRED = Paired(device="dev_1", name="laptop", owner="own_1")

Server = Callable[[PairDevice], Any]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], list[PairDevice]]:
    def answer_by(server: Server) -> list[PairDevice]:
        found: list[PairDevice] = []

        async def ask(_reach: Reach, body: PairDevice) -> Any:
            found.append(body)
            return server(body)

        monkeypatch.setattr(pairing, "_asked", ask)
        return found

    return answer_by


def pair(folder: Path, code: str = "WXYZ-2345", settings: ReachSettings = SETTINGS) -> int:
    return pairing.pair(code, "laptop", settings, ORIGINS, folder)


def no_answer(_body: PairDevice) -> Any:
    raise NoAnswerError("the peer closed the connection")


def test_a_lost_answer_is_asked_for_again_with_the_same_token(
    tmp_path: Path, asked: Callable[[Server], list[PairDevice]]
) -> None:
    first = asked(no_answer)
    with pytest.raises(ScenarioError, match="the peer closed"):
        pair(tmp_path)
    assert read_credentials(tmp_path) is None, "it isn't paired, as far as it knows"
    second = asked(lambda _body: PAIRED)
    assert pair(tmp_path) == 0
    assert second[0] == first[0]
    found = read_credentials(tmp_path)
    assert found is not None
    assert (found.device, found.token, found.server) == ("dev_1", first[0].token, SETTINGS.server)
    assert not (tmp_path / "pairing").exists()


def test_the_token_is_on_disk_before_the_code_leaves(
    tmp_path: Path, asked: Callable[[Server], list[PairDevice]]
) -> None:
    def look(body: PairDevice) -> Paired:
        begun = read_credentials(tmp_path / "pairing")
        assert begun is not None
        assert begun.token == body.token
        return PAIRED

    asked(look)
    assert pair(tmp_path) == 0


def test_paired_anew_it_proves_which_device_it_was(
    tmp_path: Path, asked: Callable[[Server], list[PairDevice]]
) -> None:
    was = Credentials(server=SETTINGS.server, token="pc_dev_old", device="dev_1")  # noqa: S106  a test's
    write_credentials(tmp_path, was)
    sent = asked(no_answer)
    with pytest.raises(ScenarioError):
        pair(tmp_path)
    assert sent[0].old_token == "pc_dev_old"  # noqa: S105  likewise
    assert sent[0].token != "pc_dev_old"  # noqa: S105  likewise
    assert read_credentials(tmp_path) == was, "the old ones are good until there are new ones"


def test_a_code_that_is_not_good_is_told_with_the_cure(
    tmp_path: Path, asked: Callable[[Server], list[PairDevice]]
) -> None:
    asked(lambda _body: Denied(reason="bad_code", error="this pairing code is wrong"))
    with pytest.raises(ScenarioError, match=r"(?s)is wrong.*pullcord devices pair"):
        pair(tmp_path)


def test_a_token_that_another_server_was_to_have_is_not_sent(
    tmp_path: Path, asked: Callable[[Server], list[PairDevice]]
) -> None:
    first = asked(no_answer)
    with pytest.raises(ScenarioError):
        pair(tmp_path)
    second = asked(lambda _body: PAIRED)
    assert pair(tmp_path, settings=ReachSettings(server="127.0.0.1:8")) == 0
    assert second[0].token != first[0].token
