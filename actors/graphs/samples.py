"""A value that fits a JSON Schema, drawn by chance: what a synthetic agent answers.

It knows the words that agents' schemas use: types, enums, constants, properties, items, limits,
combinations and references within the schema. A schema that asks for more (a pattern, a condition)
may get a value that does not fit, as from any model.
"""

from __future__ import annotations

from typing import Any

from actors.chance import Stream

DEPTH_LIMIT = 6  # below it only what is required is drawn, so that a recursive schema ends
HARD_DEPTH_LIMIT = 24  # and below this nothing
VALUES_LIMIT = 10_000  # in one sample; a schema may ask for a billion
TEXT_LIMIT_CHARS = 10_000
NUMBER_LIMIT = 10**15  # either way; each whole number below is a float too
SPREAD = 100  # how far numbers without an upper limit go
MORE_ITEMS = 3  # how many items an array may have beyond its least
TEXT = "lorem ipsum dolor sit amet "


def sample(schema: Any, stream: Stream) -> Any:
    """Return a value that fits, as far as the module's words go."""
    return _Sampler(schema, stream).value(schema, 0)


class _Sampler:
    def __init__(self, root: Any, stream: Stream) -> None:
        self.root = root
        self.stream = stream
        self.values = 0

    def value(self, schema: Any, depth: int) -> Any:
        self.values += 1
        if not isinstance(schema, dict) or depth > HARD_DEPTH_LIMIT or self.values > VALUES_LIMIT:
            return None
        schema = self.resolved(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self.one(schema["enum"])
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                rest = {key: value for key, value in schema.items() if key != word}
                choices = schema[word][:1] if depth >= DEPTH_LIMIT else schema[word]
                return self.value(_merged(rest, self.resolved(self.one(choices))), depth + 1)
        return self.typed(schema, depth)

    def resolved(self, schema: Any) -> dict[str, Any]:
        """Return a schema with its reference and its `allOf` put in."""
        for _ in range(HARD_DEPTH_LIMIT):
            if not isinstance(schema, dict):
                return {}
            if isinstance(schema.get("$ref"), str):
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = _merged(rest, self.at(schema["$ref"]))
            elif schema.get("allOf"):
                parts = schema["allOf"]
                schema = {key: value for key, value in schema.items() if key != "allOf"}
                for part in parts:
                    schema = _merged(schema, part)
            else:
                return schema
        return {}

    def at(self, reference: str) -> Any:
        """Return what a reference within the schema points to."""
        found = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def one(self, choices: Any) -> Any:
        return choices[int(self.stream.random() * len(choices))]

    def typed(self, schema: dict[str, Any], depth: int) -> Any:
        kind = schema.get("type") or _implied(schema)
        if isinstance(kind, list):
            kind = kind[0] if depth >= DEPTH_LIMIT else self.one(kind)
        if kind == "object":
            return self.table(schema, depth)
        if kind == "array":
            return self.array(schema, depth)
        if kind in ("integer", "number"):
            return self.number(schema, whole=kind == "integer")
        if kind == "boolean":
            return self.stream.random() < 0.5
        return None if kind == "null" else self.text(schema)

    def table(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        names = [name for name in properties if depth < DEPTH_LIMIT or name in required]
        names += [name for name in required if name not in properties]
        return {
            name: self.value(properties.get(name, {"type": "string"}), depth + 1) for name in names
        }

    def array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        least = min(schema.get("minItems", 0), VALUES_LIMIT)
        most = max(least, min(schema.get("maxItems", least + MORE_ITEMS), least + MORE_ITEMS))
        count = least if depth >= DEPTH_LIMIT else least + self.whole(most - least)
        first = schema.get("prefixItems", [])
        items = schema.get("items", {"type": "string"})
        if items is False:
            count = len(first)
        return [
            self.value(first[index] if index < len(first) else items, depth + 1)
            for index in range(max(count, len(first)))
        ]

    def whole(self, limit: int) -> int:
        """Return a whole number from 0 to a limit, both included."""
        return int(self.stream.random() * (limit + 1))

    def number(self, schema: dict[str, Any], *, whole: bool) -> int | float:
        step = schema.get("multipleOf", 1 if whole else 0)
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if low is None:
            low = 0 if high is None or high > 0 else high - SPREAD
        low = max(-NUMBER_LIMIT, min(low, NUMBER_LIMIT))
        high = low + SPREAD if high is None else max(low, min(high, NUMBER_LIMIT))
        if step:
            first = -(-low // step) + ("exclusiveMinimum" in schema and low % step == 0)
            last = high // step - ("exclusiveMaximum" in schema and high % step == 0)
            found = (first + self.whole(max(0, int(last - first)))) * step
            return int(found) if whole else found
        share = (1 + 998 * self.stream.random()) / 1000  # never an end, which may be excluded
        return float(low + share * (high - low))

    def text(self, schema: dict[str, Any]) -> str:
        least: int = min(schema.get("minLength", 0), TEXT_LIMIT_CHARS)
        most: int = schema.get("maxLength", max(least, len(TEXT)))
        chars = least + self.whole(max(0, min(most, least + len(TEXT)) - least))
        return (TEXT * (chars // len(TEXT) + 1))[:chars]


def _merged(one: dict[str, Any], other: Any) -> dict[str, Any]:
    """Return what two schemas ask for together, as far as their words differ."""
    if not isinstance(other, dict):
        return one
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    return merged


def _implied(schema: dict[str, Any]) -> str:
    """Return the type that a schema's other words speak of."""
    if "properties" in schema or "required" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema or "minItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return "number"
    return "string"
