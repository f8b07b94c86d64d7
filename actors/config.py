"""How the values of an actor's Config are read from a scenario file, written back, and described.

msgspec knows numbers, texts and lists. These hooks add the types that a Config may use beside them:

    msgspec.convert(table, Relay.Config, dec_hook=decode_hook)
    msgspec.to_builtins(config, enc_hook=encode_hook)
"""

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from actors.chance import Counts, Durations, Numbers, Sizes
from actors.polls import PollPlan, parse_polls
from transports.units import Duration, Offset, Size, parse_duration, parse_offset, parse_size


class _Kind(NamedTuple):
    parse: Callable[[Any], Any]
    numbers: bool  # whether a bare number is accepted
    meaning: str  # follows "takes"


_KINDS: Final[Mapping[type, _Kind]] = {
    Duration: _Kind(parse_duration, False, 'a duration, as in "20s" (units us, ms, s, m, h, d)'),
    Offset: _Kind(parse_offset, False, 'a duration with its sign, as in "+1d" or "-1h"'),
    Size: _Kind(parse_size, False, 'a size, as in "100KiB" (units B, KB, MB, GB, KiB, MiB, GiB)'),
    Durations: _Kind(
        Durations.parse,
        False,
        'a duration or a distribution of durations, as in "25s" or '
        '"lognormal(median=60s, sigma=0.8, min=5s)"',
    ),
    Sizes: _Kind(
        Sizes.parse,
        False,
        'a size or a distribution of sizes, as in "4KiB" or "uniform(1KiB, 100KiB)"',
    ),
    Numbers: _Kind(
        Numbers.parse,
        True,
        'a number or a distribution of numbers, as in 0.5 or "uniform(0, 1)"',
    ),
    Counts: _Kind(
        Counts.parse,
        True,
        'a whole number or a distribution rounded to whole numbers, as in 5 or "choice(1, 2, 5)"',
    ),
    PollPlan: _Kind(parse_polls, False, 'a poll plan, as in "every 2s" or "backoff 2s x2 max 30s"'),
}
_PLAIN: Final[Mapping[Any, str]] = {
    int: "a whole number, as in 5",
    float: "a number, as in 0.5",
    str: 'a text, as in "demo"',
    bool: "true or false",
    NoneType: "nothing (leave the key out)",
}


def decode_hook(kind: type, value: Any) -> Any:
    """Turn a TOML value into `kind`, for msgspec.convert.

    Raises ValueError with one sentence and the cure when the value is wrong, and
    NotImplementedError when `kind` is none of the types above, which is an error in the actor.
    """
    known = _KINDS.get(kind)
    if known is None:
        raise NotImplementedError(f"a Config can't have a field of type {kind.__name__}")
    if type(value) is kind:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, str) or (number and known.numbers):
        return known.parse(value)
    if number:
        return known.parse(str(value))  # to be refused with the cure for this number
    raise ValueError(f"{_shown(value)} is not accepted: it takes {known.meaning}")


def describe(kind: Any) -> str:
    """Return what a field of type `kind` accepts, with an example, as a phrase after "takes"."""
    if kind in _KINDS:
        return _KINDS[kind].meaning
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f'"{choice}"' for choice in inside)
    if origin in {Union, UnionType}:
        return " or ".join(describe(choice) for choice in inside)
    if origin is tuple and len(inside) == 2 and inside[1] is Ellipsis:
        return f"a list, each of it {describe(inside[0])}"
    if origin is tuple:
        return f"a list of {len(inside)}: {'; '.join(map(describe, inside))}"
    raise NotImplementedError(f"a Config can't have a field of type {kind!r}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else "this value"
