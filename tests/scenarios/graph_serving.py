"""Model servers beside a command that runs its own event loop, and Graphs to run."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from tests.actors.edges.models.stub_server import Reply, StubServer, stub

# What a user's environment may have, and a test must not.
VARIABLES = (
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL",
    "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
)  # fmt: skip

HELLO = """phase("greet");
const word = await agent("Say hello", { label: "greeter" });
return { word };
"""


@contextmanager
def serving(*replies: Reply) -> Iterator[StubServer]:
    """Serve these replies from another thread; its complaints are raised at the end."""
    begun: list[StubServer] = []
    ready, done, failed = threading.Event(), trio.Event(), []

    async def serve() -> None:
        async with stub(*replies) as server:
            begun.append(server)
            tokens.append(trio.lowlevel.current_trio_token())
            ready.set()
            await done.wait()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:  # noqa: BLE001  it is raised in the test's own thread
            failed.append(error)
            ready.set()

    tokens: list[trio.lowlevel.TrioToken] = []
    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(10)
    try:
        yield begun[0]
    finally:
        trio.from_thread.run_sync(done.set, trio_token=tokens[0])
        thread.join(10)
        if failed:
            raise failed[0]


def write_graph(folder: Path, text: str = HELLO, name: str = "hello.js") -> str:
    """Write a Graph's file, and return its path as a user types it."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
