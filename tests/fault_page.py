"""The tables of docs/faults.md, made from the faults: `python -m tests.fault_page`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from scenarios.fields import keys_of, toml_value, type_words
from scenarios.spec import FAULTS
from transports.faults.byte_fault import ByteFault, EndingFault
from transports.faults.fault import CommitFault, Fault, LinkFault, StrikingFault

_FAMILIES: tuple[tuple[str, type[Fault]], ...] = (
    ("every fault", Fault),
    ("faults of links", LinkFault),
    ("faults that strike actors", StrikingFault),
    ("faults of commits", CommitFault),
    ("faults of connections", ByteFault),
    ("faults that end connections", EndingFault),
)


def page() -> str:
    """Return the tables, as Markdown."""
    return "\n".join([*_kinds(), "", *_keys()]) + "\n"


def _kinds() -> Iterator[str]:
    heads = ("kind", "what it does", "under way", "simulator", "trio in memory", "over sockets")
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|"
    for name, kind in FAULTS.items():
        what = (kind.__doc__ or "").strip().split("\n")[0]
        refused = "refused: exit 2"
        memory = refused if kind.sim_only or kind.in_memory == refused else "the same"
        sockets = kind.over_sockets if kind.on_programs else "the same, but on no program: exit 2"
        shown = (
            what,
            kind.in_flight,
            kind.in_memory,
            memory,
            refused if kind.sim_only else sockets,
        )
        yield f"| `{name}` | {' | '.join(shown)} |"


def _keys() -> Iterator[str]:
    """Yield each key once: with the widest family that has it, else with its own kind."""
    yield "| of | key | takes | default | meaning |"
    yield "|---|---|---|---|---|"
    seen: dict[tuple[str, str], type[Fault]] = {}
    for title, kind in (*_FAMILIES, *((f"`{name}`", kind) for name, kind in FAULTS.items())):
        for key in keys_of(kind):
            family = seen.get((key.name, key.meaning))
            if family is not None and issubclass(kind, family):
                continue
            seen[key.name, key.meaning] = kind
            default = f"`{toml_value(key.default)}`" if toml_value(key.default) else ""
            shown = "required" if key.required else default
            takes = type_words(key.kind, key.limits)
            line = f"| {title} | `{key.name}` | {takes} | {shown} | {key.meaning} |"
            yield line.replace("|  |", "| |")


if __name__ == "__main__":
    sys.stdout.write(page())
