"""What may be set of a server: defaults are the account's, limits are at least one."""

from __future__ import annotations

import msgspec
import pytest

from actors.config import decode_hook
from actors.server import Server
from actors.server_config import ServerConfig


def test_the_server_s_config_is_this_one() -> None:
    assert issubclass(Server.Config, ServerConfig)
    assert Server.Config.__struct_fields__ == ServerConfig.__struct_fields__


def test_what_the_account_does_not_have_is_off() -> None:
    config = ServerConfig()
    assert [config.hints, config.reconcile, config.fair] == [False] * 3
    assert config.wait_limit_us == config.delivery_limit == 0


@pytest.mark.parametrize(
    "table", [{"agent_limit": 0}, {"device_limit": 0}, {"delivery_limit": -1}, {"poll": "20s"}]
)
def test_what_makes_no_sense_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, Server.Config, dec_hook=decode_hook)
