"""The kinds of records: a closed list, each readable from the line that it is written as."""

import msgspec
import pytest

from actors import messages
from logs.record import FORMAT, KINDS, HeaderRecord, Record
from transports.envelope import Envelope


def test_the_kinds_are_a_closed_list() -> None:
    assert list(KINDS) == [
        "header",
        "start",
        "message",
        "timer",
        "unanswered",
        "late",
        "drop",
        "send",
        "fault",
        "undone",
        "event",
        "end",
    ]
    numbered = {tag for tag, kind in KINDS.items() if issubclass(kind, Record)}
    assert numbered == set(KINDS) - {"header", "end"}
    ours = [kind for kind in Record.__subclasses__() if kind.__module__ == Record.__module__]
    assert {kind.__struct_config__.tag for kind in ours} == numbered


@pytest.mark.parametrize("tag", KINDS)
def test_a_kind_is_named_first_and_fields_keep_their_order(tag: str) -> None:
    kind = KINDS[tag]
    envelope = Envelope(1, "agent", "server", 0, 3, messages.GetGraphRun(command_id="r"))
    values = {
        "str": "x",
        "int": 1,
        "float": 1.5,
        "Time": 1,
        "Time | None": None,
        "dict[str, Any]": {"a": 1},
        "Envelope[Any]": envelope,
    }
    fields = {one.name: values[str(kind.__annotations__.get(one.name, "int")).strip("'")]
              if one.name in kind.__annotations__ else ("relay" if one.name == "actor" else 1)
              for one in msgspec.structs.fields(kind)}  # fmt: skip
    line = msgspec.json.encode(kind(**fields))
    assert line.startswith(f'{{"kind":"{tag}"'.encode())
    assert list(msgspec.json.decode(line)) == ["kind", *kind.__struct_fields__]
    assert b" " not in line
    assert b"\n" not in line


def test_a_header_is_read_back() -> None:
    header = HeaderRecord(
        scenario="s", digest="d", seed=1, cell="", replication=0, command="c", pullcord="0",
        python="3", resolved={"name": "s"},
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(header), type=HeaderRecord) == header
    assert header.format == FORMAT
