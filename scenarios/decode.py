"""From plain data to msgspec Structs, with every mistake at its own place in the file.

msgspec stops at the first mistake and names a path; a user wants all of them with lines. So tables
and arrays are walked here, and msgspec converts the single values at the ends.
"""

import datetime as dt
import enum
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from actors.config import decode_hook, describe
from scenarios.places import Keys
from scenarios.problems import Problem, ScenarioError, listed, quote, suggest
from scenarios.source import Source

KEYS_LISTED_LIMIT = 12  # a longer list of known keys hides the message; `pullcord names` has all

S = TypeVar("S", bound=msgspec.Struct)

_WORDS: Mapping[Any, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    list: "an array",
    dict: "a table",
    dt.datetime: "a date-time",
    dt.date: "a date",
    dt.time: "a time",
    NoneType: "null",
}
_EXPECTED: Mapping[Any, str] = {
    **_WORDS,
    bool: "true or false",
    float: "a number",  # an integer will do
    tuple: "an array",
    frozenset: "an array",
    Sequence: "an array",
    Mapping: "a table",
}
_ARRAYS: Mapping[Any, Any] = {
    tuple: tuple,
    list: list,
    frozenset: frozenset,
    Sequence: tuple,
}
_WRONG_TYPE = re.compile(r"Expected `[^`]*`, got `[^`]*`")
_LIMIT = re.compile(r"Expected `\w+` (of length )?(<=|>=|<|>|==) (\S+)")
_MULTIPLE = re.compile(r"Expected `\w+` that's a multiple of (\S+)")
_LIMIT_WORDS = {
    ">=": "at least",
    ">": "more than",
    "<=": "at most",
    "<": "less than",
    "==": "exactly",
}


@lru_cache(maxsize=256)  # msgspec evaluates a struct's annotations anew each time
def fields_of(kind: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """The fields of a struct by the names that files have for them."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


_BAD: Any = object()  # stands for a value whose problem is noted


class Decoder:
    """Decodes the parts of one file and collects what is wrong with them in `problems`."""

    def __init__(self, source: Source) -> None:
        """Start without problems."""
        self.source = source
        self.problems: list[Problem] = []

    def problem(
        self,
        path: Keys,
        message: str,
        *,
        of: Literal["key", "value"] = "value",
        cure: str | None = None,
    ) -> None:
        """Note a problem at the key or value of `path`."""
        self.problems.append(self.source.problem(path, message, of=of, cure=cure))

    def finish(self) -> None:
        """Raise ScenarioError if there was any problem; what was noted twice is told once."""
        if self.problems:
            raise ScenarioError(dict.fromkeys(self.problems))

    def struct(
        self,
        path: Keys,
        data: object,
        kind: type[S],
        *,
        extra_keys: Collection[str] = (),
        ignore: Collection[str] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> S | None:
        """Decode the table at `path`; None if that had a problem.

        `extra_keys` are valid here but decoded by the caller; `ignore` are not looked at and never
        suggested. `elsewhere` tells of keys that belong to other tables: {"poll": "[relay]"}.
        A ValueError of `kind.__post_init__` is a problem of the whole table.
        """
        if not isinstance(data, dict):
            self.problem(path, f"{_name(path)} must be a table, not {_word(data)}")
            return None
        count = len(self.problems)
        fields = fields_of(kind)
        known = [*fields, *(key for key in extra_keys if key not in fields)]
        meant = self._unknown_keys(path, [k for k in data if k not in ignore], known, elsewhere)
        values = {}
        for key, field in fields.items():
            if key in data and key not in ignore:
                values[field.name] = self._convert((*path, key), data[key], field.type)
            elif field.required and key not in meant:
                self._missing(path, key, field.type)
        if len(self.problems) > count:
            return None
        try:
            return kind(**values)
        except ValueError as error:
            self.problem(path, f"{_table(path)}: {error}" if path else str(error))
            return None

    def value(self, path: Keys, value: object, kind: Any) -> Any:
        """Decode one value to the type `kind`; None if that had a problem."""
        converted = self._convert(path, value, kind)
        return None if converted is _BAD else converted

    def _unknown_keys(
        self,
        path: Keys,
        keys: Iterable[str],
        known: list[str],
        elsewhere: Mapping[str, str] | None,
    ) -> set[str]:
        """Report the keys that aren't known; the known ones that the writer may have meant."""
        meant = set()
        for key in keys:
            if key in known:
                continue
            near = suggest(key, known)
            cure: str | None
            if elsewhere and key in elsewhere:
                cure = f"{quote(key)} is a key of {elsewhere[key]}"
            elif near is not None:
                cure = f"did you mean {quote(near)}?"
                meant.add(near)
            else:
                cure = _known_keys(known)
            where = f" in {_table(path)}" if path else ""
            self.problem((*path, key), f"unknown key {quote(key)}{where}", of="key", cure=cure)
        return meant

    def _missing(self, path: Keys, key: str, kind: Any) -> None:
        where = _table(path) if path else "the file"
        cure = f"it takes {_description(kind)}"
        self.problem(path, f"{where} needs the key {quote(key)}", cure=cure)

    def _convert(self, path: Keys, value: object, kind: Any) -> Any:
        """The converted value, or _BAD after its problems were noted."""
        inner, metas = _bare(kind)
        origin = get_origin(inner) or inner
        if origin in (Union, UnionType):
            return self._one_of(path, value, get_args(inner))
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            decoded = self.struct(path, value, inner)
            return _BAD if decoded is None else decoded
        if origin in _ARRAYS and isinstance(value, list):
            return self._array(path, value, inner, metas)
        if origin in (dict, Mapping) and isinstance(value, dict):
            return self._dict(path, value, inner)
        return self._single(path, value, kind)

    def _one_of(self, path: Keys, value: object, kinds: tuple[Any, ...]) -> Any:
        """The first type of a union that takes the value; its own problems if no other could."""
        proper = [kind for kind in kinds if kind is not NoneType]
        likely = [kind for kind in kinds if _may_take(kind, value)]
        if not likely and len(proper) == 1:
            likely = proper
        count = len(self.problems)
        for kind in likely:
            converted = self._convert(path, value, kind)
            if converted is not _BAD:
                return converted
            if len(likely) > 1:
                del self.problems[count:]
        if len(likely) != 1:
            shown = quote(value) if isinstance(value, str) else _word(value)
            message = f"{_name(path)} must be {listed(map(_expected, proper))}, not {shown}"
            choices = [choice for kind in proper for choice in _choices(_bare(kind)[0])]
            self.problem(path, message, cure=_nearest(value, choices))
        return _BAD

    def _array(self, path: Keys, value: list[Any], kind: Any, metas: list[msgspec.Meta]) -> Any:
        inside = get_args(kind) or (Any, ...)
        if get_origin(kind) is tuple and inside[-1] is not Ellipsis:
            least = most = len(inside)
            kinds = inside
        else:
            least = max((meta.min_length or 0 for meta in metas), default=0)
            most = min(
                (len(value) if m.max_length is None else m.max_length for m in metas),
                default=len(value),
            )
            kinds = (inside[0],) * len(value)
        if not least <= len(value) <= most:
            limits = {least: "exactly"} if least == most else {least: "at least", most: "at most"}
            limit = least if len(value) < least else most
            message = f"{_name(path)} must have {limits[limit]} {_count(limit, 'element')}"
            self.problem(path, f"{message}, not {len(value)}")
            return _BAD
        items = [
            self._convert((*path, index), element, inner)
            for index, (element, inner) in enumerate(zip(value, kinds, strict=True))
        ]
        if any(item is _BAD for item in items):
            return _BAD
        return _ARRAYS[get_origin(kind) or kind](items)

    def _dict(self, path: Keys, value: dict[str, Any], kind: Any) -> Any:
        key_kind, value_kind = get_args(kind) or (str, Any)
        items = {}
        for key, inner in value.items():
            count = len(self.problems)
            new_key = self._convert((*path, key), key, key_kind)
            if len(self.problems) > count:
                del self.problems[count:]
                message = f"unknown key {quote(key)} in {_table(path)}"
                cure = _nearest(key, _choices(_bare(key_kind)[0]))
                self.problem((*path, key), message, of="key", cure=cure)
            items[new_key] = self._convert((*path, key), inner, value_kind)
        return _BAD if any(_BAD in pair for pair in items.items()) else items

    def _single(self, path: Keys, value: object, kind: Any) -> Any:
        if kind is not Any and isinstance(value, float) and not math.isfinite(value):
            # No field has a use for these, and limits such as ge=0 don't stop NaN.
            self.problem(path, f"{_name(path)} must be {_expected(kind)}, not {value}")
            return _BAD
        try:
            return msgspec.convert(value, kind, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            message, cure = _sentence(_name(path), value, kind, error)
        except (NotImplementedError, TypeError) as error:
            message, cure = f"{_name(path)}: {error}", None  # the Struct has a type we can't decode
        self.problem(path, message, cure=cure)
        return _BAD


# Sentences


def _sentence(
    name: str, value: object, kind: Any, error: msgspec.ValidationError
) -> tuple[str, str | None]:
    """What is wrong with a single value, and a cure if one is sure."""
    if error.__cause__ is not None:  # the hook's own sentence, which has the cure in it
        return f"{name}: {error.__cause__}", None
    text = str(error)
    inner, metas = _bare(kind)
    choices = _choices(inner)
    if choices:
        return f"{name} must be {_expected(inner)}", _nearest(value, choices)
    if _WRONG_TYPE.fullmatch(text):
        message = f"{name} must be {_expected(inner)}, not {_word(value)}"
        return message, _retyped(value, inner)
    if found := _LIMIT.fullmatch(text):
        return f"{name} must {_limit(*found.groups())}", None
    if found := _MULTIPLE.fullmatch(text):
        return f"{name} must be a multiple of {_number(found[1])}", None
    for meta in metas:
        if meta.pattern is not None:
            meaning = meta.description or f"text that matches the pattern {meta.pattern}"
            return f"{name} must be {meaning}", None
    return f"{name}: {text[:1].lower()}{text[1:]}", None


def _nearest(value: object, choices: Iterable[object]) -> str | None:
    near = suggest(value, map(str, choices)) if isinstance(value, str) else None
    return None if near is None else f"did you mean {quote(near)}?"


def _limit(of_length: str | None, sign: str, limit: str) -> str:
    if not of_length:
        return f"be {_LIMIT_WORDS[sign]} {_number(limit)}"
    if (sign, limit) == (">=", "1"):
        return "not be empty"
    return f"have {_LIMIT_WORDS[sign]} {_count(int(limit), 'character')}"


def _retyped(value: object, kind: Any) -> str | None:
    """How the same value is written in the type that is expected."""
    origin = get_origin(kind) or kind
    if kind is str and not isinstance(value, list | dict | NoneType):
        written = _written(value)
        return f'put it in quotes: "{written}"'
    if kind is int and isinstance(value, float) and value.is_integer():
        return f"write it without a fraction: {int(value)}"
    if kind in (int, float, bool) and isinstance(value, str):
        try:
            plain = json.loads(value)
        except ValueError:
            return None
        if type(plain) is kind or (kind is float and type(plain) is int):
            return f"write it without quotes: {value}"
    if origin in _ARRAYS and isinstance(value, str | int | float):
        return f"put it in brackets: [{_written(value)}]"
    return None


def _known_keys(known: list[str]) -> str | None:
    if not known:
        return "no keys are known here"
    if len(known) <= KEYS_LISTED_LIMIT:
        return f"the keys here are {listed(map(quote, known), last='and')}"
    return None


def _description(kind: Any) -> str:
    """What a missing key takes, with an example if the actors' types have one."""
    try:
        return describe(_bare(kind)[0])
    except NotImplementedError:
        return _expected(kind)


def _expected(kind: Any) -> str:
    inner, _ = _bare(kind)
    if choices := _choices(inner):
        return listed(map(_written, choices))
    origin = get_origin(inner) or inner
    if origin in (Union, UnionType):
        return listed(_expected(one) for one in get_args(inner) if one is not NoneType)
    if origin in _EXPECTED:
        return _EXPECTED[origin]
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return "a table"
    try:
        return describe(inner)
    except NotImplementedError:
        return f"of type {getattr(inner, '__name__', inner)}"


def _word(value: object) -> str:
    return _WORDS.get(type(value), f"a {type(value).__name__}")


def _written(value: object) -> str:
    """A single value as TOML writes it."""
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)


def _number(text: str) -> str:
    return text.removesuffix(".0")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _name(path: Keys) -> str:
    """A value as sentences call it: by its key, or as an element of the array with that key."""
    if not path:
        return "the file"
    last = path[-1]
    return quote(last) if isinstance(last, str) else f"element {last + 1} of {_name(path[:-1])}"


def _table(path: Keys) -> str:
    """A table as its header would be written."""
    names = [key for key in path if isinstance(key, str)]
    shown = ".".join(key if re.fullmatch(r"[\w-]+", key) else quote(key) for key in names)
    return f"[[{shown}]]" if isinstance(path[-1], int) else f"[{shown}]"


# Types


def _bare(kind: Any) -> tuple[Any, list[msgspec.Meta]]:
    """The type without its annotations, and the msgspec constraints among these."""
    if get_origin(kind) is not Annotated:
        return kind, []
    inner, *annotations = get_args(kind)
    return inner, [meta for meta in annotations if isinstance(meta, msgspec.Meta)]


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return tuple(member.value for member in kind)
    return ()


def _may_take(kind: Any, value: object) -> bool:
    """Whether the value may be meant for this member of a union, going by its shape."""
    inner, _ = _bare(kind)
    origin = get_origin(inner) or inner
    if value is None or inner is NoneType:
        return value is None and inner is NoneType
    is_array = origin in _ARRAYS
    is_table = origin in (dict, Mapping) or (
        isinstance(inner, type) and issubclass(inner, msgspec.Struct)
    )
    return is_array == isinstance(value, list) and is_table == isinstance(value, dict)
