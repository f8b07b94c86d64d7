"""What a relay knows of a run that has a slot."""

from actors.running import Running
from tests.actors.relaying import command


def test_a_run_begins_unasked_and_its_channel_is_the_account_s() -> None:
    run = Running(command("r7"))
    assert run.channel == "graph:external:r7"
    assert (run.question, run.execution_id, run.cancelled, run.starts) == (None, None, False, 0)
