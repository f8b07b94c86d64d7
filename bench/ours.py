"""The experiment on pullcord: the shipped poll-strategies scenario, in this process alone."""

import time

from scenarios.run import run


def main() -> None:
    """Run it and print what the other programs print: calls and lateness, then the CPU seconds."""
    begun = time.process_time()
    result = run("@published/poll_strategies", jobs=1).scenarios[0]
    spent_s = time.process_time() - begun
    for cell in result.cells:
        calls, late = cell.samples["calls"], cell.samples["late"]
        print(
            f"{cell.cell.label.partition('=')[2]:24} calls {calls.mean():6.2f}"
            f"  late {late.mean():6.2f} s"
        )
    print(f"experiment {spent_s:.3f} s of CPU")


if __name__ == "__main__":
    main()
