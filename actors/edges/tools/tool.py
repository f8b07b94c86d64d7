"""The contract of a tool: what a model is told of it, and what comes of a call.

What an agent says is never trusted here. Arguments are held to the tool's schema before a tool sees
them, and each tool has its own guard besides.
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

import msgspec

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every model server takes
TEXT_LIMIT_CHARS: Final = 30_000  # of a result: about 8,000 tokens, of every later question, too
DESCRIPTION_LIMIT_CHARS: Final = 4_000


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is told of a tool; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class ToolError(Exception):
    """A call came to nothing, or was refused: what its agent is told."""


class Tool(Protocol):
    """One tool. Calls overlap."""

    spec: ToolSpec
    limit_s: float  # how long a call may take

    async def call(self, arguments: dict[str, Any]) -> str:
        """Make a call, and return what its agent is told; ToolError if there is nothing.

        `arguments` fit the schema. A call that is cancelled leaves nothing behind.
        """


def arguments_schema(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object with these members and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": [*required],
        "additionalProperties": False,
    }
