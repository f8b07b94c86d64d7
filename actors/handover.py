"""What a relay says of a run that was handed to it: to its engine, and to the server at the end."""

from __future__ import annotations

from actors.messages import CHANNEL, Command, Complete, Completion, FleetRun


def fleet_run(command: Command) -> FleetRun:
    """Return what tells the engine to run it."""
    return FleetRun(
        channel=CHANNEL + command.command_id,
        session=command.session,
        slug=command.slug,
        arguments=command.arguments,
    )


def complete(command: Command, boot: str, done: Completion) -> Complete:
    """Return what tells the server what became of it."""
    return Complete(
        command_id=command.command_id, boot=boot, delivery=command.delivery, completion=done
    )
