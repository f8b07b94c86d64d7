"""The owner: shares, unshares, renames, enables and disables, at set times."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from actors.actor import Context, Handler, Place, Step, TableSpec, Unanswered
from actors.messages import Disable, Enable, Message, Noted, Rename, Share, Unshare
from transports.envelope import Envelope
from transports.units import Duration

RENAMED = "renamed"  # the name that a rename gives, which changes the slug


class Taken(msgspec.Struct, frozen=True, gc=False):
    """A step that the relay has noted."""

    number: int


STEPS = TableSpec("steps", Taken)


class Owner:
    """Carries out the steps that a scenario gives it; each is repeated until the relay noted it."""

    class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of an owner besides its steps."""

        timeout_us: Annotated[
            Duration, "how long the owner waits for the relay before doing it again"
        ] = msgspec.field(name="timeout", default=Duration(10_000_000))

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        self.handlers: Mapping[type[Any], Handler] = {
            Noted: self.on_noted,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Set a timer for each step that is still to be taken."""
        self.taken = context.store.table(STEPS)
        self.due: deque[int] = deque()  # steps whose time has come; the first is being told
        self.left = 0
        for number, step in enumerate(self.place.steps):
            if self.taken.get(str(number)) is None:
                self.left += 1
                context.set_timer(str(number), max(0, step.at_us - context.now_us))
        if not self.left:
            context.done()

    def on_timer(self, context: Context, timer: str) -> None:
        """Take a step, after those that the relay has not noted yet."""
        self.due.append(int(timer))
        if len(self.due) == 1:
            self.take(context)

    def take(self, context: Context) -> None:
        """Tell the relay of the first change that is due."""
        step = self.place.steps[self.due[0]]
        context.log("owner.step", act=step.act, session=step.session)
        context.request(self.place.relay, self.message(step), self.config.timeout_us)

    def message(self, step: Step) -> Message:
        """Return the message that stands for a step."""
        session = next(s for s in self.place.sessions if s.id == step.session)
        if step.act == "share":
            return Share(session=session.id)
        if step.act == "unshare":
            return Unshare(session=session.id)
        if step.act == "rename":
            return Rename(session=session.id, name=f"{session.name} {RENAMED}")
        if step.act == "enable":
            return Enable(project=session.project)
        return Disable(project=session.project)

    def on_noted(self, context: Context, envelope: Envelope[Noted]) -> None:
        """Count a step as taken, and take the next that is due."""
        number = self.due.popleft()
        self.taken.put(str(number), Taken(number))
        self.left -= 1
        if self.due:
            self.take(context)
        elif not self.left:
            context.done()

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Take the step again; the relay may have noted it, which does no harm."""
        self.take(context)
