"""What bounds the memory that an MCP server's words may take, whatever it sends.

The protocol's client holds one message whole, and waits for its end. On a pipe a message is a line,
and the client reads lines through a codec: ours drops what of a line goes beyond the limit, so that
it is no message any more, and its call ends in its time. Over HTTP a body that is longer breaks
off.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    import httpx2

MESSAGE_LIMIT_BYTES: Final = 8 << 20  # a result is cut at 30,000 characters anyway
LINES_ENCODING: Final = "pullcord_lines"  # UTF-8, with lines that are no longer than that
_UTF_8: Final = codecs.lookup("utf-8")


class LineDecoder(codecs.IncrementalDecoder):
    """Decodes UTF-8 that comes in pieces, and drops what is too long of a line."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._inner = codecs.getincrementaldecoder("utf-8")(errors)
        self._line_chars = 0  # of the line that has not ended

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002  its name and form there
        """See IncrementalDecoder."""
        kept = []
        for number, line in enumerate(self._inner.decode(input, final).split("\n")):
            if number:
                self._line_chars = 0
            kept.append(line[: MESSAGE_LIMIT_BYTES - self._line_chars])
            self._line_chars += len(kept[-1])
        return "\n".join(kept)


def _lines_codec(name: str) -> codecs.CodecInfo | None:
    if name != LINES_ENCODING:
        return None
    return codecs.CodecInfo(
        _UTF_8.encode, _UTF_8.decode, incrementaldecoder=LineDecoder, name=LINES_ENCODING
    )


codecs.register(_lines_codec)


async def bound_body(response: httpx2.Response) -> None:
    """Have a response's body break off at the limit; refuse one that may grow as it is unpacked."""
    import httpx2  # noqa: PLC0415  the extra's own

    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for")
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream), "the client is asynchronous"
    whole: httpx2.AsyncByteStream = stream

    class Bounded(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            self.chunks = aiter(whole)
            self.size_bytes = 0
            return self

        async def __anext__(self) -> bytes:
            chunk = await anext(self.chunks)
            self.size_bytes += len(chunk)
            if self.size_bytes <= MESSAGE_LIMIT_BYTES:
                return chunk
            # It is many generators deep, and one that is left before its end is closed by nobody.
            with suppress(StopAsyncIteration), trio.CancelScope() as scope:
                scope.cancel()
                while True:
                    await anext(self.chunks)
            sentence = f"the answer has more than {MESSAGE_LIMIT_BYTES:,} bytes"
            raise httpx2.RemoteProtocolError(sentence)

        async def aclose(self) -> None:
            await whole.aclose()

    response.stream = Bounded()
