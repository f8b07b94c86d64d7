"""Server-sent events, read from bytes that are cut anywhere. No I/O.

What is read is what the WHATWG's HTML standard says of an event stream, less reconnection: lines
end in LF, CR or both, a blank line ends an event, a line that begins with a colon is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

EVENT_LIMIT_BYTES = 1 << 20  # of one event; a model's has some hundred
_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseError(ValueError):
    """The bytes are no event stream: one sentence."""


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name, empty if it has none, and its data, lines joined by LF."""

    name: str
    data: str


class SseReader:
    """Reads one stream. An event that its last bytes leave unfinished never was."""

    def __init__(self) -> None:
        self._rest = bytearray()  # of a line whose end has not come
        self._after_cr = False  # a LF that comes next belongs to the line before
        self._first = True
        self._name = ""
        self._data: list[str] = []
        self._size_bytes = 0  # of this event's lines

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete. SseError if they are none."""
        return [event for line in self._lines(chunk) if (event := self._take(line)) is not None]

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        start = 0
        for end in _END.finditer(chunk):
            line = chunk[start : end.start()]
            if self._rest:
                line = bytes(self._rest) + line
                self._rest.clear()
            yield line
            start = end.end()
        self._after_cr = chunk.endswith(b"\r")
        self._rest += chunk[start:]
        self._check(len(self._rest))

    def _check(self, more_bytes: int) -> None:
        if self._size_bytes + more_bytes > EVENT_LIMIT_BYTES:
            raise SseError(f"an event has more than {EVENT_LIMIT_BYTES:,} bytes")

    def _take(self, raw: bytes) -> SseEvent | None:
        if self._first:
            self._first = False
            raw = raw.removeprefix(_BOM)
        if not raw:
            return self._end()
        self._check(len(raw))
        self._size_bytes += len(raw)
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise SseError("an event is no text in UTF-8") from None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None

    def _end(self) -> SseEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size_bytes = "", [], 0
        return SseEvent(name, "\n".join(data)) if data else None
