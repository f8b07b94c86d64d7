"""Poll plans: how long an agent waits before each time it asks for a result.

A plan is text. It becomes a tuple of delays of which the last one repeats, so asking it for the
next delay is one look-up:

    never                               doesn't poll
    every 2s                            2, 2, 2 ...
    backoff 2s x2 max 30s               2, 4, 8, 16, 30, 30 ...
    wait 20s then every 10s             20, 10, 10 ...
    after 5s, 10s, 30s                  5, 10, 30, 30 ...
    hinted                              what the server says, else as "wait 20s then every 10s"
    hinted else every 10s               what the server says, else as the plan behind "else"
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from fractions import Fraction
from typing import Final

from transports.units import Duration, parse_duration

STEPS_LIMIT: Final = 1000  # a plan is kept as its delays; no agent tells more of them apart
HINTED_ELSE: Final = "wait 20s then every 10s"  # the published plan that fits the 20 s relay poll

_EXAMPLES: Final = {
    "never": "never",
    "every": "every 2s",
    "backoff": "backoff 2s x2 max 30s",
    "wait": "wait 20s then every 10s",
    "after": "after 5s, 10s, 30s",
    "hinted": "hinted else every 10s",
}
_BACKOFF: Final = re.compile(r"backoff (\S+) x([0-9]{1,6}(?:\.[0-9]{1,6})?) max (\S+)")
_WAIT: Final = re.compile(r"wait (\S+) then every (\S+)")


class PollPlan:
    """When an agent polls; immutable, compared and hashed by its canonical text, picklable.

    `delays_us` are the delays before poll 0, 1, 2 ...; the last one, `final_us`, repeats. If there
    is none it never polls. With `hinted` the server's hint, if there is one, is what counts.
    """

    __slots__ = ("_last", "delays_us", "final_us", "hinted", "text")

    def __init__(self, text: str, delays_us: tuple[int, ...], *, hinted: bool = False) -> None:
        self.text = text
        self.delays_us = delays_us
        self.hinted = hinted
        self._last = len(delays_us) - 1
        self.final_us = delays_us[-1] if delays_us else None

    def delay_us(self, n: int, hint_us: int | None = None) -> int | None:
        """Return the delay before poll number `n`, from 0; None when it never comes.

        `hint_us` is what the server last told this agent to wait, None if it told nothing.
        """
        if self.hinted and hint_us is not None:
            return hint_us
        return self.delays_us[n] if n < self._last else self.final_us

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"PollPlan({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PollPlan) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Callable[[str], "PollPlan"], tuple[str]]:
        return parse_polls, (self.text,)


def parse_polls(text: str) -> PollPlan:
    """Return the plan that `text` says, in one of the forms above; raises ValueError with the cure.

    A delay that repeats must be longer than nothing: the agent would poll for ever in one instant.
    """
    plain = " ".join(text.split())
    word = plain.partition(" ")[0]
    if word not in _EXAMPLES:
        close = get_close_matches(word.lower(), _EXAMPLES, 1)
        example = _EXAMPLES[close[0]] if close else ""
        forms = f'did you mean "{example}"?' if close else f"write {_list(_EXAMPLES.values())}"
        raise ValueError(f'"{plain[:60]}" is not a poll plan: {forms}')
    try:
        return _hinted(plain) if word == "hinted" else _plain(plain, word)
    except ValueError as error:
        raise ValueError(
            f'"{plain[:60]}" is not a poll plan: {error}; an example is "{_EXAMPLES[word]}"'
        ) from None


def _hinted(plain: str) -> PollPlan:
    if plain == "hinted":
        return PollPlan(plain, parse_polls(HINTED_ELSE).delays_us, hinted=True)
    if not plain.startswith("hinted else "):
        raise ValueError('only "else" and another plan may follow "hinted"')
    other = parse_polls(plain.removeprefix("hinted else "))
    if other.hinted:
        raise ValueError('a plan behind "else" can\'t be hinted itself')
    text = "hinted" if other.text == HINTED_ELSE else f"hinted else {other.text}"
    return PollPlan(text, other.delays_us, hinted=True)


def _plain(plain: str, word: str) -> PollPlan:
    rest = plain.removeprefix(word).strip()
    if word == "never":
        _require(not rest, f'nothing may follow "never", but "{rest}" does')
        return PollPlan("never", ())
    if word == "backoff":
        return _backoff(plain)
    if word == "wait":
        match = _WAIT.fullmatch(plain)
        _require(match is not None, 'it needs "then every" between two durations')
        delays = [parse_duration(part) for part in match.groups()] if match else []
        text = f"wait {delays[0]} then every {delays[1]}"
    elif word == "every":
        delays = [parse_duration(rest)]
        text = f"every {delays[0]}"
    else:
        delays = [parse_duration(part) for part in rest.split(",")]
        text = f"after {_list(delays)}"
    _require(delays[-1] > 0, "the delay that repeats is 0s")
    _require(len(delays) <= STEPS_LIMIT, f"it has more than {STEPS_LIMIT} delays")
    return PollPlan(text, tuple(map(int, delays)))


def _backoff(plain: str) -> PollPlan:
    match = _BACKOFF.fullmatch(plain)
    if match is None:
        raise ValueError("it needs a first delay, a factor and a maximum")
    first, factor, most = parse_duration(match[1]), Fraction(match[2]), parse_duration(match[3])
    _require(first > 0, "the first delay is 0s")
    _require(factor > 1, 'the factor is not above 1, use "every"')
    _require(first <= most, "the first delay is longer than the maximum")
    delays = [int(first)]
    exact = Fraction(first)  # a factor such as 1.5 must not round twice
    while delays[-1] < most and len(delays) <= STEPS_LIMIT:
        exact *= factor
        delays.append(min(int(exact + Fraction(1, 2)), int(most)))
    _require(len(delays) <= STEPS_LIMIT, f"it takes more than {STEPS_LIMIT} steps to its maximum")
    number = repr(float(factor)).removesuffix(".0")
    text = f"backoff {first} x{number} max {most}"
    return PollPlan(text, tuple(delays))


def _list(parts: Iterable[str | Duration]) -> str:
    return ", ".join(map(str, parts))


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)
