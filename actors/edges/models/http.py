"""A model server over HTTP: one streamed request an agent, on trio.

Whether to ask again is the Graph's own decision. Only a question that met a kept connection as its
server closed it is sent once more, on a new one: the server had most likely not read it, and it
changes nothing there if it had. A cancelled call closes its connection, which ends the work of
every common server. No key is in an error or a repr, and none is sent anywhere but to the base URL:
redirections are not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import trio

from actors.edges.models.backend import Assembler, Dialect
from actors.edges.models.failures import (
    DETAIL_LIMIT_CHARS,
    BackendError,
    of_status,
    read_detail,
    without,
)
from actors.edges.models.openai import broke_off
from actors.edges.models.sse import SseError, SseReader
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk

if TYPE_CHECKING:
    import httpx

STREAM_LIMIT_BYTES = 64 << 20  # an answer's 100,000 characters, one a chunk
ERROR_LIMIT_BYTES = 64 << 10  # of an error's body
CONNECT_LIMIT_S = 10.0
WRITE_LIMIT_S = 60.0
ERROR_LIMIT_S = 10.0  # for an error's body to come
END_LIMIT_S = 0.2  # between an answer's last event and its stream's end
# After which a server that hangs up has read the question: one that had closed an idle connection
# is heard of within a round trip.
STALE_LIMIT_S = 1.0
EVENT_STREAM = "text/event-stream"


class ModelUrlError(ValueError):
    """A base URL is none: one sentence."""


def check_base_url(url: str) -> str:
    """Return a base URL without the slash at its end; ModelUrlError if it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise ModelUrlError("it is no URL") from None
    if not usable:
        raise ModelUrlError("it must begin with http:// or https://, and name a host")
    if parts.username or parts.password:
        raise ModelUrlError("it holds a password: give keys by an environment variable")
    if parts.query or parts.fragment:
        raise ModelUrlError("it may have no ? and no #")
    return url.rstrip("/")


def http_is_installed() -> bool:
    """Whether the extra is there that brings HTTP."""
    return find_spec("httpx") is not None


class HttpBackend:
    """Answers agents by a model server. `base_url` is checked; `key` is None where none is needed.

    With `use_proxies` the environment's proxies (HTTPS_PROXY ...) are used.
    """

    def __init__(
        self, dialect: Dialect, base_url: str, key: str | None, *, use_proxies: bool = True
    ) -> None:
        self.dialect = dialect
        self.base_url = base_url
        self._key = key
        self._use_proxies = use_proxies
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"HttpBackend({self.base_url!r})"

    async def answer(self, ask: AgentAsk, spent: Spent) -> Any:
        """See Backend."""
        try:
            return await self._answer(ask, spent)
        except BackendError as error:
            words = without(str(error), [self._key or ""])
            code = error.code
            raise BackendError(
                code, words.removeprefix(f"{code}: "), retryable=error.retryable
            ) from None

    async def close(self) -> None:
        """See Backend."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _answer(self, ask: AgentAsk, spent: Spent) -> Any:
        import httpx  # noqa: PLC0415  an extra

        body = self.dialect.body(ask)
        answer = self.dialect.assembler(ask, spent)
        headers = {
            "Content-Type": "application/json",
            "Accept": EVENT_STREAM,
            "Accept-Encoding": "identity",  # so that a byte that is counted is a byte
            **self.dialect.headers(self._key),
        }
        url = self.base_url + self.dialect.path
        spent.ask(len(body))
        try:
            client = self._open()
            try:
                await _post(client, url, headers, body, answer, spent)
            except _StaleConnectionError:
                # Others that are kept may be closed as well, as after a restart of the server.
                async with self._new_client() as client:
                    await _post(client, url, headers, body, answer, spent)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            spent.nothing()
            raise self._unreachable(error) from None
        except httpx.TimeoutException:
            sentence = "the model server takes nothing in"
            raise BackendError("timeout", sentence, retryable=True) from None
        except (httpx.TransportError, httpx.StreamError):
            raise broke_off() from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            sentence = f"the model server's answer is no HTTP: {error}"
            raise BackendError("malformed", sentence[:300], retryable=True) from None
        return answer.value()

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._new_client()
        return self._client

    def _new_client(self) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415  an extra

        # The engine bounds how many questions there are, and how long one takes.
        return httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_LIMIT_S, write=WRITE_LIMIT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            follow_redirects=False,
            trust_env=self._use_proxies,
        )

    def _unreachable(self, error: Exception) -> BackendError:
        parts = urlsplit(self.base_url)
        place = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        why = f": {error}" if str(error) else ""
        sentence = f"no model server answers at {place}{why}"
        return BackendError("unreachable", sentence[:300], retryable=True)


class _StaleConnectionError(Exception):
    """A connection that was kept from an earlier question was closed as this one met it."""


class _Watch:
    """Sees whether a question gets a connection of its own, or one that was kept."""

    def __init__(self) -> None:
        self.begun_s = trio.current_time()
        self.is_new = False

    async def trace(self, event: str, _info: Any) -> None:
        """Take an event of the client's."""
        self.is_new = self.is_new or event.startswith("connection.connect_")

    @property
    def met_closed_one(self) -> bool:
        """Whether a connection that has broken had been kept, and closed before the question."""
        return not self.is_new and trio.current_time() - self.begun_s < STALE_LIMIT_S


async def _post(
    client: httpx.AsyncClient,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    answer: Assembler,
    spent: Spent,
) -> None:
    """Send a question, and read its answer. _StaleConnectionError if it may be sent again."""
    import httpx  # noqa: PLC0415  an extra

    watch = _Watch()
    request = client.build_request(
        "POST", url, headers=headers, content=body, extensions={"trace": watch.trace}
    )
    try:
        response = await client.send(request, stream=True)
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        if watch.met_closed_one:
            raise _StaleConnectionError from None
        raise
    try:
        if response.status_code != 200:
            spent.nothing()
            retry_after = response.headers.get("Retry-After")
            detail = read_detail(await _beginning(response))
            raise of_status(response.status_code, detail, retry_after)
        await _read(response, answer)
    finally:
        await response.aclose()


async def _read(response: httpx.Response, answer: Assembler) -> None:
    """Read a stream until its end, or the answer's."""
    kind = response.headers.get("Content-Type", "")
    if not kind.lower().startswith(EVENT_STREAM):
        said = read_detail(await _beginning(response)).text[:DETAIL_LIMIT_CHARS]
        what = f"no event stream but {kind[:60] or 'of no type'}"
        sentence = f"the model server's answer is {what}" + (f": {said}" if said else "")
        raise BackendError("malformed", sentence, retryable=False)
    reader = _AnswerReader(answer)
    await each_chunk(response, reader.take)
    if reader.failure is not None:
        raise reader.failure


class _AnswerReader:
    """Reads an answer's stream; what is wrong with it is its `failure`."""

    def __init__(self, answer: Assembler) -> None:
        self.answer = answer
        self.failure: BackendError | None = None
        self.events = SseReader()
        self.size_bytes = 0

    def take(self, chunk: bytes) -> float | None:
        """Take a chunk in; return how long the rest may take that nobody needs, None to go on."""
        self.size_bytes += len(chunk)
        if self.size_bytes > STREAM_LIMIT_BYTES:
            sentence = f"the stream has more than {STREAM_LIMIT_BYTES:,} bytes"
            self.failure = BackendError("too_large", sentence, retryable=False)
            return 0
        try:
            for event in self.events.feed(chunk):
                self.answer.take(event)
                if self.answer.finished:
                    # Read to its end it leaves its connection to the next agent.
                    return END_LIMIT_S
        except SseError as error:
            sentence = f"the stream can't be read: {error}"
            self.failure = BackendError("malformed", sentence, retryable=True)
        except BackendError as error:
            self.failure = error
        return None if self.failure is None else 0


async def _beginning(response: httpx.Response) -> bytes:
    """Return an error's body: as much as anybody reads, and as far as it came."""
    import httpx  # noqa: PLC0415  an extra

    found = bytearray()

    def take(chunk: bytes) -> float | None:
        found.extend(chunk)
        return 0 if len(found) > ERROR_LIMIT_BYTES else None

    with suppress(httpx.TransportError), trio.move_on_after(ERROR_LIMIT_S):
        await each_chunk(response, take)
    return bytes(found[:ERROR_LIMIT_BYTES])


async def each_chunk(response: httpx.Response, take: Callable[[bytes], float | None]) -> None:
    """Give each chunk to `take` until the stream ends, or as long as `take` says.

    The stream is many generators deep, and one that is left before its end is closed by nobody: it
    is cancelled instead.
    """
    import httpx  # noqa: PLC0415  an extra

    left_s = None
    with trio.CancelScope() as scope:
        try:
            async for chunk in response.aiter_raw():
                if left_s is None and (left_s := take(chunk)) is not None:
                    scope.deadline = trio.current_time() + left_s
        except httpx.TransportError:
            if left_s is None:
                raise
