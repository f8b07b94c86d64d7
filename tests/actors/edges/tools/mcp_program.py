"""An MCP server of the official SDK, on stdin and stdout: its tools do what a test asks for.

`--http PORT` serves over HTTP in its place. The file that PIDS names gets a line with its number.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ImageContent, TextContent

server = MCPServer("test", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool(name="odd.name/tool")
def odd() -> str:
    """Has a name that models' servers don't take."""
    return "odd"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("boom")


@server.tool()
def variable(name: str) -> str:
    """Says what a variable holds."""
    return os.environ.get(name, "nothing")


@server.tool(structured_output=False)
def picture() -> list[TextContent | ImageContent]:
    """Gives a text and a picture."""
    return [
        TextContent(type="text", text="a text"),
        ImageContent(type="image", data="MTIzNDU=", mime_type="image/png"),
    ]


@server.tool()
def die() -> str:
    """Ends the server before it answers."""
    sys.stderr.write("first words\nlast words\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def hang() -> str:
    """Never answers, and does not end when it is asked to."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    time.sleep(100)
    return "never"


@server.tool()
def number() -> str:
    """Says the process's number."""
    return str(os.getpid())


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Makes another tool, and says so."""

    def secret() -> str:
        return "grown"

    server.add_tool(secret)
    await ctx.session.send_tool_list_changed()
    return "grew"


if __name__ == "__main__":
    if "PIDS" in os.environ:
        with Path(os.environ["PIDS"]).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if "--http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[-1]))
    else:
        server.run("stdio")
