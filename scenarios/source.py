"""Reading a scenario file: its data, the place of every key and value, and what is wrong with it.

`tomllib`/`tomli` and `json` decide what is valid and what it means; their refusals become
problems with a place, a plain sentence and, where the usual mistake is known, a cure.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from scenarios.places import Keys, Lines, Scan, Span
from scenarios.problems import WORD_LIMIT_CHARS, Problem, ScenarioError, quote, suggest

if sys.version_info >= (3, 15):
    import tomllib
else:
    import tomli as tomllib

SIZE_LIMIT_BYTES = 1 << 20  # the longest shipped scenario has some 5 KB; this is a wrong file
NESTING_LIMIT = 64  # scenarios need 4; beyond some 300 the parsers and ours run out of stack


class Source:
    """A valid file: `path` as the user wrote it, `text` with LF line ends, `data` as parsed."""

    def __init__(self, path: str, text: str, data: dict[str, Any]) -> None:
        """Keep what was read; places are looked up later."""
        self.path = path
        self.text = text
        self.data = data
        self._lines = Lines(text)
        self._spans: Mapping[Keys, Span] | None = None

    def place(self, path: Keys, of: Literal["key", "value"] = "value") -> tuple[int, int, int]:
        """Line, column (both from 1) and length in characters of a key or value.

        `path` has the keys from the top, and indexes into arrays. A value of several lines counts
        up to the end of its first. What isn't in the file has the place of the closest table,
        array or key around it; the top has the file's beginning.
        """
        if self._spans is None:
            self._spans = Scan(self.text, is_json=_is_json(self.path)).spans
        for length in range(len(path), -1, -1):
            span = self._spans.get(path[:length])
            if span is not None:
                return self._lines.place(*(span[:2] if of == "key" else span[2:]))
        return 1, 1, 1

    def problem(
        self,
        path: Keys,
        message: str,
        *,
        of: Literal["key", "value"] = "value",
        cure: str | None = None,
    ) -> Problem:
        """A problem at the place of `path`, with its line."""
        line, column, length_chars = self.place(path, of)
        return Problem(
            path=self.path,
            line=line,
            column=column,
            length_chars=length_chars,
            message=message,
            cure=cure,
            source_line=self._lines.text(line),
        )


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read and parse a scenario file: JSON if its name ends in `.json`, else TOML 1.1.

    Raises ScenarioError for everything that can be wrong with a file: it can't be read, is too
    large, isn't UTF-8, has a syntax error or the same key twice.
    """
    shown = os.fspath(path)
    return parse_source(_decode(shown, _read_bytes(shown)), shown)


def parse_source(text: str, path: str) -> Source:
    """Parse the text of a scenario; `path` names it in problems and its suffix tells the language.

    Raises ScenarioError as `read_source` does.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        data = _parse_json(text, path) if _is_json(path) else _parse_toml(text, path)
    except RecursionError:
        raise _too_deep(path) from None
    _check_nesting(data, path)
    return Source(path, text, data)


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


# Reading bytes


def _read_bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise _missing(path) from None
    except IsADirectoryError:
        message, cure = "this is a directory, not a scenario file", "name a file in it"
    except PermissionError:
        message, cure = "no permission to read this file", None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message, cure = f"this file can't be read: {reason}", None
    else:
        if len(data) <= SIZE_LIMIT_BYTES:
            return data
        message = f"this file is larger than {SIZE_LIMIT_BYTES >> 20} MiB, so it is no scenario"
        cure = None
    raise ScenarioError([Problem(path=path, message=message, cure=cure)])


def _missing(path: str) -> ScenarioError:
    folder = Path(path).parent
    if not folder.is_dir():
        return ScenarioError(
            [Problem(path=path, message=f"there is no folder {quote(str(folder))}")]
        )
    try:
        neighbours = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError:
        neighbours = []
    near = suggest(Path(path).name, neighbours)
    cure = None if near is None else f"did you mean {quote(str(folder / near), limit_chars=200)}?"
    return ScenarioError([Problem(path=path, message="there is no such file", cure=cure)])


def _decode(path: str, data: bytes) -> str:
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        line = data[start:].split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
        problem = Problem(
            path=path,
            line=data.count(b"\n", 0, start) + 1,
            column=len(data[start : error.start].decode("utf-8")) + 1,
            source_line=line,
            message=f"the byte 0x{data[error.start]:02x} is not UTF-8",
            cure="save the file in the encoding UTF-8",
        )
        raise ScenarioError([problem]) from None


# Parsing


def _parse_toml(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([_toml_problem(text, path, error)]) from None
    except ValueError:
        # The one other refusal: Python limits the digits that it turns into an integer.
        message = "an integer in this file has too many digits"
        raise ScenarioError([Problem(path=path, message=message)]) from None


def _parse_json(text: str, path: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:].rstrip(": ")
        message = message.replace("expecting", "expected").removesuffix(" at")
        problem = Lines(text).problem(path, error.pos, error.pos + 1, message)
        raise ScenarioError([problem]) from None
    except ValueError:
        message = "an integer in this file has too many digits"
        raise ScenarioError([Problem(path=path, message=message)]) from None
    if not isinstance(data, dict):
        problem = Lines(text).problem(path, 0, 1, "a scenario in JSON must be one object: {...}")
        raise ScenarioError([problem])
    problems = list(_json_problems(text, path))
    if problems:
        raise ScenarioError(problems)
    return data


def _json_problems(text: str, path: str) -> Iterator[Problem]:
    """What Python's parser lets through: keys given twice, NaN, halves of surrogate pairs."""
    lines = Lines(text)
    scan = Scan(text, is_json=True)
    repeated = {keys for keys, _, _ in scan.repeats}
    for keys, first, again in scan.repeats:
        if any(keys[:length] in repeated for length in range(len(keys))):
            continue  # it is in an object that is itself given twice
        yield lines.problem(
            path,
            again.key_start,
            again.key_end,
            f"the key {quote(str(keys[-1]))} is given twice",
            f"it is already given in line {lines.place(first.key_start, first.key_end)[0]}",
        )
    for span in scan.spans.values():
        value = text[span.start : span.end]
        if value in ("NaN", "Infinity", "-Infinity"):
            yield lines.problem(path, span.start, span.end, f"{value} is not a value of JSON")
        for start, end in {span[:2], span[2:]}:
            if text[start:end].startswith('"') and _has_half_pair(json.loads(text[start:end])):
                message = "this string has half of a surrogate pair, which is no character"
                yield lines.problem(path, start, end, message)


def _has_half_pair(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _too_deep(path: str) -> ScenarioError:
    message = f"this file nests tables or arrays more than {NESTING_LIMIT} levels deep"
    return ScenarioError([Problem(path=path, message=message)])


def _check_nesting(data: dict[str, Any], path: str) -> None:
    level: list[Any] = [data]
    for _ in range(NESTING_LIMIT + 1):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [value for part in inner for value in part if isinstance(value, dict | list)]
        if not level:
            return
    raise _too_deep(path)


# Sentences for TOML's syntax errors

_BARE_TEXT = re.compile(r"[^\s,\[\]{}#=\"'][^,\[\]{}#\n=\"']*")
_TOKEN_BEFORE = re.compile(r"[^\s,\[\]{}#=\"']*\Z")
_SENTENCES = {
    "Unterminated string": "the file ends inside this string",
    "Illegal character '\\n'": "this string is not closed in its line",
    "Expected \"'''\"": "the file ends inside this string",
    "Unclosed array": 'this array needs "," or "]" here',
    "Unclosed inline table": 'this inline table needs "," or "}" here',
    "Expected '=' after a key in a key/value pair": 'there is no "=" after this key',
    "Expected ']' at the end of a table declaration": 'there is no "]" after this table\'s name',
    "Expected ']]' at the end of an array declaration": 'there is no "]]" after this name',
    "Invalid initial character for a key part": "a key is expected here",
    "Escaped character is not a Unicode scalar value": "this escape stands for no character",
    "Invalid hex value": "this escape needs more hexadecimal digits",
    "Invalid date or datetime": "there is no such date or time",
}
_CLASHES = ("Cannot overwrite", "Cannot declare", "Duplicate inline", "Cannot mutate")


def _toml_problem(text: str, path: str, error: tomllib.TOMLDecodeError) -> Problem:
    lines = Lines(text)
    at = error.pos
    if error.msg.startswith(_CLASHES):
        return _clash(lines, path, at)
    if error.msg == "Invalid value":
        return _no_value(lines, path, at)
    if error.msg.startswith("Expected newline or end of document"):
        token = _TOKEN_BEFORE.search(text, max(at - WORD_LIMIT_CHARS, 0), at)
        if token and token.group() and _BARE_TEXT.match(text, at):
            return _no_value(lines, path, token.start())
        message, cure = "the line should have ended here", "write one key and value a line"
    elif error.msg == "Invalid statement":
        message, cure = "this is neither a key nor the name of a table", None
        if text.lstrip().startswith("{"):
            cure = "a file in JSON needs a name that ends in .json"
        elif _BARE_TEXT.match(text, at):
            cure = "a key of other characters than A-Z a-z 0-9 - _ needs quotes"
    elif error.msg.startswith("Unescaped '\\'"):
        message = f"a string has no escape {quote(text[at - 2 : at])}"
        return lines.problem(
            path, at - 2, at, message, r"write \\ for a backslash, or use 'quotes'"
        )
    else:
        message = _SENTENCES.get(error.msg, error.msg[:1].lower() + error.msg[1:])
        cure = None
    return lines.problem(path, at, at + 1, message, cure)


def _no_value(lines: Lines, path: str, at: int) -> Problem:
    """There should be a value at `at`; most often it is text without quotes."""
    found = _BARE_TEXT.match(lines.whole, at)
    if found is None:
        return lines.problem(path, at, at + 1, "a value is expected here")
    word = found.group().rstrip()
    meant = suggest(word, ["true", "false"])
    if meant is not None and word.lower() not in ("true", "false"):
        meant = None if len(word) < 3 else meant
    if meant is not None:
        cure = f"did you mean {meant}?"
    elif word.replace("_", "").isdecimal():
        cure = "a number has no zero in front, and digits on both sides of each _"
    else:
        cure = f'text needs quotes: "{word}"'
    return lines.problem(path, at, at + len(word), f"{quote(word)} is not a value", cure)


def _clash(lines: Lines, path: str, at: int) -> Problem:
    """A key or table that can't be there because of an earlier one."""
    scan = Scan(lines.whole[:at], is_json=False)
    keys, span, first = scan.latest
    name = keys[-1] if isinstance(keys[-1], str) else keys[-2]
    message = f"the key {quote(str(name))} is given twice"
    length = len(keys) - 1
    while first is None and length > 0:
        first = scan.spans.get(keys[:length])
        message = f"{quote(str(name))} can't be added to {quote(str(keys[length - 1]))}"
        length -= 1
    if first is None:
        return lines.problem(path, span.key_start, span.key_end, message)
    line = lines.place(first.key_start, first.key_end)[0]
    cure = f"it is already given in line {line}"
    if lines.whole.startswith("[", span.start):
        cure += f"; to give several, write [[{name}]] above each"
    if length < len(keys) - 1:
        cure = f"{quote(str(keys[length]))} is complete as it is given in line {line}"
    return lines.problem(path, span.key_start, span.key_end, message, cure)
