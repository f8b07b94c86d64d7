"""Chance: streams of uniform numbers, and distributions written as text.

A distribution is read once and compiled to one Python expression, the inverse of its distribution
function: `lognormal(median=60s, sigma=0.8, min=5s)` becomes a function of one uniform number. So a
draw costs one frame, takes exactly one number from the stream (a constant too), and comes out the
same on every Python: nothing depends on how the standard library turns random bits into normals.

`min` and `max` clamp: a draw below `min` becomes `min`. They don't truncate: nothing is
drawn again.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from statistics import NormalDist
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

from transports.units import (
    DURATION_LIMIT_US,
    SIZE_LIMIT_BYTES,
    Duration,
    Size,
    parse_duration,
    parse_size,
)

COUNT_LIMIT: Final = 2**53  # every whole number up to here is a float without rounding
NUMBER_LIMIT: Final = 1e100  # so that no product of two parameters overflows
CHOICE_LIMIT: Final = 1000  # a longer list belongs into a file, not into one line of text


class Stream(Protocol):
    """A source of chance: `random()` returns the next uniform number in [0, 1), 53 bits of it."""

    def random(self) -> float:
        """Return the next uniform number, at least 0 and below 1."""


class _Compiled(NamedTuple):
    """A family with its parameters filled in."""

    source: str  # a Python expression in _U
    low: float  # the bounds of what it may give, before any clamp
    high: float


class _Family(NamedTuple):
    """One kind of distribution: how it is written and how it is compiled."""

    amounts: tuple[str, ...]  # parameters in the distribution's own unit
    numbers: tuple[str, ...]  # parameters without a unit
    clamps: bool  # whether min= and max= are accepted
    named: bool  # whether the canonical text names its parameters
    build: Callable[..., _Compiled]
    example: str  # in numbers; {} is where a unit goes


_CLAMPS: Final[tuple[str, ...]] = ("min", "max")
_U: Final = "UNIFORM"  # stands for the uniform number until the expression is compiled
_TOP: Final = 1.0 - 2.0**-53  # the largest uniform number
_TINY: Final = 2.0**-54  # in place of 0, whose normal quantile is infinite
_NAMES: Final[Mapping[str, Any]] = {
    "__builtins__": {},
    "int": int,
    "floor": math.floor,
    "exp": math.exp,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "normal": NormalDist().inv_cdf,
}


def _uniform(low: float, high: float) -> _Compiled:
    _require(low <= high, "uniform needs low <= high")
    return _Compiled(f"{low!r} + {high - low!r} * {_U}", low, high)


def _triangular(low: float, mode: float, high: float) -> _Compiled:
    _require(low <= mode <= high, "triangular needs low <= mode <= high")
    width = high - low
    share = (mode - low) / width if width else 0.0
    rising = f"{low!r} + sqrt({width * (mode - low)!r} * v)"
    falling = f"{high!r} - sqrt({width * (high - mode)!r} * (1.0 - v))"
    return _Compiled(f"({rising} if (v := {_U}) < {share!r} else {falling})", low, high)


def _exponential(mean: float) -> _Compiled:
    _require(mean > 0, "exponential needs mean > 0")
    return _Compiled(f"{-mean!r} * log1p(-{_U})", 0.0, math.inf)


def _normal(mean: float, sd: float) -> _Compiled:
    _require(sd >= 0, "normal needs sd >= 0")
    return _Compiled(f"{mean!r} + {sd!r} * normal({_U} or {_TINY!r})", -math.inf, math.inf)


def _lognormal(median: float, sigma: float) -> _Compiled:
    _require(median > 0 and sigma >= 0, "lognormal needs median > 0 and sigma >= 0")
    source = f"exp({math.log(median)!r} + {sigma!r} * normal({_U} or {_TINY!r}))"
    return _Compiled(source, 0.0, math.inf)


def _pareto(scale: float, shape: float) -> _Compiled:
    _require(scale > 0 and shape > 0, "pareto needs scale > 0 and shape > 0")
    return _Compiled(f"{scale!r} * (1.0 - {_U}) ** {-1.0 / shape!r}", scale, math.inf)


def _weibull(scale: float, shape: float) -> _Compiled:
    _require(scale > 0 and shape > 0, "weibull needs scale > 0 and shape > 0")
    return _Compiled(f"{scale!r} * (-log1p(-{_U})) ** {1.0 / shape!r}", 0.0, math.inf)


def _choice(*values: float) -> _Compiled:
    _require(0 < len(values) <= CHOICE_LIMIT, f"choice needs 1 to {CHOICE_LIMIT} values")
    source = f"({', '.join(map(repr, values))},)[int({float(len(values))!r} * {_U})]"
    return _Compiled(source, min(values), max(values))


_FAMILIES: Final[Mapping[str, _Family]] = {
    "uniform": _Family(("low", "high"), (), False, False, _uniform, "uniform(0{0}, 40{0})"),
    "triangular": _Family(
        ("low", "mode", "high"), (), False, False, _triangular, "triangular(5{0}, 20{0}, 60{0})"
    ),
    "exponential": _Family(("mean",), (), True, True, _exponential, "exponential(mean=10{0})"),
    "normal": _Family(("mean", "sd"), (), True, True, _normal, "normal(mean=60{0}, sd=5{0})"),
    "lognormal": _Family(
        ("median",), ("sigma",), True, True, _lognormal, "lognormal(median=60{0}, sigma=0.8)"
    ),
    "pareto": _Family(("scale",), ("shape",), True, True, _pareto, "pareto(scale=1{0}, shape=2)"),
    "weibull": _Family(
        ("scale",), ("shape",), True, True, _weibull, "weibull(scale=10{0}, shape=2)"
    ),
    "choice": _Family((), (), False, False, _choice, "choice(1{0}, 5{0}, 9{0})"),
}
FAMILIES: Final = tuple(_FAMILIES)

_CALL: Final = re.compile(r"([A-Za-z]\w*)\s*\((.*)\)", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z]\w*")
_SelfT = TypeVar("_SelfT", bound="Distribution")


class Distribution:
    """What a chance value may be, read from text by `parse` of one of the subclasses.

    `draw(stream)` takes one number from the stream and returns the next value. `quantile(u)` is the
    value that the uniform number `u` becomes; 0 and 1 give the ends of the support. `support` is
    (low, high), clamps included: no draw lies outside. `constant` is the only value that a constant
    distribution has, else None, so that a hot path may skip the draw. `text` is canonical, and two
    distributions of one class are equal when their texts are. Pickles as its text.
    """

    __slots__ = ("_at", "constant", "draw", "support", "text")

    text: str
    draw: Callable[[Stream], float]
    _at: Callable[[float], float]
    support: tuple[float, float]
    constant: float | None

    unit: ClassVar[str]  # what stands behind a number in an example
    whole: ClassVar[bool]  # whether draws are whole numbers, as int
    floor: ClassVar[float]  # no draw lies below; None of the units but plain numbers goes below 0
    ceiling: ClassVar[float]

    @classmethod
    def parse(cls: type[_SelfT], text: str) -> _SelfT:
        """Return the distribution that `text` says; raises ValueError with the cure."""
        plain = text.strip()
        call = _CALL.fullmatch(plain)
        if call is None:
            return cls._constant(plain)
        name, inside = call.groups()
        family = _FAMILIES.get(name)
        if family is None:
            raise ValueError(f'there is no distribution "{name}": {_near(name, FAMILIES)}')
        words = [word.strip() for word in inside.split(",")] if inside.strip() else []
        try:
            return cls._build(name, family, words)
        except ValueError as error:
            example = family.example.format(cls.unit)
            raise ValueError(f'{error}; an example is "{example}"') from None

    def quantile(self, u: float) -> float:
        """Return the value that `u`, 0 to 1, becomes; whole where the draws are."""
        if not 0.0 <= u <= 1.0:
            raise ValueError(f"{u!r} is not a probability: give 0 to 1")
        low, high = self.support
        if u in {0.0, 1.0}:
            return high if u else low
        return min(max(self._at(u), low), high)  # u may be closer to an end than any draw

    @classmethod
    def read(cls, text: str) -> float:
        """Return the amount that `text` says in this unit; raises ValueError."""
        raise NotImplementedError

    @classmethod
    def write(cls, amount: float) -> str:
        """Return the canonical text of an amount in this unit."""
        raise NotImplementedError

    @classmethod
    def _constant(cls: type[_SelfT], plain: str) -> _SelfT:
        word = _WORD.match(plain)
        if word or not plain:
            near = _FAMILIES.get(word[0] if word else "", _FAMILIES["uniform"])
            example = near.example.format(cls.unit)
            raise ValueError(f'"{plain[:60]}" is not a distribution: write one as in "{example}"')
        amount = cls.read(plain)
        source = f"({amount!r} if {_U} < 1.0 else {amount!r})"  # takes its uniform number too
        return cls._compile(cls.write(amount), _Compiled(source, amount, amount), {})

    @classmethod
    def _build(cls: type[_SelfT], name: str, family: _Family, words: Sequence[str]) -> _SelfT:
        if name == "choice":
            values = [cls.read(word) for word in words]
            text = f"choice({', '.join(map(cls.write, values))})"
            return cls._compile(text, family.build(*values), {})
        given = cls._parameters(name, family, words)
        clamps = {key: given.pop(key) for key in _CLAMPS if key in given}
        texts = [
            f"{key}={number}" if family.named or key in clamps else number
            for key, number in cls._texts(family, {**given, **clamps})
        ]
        return cls._compile(f"{name}({', '.join(texts)})", family.build(**given), clamps)

    @classmethod
    def _parameters(cls, name: str, family: _Family, words: Sequence[str]) -> dict[str, float]:
        """Return the value of each parameter that `words` give, by position or by name."""
        wanted = family.amounts + family.numbers
        known = wanted + (_CLAMPS if family.clamps else ())
        given: dict[str, float] = {}
        for index, word in enumerate(words):
            key, equals, number = (part.strip() for part in word.partition("="))
            if not equals:
                if index >= len(wanted):
                    raise ValueError(f'{name} has no place for "{word}"')
                key, number = wanted[index], word
            if key not in known:
                raise ValueError(f'{name} has no parameter "{key}": {_near(key, known)}')
            if key in given:
                raise ValueError(f'{name} is given "{key}" twice')
            given[key] = _read_number(number) if key in family.numbers else cls.read(number)
        missing = [key for key in wanted if key not in given]
        if missing:
            raise ValueError(f"{name} needs {' and '.join(missing)}")
        return given

    @classmethod
    def _texts(cls, family: _Family, given: Mapping[str, float]) -> list[tuple[str, str]]:
        order = (*family.amounts, *family.numbers, *_CLAMPS)
        return [
            (key, _number_text(given[key]) if key in family.numbers else cls.write(given[key]))
            for key in order
            if key in given
        ]

    @classmethod
    def _compile(
        cls: type[_SelfT], text: str, family: _Compiled, clamps: Mapping[str, float]
    ) -> _SelfT:
        low = max(cls.floor, clamps.get("min", cls.floor))
        high = min(cls.ceiling, clamps.get("max", cls.ceiling))
        _require(low <= high, "it needs min <= max")
        source = cls._finish(_clamped(family, low, high))
        self = cls.__new__(cls)
        self.text = text
        self.draw = _function("stream", source.replace(_U, "stream.random()"))
        self._at = _function("u", source.replace(_U, "u"))
        ends = (min(max(end, low), high) for end in (family.low, family.high))
        lowest, highest = (_half_up(end) if cls.whole else end for end in ends)
        self.support = (lowest, highest)
        self.constant = lowest if lowest == highest else None
        return self

    @classmethod
    def _finish(cls, source: str) -> str:
        """Round half up where the unit is whole; these units are never negative."""
        return f"int({source} + 0.5)" if cls.whole else source

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Callable[[str], "Distribution"], tuple[str]]:
        return type(self).parse, (self.text,)


class Durations(Distribution):
    """A distribution of durations; draws whole microseconds as int, 0 to a century."""

    __slots__ = ()

    draw: Callable[[Stream], int]
    unit = "s"
    whole = True
    floor = 0.0
    ceiling = float(DURATION_LIMIT_US)

    @classmethod
    def read(cls, text: str) -> float:
        """Return the microseconds of a duration's text."""
        return float(parse_duration(text))

    @classmethod
    def write(cls, amount: float) -> str:
        """Return the duration's text."""
        return str(Duration(int(amount)))


class Sizes(Distribution):
    """A distribution of sizes; draws whole bytes as int."""

    __slots__ = ()

    draw: Callable[[Stream], int]
    unit = "KiB"
    whole = True
    floor = 0.0
    ceiling = float(SIZE_LIMIT_BYTES)

    @classmethod
    def read(cls, text: str) -> float:
        """Return the bytes of a size's text."""
        return float(parse_size(text))

    @classmethod
    def write(cls, amount: float) -> str:
        """Return the size's text."""
        return str(Size(int(amount)))


class Numbers(Distribution):
    """A distribution of plain numbers; draws floats. A bare number is a constant."""

    __slots__ = ()

    unit = ""
    whole = False
    floor = -math.inf
    ceiling = math.inf

    @classmethod
    def parse(cls: type[_SelfT], text: str | float) -> _SelfT:
        """Return the distribution that a text, or a bare number, says; raises ValueError."""
        return super().parse(_bare(text))

    @classmethod
    def read(cls, text: str) -> float:
        """Return the number that the text says."""
        return _read_number(text)

    @classmethod
    def write(cls, amount: float) -> str:
        """Return the shortest text of the number."""
        return _number_text(amount)


class Counts(Numbers):
    """A distribution of counts: numbers rounded half up to whole ones, 0 or more, as int.

    The ends of a uniform are rounded to half as often as the rest: a die is choice(1, 2, 3, 4, 5,
    6), not uniform(1, 6). A constant must be whole.
    """

    __slots__ = ()

    draw: Callable[[Stream], int]
    whole = True
    floor = 0.0
    ceiling = float(COUNT_LIMIT)

    @classmethod
    def _constant(cls: type[_SelfT], plain: str) -> _SelfT:
        constant = super()._constant(plain)
        if cls.read(plain) != constant.constant:
            raise ValueError(f"{plain} is not a count: write a whole number, 0 or more")
        return constant


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)


def _near(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word.lower(), known, 1)
    return f'did you mean "{close[0]}"?' if close else f"there are {', '.join(known)}"


def _half_up(number: float) -> int:
    return math.floor(number + 0.5)


def _bare(text: str | float) -> str:
    return text if isinstance(text, str) else _number_text(text)


def _read_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a number: write one without a unit') from None
    fits = number == 0 or 1.0 / NUMBER_LIMIT <= abs(number) <= NUMBER_LIMIT
    _require(fits, f'"{text}" is out of range: write 0, or 1e-100 to 1e100')
    return number


def _number_text(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _clamped(family: _Compiled, low: float, high: float) -> str:
    """Return the expression held within [low, high]; a bound that is never reached costs nothing.

    A family without finite bounds rises with its uniform number, so the least and the largest of
    those tell what it may give.
    """
    ends = (family.low, family.high)
    if not all(map(math.isfinite, ends)):
        reach = _function("u", family.source.replace(_U, "u"))
        try:
            ends = (reach(0.0), reach(_TOP))
        except OverflowError:
            ends = (0.0, math.inf)
        _require(math.isfinite(ends[1]), "it spreads too far for a number")
    source = family.source
    if min(ends) < low and max(ends) > high:
        return f"({low!r} if (x := {source}) < {low!r} else {high!r} if x > {high!r} else x)"
    if min(ends) < low:
        return f"({low!r} if (x := {source}) < {low!r} else x)"
    if max(ends) > high:
        return f"({high!r} if (x := {source}) > {high!r} else x)"
    return f"({source})"


def _function(parameter: str, source: str) -> Callable[[Any], Any]:
    """Compile an expression of this module's own making: it holds numbers and _NAMES, no text."""
    function: Callable[[Any], Any] = eval(  # noqa: S307 - nothing in it was written by a user
        f"lambda {parameter}: {source}", dict(_NAMES)
    )
    return function
