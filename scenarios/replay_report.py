"""What `pullcord replay` prints: that all was the same, or where it first was not, and why."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from logs.read import LogError
from logs.record import Record
from logs.seek import Entry, raw_section
from logs.words import Narrator
from scenarios.folder import unwritable, write_whole
from scenarios.log_diff import fields
from scenarios.log_sections import is_deployed
from scenarios.log_show import Lines
from scenarios.promote import promote
from scenarios.render import plural
from scenarios.replay import Divergence, Replayed, Window, replay

DIVERGED = 4  # the exit code
NOTHING = 3  # likewise, where no record was compared: neither the same nor another
LINE_LIMIT_CHARS = 2000  # of a record that differs; a result may have a hundred thousand


def report(
    entries: Sequence[Entry],
    window: Window,
    folder: Path | None,
    out: Lines,
    form: Literal["text", "json"],
) -> int:
    """Replay sections, print what came of it, and return the exit code."""
    if not entries:
        raise LogError("the log", "it has no section", "give the log of a run")
    if folder is not None and not folder.is_dir():
        raise LogError("--folder", f"there is no folder {folder}", "give the scenario's own")
    if is_deployed(entries):
        from scenarios.service.replaying import replay_starts  # noqa: PLC0415  has every actor

        done = replay_starts(entries, window)
    else:
        done = replay((raw_section(entry) for entry in entries), window=window, folder=folder)
    if form == "json":
        sys.stdout.write(f"{_json(done)}\n")
    elif done.divergence is None:
        out.text(_same(done, window))
    else:
        _show(done.divergence, out)
    if form == "text":
        for sentence in done.left_out:
            out.whole(f"left out: {sentence}")
    if done.divergence is not None:
        return DIVERGED
    return 0 if done.records else NOTHING


def write_scenario(entry: Entry, folder: Path | None, path: Path, out: Lines) -> int:
    """Make a scenario of a section, write it, say how far it is the same; return the exit code."""
    if path.suffix != ".json":
        raise LogError(str(path), "its name does not end in .json", "give FILE.json")
    if path.exists():
        raise LogError(str(path), "it is there already", "give another name, or remove it")
    made = promote(raw_section(entry), folder)
    text = msgspec.json.format(msgspec.json.encode(made.data), indent=1)
    try:
        write_whole(path, text + b"\n")
    except OSError as error:
        raise unwritable(path, error) from None
    out.text(f"{path}: {plural(made.messages, 'message')} of {entry.words}, {made.lost:,} lost")
    if made.parted is None:
        out.text("in the simulator they come to each actor in the same order")
    else:
        actor, number = made.parted
        out.text(f"in the simulator {actor} hears something else as its message {number}")
    out.text(f"run it: pullcord run {shlex.quote(str(path))}")
    return 0 if made.parted is None else DIVERGED


def _same(done: Replayed, window: Window) -> str:
    if not done.records:
        where = plural(done.sections, done.what)
        return f"nothing was compared: no record of {where} is within the flags"
    what = f"{plural(done.sections, done.what)}, {plural(done.records, 'record')}"
    cut = f"; {done.truncated:,} truncated, the same as far as they go" if done.truncated else ""
    whose = "" if window.actor is None else f" of {window.actor}"
    return f"the same{whose}: {what}{cut}"


def _json(done: Replayed) -> str:
    found = done.divergence
    told = None
    if found is not None:
        told = {
            "section": found.section,
            "path": found.path,
            "line": found.line,
            "n": found.n,
            "why": found.why,
            "logged": found.logged,
            "made": found.made,
            "before": [one.n for one in found.before],
            "causes": [one.n for one in found.chain],
        }
    return msgspec.json.encode(
        {
            "equal": found is None if done.records or found else None,
            "replications": done.sections,
            "records": done.records,
            "truncated": done.truncated,
            "left_out": done.left_out,
            "divergence": told,
        }
    ).decode()


def _show(found: Divergence, out: Lines) -> None:
    out.head(f"{found.section} diverges at record {found.n}: {found.why}")
    out.plain(f"{found.path}, line {found.line}{_by(found)}")
    shown = [*found.chain, *found.before, *([found.record] if found.record else [])]
    out.fit(shown)
    narrator = Narrator()
    before = [one for one in found.before if one not in found.chain]
    if before:
        out.plain("the last that were equal:")
        _records(before, narrator, out)
    if found.chain:
        out.plain("what led to it:")
        _records(found.chain, narrator, out)
    if found.record is not None:
        out.plain("the record:")
        out.line(found.record, narrator.words(found.record), strong=True)
    if found.fields:
        out.plain("field by field, as logged and as replayed:")
        fields(found.fields, out)
        return
    for name, lines in (("logged", found.logged), ("replayed", found.made)):
        if lines:
            out.head(name)
            for line in lines:
                out.whole(f"  {line[:LINE_LIMIT_CHARS]}")


def _by(found: Divergence) -> str:
    return f" (written by {found.written_by})" if found.written_by else ""


def _records(records: Sequence[Record], narrator: Narrator, out: Lines) -> None:
    for record in records:
        out.line(record, narrator.words(record))
