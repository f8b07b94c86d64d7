"""The history of a desktop's runs, written in the turns that begin and end them, and bounded."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from actors.actor import Store
from actors.desktop.messages import PastRun
from actors.desktop.rows import HISTORY, RESULTS, KeptResult, Past
from actors.messages import Command, Completion, Ending

TRIM_LIMIT = 20  # rows that one turn forgets, so that a turn stays short

_replace = msgspec.structs.replace


class Chronicle:
    """Runs by their numbers, which leave no gap: the oldest are forgotten first.

    Kept are `runs_limit` runs at most, none that ended more than `age_us` ago, and results of
    `bytes_limit` bytes in all. A result goes before its run does.
    """

    def __init__(self, runs_limit: int, age_us: int, bytes_limit: int) -> None:
        self.runs_limit = runs_limit
        self.age_us = age_us
        self.bytes_limit = bytes_limit

    def open(self, store: Store) -> None:
        """Read what outlives a boot."""
        self.runs, self.results = store.table(HISTORY), store.table(RESULTS)
        first = self.runs.scan("order", limit=1)
        self.first = first[0].number if first else 1
        self.next = self.first + self.runs.count("order")
        kept = self.runs.scan("kept", limit=self.runs_limit + TRIM_LIMIT)
        self.kept_bytes = sum(each.run.result_bytes for each in kept)

    def began(self, command: Command, version: int, now_us: int) -> None:
        """Write that a run may have started."""
        self.add(command, version, now_us)
        self.trim(now_us)

    def add(self, command: Command, version: int, began_us: int | None) -> Past:
        """Write a new run, which has no end yet."""
        run = PastRun(
            number=self.next,
            command_id=command.command_id,
            execution_id=None,
            session=command.session,
            slug=command.slug,
            version=version,
            started_us=began_us,
            finished_us=None,
            status="running",
        )
        past = Past(
            number=run.number,
            command_id=run.command_id,
            execution_id=None,
            session=run.session,
            run=run,
        )
        self.runs.put(key_of(run.number), past)
        self.next += 1
        return past

    def ended(self, command: Command, version: int, done: Completion, now_us: int) -> None:
        """Write a run's end and its result; what has an end already keeps that one."""
        past = self.find(command.command_id)
        if past is not None and past.run.finished_us is not None:
            return  # asked for again by a server that forgot it
        if past is None:
            past = self.add(command, version, None)
        size = 0 if done.result is None else len(msgspec.json.encode(done.result))
        keeps = 0 < size <= self.bytes_limit
        run = _replace(
            past.run,
            execution_id=done.execution_id,
            finished_us=now_us,
            status=done.status,
            total_tokens=done.total_tokens,
            reported_cost=done.reported_cost,
            result_bytes=size,
            truncated=done.result_truncated,
            kept=keeps,
            error=done.error,
        )
        kept = past.number if keeps else None
        past = _replace(past, execution_id=done.execution_id, run=run, kept=kept)
        self.runs.put(key_of(past.number), past)
        if keeps:
            self.results.put(key_of(past.number), KeptResult(done.result))
            self.kept_bytes += size
        self.trim(now_us)

    def trim(self, now_us: int) -> None:
        """Forget what is too much or too old; a run that executes is never forgotten."""
        for past in self.runs.scan("kept", limit=TRIM_LIMIT):
            if self.kept_bytes <= self.bytes_limit:
                break
            self.forget_result(past)
        for past in self.runs.scan("order", limit=TRIM_LIMIT):
            ended_us = past.run.finished_us
            many = self.next - self.first > self.runs_limit
            if ended_us is None or not (many or now_us - ended_us > self.age_us):
                break
            self.forget_result(past)
            self.runs.delete(key_of(past.number))
            self.first = past.number + 1

    def forget_result(self, past: Past) -> None:
        """Forget a result; its run stays."""
        if past.kept is not None:
            self.results.delete(key_of(past.number))
            self.kept_bytes -= past.run.result_bytes
            run = _replace(past.run, kept=False)
            self.runs.put(key_of(past.number), _replace(past, run=run, kept=None))

    # What is asked

    def find(self, name: str) -> Past | None:
        """Return the run of a ticket or of an execution."""
        for index in ("run", "execution"):
            for past in self.runs.scan(index, (name,), limit=1):
                return past
        return None

    def result_of(self, past: Past) -> Any:
        """Return a run's result, None if none is kept."""
        kept = self.results.get(key_of(past.number))
        return None if kept is None else kept.result

    def end_of(self, command_id: str) -> Completion | None:
        """Return a run's end as it was posted; None if it has none, or its result is forgotten."""
        past = self.find(command_id)
        if past is None or past.run.finished_us is None:
            return None
        run = past.run
        if run.result_bytes and not run.kept:
            return None
        return Completion(
            execution_id=run.execution_id,
            status=cast(Ending, run.status),
            result=self.result_of(past),
            result_truncated=run.truncated,
            total_tokens=run.total_tokens,
            reported_cost=run.reported_cost,
            error=run.error,
        )

    def page(self, before: int | None, limit: int, session: str | None) -> list[PastRun]:
        """Return runs before a number, the latest first."""
        end = self.next if before is None else min(before, self.next)
        if session is not None:
            mine = self.runs.scan("session", (session,), limit=self.next, up_to=end - 1)
            return [past.run for past in mine[-limit:]][::-1]
        numbers = range(end - 1, max(self.first, end - limit) - 1, -1)
        found = [self.runs.get(key_of(number)) for number in numbers]
        return [past.run for past in found if past is not None]


def key_of(number: int) -> str:
    """Return the key of a run, whose order is that of the numbers."""
    return f"{number:015}"
