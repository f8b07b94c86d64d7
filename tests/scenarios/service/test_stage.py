"""The stage of the tour: its commands and processes know its folder alone, and are gone with it."""

from __future__ import annotations

import os

import pytest

from scenarios import cli
from scenarios.problems import ScenarioError
from scenarios.service.stage import Stage, TourError


def test_a_command_runs_with_the_stages_settings_and_leaves_ours_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PULLCORD_LISTEN", "mine:1")
    before = dict(os.environ)
    with Stage() as stage:
        stage.know(server="theirs:2")
        code, out, err = stage.run("config", "show", "agent")
        assert (code, err) == (0, "")
        assert "theirs:2  PULLCORD_SERVER" in out
        assert "mine:1" not in stage.run("config", "show", "server")[1]
        with pytest.raises(ScenarioError, match="no server runs here"):
            stage.run("devices", "list")
        folder = stage.folder
        assert folder.stat().st_mode & 0o077 == 0
    assert dict(os.environ) == before
    assert not folder.exists()


def test_ctrl_c_that_a_command_heeds_ends_the_tour_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "application", lambda: lambda *_words, **_how: 130)
    with Stage() as stage, pytest.raises(KeyboardInterrupt):
        stage.run("agent", "wait", "c-1")


def test_a_process_that_does_not_come_to_say_it_is_told_with_its_last_words() -> None:
    with Stage() as stage:
        player = stage.start("server", "server", "--listen", "nowhere")
        with pytest.raises(TourError, match=r"(?s)the server did not come.*is not an address"):
            player.wait_for("server listens on")
        assert player.end() == 2


def test_what_still_runs_is_ended() -> None:
    with Stage() as stage:
        player = stage.start("server", "server", "--listen", "127.0.0.1:0")
        player.wait_for("server listens on")
        group = player.group
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
