"""The figures of a kill matrix, and the table that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.scenarios.service.calls import Wish
from tests.scenarios.service.strikes import COMMITS

STATUSES = ("completed", "cancelled", "interrupted")


@dataclass
class Tally:
    """What was struck how often, what became of the runs, how long it took to be well again."""

    cycles: Counter[str] = field(default_factory=Counter)
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    worst_s: dict[str, float] = field(default_factory=dict)
    points: Mapping[str, set[tuple[str, int]]] = field(default_factory=dict)
    unreached: int = 0
    unanswered: int = 0
    marks: int = 0
    starts: Mapping[str, int] = field(default_factory=dict)

    def add(self, kind: str, wishes: Sequence[Wish], recovery_s: float) -> None:
        """Count a cycle; `recovery_s` is from when the strike was over until all had ended."""
        self.cycles[kind] += 1
        found = self.ended.setdefault(kind, Counter())
        found.update(wish.run.status if wish.run else "unknown" for wish in wishes)
        self.worst_s[kind] = max(self.worst_s.get(kind, 0.0), recovery_s)

    def table(self) -> str:
        """Return the figures as lines of at most 80 columns."""
        head = f"{'strike':22}{'cycles':>7}{'runs':>7}{'completed':>11}{'cancelled':>11}"
        lines = [f"{head}{'interrupted':>13}{'worst':>8}"]
        every: Counter[str] = Counter()
        for kind in sorted(self.cycles):
            ended = self.ended[kind]
            every += ended
            lines.append(self._line(kind, self.cycles[kind], ended, self.worst_s[kind]))
        worst_s = max(self.worst_s.values(), default=0.0)
        lines.append(self._line("all", self.cycles.total(), every, worst_s))
        reached = (
            f"{store} {len(points)} of {2 * COMMITS}" for store, points in self.points.items()
        )
        starts = (f"{name} {number}" for name, number in self.starts.items())
        points = f"commits at which a process was killed: {', '.join(reached)}"
        lines += ["", f"{points}; {self.unreached} did not come"]
        figures = f"marks {self.marks:,}; questions without an answer {self.unanswered:,}"
        lines.append(f"{figures}; starts: {', '.join(starts)}")
        return "\n".join(lines)

    def _line(self, kind: str, cycles: int, ended: Counter[str], worst_s: float) -> str:
        first, second, third = (ended[status] for status in STATUSES)
        counts = f"{kind:22}{cycles:7,}{ended.total():7,}{first:11,}{second:11,}{third:13,}"
        return f"{counts}{worst_s:6.1f} s"
