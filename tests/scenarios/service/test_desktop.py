"""A desktop's process: what whoever runs it is told of its link."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.service.desktop import Telling


def told(capsys: pytest.CaptureFixture[str], *events: tuple[str, dict[str, Any]]) -> list[str]:
    telling = Telling("host:1")
    for event, fields in events:
        telling.tell(event, fields)
    return capsys.readouterr().err.splitlines()


def test_each_change_of_the_link_is_told_once_with_its_cure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = ("link.refused", {"reason": "refused: access was removed by the owner"})
    assert told(
        capsys,
        ("link.up", {}),
        ("link.down", {"reason": "the peer closed the connection"}),
        ("link.failed", {"reason": "cannot connect: Connection refused"}),
        ("link.failed", {"reason": "cannot connect: Connection refused"}),
        refused,
        refused,
        ("link.up", {}),
    ) == [
        "pullcord: connected to host:1",
        "pullcord: host:1: the peer closed the connection; trying again, ever later",
        "pullcord: host:1: cannot connect: Connection refused; trying again, ever later",
        "help: is the server running there?",
        "pullcord: host:1: refused: access was removed by the owner; trying again, ever later",
        "help: if it was removed on purpose, pair it again: pullcord desktop pair",
        "pullcord: connected to host:1",
    ]
