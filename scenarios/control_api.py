"""The routes of the control API: which proxies and toxics there are, changed and told in JSON.

The names are Toxiproxy's, so its clients work. An error is always the same object: `error`, a
sentence with its cure, and `status`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from scenarios.decode import Decoder
from scenarios.problems import Problem, listed, quote, suggest
from scenarios.source import Source
from scenarios.toxics import ToxicName, change_toxic, read_toxic, toxic_view
from transports.listening import Address, ProxyError, parse_address
from transports.proxy import Proxies, Proxy
from transports.toxic import Toxic
from transports.version import VERSION

POPULATE_LIMIT = 100  # as many proxies as there may be

Text = Annotated[str, msgspec.Meta(max_length=300)]


class Answer(NamedTuple):
    """What a request is answered: a status, what goes out as JSON if anything, allowed methods."""

    status: int
    data: Any = None
    allow: tuple[str, ...] = ()


class ApiError(Exception):
    """A request that is refused: a status and a sentence."""

    def __init__(self, status: int, message: str, allow: tuple[str, ...] = ()) -> None:
        """Keep them."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.allow = allow


def error_answer(status: int, message: str, allow: tuple[str, ...] = ()) -> Answer:
    """Return the one shape of an error."""
    return Answer(status, {"error": message, "status": status}, allow)


class ProxyTable(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy as a client writes it."""

    name: ToxicName
    upstream: Text
    listen: Text = "127.0.0.1:0"
    enabled: bool = True


class ProxyChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may change of a proxy; what it leaves out stays."""

    listen: Text | None = None
    upstream: Text | None = None
    enabled: bool | None = None


def proxy_view(proxy: Proxy) -> dict[str, Any]:
    """Return a proxy as the API shows it."""
    return {
        "name": proxy.name,
        "listen": str(proxy.address),
        "upstream": str(proxy.upstream),
        "enabled": proxy.enabled,
        "toxics": [toxic_view(toxic) for toxic in proxy.toxics.values()],
    }


def fired_view(place: str, toxic: Toxic) -> dict[str, Any]:
    """Return what a toxic did so far."""
    return {
        "proxy": place,
        "name": toxic.name,
        "type": toxic.type,
        "state": toxic.state,
        "fired": toxic.fired,
        "connections": toxic.picked,
        "of": toxic.met,
    }


_Handler = Callable[[tuple[str, ...], Any], Awaitable[Answer]]


class ControlApi:
    """Answers requests about one set of proxies."""

    def __init__(self, proxies: Proxies) -> None:
        self._proxies = proxies
        # "*" stands for a name. PATCH is Toxiproxy's newer word for changing by POST.
        self._routes: dict[tuple[str, ...], Mapping[str, _Handler]] = {
            ("proxies",): {"GET": self._list, "POST": self._create},
            ("populate",): {"POST": self._populate},
            ("proxies", "*"): {
                "GET": self._show,
                "POST": self._change,
                "PATCH": self._change,
                "DELETE": self._delete,
            },
            ("proxies", "*", "toxics"): {"GET": self._toxics, "POST": self._add_toxic},
            ("proxies", "*", "toxics", "*"): {
                "GET": self._show_toxic,
                "POST": self._change_toxic,
                "PATCH": self._change_toxic,
                "DELETE": self._delete_toxic,
            },
            ("reset",): {"POST": self._reset},
            ("fired",): {"GET": self._fired},
            ("version",): {"GET": self._version},
        }

    async def answer(self, method: str, target: str, body: bytes) -> Answer:
        """Answer one request; what is wrong with it is in the answer."""
        try:
            handler, names = self._route(method, target)
            return await handler(names, _json(body) if method in ("POST", "PATCH") else None)
        except ApiError as error:
            return error_answer(error.status, error.message, error.allow)
        except ProxyError as error:
            return error_answer(409, _sentence(error.message, error.cure))

    def _route(self, method: str, target: str) -> tuple[_Handler, tuple[str, ...]]:
        path = target.partition("?")[0].strip("/").split("/")
        for pattern, methods in self._routes.items():
            if len(pattern) != len(path) or any(
                want not in ("*", part) for want, part in zip(pattern, path, strict=True)
            ):
                continue
            names = tuple(
                unquote(part) for want, part in zip(pattern, path, strict=True) if want == "*"
            )
            if method in methods:
                return methods[method], names
            allowed = tuple(methods)
            message = f"{quote(method)} is no method of /{'/'.join(pattern)}"
            raise ApiError(405, _sentence(message, f"use {listed(allowed)}"), allowed)
        known = [f"/{'/'.join(pattern)}" for pattern in self._routes]
        near = suggest(f"/{path[0]}", known)
        cure = f"did you mean {near}?" if near and len(path) == 1 else f"there is {listed(known)}"
        raise ApiError(404, _sentence(f"there is nothing at {quote('/' + '/'.join(path))}", cure))

    # Proxies

    async def _list(self, _names: tuple[str, ...], _body: Any) -> Answer:
        return Answer(200, {proxy.name: proxy_view(proxy) for proxy in self._proxies})

    async def _create(self, _names: tuple[str, ...], body: Any) -> Answer:
        proxy = await self._add(_struct("proxy", body, ProxyTable))
        return Answer(201, proxy_view(proxy))

    async def _populate(self, _names: tuple[str, ...], body: Any) -> Answer:
        if not isinstance(body, list) or len(body) > POPULATE_LIMIT:
            raise ApiError(400, f"the body must be an array of at most {POPULATE_LIMIT} proxies")
        tables = [_struct("proxy", one, ProxyTable) for one in body]
        wanted = [
            (table, _address("listen", table.listen), _address("upstream", table.upstream))
            for table in tables
        ]
        proxies = []
        for table, listen, upstream in wanted:
            proxy = self._proxies.get(table.name)
            if proxy is not None and not (
                _same(listen, proxy.address) and upstream == proxy.upstream
            ):
                await self._proxies.remove(proxy)
                proxy = None
            proxies.append(proxy or await self._add(table))
        return Answer(201, {"proxies": [proxy_view(proxy) for proxy in proxies]})

    async def _add(self, table: ProxyTable) -> Proxy:
        listen, upstream = _address("listen", table.listen), _address("upstream", table.upstream)
        return await self._proxies.add(table.name, listen, upstream, enabled=table.enabled)

    async def _show(self, names: tuple[str, ...], _body: Any) -> Answer:
        return Answer(200, proxy_view(self._proxy(names)))

    async def _change(self, names: tuple[str, ...], body: Any) -> Answer:
        proxy = self._proxy(names)
        if isinstance(body, dict):  # clients send the whole proxy back
            body = {key: value for key, value in body.items() if key not in ("name", "toxics")}
        change = _struct("proxy", body, ProxyChange)
        await self._proxies.change(
            proxy,
            proxy.address if change.listen is None else _address("listen", change.listen),
            proxy.upstream if change.upstream is None else _address("upstream", change.upstream),
            enabled=proxy.enabled if change.enabled is None else change.enabled,
        )
        return Answer(200, proxy_view(proxy))

    async def _delete(self, names: tuple[str, ...], _body: Any) -> Answer:
        await self._proxies.remove(self._proxy(names))
        return Answer(204)

    # Toxics

    async def _toxics(self, names: tuple[str, ...], _body: Any) -> Answer:
        return Answer(200, [toxic_view(toxic) for toxic in self._proxy(names).toxics.values()])

    async def _add_toxic(self, names: tuple[str, ...], body: Any) -> Answer:
        proxy = self._proxy(names)
        decoder = _decoder(body)
        toxic = read_toxic(decoder, body)
        if toxic is None:
            raise _refusal(decoder)
        proxy.add_toxic(toxic)
        return Answer(200, toxic_view(toxic))

    async def _show_toxic(self, names: tuple[str, ...], _body: Any) -> Answer:
        return Answer(200, toxic_view(self._toxic(names)[1]))

    async def _change_toxic(self, names: tuple[str, ...], body: Any) -> Answer:
        proxy, before = self._toxic(names)
        decoder = _decoder(body)
        toxic = change_toxic(decoder, before, body)
        if toxic is None:
            raise _refusal(decoder)
        proxy.replace_toxic(before, toxic)
        return Answer(200, toxic_view(toxic))

    async def _delete_toxic(self, names: tuple[str, ...], _body: Any) -> Answer:
        proxy, toxic = self._toxic(names)
        proxy.remove_toxic(toxic)
        return Answer(204)

    # The whole

    async def _reset(self, _names: tuple[str, ...], _body: Any) -> Answer:
        await self._proxies.reset()
        return Answer(204)

    async def _fired(self, _names: tuple[str, ...], _body: Any) -> Answer:
        return Answer(200, [fired_view(place, toxic) for place, toxic in self._proxies.toxics()])

    async def _version(self, _names: tuple[str, ...], _body: Any) -> Answer:
        return Answer(200, {"version": VERSION})

    def _proxy(self, names: tuple[str, ...]) -> Proxy:
        proxy = self._proxies.get(names[0])
        if proxy is None:
            raise _unknown("proxy", names[0], [one.name for one in self._proxies])
        return proxy

    def _toxic(self, names: tuple[str, ...]) -> tuple[Proxy, Toxic]:
        proxy = self._proxy(names)
        toxic = proxy.toxics.get(names[1])
        if toxic is None:
            raise _unknown("toxic", names[1], list(proxy.toxics))
        return proxy, toxic


def _same(wanted: Address, has: Address) -> bool:
    """Whether a proxy that listens at `has` is at the address that is wanted."""
    return wanted.host == has.host and wanted.port in (0, has.port)


def _unknown(noun: str, name: str, known: list[str]) -> ApiError:
    near = suggest(name, known)
    cure = f"did you mean {quote(near)}?" if near else None
    return ApiError(404, _sentence(f"there is no {noun} {quote(name)}", cure))


def _json(body: bytes) -> Any:
    if not body.strip():
        return {}
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        words = str(error).removeprefix("JSON is malformed: ")
        raise ApiError(400, f"the body is not JSON: {words}") from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply") from None


def _decoder(body: object) -> Decoder:
    """Return a decoder for a body; its problems have no place, for nobody sees the lines."""
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object")
    return Decoder(Source("request.json", "{}", body))


def _struct(name: str, body: object, kind: type[Any]) -> Any:
    decoder = _decoder(body)
    table = decoder.struct((name,), body, kind)
    if table is None:
        raise _refusal(decoder)
    return table


def _refusal(decoder: Decoder) -> ApiError:
    sentences = [_sentence(one.message, one.cure) for one in _some(decoder.problems)]
    return ApiError(400, "; ".join(sentences))


def _some(problems: list[Problem]) -> list[Problem]:
    """The first few: an answer is one line in somebody's log."""
    return problems[:3]


def _address(key: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise ApiError(400, f"{quote(key)}: {error}") from None


def _sentence(message: str, cure: str | None) -> str:
    return message if cure is None else f"{message}: {cure}"
