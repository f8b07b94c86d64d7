"""What agents with tools have in common in every dialect: what is offered, and how calls come.

A schema beside tools goes as one more tool, `answer`, and the model must use one of them: servers
that hold an answer to a grammar would let it call nothing. Calls come in pieces, some servers'
without an index or an id. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from actors.edges.models.failures import BackendError
from actors.edges.models.structured import object_schema, question_of
from actors.edges.tools.tool import ToolSpec
from actors.graphs.messages import AgentAsk, ToolCall
from actors.text import clean_value, cut

ANSWER: Final = "answer"  # no tool has this name: others are read_file, or have a prefix
DESCRIPTION: Final = "Give the answer."
CALLS_LIMIT: Final = 128  # of an answer: one with more goes round in circles
ID_LIMIT_CHARS: Final = 100
NAME_LIMIT_CHARS: Final = 100
NOTHING: Final = "(nothing)"  # some servers take no empty text

Catalogue = Mapping[str, ToolSpec]
NO_TOOLS: Final[Catalogue] = {}


class Called(msgspec.Struct, frozen=True):
    """An answer that is no end: the calls that it wants made, and what it says beside."""

    text: str
    calls: tuple[ToolCall, ...]


def offered(catalogue: Catalogue, ask: AgentAsk) -> list[ToolSpec]:
    """Return the tools that an agent has; BackendError if one of them is none."""
    missing = [name for name in ask.tools if name not in catalogue]
    if missing:
        sentence = f"there is no tool {missing[0]!r} here: see --tools"
        raise BackendError("unsupported", sentence, retryable=False)
    return [catalogue[name] for name in ask.tools]


def opening(ask: AgentAsk) -> list[dict[str, Any]]:
    """Return the first words of a conversation; what did not fit comes at its end, after rounds."""
    return [{"role": "user", "content": ask.prompt if ask.rounds else question_of(ask)}]


def answer_tool(schema: Any) -> ToolSpec:
    """Return the tool by which an agent with a schema answers."""
    return ToolSpec(name=ANSWER, description=DESCRIPTION, schema=object_schema(schema))


def object_of(arguments: Any) -> dict[str, Any]:
    """Return a call's arguments as servers take them back: an object, whatever they were."""
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


class Pieces:
    """The calls of one answer, as their pieces come; each has a key while they do."""

    def __init__(self) -> None:
        self._calls: list[tuple[Any, str, str, list[str]]] = []  # key, id, name, arguments

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, key: Any, id_: str | None, name: str | None, piece: str | None) -> None:
        """Take a piece. A key that comes with another id begins another call.

        So does a name where there is no key.
        """
        found = next((one for one in reversed(self._calls) if one[0] == key), None)
        other = found is not None and id_ and found[1] and id_ != found[1]
        if found is None or other or (key is None and name and found[2]):
            if len(self._calls) >= CALLS_LIMIT:
                sentence = f"the answer has more than {CALLS_LIMIT} tool calls"
                raise BackendError("too_large", sentence, retryable=True)
            self._calls.append((key, id_ or "", name or "", [piece or ""]))
            return
        if piece:
            found[3].append(piece)
        if (id_ and not found[1]) or (name and not found[2]):
            at = self._calls.index(found)
            self._calls[at] = (key, found[1] or id_ or "", found[2] or name or "", found[3])

    def answer(self) -> str | None:
        """Return the arguments of the tool `answer`, if it was called and no other one was."""
        if self._calls and all(name == ANSWER for _, _, name, _ in self._calls):
            return "".join(self._calls[0][3])
        return None

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of all other tools, each with an id of its own."""
        found: list[ToolCall] = []
        seen: set[str] = set()
        for number, (_, id_, name, parts) in enumerate(self._calls, 1):
            if name == ANSWER:
                continue  # given too early: it is asked for again once the others are made
            own = cut(id_, ID_LIMIT_CHARS) or f"call_{number}"
            while own in seen:
                own += f"_{number}"
            seen.add(own)
            tool = cut(name, NAME_LIMIT_CHARS)
            found.append(ToolCall(id=own, tool=tool, arguments=read_arguments("".join(parts))))
        return tuple(found)


def read_arguments(text: str) -> Any:
    """Return a call's arguments; the text itself if it is no JSON, which the tools then tell."""
    if not text.strip():
        return {}
    try:
        return clean_value(msgspec.json.decode(text))
    except (ValueError, RecursionError):
        return text


def said(ok: bool, text: str) -> str:
    """Return what a model is told of a call, where its server has no field for a failure."""
    return (text or NOTHING) if ok else f"error: {text}"


def in_order(calls: Sequence[ToolCall], results: Sequence[Any]) -> list[tuple[ToolCall, Any]]:
    """Return each call of a round with its result, in the order of the calls."""
    by_id = {result.id: result for result in results}
    return [(call, by_id[call.id]) for call in calls if call.id in by_id]
