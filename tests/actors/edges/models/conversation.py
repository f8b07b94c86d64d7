"""What a strict model server would not accept of a conversation with tools, in both dialects."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def complaints(body: dict[str, Any]) -> list[str]:
    """Return what is wrong with the tools of a request and with what it tells of their calls."""
    anthropic = "input_schema" in str(body.get("tools")) or any(
        isinstance(one["content"], list) for one in body["messages"]
    )
    found = list(_tools(body, anthropic=anthropic))
    return found + list(_anthropic(body) if anthropic else _openai(body))


def _tools(body: dict[str, Any], *, anthropic: bool) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        if "tool_choice" in body:
            yield "tool_choice without tools"
        return
    if not tools:
        yield "no tools in tools"
    seen = set()
    for tool in tools:
        inner, key = (tool, "input_schema") if anthropic else (tool["function"], "parameters")
        if not anthropic and tool["type"] != "function":
            yield f"a tool of type {tool['type']}"
        if inner.keys() != {"name", "description", key} or inner[key]["type"] != "object":
            yield f"a tool with {sorted(inner)}"
        if not NAME.fullmatch(inner["name"]) or inner["name"] in seen:
            yield f"a tool's name {inner['name']!r}"
        seen.add(inner["name"])


def _openai(body: dict[str, Any]) -> Iterator[str]:
    open_: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if not open_ or message["tool_call_id"] != open_.pop(0):
                yield "a result of another call, or out of order"
            if message.keys() != {"role", "tool_call_id", "content"} or not message["content"]:
                yield "a result's fields"
            continue
        if open_:
            yield "a call without its result"
        if message["role"] != "assistant":
            continue
        open_ = [call["id"] for call in message["tool_calls"]]
        yield from _openai_calls(message["tool_calls"], open_)
    if open_:
        yield "a call without its result, at the end"
    if body["messages"][-1]["role"] == "assistant":
        yield "the last word is the model's"


def _openai_calls(calls: list[Any], ids: list[str]) -> Iterator[str]:
    if not calls or len({*ids}) != len(ids) or not all(ids):
        yield "calls without ids of their own"
    for call in calls:
        arguments = msgspec.json.decode(call["function"]["arguments"])
        if call["type"] != "function" or not isinstance(arguments, dict):
            yield "a call's arguments"


def _anthropic(body: dict[str, Any]) -> Iterator[str]:
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    if roles != (["user", "assistant"] * len(roles))[: len(roles)] or roles[-1] != "user":
        yield f"roles {roles}"
    for before, message in pairwise(messages):
        content = message["content"]
        if message["role"] == "assistant":
            if "tools" not in body:
                yield "calls without tools"
            if not content or any(one["type"] == "text" and not one["text"] for one in content):
                yield "an empty text"
            continue
        asked = [one["id"] for one in before["content"] if one["type"] == "tool_use"]
        told = [one["tool_use_id"] for one in content if one["type"] == "tool_result"]
        if asked != told or not asked or len({*asked}) != len(asked):
            yield f"results {told} of calls {asked}"
        kinds = [one["type"] for one in content]
        if kinds != sorted(kinds, key="tool_result".__ne__):
            yield "a text before results"
        if not all(isinstance(one["input"], dict) for one in before["content"] if "input" in one):
            yield "an input that is no object"
