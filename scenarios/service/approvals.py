"""Tool calls that wait for a desktop's owner: which there are, and what is decided of them.

What an agent says stands within a frame, as at a terminal: no word of it can look like ours.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from typing import Final

import msgspec

from actors.graphs.messages import Approval, Approvals, Decide, Decided, ListApprovals
from scenarios.graph_files import refusal
from scenarios.graph_owner import framed, heading, shown_time
from scenarios.json_text import indented
from scenarios.service.client import plain
from scenarios.service.desk import ENGINE, Desk
from scenarios.service.process import say

WATCH_S: Final = 1.0  # between two looks
COMMAND: Final = "pullcord desktop approvals"


def waiting_calls(desk: Desk) -> tuple[Approval, ...]:
    """Return the calls that wait, the longest waiting first; of very many the first."""
    told: Approvals = desk.ask(ListApprovals(), ENGINE)
    return told.waiting


def show_approvals(desk: Desk, *, json: bool) -> int:
    """Print what waits, and how each call is decided."""
    found = waiting_calls(desk)
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    for one in found:
        sys.stdout.writelines(f"{line}\n" for line in _lines(one))
    if not found:
        say("no tool call waits for you")
    return 0


def watch_approvals(desk: Desk, *, json: bool) -> int:
    """Print each call once it waits, and that it does no more, until Ctrl-C.

    As JSON a line for each that begins to wait.
    """
    known: dict[tuple[str, int], Approval] = {}
    while True:
        now = {(one.run, one.call): one for one in waiting_calls(desk)}
        for key in known.keys() - now.keys():
            if not json:
                say(f"{key[0]} {key[1]} waits no more")
        for key, one in now.items():
            if key in known:
                continue
            if json:
                sys.stdout.write(f"{msgspec.json.encode(plain(one)).decode()}\n")
            else:
                sys.stdout.writelines(f"{line}\n" for line in _lines(one))
        sys.stdout.flush()
        known = now
        time.sleep(WATCH_S)


def decide(desk: Desk, run: str, call: int, *, allow: bool, json: bool) -> int:
    """Allow or deny a call; ScenarioError if it doesn't wait. Said again it changes nothing."""
    told: Decided = desk.ask(Decide(run=run, call=call, allow=allow), ENGINE)
    if not told.known:
        what = "this call does not wait: it is decided, its time is up, or its run has ended"
        raise refusal(f"{run} {call}", what, f"see: {COMMAND}")
    if json:
        sys.stdout.write(indented(plain(told)))
    else:
        say(f"{run} {call} is {'allowed' if allow else 'denied'}")
    return 0


def _lines(one: Approval) -> Iterator[str]:
    width_columns = shutil.get_terminal_size().columns
    yield from heading(one, width_columns)
    yield from framed(one, width_columns)
    yield f"  it has waited {shown_time(one.waited_us)}; denied in {shown_time(one.left_us)}"
    yield f"  {COMMAND} allow|deny {one.run} {one.call}"
