import subprocess
import sys

UNNEEDED = ("cyclopts", "rich", "structlog", "trio", "multiprocessing.connection")


def test_a_run_in_one_process_does_without_what_only_commands_and_workers_need() -> None:
    code = f"import sys, scenarios.run; print([m for m in {UNNEEDED} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
