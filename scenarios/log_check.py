"""`pullcord log check`: the invariants, judged again on a stored log, a deployment's too.

A log has no stores and no timers at the end. A check that stands on them is said not to be judged;
one that also looks at them is judged on the records alone, and says so. Nothing that was not looked
at is called held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from logs.seek import Entry
from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS, Check, CheckFailedError, judge, load_check
from scenarios.checks.history import History
from scenarios.grid import Row, grid
from scenarios.json_text import indented
from scenarios.log_history import Cut, history_of_log
from scenarios.log_sections import refuse, sections
from scenarios.problems import printable
from scenarios.render import plural

Verdict = Literal["held", "held in part", "violated", "not judged"]
STYLES: Final[Mapping[Verdict, str]] = {
    "held": "32",
    "held in part": "32",
    "violated": "1;31",
    "not judged": "33",
}
ORDER: Final[tuple[Verdict, ...]] = ("violated", "held in part", "held", "not judged")
SHOWN_LIMIT: Final = 5  # violations of one check; the first one explains the others

# What a check stands on that no log has.
STANDS_ON: Final[Mapping[str, str]] = {
    "nothing_queued_lost": "needs the stores: the server's runs at the end",
    "results_arrive": "needs the stores: the server's runs at the end",
    "outbox_drains": "needs the stores: the relays' outboxes at the end",
    "every_run_watched": "needs the stores and timers of the server at the end",
}
# Whose records a check stands on: without them its silence says nothing.
HEARS: Final[Mapping[str, tuple[str, ...]]] = {
    "executed_at_most_once": ("engine",),
    "same_key_one_run": ("server",),
    "nothing_accepted_lost": ("server",),
    "terminal_never_changes": ("server",),
    "cancelled_never_starts": ("server",),
    "result_from_engine": ("server", "engine"),
    "consent_respected": ("relay",),
    "strangers_learn_nothing": ("server",),
    "bounds_hold": ("server",),
    "converges_after_heal": ("server", "agent"),
}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A violation: in which section, what was seen, and the numbers of the proving records."""

    section: str
    sentence: str
    records: tuple[int, ...] = ()


class Judged(msgspec.Struct, kw_only=True):
    """A check's verdict on every section: in how many it was each, why not, and what was seen."""

    check: str
    sections: dict[Verdict, int] = msgspec.field(default_factory=dict)
    reasons: list[str] = msgspec.field(default_factory=list)
    violations: list[Seen] = msgspec.field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on a section that could be judged."""
        return next((one for one in ORDER if self.sections.get(one)), "not judged")

    def note(self, verdict: Verdict, reason: str = "") -> None:
        """Add a section's verdict."""
        self.sections[verdict] = self.sections.get(verdict, 0) + 1
        if reason and reason not in self.reasons:
            self.reasons.append(reason)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on a log, and what could not be read of it.

    `again` is the command that judges all of the first section, "" where there is none: over
    sockets a run is never the same again.
    """

    sections: int
    checks: list[Judged]
    missing: list[str]
    again: str = ""

    @property
    def exit(self) -> int:
        """1 if a check is violated, 3 if nothing could be judged, else 0."""
        verdicts = [one.verdict for one in self.checks]
        if "violated" in verdicts:
            return 1
        return 0 if any(verdict != "not judged" for verdict in verdicts) else 3


def checks_named(names: Sequence[str]) -> dict[str, Check]:
    """Return the checks of --check, all built-in ones by default; ScenarioError for one unknown."""
    found: dict[str, Check] = {}
    for name in names:
        if name in CHECKS:
            found[name] = CHECKS[name]
            continue
        try:
            found[name] = load_check(name, Path())
        except ForeignActorError as error:
            refuse(f"--check {name}", str(error), error.cure)
    return found or dict(CHECKS)


def check_log(entries: Sequence[Entry], names: Sequence[str] = ()) -> Report:
    """Judge each section by the named checks, or by all and the scenario's own.

    ScenarioError if there is no such check, or a user's can't judge.
    """
    checks = checks_named(names)
    judged = {name: Judged(check=name) for name in checks}
    missing: dict[str, None] = {}
    again = ""
    for entry, section in zip(entries, sections(entries), strict=True):
        cut = history_of_log(section)
        missing.update(dict.fromkeys(cut.missing))
        header = section.header
        if not again and header.driver == "sim" and header.resolved:
            again = f"{header.command} --set run.check=all"
        own, trouble = ({}, []) if names else _own(cut)
        missing.update(dict.fromkeys(trouble))
        for name, check in (checks | own).items():
            one = judged.setdefault(name, Judged(check=name))
            _judge(one, name, check, cut, entry.words)
    return Report(
        sections=len(entries), checks=list(judged.values()), missing=list(missing), again=again
    )


def _own(cut: Cut) -> tuple[dict[str, Check], list[str]]:
    """Return the checks of the user's own that the scenario names, and why some can't be used."""
    found: dict[str, Check] = {}
    trouble: list[str] = []
    for name in cut.own:
        try:
            found[name] = load_check(name, Path(cut.folder))
        except ForeignActorError as error:
            trouble.append(f"the scenario's check {name} can't be used here: {error}")
    return found, trouble


def _judge(judged: Judged, name: str, check: Check, cut: Cut, where: str) -> None:
    reason = why_not(name, cut)
    if reason:
        judged.note("not judged", reason)
        return
    history = cut.history
    history.afresh()
    try:
        found = judge(history, {name: check})
    except CheckFailedError as error:
        if error.foreign:
            refuse(f"--check {name}", str(error), "a log may lack what a run has: look before use")
        judged.note("not judged", f"the log has what it can't read: {error}")
        return
    for violation in found:
        seen = Seen(section=where, sentence=violation.sentence, records=violation.records)
        judged.violations.append(seen)
    if found:
        judged.note("violated")
    elif history.asked:
        what = " and ".join(history.asked)
        judged.note("held in part", f"on the records alone: a log has no {what}")
    else:
        judged.note("held")


def why_not(name: str, cut: Cut) -> str:
    """Return why a section can't be judged by a check, "" if it can."""
    if name in STANDS_ON:
        return STANDS_ON[name]
    history = cut.history
    heard = {record.actor for record in history.records}
    for part in HEARS.get(name, ()):
        if heard.isdisjoint(history.actors(part)):
            return f"the log has no records of {_a(part)}"
    if name == "converges_after_heal":
        return _why_no_bound(history, cut)
    if name == "result_from_engine" and cut.scenario is not None:
        programs = (one for one in cut.scenario.cast if one.kind == "relay" and one.command)
        if any(programs):
            return "a relay is a program, and nobody heard what its engine said"
    return ""


def _a(part: str) -> str:
    return f"{'an' if part[0] in 'aeio' else 'a'} {part}"


def _why_no_bound(history: History, cut: Cut) -> str:
    if cut.scenario is None:
        return "needs the scenario: how long convergence may take"
    if history.healed_us is None:
        return "the log does not say that its last fault has ended"
    if history.due_us(0) is None:
        return "the log ends before convergence was due"
    return ""


def lines_of(report: Report, width_columns: int, *, colored: bool) -> Iterator[str]:
    """Return the lines for people."""
    rows = [
        Row(
            (one.check, one.verdict, "; ".join(_why(one))),
            {1: STYLES[one.verdict]} if colored else {},
        )
        for one in report.checks
    ]
    yield from grid(("check", "verdict", "why"), rows, width_columns, colored=colored)
    for one in report.checks:
        for seen in one.violations[:SHOWN_LIMIT]:
            numbers = ", ".join(map(str, seen.records))
            proof = f" [records {numbers}]" if numbers else ""
            yield ""
            yield f"{one.check}: {printable(seen.sentence)}{proof}"
            yield f"  in {printable(seen.section)}"
        if len(one.violations) > SHOWN_LIMIT:
            yield f"  and {len(one.violations) - SHOWN_LIMIT:,} more"
    yield ""
    for sentence in report.missing:
        yield f"note: {printable(sentence)}"
    if report.again and any("not judged" in one.sections for one in report.checks):
        yield f"note: the stores are there in a run: {printable(report.again)}"
    counts = (f"{_count(report, verdict)} {verdict}" for verdict in ORDER)
    yield f"{', '.join(counts)}; {plural(report.sections, 'section')}"


def _why(one: Judged) -> Iterator[str]:
    if one.verdict == "violated":
        yield f"in {plural(one.sections['violated'], 'section')}"
    yield from one.reasons


def _count(report: Report, verdict: Verdict) -> int:
    return sum(one.verdict == verdict for one in report.checks)


def as_json(report: Report) -> str:
    """Return the verdicts as JSON."""
    table = {
        "sections": report.sections,
        "exit": report.exit,
        "missing": report.missing,
        "again": report.again,
        "checks": [
            {"check": one.check, "verdict": one.verdict}
            | {key: value for key, value in msgspec.structs.asdict(one).items() if key != "check"}
            for one in report.checks
        ],
    }
    return indented(table)
