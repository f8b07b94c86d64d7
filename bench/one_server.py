"""Be `pullcord server` for a benchmark: on one core, with so many turns a commit, profiled perhaps.

python -m bench.one_server --core 0 --turns 64 [--profile FILE] -- [FLAGS OF pullcord server]
"""

from __future__ import annotations

import argparse
import cProfile
import os
import sys
from pathlib import Path

from actors.durable import GROUP_TURNS, DurableWorld
from scenarios.cli import main as command_line


def main() -> None:
    """Become the server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", type=int, help="the one core that it may use; Linux alone")
    parser.add_argument("--turns", type=int, default=GROUP_TURNS, help="that share a commit")
    parser.add_argument("--profile", type=Path, help="where cProfile's figures go at its end")
    parser.add_argument("flags", nargs="*")
    asked = parser.parse_args()
    if asked.core is not None and sys.platform == "linux":
        os.sched_setaffinity(0, {asked.core})
    DurableWorld.group_turns = asked.turns
    sys.argv = ["pullcord", "server", *asked.flags]
    if asked.profile is None:
        command_line()
        return
    profile = cProfile.Profile()
    try:
        profile.runcall(command_line)
    finally:
        profile.dump_stats(asked.profile)


if __name__ == "__main__":
    main()
