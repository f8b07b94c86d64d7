"""Toxics as the control API has them: Toxiproxy's types and ours, from JSON to faults and back.

Toxiproxy's types are aliases: `latency` with its milliseconds is our `delay`. A toxic is shown as
it was written, so a client reads back what it sent. Our own kinds take a fault's keys as
attributes, in the form that files have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from actors.chance import Distribution, Durations, Sizes
from scenarios.decode import Decoder
from scenarios.problems import quote, suggest
from transports.faults.black_hole import BlackHole
from transports.faults.byte_delay import ByteDelay
from transports.faults.byte_fault import DOWN, UP, ByteFault, Direction
from transports.faults.byte_partition import BytePartition
from transports.faults.close_after import CloseAfter
from transports.faults.corrupt import Corrupt
from transports.faults.half_close import HalfClose
from transports.faults.reset import Reset
from transports.faults.slice import Slice
from transports.faults.slow_close import SlowClose
from transports.faults.throttle import Throttle
from transports.faults.truncate import Truncate
from transports.toxic import Toxic
from transports.units import DURATION_LIMIT_US, Duration, Size

BYTE_FAULTS: dict[str, type[ByteFault]] = {
    "delay": ByteDelay,
    "partition": BytePartition,
    "throttle": Throttle,
    "black_hole": BlackHole,
    "reset": Reset,
    "half_close": HalfClose,
    "close_after": CloseAfter,
    "slow_close": SlowClose,
    "slice": Slice,
    "corrupt": Corrupt,
    "truncate": Truncate,
}

ToxicName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^/\x00-\x1f\x7f]{1,64}$(?!\n)", description="1 to 64 characters without /"
    ),
]
# Half of the longest duration, so that latency and jitter together are one.
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=DURATION_LIMIT_US // 2_000)]
_Microseconds = Annotated[int, msgspec.Meta(ge=0, le=DURATION_LIMIT_US)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Kilobytes = Annotated[int, msgspec.Meta(ge=0, le=2**43)]
_Stream = Literal["upstream", "downstream", "both"]

NO_EVENTS = "a proxy sees bytes, and knows no event"  # what is wrong with a fault's `on` there
USE_AT = '"at" says when it begins'

_TEXTUAL = (Duration, Size, Distribution)  # what files write as text

_WAYS: Mapping[_Stream, tuple[Direction, ...]] = {
    "upstream": (UP,),
    "downstream": (DOWN,),
    "both": (UP, DOWN),
}
_SAID_BY_TOXIC: Mapping[str, str] = {
    "kind": "type",
    "name": "name",
    "from": "stream",
    "to": "stream",
    "both": "stream",
    "probability": "toxicity",
}


class ToxicTable(msgspec.Struct, frozen=True, kw_only=True):
    """A toxic as a client writes it; without a name it is called TYPE_STREAM."""

    type: str
    name: ToxicName | None = None
    stream: _Stream = "downstream"
    toxicity: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    attributes: dict[str, Any] = {}


class ToxicChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may change of a toxic; attributes that it leaves out stay."""

    toxicity: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    attributes: dict[str, Any] = {}


# Toxiproxy's types, with its names, units and defaults


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of one of Toxiproxy's types."""

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return the fault that they mean."""
        raise NotImplementedError


class Latency(Alias, frozen=True, kw_only=True):
    """latency: holds data up by `latency` +/- `jitter` milliseconds."""

    latency: _Milliseconds = 0
    jitter: _Milliseconds = 0

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a delay; as in Toxiproxy none is below 0."""
        low, high = max(0, self.latency - self.jitter), self.latency + self.jitter
        delay = Durations.parse(f"uniform({low}ms, {high}ms)" if self.jitter else f"{low}ms")
        return ByteDelay(name=name, probability=probability, delay=delay)


class Bandwidth(Alias, frozen=True, kw_only=True):
    """bandwidth: lets `rate` kilobytes a second pass, with 0 nothing."""

    rate: _Kilobytes = 0

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a throttle, or a partition where nothing passes."""
        if not self.rate:
            return BytePartition(name=name, probability=probability, both=False)
        return Throttle(name=name, probability=probability, rate=Size(self.rate * 1_000))


class SlowCloseAlias(Alias, frozen=True, kw_only=True):
    """slow_close: holds a close up by `delay` milliseconds."""

    delay: _Milliseconds = 0

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a slow close."""
        delay = Durations.parse(f"{self.delay}ms")
        return SlowClose(name=name, probability=probability, delay=delay)


class Timeout(Alias, frozen=True, kw_only=True):
    """timeout: passes nothing, and closes after `timeout` milliseconds, with 0 never."""

    timeout: _Milliseconds = 0

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a black hole."""
        close = Duration(self.timeout * 1_000) if self.timeout else None
        return BlackHole(name=name, probability=probability, close=close)


class ResetPeer(Alias, frozen=True, kw_only=True):
    """reset_peer: resets the connection after `timeout` milliseconds, with 0 at once."""

    timeout: _Milliseconds = 0

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a reset."""
        return Reset(name=name, probability=probability, after=Duration(self.timeout * 1_000))


class Slicer(Alias, frozen=True, kw_only=True):
    """slicer: cuts data into `average_size` +/- `size_variation` bytes, `delay` us apart."""

    average_size: Annotated[int, msgspec.Meta(ge=1, le=2**40)]
    size_variation: _Bytes = 0
    delay: _Microseconds = 0

    def __post_init__(self) -> None:
        """Refuse pieces of no size, as Toxiproxy's page does."""
        if self.size_variation >= self.average_size:
            raise ValueError('"size_variation" must be less than "average_size"')

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a slice."""
        low, high = self.average_size - self.size_variation, self.average_size + self.size_variation
        size = Sizes.parse(f"uniform({low}B, {high}B)" if self.size_variation else f"{low}B")
        pause = Durations.parse(f"{self.delay}us")
        return Slice(name=name, probability=probability, size=size, pause=pause)


class LimitData(Alias, frozen=True, kw_only=True):
    """limit_data: closes the connection after `bytes` bytes."""

    limit: _Bytes = msgspec.field(name="bytes", default=0)

    def fault(self, name: str, probability: float | None) -> ByteFault:
        """Return a close after so many bytes."""
        return CloseAfter(name=name, probability=probability, limit=Size(self.limit))


ALIASES: dict[str, type[Alias]] = {
    "latency": Latency,
    "bandwidth": Bandwidth,
    "slow_close": SlowCloseAlias,
    "timeout": Timeout,
    "reset_peer": ResetPeer,
    "slicer": Slicer,
    "limit_data": LimitData,
}


def read_toxic(decoder: Decoder, body: object) -> Toxic | None:
    """Return the toxic that a client wrote; None if the decoder noted a problem."""
    table = decoder.struct(("toxic",), body, ToxicTable)
    if table is None:
        return None
    name = table.name or f"{table.type}_{table.stream}"
    read = _read_fault(decoder, name, table)
    if read is None:
        return None
    fault, attributes = read
    return Toxic(fault, _WAYS[table.stream], type=table.type, attributes=attributes)


def change_toxic(decoder: Decoder, toxic: Toxic, body: object) -> Toxic | None:
    """Return the toxic as a client wants it; None if the decoder noted a problem."""
    if isinstance(body, dict):  # clients send the whole toxic; what can't change is passed over
        body = {key: value for key, value in body.items() if key not in ("name", "type", "stream")}
    change = decoder.struct(("toxic",), body, ToxicChange)
    if change is None:
        return None
    table = ToxicTable(
        type=toxic.type,
        toxicity=toxicity(toxic) if change.toxicity is None else change.toxicity,
        attributes=toxic.attributes | change.attributes,
    )
    read = _read_fault(decoder, toxic.name, table)
    if read is None:
        return None
    fault, attributes = read
    return Toxic(fault, toxic.ways, type=toxic.type, attributes=attributes)


def toxic_view(toxic: Toxic) -> dict[str, Any]:
    """Return a toxic as the API shows it."""
    return {
        "name": toxic.name,
        "type": toxic.type,
        "stream": _stream(toxic.ways),
        "toxicity": toxicity(toxic),
        "attributes": toxic.attributes,
    }


def file_toxic(fault: ByteFault, kind: str, ways: tuple[Direction, ...]) -> Toxic:
    """Return the toxic of a fault that a file has."""
    attributes = {
        field.encode_name: str(value) if isinstance(value, _TEXTUAL) else value
        for field in msgspec.structs.fields(type(fault))
        if field.encode_name not in _SAID_BY_TOXIC
        if (value := getattr(fault, field.name)) != field.default
    }
    return Toxic(fault, ways, type=kind, attributes=attributes)


def toxicity(toxic: Toxic) -> float:
    """Return the share of connections that a toxic acts on, as far as chance decides it."""
    probability = toxic.fault.probability
    return 1.0 if probability is None else probability


def _stream(ways: tuple[Direction, ...]) -> _Stream:
    return next(stream for stream, meant in _WAYS.items() if meant == ways)


def _read_fault(
    decoder: Decoder, name: str, table: ToxicTable
) -> tuple[ByteFault, dict[str, Any]] | None:
    """Return the fault that a toxic means, and its attributes, an alias's defaults among them."""
    kind, path = table.type, ("attributes",)
    probability = table.toxicity if table.toxicity < 1 else None
    alias = ALIASES.get(kind)
    if alias is not None and not _is_ours(kind, table.attributes):
        read = decoder.struct(path, table.attributes, alias)
        if read is None:
            return None
        return read.fault(name, probability), msgspec.to_builtins(read)
    if kind not in BYTE_FAULTS:
        known = list(dict.fromkeys([*ALIASES, *BYTE_FAULTS]))
        near = suggest(kind, known)
        cure = f"did you mean {quote(near)}?" if near else f"there are {', '.join(known)}"
        decoder.problem(("toxic", "type"), f"there is no toxic type {quote(kind)}", cure=cure)
        return None
    for key in table.attributes:
        if key in _SAID_BY_TOXIC:
            message = f"{quote(key)} is no attribute"
            cure = f'"{_SAID_BY_TOXIC[key]}" of the toxic says it'
            decoder.problem((*path, key), message, of="key", cure=cure)
            return None
    if "on" in table.attributes:
        decoder.problem((*path, "on"), NO_EVENTS, of="key", cure=USE_AT)
        return None
    data = table.attributes | {"name": name}
    if probability is not None:
        data["probability"] = probability
    fault = decoder.struct(path, data, BYTE_FAULTS[kind])
    return None if fault is None else (fault, table.attributes)


def _is_ours(kind: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a type that both have is written in our way: durations as text, not milliseconds."""
    return kind in BYTE_FAULTS and isinstance(attributes.get("delay"), str)
