"""Expectations: what a scenario's results should be, written as text.

    calls.mean[every 2s] equals 46.7          an exact value from theory
    calls.mean[every 2s] agrees with 47.1     a figure published from a sample of the same size
    wait.mean within 10s +/- 0.5s             the 95 % interval lies inside, outside, or straddles
    late.p95 < 20s                            likewise, with <=, > and >=
    late.mean[hinted] < 0.5 * late.mean[every 10s]

`equals` and `agrees with` ask whether chance explains the difference: they pass up to 3.3 standard
errors (times the square root of 2 when the other figure is from a sample too), which a true value
exceeds once in a thousand times. The others ask for evidence, and are inconclusive without it.
`scenarios.judge` does that; how errors and intervals are computed stands in `scenarios.stats`.
"""

import re
from difflib import get_close_matches
from typing import Final, Literal

import msgspec

from scenarios.stats import parse_statistic
from transports.units import parse_duration, parse_size

Form = Literal["equals", "agrees with", "within", "<", "<=", ">", ">="]

FORMS: Final[tuple[Form, ...]] = ("equals", "agrees with", "within", "<=", ">=", "<", ">")
EXAMPLE: Final = "calls.mean equals 46.7"
LIMIT_CHARS: Final = 1000  # an expectation is one line that somebody reads

_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.\-]*")
_PERCENTILE_TAIL: Final = re.compile(r"(.+)\.(p[0-9]+\.[0-9]+)")
_QUANTITY: Final = re.compile(r"[+-]?[0-9](?:[\w.]|(?<=[eE])[+-](?=[0-9]))*")
_PLAIN: Final = re.compile(r"[+-]?[0-9]+(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_LAST_PART: Final = re.compile(r"[0-9]+(?:\.([0-9]+))?([A-Za-z]+)$")
_FIRST_WORDS: Final = {form.split()[0]: form for form in FORMS}
_OTHER_FORMS: Final = {"=": "equals", "==": "equals", "is": "equals", "=<": "<=", "=>": ">="}


class ExpectationError(ValueError):
    """An expectation that can't be read: one sentence with the cure; `offset` counts from 0."""

    def __init__(self, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.offset = offset


class Number(msgspec.Struct, frozen=True):
    """A number as it was written: durations in seconds, sizes in bytes.

    `last_digit` is what one unit of its last printed digit is worth: 0.1 for 47.1, 60 for 2m.
    """

    text: str
    value: float
    last_digit: float


class Reference(msgspec.Struct, frozen=True):
    """A statistic of a metric; `subscript` names the cell, None means every cell.

    `offset` is where it begins in the expectation's text.
    """

    metric: str
    statistic: str
    subscript: str | None = None
    offset: int = 0

    def __str__(self) -> str:
        cell = "" if self.subscript is None else f"[{self.subscript}]"
        return f"{self.metric}.{self.statistic}{cell}"


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation, read: `left form numbers`, or `left form factor * right`.

    `numbers` are one for most forms, A and T for `within A +/- T`, none when `right` is there.
    """

    text: str
    left: Reference
    form: Form
    numbers: tuple[Number, ...] = ()
    right: Reference | None = None
    factor: float = 1.0

    @property
    def references(self) -> tuple[Reference, ...]:
        """The statistics that it speaks of, one or two."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def target(self) -> str:
        """What stands behind the left reference: "equals 46.7", "< 0.5 * late.mean[every 10s]"."""
        if self.right is None:
            return f"{self.form} {' +/- '.join(number.text for number in self.numbers)}"
        factor = "" if self.factor == 1.0 else f"{self.factor:g} * "
        return f"{self.form} {factor}{self.right}"


def parse_expectation(text: str) -> Expectation:
    """Read an expectation; raises ExpectationError, a ValueError with the place and the cure."""
    if len(text) > LIMIT_CHARS:
        raise ExpectationError(f"it is longer than {LIMIT_CHARS} characters", LIMIT_CHARS)
    reader = _Reader(text)
    left = reader.reference()
    form = reader.form()
    numbers: tuple[Number, ...] = ()
    right, factor = None, 1.0
    if form in {"equals", "agrees with"}:
        numbers = (reader.number(),)
    elif form == "within":
        numbers = reader.band()
    elif reader.at_number():
        begin, number = reader.at, reader.number()
        if reader.take("*"):
            if number.value <= 0 or number.text[-1].isalpha():
                sentence = f'"{number.text}" is not a factor: write a number above 0'
                raise ExpectationError(sentence, begin)
            right, factor = reader.reference(), number.value
        else:
            numbers = (number,)
    else:
        right = reader.reference()
    reader.end()
    return Expectation(
        text=text.strip(), left=left, form=form, numbers=numbers, right=right, factor=factor
    )


class _Reader:
    """Reads the parts of an expectation one after the other; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._skip()

    def reference(self) -> Reference:
        """Read `metric.statistic` and a subscript in brackets if there is one."""
        begin = self.at
        match = _REFERENCE.match(self.text, begin)
        if match is None:
            raise self._error(f'here a statistic of a metric is expected, as in "{EXAMPLE}"')
        word = match[0]
        long = _PERCENTILE_TAIL.fullmatch(word)  # p99.9 has a dot of its own
        metric, statistic = long.groups() if long else word.rpartition(".")[::2]
        if not metric:
            raise self._error(f'"{word}" lacks the statistic: write "{word.strip(".")}.mean"')
        try:
            parse_statistic(statistic)
        except ValueError as error:
            raise ExpectationError(str(error), match.end() - len(statistic)) from None
        self._to(match.end())
        return Reference(metric, statistic, self._subscript(), begin)

    def form(self) -> Form:
        """Read what is said of the reference."""
        for form in FORMS:
            match = re.compile(form.replace(" ", r"\s+")).match(self.text, self.at)
            end = match.end() if match else 0
            if match and not (form[-1].isalpha() and self.text[end : end + 1].isalnum()):
                self._to(end)
                return form
        word = re.compile(r"[=<>!]+|\w*").match(self.text, self.at)
        found = word[0] if word else ""
        close = get_close_matches(found, _FIRST_WORDS, 1)
        near = _OTHER_FORMS.get(found) or (_FIRST_WORDS[close[0]] if close else None)
        cure = f'did you mean "{near}"?' if near else f"write one of {', '.join(FORMS)}"
        raise self._error(f'"{found}" says nothing that can be judged: {cure}' if found else cure)

    def at_number(self) -> bool:
        """Whether a number comes next."""
        return _QUANTITY.match(self.text, self.at) is not None

    def number(self) -> Number:
        """Read a plain number, a duration in seconds or a size in bytes."""
        match = _QUANTITY.match(self.text, self.at)
        if match is None:
            raise self._error('here a number is expected, as in "46.7" or "20s"')
        try:
            number = _number(match[0])
        except ValueError as error:
            raise self._error(str(error)) from None
        self._to(match.end())
        return number

    def band(self) -> tuple[Number, Number]:
        """Read `A +/- T`."""
        middle = self.number()
        if not self.take("+/-"):
            raise self._error('"within" needs a tolerance: write it as in "within 10s +/- 0.5s"')
        begin = self.at
        tolerance = self.number()
        if tolerance.value <= 0:
            raise ExpectationError("a tolerance is above 0", begin)
        return middle, tolerance

    def take(self, mark: str) -> bool:
        """Read `mark` if it comes next."""
        found = self.text.startswith(mark, self.at)
        if found:
            self._to(self.at + len(mark))
        return found

    def end(self) -> None:
        """Make sure that nothing is left."""
        if self.at < len(self.text):
            rest = self.text[self.at :].strip()
            raise self._error(f'nothing may follow, but "{rest}" does: write one expectation each')

    def _subscript(self) -> str | None:
        begin = self.at
        if not self.take("["):
            return None
        close = self.text.find("]", begin)
        if close < 0:
            raise ExpectationError('the "[" is never closed: write "]" behind the cell', begin)
        inside = self.text[begin + 1 : close].strip()
        if not inside:
            raise ExpectationError("the brackets are empty: leave them out for every cell", begin)
        self._to(close + 1)
        return inside

    def _to(self, place: int) -> None:
        self.at = place
        self._skip()

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _error(self, sentence: str) -> ExpectationError:
        return ExpectationError(sentence, self.at)


def _number(text: str) -> Number:
    plain = _PLAIN.fullmatch(text)
    if plain:
        exponent = int(plain[2] or 0) - len(plain[1] or "")
        if abs(exponent) > 100:
            raise ValueError(f'"{text}" is out of range')
        return Number(text, float(text), float(f"1e{exponent}"))
    sign = -1.0 if text.startswith("-") else 1.0
    words = text.lstrip("+-")
    value = _amount(words)
    part = _LAST_PART.search(words)
    digits, unit = part.groups() if part else (None, "")
    return Number(text, sign * value, _amount(f"1{unit}") * float(f"1e-{len(digits or '')}"))


def _amount(text: str) -> float:
    return float(parse_size(text)) if text.endswith("B") else parse_duration(text) / 1_000_000
