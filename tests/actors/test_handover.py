"""What a relay says of a run is what the command said of it."""

from __future__ import annotations

from actors.handover import complete, fleet_run
from actors.messages import Complete, FleetRun
from tests.actors.relaying import DONE, command


def test_the_engine_is_told_the_channel_the_graph_and_its_arguments() -> None:
    run = command("r9", arguments={"x": 1})
    told = FleetRun(
        channel="graph:external:r9", session=run.session, slug=run.slug, arguments={"x": 1}
    )
    assert fleet_run(run) == told


def test_the_server_is_told_the_delivery_and_the_boot_that_had_it() -> None:
    run = command("r9", delivery=7)
    told = Complete(command_id="r9", boot="b", delivery=7, completion=DONE)
    assert complete(run, "b", DONE) == told
