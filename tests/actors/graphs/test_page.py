"""docs/graphs.md and graph.d.ts say what is so: every example runs, every name exists."""

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from actors.graphs.seam import Failure, FailureKind, Request, VmLimits
from tests.actors.graphs.driver import CEILING, FAILED, drive, value_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "graphs.md").read_text(encoding="utf-8")
TYPES = (resources.files("actors.graphs") / "graph.d.ts").read_text(encoding="utf-8")
PRELUDE = "\n".join(
    (resources.files("actors.graphs") / f"prelude{part}.js").read_text(encoding="utf-8")
    for part in ("", "_dates", "_flow")
)
EXAMPLES = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)

RESULTS: list[Any] = [
    "Sum up: Review this for style: T\nReview this for facts: T",
    "Which of these is a bug? ...",
    None,
    ["a", "agent_failed", "c"],
    ["part 1", "part 2"],
    ["Shorten Write about one, number 0", "Shorten Write about two, number 1"],
    "Try number 1",
    {"found": {"issue": "T"}},
    None,
    None,
    ["One more idea"] * 3,
    "idle",
    {"waited": 2500, "dice": 2},
]


def answer(request: Request) -> Any:
    if request.prompt in {"fail", "ceiling"}:
        return FAILED if request.prompt == "fail" else CEILING
    return request.prompt or request.args


@pytest.mark.parametrize("number", range(len(RESULTS)))
def test_every_example_gives_what_the_page_says(number: int) -> None:
    assert len(EXAMPLES) == len(RESULTS)
    example = EXAMPLES[number]
    assert value_of(example, answer=answer, args={"text": "T"}, total=60) == RESULTS[number]


def test_every_function_has_an_example_and_a_declaration() -> None:
    given = re.search(r"var given = \{(.*?)\};", PRELUDE, re.DOTALL)
    later = re.search(r"for \(const name of \[(.*?)\]\) give\(name, later", PRELUDE)
    assert given is not None
    assert later is not None
    names = set(re.findall(r"\w+", given[1] + later[1]))
    declared = set(re.findall(r"^declare (?:function|const|class) (\w+)", TYPES, re.MULTILINE))
    assert declared == names | {"args"}
    shown = "\n".join(EXAMPLES)
    for name in declared - {"GraphError", "AgentError", "BudgetError"}:
        assert re.search(rf"\b{name}\b", shown), name


def test_the_declared_options_are_those_that_exist() -> None:
    declared = re.search(r"interface AgentOptions \{(.*?)\n\}", TYPES, re.DOTALL)
    assert declared is not None
    options = re.findall(r"^  (\w+)\?:", declared[1], re.MULTILINE)
    known = re.search(r"var OPTIONS = freeze\(\{(.*?)\n\}\);", PRELUDE, re.DOTALL)
    assert known is not None
    assert options == re.findall(r"^  (\w+): value =>", known[1], re.MULTILINE)


def test_the_limits_are_those_of_the_code() -> None:
    limits = VmLimits()
    for words in (
        f"| `cpu` | {limits.cpu_us // 10**6} s",
        f"| `wall` | {limits.wall_us // 10**6} s",
        f"| `memory` | {limits.memory_bytes >> 20} MiB",
        f"| `jobs` | {limits.jobs:,} ",
        f"| `output` | {limits.output_bytes >> 20} MiB",
        f"| stack | {limits.stack_bytes >> 20} MiB",
        f"A list may have {re.findall(r'LIST_LIMIT = (.*?);', PRELUDE)[0][:1]},096 items",
    ):
        assert words in PAGE


@pytest.mark.parametrize("kind", ["agent", "graph"])
@pytest.mark.parametrize("code", re.findall(r'^  \| "(\w+)"', TYPES, re.MULTILINE))
def test_retry_follows_the_pages_table(kind: FailureKind, code: str) -> None:
    again = re.search(rf"^\|[^|]*`{code}`[^|]*\|.*`retry` tries again", PAGE, re.MULTILINE)
    _, driven = drive(
        "return retry(() => agent('a'), {attempts: 2})",
        answer=lambda _: Failure(kind=kind, message="m", code=code),
    )
    assert len(driven.requests) == (2 if again else 1)
    assert f"`{code}`" in PAGE
