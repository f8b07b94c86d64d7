"""An owner's commands: what they print, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.accounts.messages import (
    AddAgent,
    AddOwner,
    AgentListing,
    Agents,
    Changed,
    DeviceListing,
    Devices,
    ListDevices,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    RevokeOwner,
    SetOpenLimit,
)
from actors.edges.door import PairingCode, PrincipalToken
from scenarios.problems import ScenarioError
from scenarios.service import owner as owners
from scenarios.service.config import AgentSettings, resolve
from scenarios.service.owner import Owner

TOKEN = "pc_agt_new"  # noqa: S105  a test's
DEVICE = DeviceListing(
    device="dev_1",
    name="laptop",
    paired_ago_us=5_000_000,
    synced_ago_us=3_400_000,
    poll_us=20_000_000,
    sessions=1,
    open_runs=2,
    open_limit=10,
    revoked=False,
    reused=True,
)
AGENT = AgentListing(
    principal="agt_1",
    name="bot",
    scopes=("graphs:read",),
    added_ago_us=1,
    seen_ago_us=None,
    open_runs=0,
    open_limit=10,
    revoked=False,
)


class Asked(Owner):
    """An owner whose server answers by the type of what is asked."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(resolve(AgentSettings, {}, None, environ={}), Path("owner.sock"))
        self.answers = answers
        self.asked: list[Any] = []

    def ask(self, body: Any, target: str = "server") -> Any:
        self.asked.append(body)
        answer = self.answers[type(body).__name__]
        return answer.pop(0) if isinstance(answer, list) else answer


def test_a_code_alone_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    code = PairingCode(code="WXYZ-2345", expires_in_us=600_000_000)
    owners.show_code(Asked(NewPairingCode=code), json=False)
    out, err = capsys.readouterr()
    assert out == "WXYZ-2345\n"
    assert "good once, within 10m" in err
    assert err.endswith("pullcord desktop pair WXYZ-2345 --server HOST:PORT\n")


def test_the_command_has_the_fingerprint_that_nobody_vouches_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = PairingCode(code="WXYZ-2345", expires_in_us=600_000_000, fingerprint="ab" * 32)
    owners.show_code(Asked(NewPairingCode=code), json=False)
    err = capsys.readouterr().err
    assert err.endswith(f"--server HOST:PORT --fingerprint sha256:{'ab' * 32}\n")


def test_devices_of_every_page_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [Devices(devices=(DEVICE,), cursor="next"), Devices(devices=(DEVICE,))]
    it = Asked(ListDevices=list(pages))
    owners.list_devices(it, json=False)
    line = "dev_1  laptop  synced 3s ago, 2 open  A COPY OF ITS TOKEN WAS USED\n"
    assert capsys.readouterr().out == line * 2
    assert [body.cursor for body in it.asked] == ["", "next"]
    owners.list_devices(Asked(ListDevices=list(pages)), json=True)
    assert [one["device"] for one in json.loads(capsys.readouterr().out)] == ["dev_1"] * 2
    owners.list_devices(Asked(ListDevices=Devices(devices=())), json=False)
    assert "pullcord devices pair" in capsys.readouterr().err
    assert isinstance(it.asked[0], ListDevices)


def test_agents_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    owners.list_agents(Asked(ListAgents=Agents(agents=(AGENT,))), json=False)
    assert capsys.readouterr().out == "agt_1  bot  seen never, 0 of 10 open  graphs:read\n"
    owners.list_agents(Asked(ListAgents=Agents(agents=())), json=True)
    assert json.loads(capsys.readouterr().out) == []


def test_a_token_alone_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    it = Asked(AddAgent=PrincipalToken(principal="agt_1", name="bot", token=TOKEN))
    owners.add_agent(it, "bot", json=False)
    out, err = capsys.readouterr()
    assert out == f"{TOKEN}\n"
    assert TOKEN not in err
    assert it.asked == [AddAgent(name="bot")]


@pytest.mark.parametrize(
    ("name", "body"),
    [("dev_1", RevokeDevice(device="dev_1")), ("agt_1", RevokeAgent(agent="agt_1"))],
)
def test_what_is_removed_is_told_by_its_name(
    capsys: pytest.CaptureFixture[str], name: str, body: Any
) -> None:
    it = Asked(RevokeDevice=Changed(subject=name), RevokeAgent=Changed(subject=name))
    owners.revoke(it, name, json=False)
    assert it.asked == [body]
    assert f"{name} is removed" in capsys.readouterr().err


def test_owners_and_new_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    token = PrincipalToken(principal="own_2", name="ann", token="pc_own_new")  # noqa: S106  a test's
    mine = msgspec.structs.replace(AGENT, principal="own_2", name="ann", seen_ago_us=2_000_000)
    it = Asked(
        AddOwner=token, RenewToken=token, ListOwners=Agents(agents=(mine,)),
        RevokeOwner=Changed(subject="own_2"),
    )  # fmt: skip
    owners.add_owner(it, "ann", json=False)
    owners.renew(it, "own_2", json=False)
    owners.list_owners(it, json=False)
    owners.revoke(it, "own_2", json=False)
    told = capsys.readouterr()
    assert told.out == "pc_own_new\npc_own_new\nown_2  ann  seen 2s ago\n"
    assert "the owner needs it as PULLCORD_TOKEN" in told.err
    assert it.asked[:2] == [AddOwner(name="ann"), RenewToken(principal="own_2")]
    assert it.asked[-1] == RevokeOwner(owner="own_2")


def test_a_limit_of_open_runs(capsys: pytest.CaptureFixture[str]) -> None:
    it = Asked(SetOpenLimit=Changed(subject="dev_1"))
    owners.limit(it, "dev_1", 3, json=False)
    owners.limit(it, "dev_1", None, json=False)
    assert it.asked == [
        SetOpenLimit(principal="dev_1", open_limit=3),
        SetOpenLimit(principal="dev_1", open_limit=None),
    ]
    assert capsys.readouterr().err.splitlines() == [
        "pullcord: dev_1 may have 3 open runs",
        "pullcord: dev_1 may have as many open runs as the server's default says",
    ]
    with pytest.raises(ScenarioError, match="at least 1 run"):
        owners.limit(it, "dev_1", 0, json=False)
