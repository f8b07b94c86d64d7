"""`pullcord proxy`: the fault proxy alone, from a file and flags to its clean end.

The file has the faults as a scenario has them, and may be a scenario: what is not for a proxy is
passed over. Its table [proxy] says the same as the flags, which go before it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import trio

from scenarios.cell import SECTIONS, tables_of
from scenarios.control import serve_control
from scenarios.decode import Decoder
from scenarios.places import Keys
from scenarios.problems import Problem, ScenarioError, listed, quote, suggest
from scenarios.source import Source, read_source
from scenarios.spec import FAULTS, Name, RunTable, TopTable
from scenarios.toxics import BYTE_FAULTS, NO_EVENTS, USE_AT, file_toxic
from transports.faults.byte_fault import ByteFault, Direction
from transports.faults.fault import LinkFault
from transports.listening import Address, ProxyError, listen, parse_address
from transports.proxy import Proxies, open_proxies

ANY_PORT = "127.0.0.1:0"
DONE, INTERRUPTED = 0, 130
NOT_HERE = ("message", "on")  # of a scenario's faults: what only who sees messages can know

Say = Callable[[str], None]


class ProxyTable(msgspec.Struct, frozen=True, kw_only=True):
    """[proxy]: where it listens, for which service, and what faults call the two ends."""

    listen: Annotated[str | None, "where clients connect, HOST:PORT; port 0 is any free one"] = None
    upstream: Annotated[str | None, "the service that it stands in front of, HOST:PORT"] = None
    control: Annotated[str | None, "where its HTTP API listens; without it there is none"] = None
    name: Annotated[Name, "what the API calls it"] = "proxy"
    client: Annotated[str, "what `from` and `to` of a fault call who connects"] = "client"
    server: Annotated[str, "what `from` and `to` of a fault call the service"] = "server"


class FileFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of the file: its kind, and the directions that it stands on."""

    kind: str
    fault: ByteFault
    ways: tuple[Direction, ...]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a proxy is asked to be. `places` says where each address was written."""

    name: str
    listen: Address | None
    upstream: Address | None
    control: Address | None
    seed: int
    faults: tuple[FileFault, ...]
    places: dict[str, Problem]

    def problem(self, key: str, error: ProxyError) -> ScenarioError:
        """Return an error at the place of an address."""
        place = self.places[key]
        return ScenarioError(
            [msgspec.structs.replace(place, message=error.message, cure=error.cure)]
        )


# From file and flags to settings


def load_proxy(
    file: str | Path | None = None,
    *,
    listen: str | None = None,
    upstream: str | None = None,
    control: str | None = None,
    seed: int | None = None,
) -> Settings:
    """Return what the file and the flags ask for; ScenarioError with every problem in them."""
    source = Source("pullcord proxy", "", {}) if file is None else read_source(file)
    flags = {"listen": listen, "upstream": upstream, "control": control}
    return _Loader(source, {key: text for key, text in flags.items() if text is not None}).load(
        seed
    )


class _Loader:
    """Decodes one file, and goes on after a problem to find the others."""

    def __init__(self, source: Source, flags: dict[str, str]) -> None:
        self.source = source
        self.decoder = Decoder(source)
        self.flags = flags
        self.places: dict[str, Problem] = {}

    def load(self, seed: int | None) -> Settings:
        """Return the settings, or raise ScenarioError."""
        data = self.source.data
        self.check_sections()
        table = self.decoder.struct(("proxy",), data.get("proxy", {}), ProxyTable) or ProxyTable()
        faults = tuple(self.faults(table))
        addresses = {key: self.address(key, table) for key in ("listen", "upstream", "control")}
        if seed is None:
            run = self.decoder.struct(("run",), data.get("run", {}), RunTable)
            seed = RunTable().seed if run is None else run.seed
        elif not 0 <= seed < 2**63:
            self.note("--seed", f"must be 0 to {2**63 - 1}, not {seed}")
        self.check_complete(addresses, faults)
        self.decoder.finish()
        if addresses["upstream"] is not None and addresses["listen"] is None:
            addresses["listen"] = parse_address(ANY_PORT)
            self.places["listen"] = Problem(path="--listen", message="")
        return Settings(name=table.name, seed=seed, faults=faults, places=self.places, **addresses)

    def note(self, path: str, message: str, cure: str | None = None) -> None:
        """Note a problem that has no place in the file."""
        self.decoder.problems.append(Problem(path=path, message=message, cure=cure))

    def check_sections(self) -> None:
        """Report what neither a proxy nor a scenario has."""
        known = ["proxy", *SECTIONS, *(field.name for field in msgspec.structs.fields(TopTable))]
        for key in self.source.data:
            if key not in known:
                near = suggest(key, known)
                cure = (
                    f"did you mean {quote(near)}?" if near else "a proxy has [proxy] and [[fault]]"
                )
                self.decoder.problem((key,), f"unknown key {quote(key)}", of="key", cure=cure)

    def address(self, key: str, table: ProxyTable) -> Address | None:
        """Return an address from its flag, or else from the file; note where it is."""
        written: str | None = getattr(table, key)
        if key in self.flags:
            written = self.flags[key]
            self.places[key] = Problem(path=f"--{key} {written}", message="")
        elif written is not None:
            self.places[key] = self.source.problem(("proxy", key), "")
        if written is None:
            return None
        try:
            address = parse_address(written)
        except ValueError as error:
            place = msgspec.structs.replace(self.places[key], message=str(error))
            self.decoder.problems.append(place)
            return None
        if key == "upstream" and not address.port:
            place = msgspec.structs.replace(
                self.places[key], message=f'"{written}" has no port', cure="0 is no service"
            )
            self.decoder.problems.append(place)
        return address

    def check_complete(
        self, addresses: dict[str, Address | None], faults: tuple[FileFault, ...]
    ) -> None:
        """Report what is missing, unless something that is there was wrong."""
        if self.decoder.problems or addresses["upstream"] is not None:
            return
        if addresses["listen"] is not None or faults or addresses["control"] is None:
            message = "which service does it stand in front of?"
            cure = "--upstream HOST:PORT, or upstream in [proxy]; with --control alone it waits"
            self.note(self.source.path, message, cure)

    # Faults

    def faults(self, table: ProxyTable) -> Iterator[FileFault]:
        """Decode [[fault]] by its kind, each with a name of its own."""
        seen: set[str] = set()
        data = self.source.data.get("fault", [])
        for number, (path, one) in enumerate(tables_of("fault", data), 1):
            if not isinstance(one, dict):
                self.decoder.value(path, one, dict[str, Any])
                continue
            kind = self.kind(path, one)
            if kind is None:
                continue
            fault = self.decoder.struct(path, one, BYTE_FAULTS[kind], ignore=["kind", *NOT_HERE])
            if "message" in one:
                cure = f'"nth", "every" and "probability" choose connections of {kind}'
                words = "a proxy sees bytes, and knows no message"
                self.decoder.problem((*path, "message"), words, of="key", cure=cure)
            if "on" in one:
                self.decoder.problem((*path, "on"), NO_EVENTS, of="key", cure=USE_AT)
            if fault is None:
                continue
            name = fault.name or f"{kind}-{number}"
            if name in seen:
                self.decoder.problem((*path, "name"), f"two faults are called {quote(name)}")
            seen.add(name)
            ways = fault.directions(table.client, table.server)
            if not ways:
                ends = f"{quote(table.client)} and {quote(table.server)}"
                cure = f"the ends are {ends}; client and server in [proxy] name them"
                self.decoder.problem(path, "this fault stands on neither direction", cure=cure)
                continue
            yield FileFault(kind=kind, fault=msgspec.structs.replace(fault, name=name), ways=ways)

    def kind(self, path: Keys, table: dict[str, Any]) -> str | None:
        """Return a fault's kind, or note what is wrong with it."""
        kind = table.get("kind")
        if isinstance(kind, str) and kind in BYTE_FAULTS:
            return kind
        known = listed(BYTE_FAULTS, last="and")
        if kind is None:
            cure = f"there are {known}"
            self.decoder.problem(path, '[[fault]] needs the key "kind"', cure=cure)
        elif isinstance(kind, str) and kind in FAULTS:
            what = "messages" if issubclass(FAULTS[kind], LinkFault) else "actors"
            words = f"{quote(kind)} is a fault of {what}, and a proxy sees bytes"
            self.decoder.problem((*path, "kind"), words, cure=f"of bytes there are {known}")
        else:
            near = suggest(kind, BYTE_FAULTS) if isinstance(kind, str) else None
            cure = f"did you mean {quote(near)}?" if near else f"there are {known}"
            self.decoder.problem(
                (*path, "kind"), f"there is no kind of fault {quote(str(kind))}", cure=cure
            )
        return None


# From settings to a running proxy


def run_proxy(settings: Settings) -> int:
    """Serve until Ctrl-C or SIGTERM; return the exit code. Raises ScenarioError, as for a port."""
    return trio.run(partial(serve_proxy, settings))


async def serve_proxy(
    settings: Settings,
    say: Say | None = None,
    *,
    task_status: trio.TaskStatus[Proxies] = trio.TASK_STATUS_IGNORED,
) -> int:
    """Serve until SIGINT (130) or SIGTERM (0), then heal and close everything.

    `say` is told a line for each proxy, the control API's address, and at the end what fired; it is
    stderr without one. Raises ScenarioError where an address can't be had.
    """
    say = say or _stderr
    problem: ScenarioError | None = None
    code = DONE
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with open_proxies(settings.seed, say) as proxies:
            try:
                await _begin(settings, proxies, say)
            except ScenarioError as error:  # told outside of the nursery, which would wrap it
                problem = error
            else:
                task_status.started(proxies)
                code = INTERRUPTED if await anext(signals) == signal.SIGINT else DONE
        for place, toxic in proxies.toxics():
            times = "once" if toxic.fired == 1 else f"{toxic.fired} times"
            say(
                f"{place}: {toxic.name} fired {times}, on {toxic.picked} of {toxic.met} connections"
            )
    if problem is not None:
        raise problem
    return code


async def _begin(settings: Settings, proxies: Proxies, say: Say) -> None:
    """Listen everywhere before anything is said."""
    if settings.listen is not None and settings.upstream is not None:
        try:
            proxy = await proxies.add(settings.name, settings.listen, settings.upstream)
        except ProxyError as error:
            raise settings.problem("listen", error) from error
        for one in settings.faults:
            proxy.add_toxic(file_toxic(one.fault, one.kind, one.ways))
    if settings.control is not None:
        try:
            listeners, control = await listen(settings.control)
        except ProxyError as error:
            raise settings.problem("control", error) from error
        proxies.nursery.start_soon(serve_control, proxies, listeners, say)
        say(f"control: http://{control}/proxies")
    for proxy in proxies:
        count = len(proxy.toxics)
        faults = "no fault" if not count else "1 fault" if count == 1 else f"{count} faults"
        say(f"{proxy.name}: {proxy.address} -> {proxy.upstream}, {faults}")


def _stderr(line: str) -> None:
    sys.stderr.write(f"pullcord: {line}\n")
    sys.stderr.flush()
