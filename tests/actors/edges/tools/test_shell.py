"""Commands of a list: what an agent's words can be in them, and what they never are."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.tools.runner import checked
from actors.edges.tools.shell import OUTPUT_LIMIT_BYTES, Command, CommandError, ShellCommand
from actors.edges.tools.tool import ToolError
from tests.actors.edges.leftovers import wait_until_gone

SHOW = (sys.executable, "-c", "import sys; print(sys.argv[1:])")


def command(*words: str, **more: Any) -> ShellCommand:
    usual: dict[str, Any] = {"name": "it", "description": "It.", "folder": Path.cwd()}
    return ShellCommand(Command(words=words, **{**usual, **more}))


async def run(tool: ShellCommand, **values: Any) -> str:
    return await tool.call(checked(tool, values))


async def refusal(tool: ShellCommand, **values: Any) -> str:
    with pytest.raises(ToolError) as error:
        await run(tool, **values)
    return str(error.value)


async def test_a_command_says_how_it_ended_and_what_it_wrote() -> None:
    assert await run(command("echo", "hello")) == "exit code 0\nhello"
    script = "echo out; echo err >&2; exit 3"
    assert await refusal(command("sh", "-c", script)) == "exit code 3\nout\n[stderr]\nerr"
    assert (await refusal(command("sh", "-c", "kill -9 $$"))).startswith("signal 9")
    assert await run(command("true")) == "exit code 0"


@pytest.mark.parametrize(
    "value",
    [
        "a b", "a; rm -rf /", "$(id)", "`id`", "a\nb", "'", '"', "*", "~", "{word}", "{other}",
        "a&&b", "|cat", "\\", "ä", ">out", "%s", "\t",
    ],
)  # fmt: skip
async def test_a_value_is_one_word_whatever_it_says(value: str) -> None:
    tool = command(*SHOW, "{word}", "--is={word}", "last")
    text = await run(tool, word=value)
    assert text == f"exit code 0\n{[value, f'--is={value}', 'last']}"


async def test_a_value_is_never_a_flag_unless_the_settings_say_so() -> None:
    tool = command(*SHOW, "{word}", "--is={inner}")
    assert await refusal(tool, word="-rf", inner="a") == 'word may not begin with "-"'
    assert await refusal(tool, word="--help", inner="a") == 'word may not begin with "-"'
    assert (await run(tool, word="a-b", inner="-x")).endswith("['a-b', '--is=-x']")
    allowed = command(*SHOW, "{word}", dashes=("word",))
    assert (await run(allowed, word="-rf")).endswith("['-rf']")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, '"word" is a required property'),
        ({"word": "a", "more": "b"}, "Additional properties"),
        ({"word": 3}, 'is not of type "string"'),
        ({"word": ["a", "b"]}, 'is not of type "string"'),
        ({"word": ""}, "shorter than 1 character"),
        ({"word": "x" * 5_000}, "the arguments don't fit"),
        ({"word": "a\0b"}, "zero byte"),
    ],
)
async def test_values_that_are_none_are_refused(values: dict[str, Any], words: str) -> None:
    assert words in await refusal(command(*SHOW, "{word}"), **values)


async def test_a_pattern_holds_for_the_whole_value() -> None:
    tool = command(*SHOW, "{count}", patterns={"count": "[0-9]+|all"})
    assert (await run(tool, count="12")).endswith("['12']")
    assert (await run(tool, count="all")).endswith("['all']")
    for value in ("12 all", "all12", "x12", "12\n", "\n12", ""):
        assert "does not match" in await refusal(tool, count=value)


async def test_a_pattern_never_takes_long() -> None:
    tool = command(*SHOW, "{word}", patterns={"word": "(a+)+b"})
    assert "the arguments don't fit" in await refusal(tool, word="a" * 4_000)


async def test_the_environment_is_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-may-see")
    monkeypatch.setenv("NEEDED_TOKEN", "tok-nobody-may-see")
    names = (await run(command("env"))).split("\n")[1:]
    assert {name.partition("=")[0] for name in names} <= {"PATH", "HOME", "LANG", "LC_CTYPE"}
    told = await run(command("env", environment=("NEEDED_TOKEN",)))
    assert "NEEDED_TOKEN=[key]" in told
    assert "sk-nobody" not in told


async def test_it_runs_in_its_folder_without_a_terminal(tmp_path: Path) -> None:
    assert (await run(command("pwd", folder=tmp_path))).endswith(tmp_path.name)
    assert await run(command("cat")) == "exit code 0"  # its input is at its end
    session = await run(command(sys.executable, "-c", "import os; print(os.getsid(0))"))
    assert session != f"exit code 0\n{os.getsid(0)}"


async def test_a_flood_is_stopped_and_told() -> None:
    text = await refusal(command("yes"))
    assert text.startswith(f"it wrote more than {OUTPUT_LIMIT_BYTES:,} bytes, and was stopped\ny\n")
    assert "can't be started: No such file" in await refusal(command("no-such-program"))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whether a process is there")
@pytest.mark.parametrize("how", ["stays", "cancelled"])
async def test_nothing_that_it_forks_is_left(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM HUP; sleep 100 & (sleep 100 & echo $! >> {pids}) ; echo $! >> {pids}; "
    script += f"echo end >> {pids}; " + ("wait" if how == "cancelled" else "true")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, command("sh", "-c", script))
        while not (pids.exists() and pids.read_text().endswith("end\n")):  # noqa: ASYNC110  a file
            await trio.sleep(0.005)
        if how == "cancelled":
            nursery.cancel_scope.cancel()
    await wait_until_gone(*map(int, pids.read_text().split()[:-1]))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"words": ()}, "at least one word"),
        ({"words": ("",)}, "at least one word"),
        ({"words": ("{program}", "a")}, "can't be an agent's choice"),
        ({"words": ("./{program}", "a")}, "can't be an agent's choice"),
        ({"words": ("ls", "{a}"), "patterns": {"b": "x"}}, "no place {b}"),
        ({"words": ("ls", "{a}"), "dashes": ("b",)}, "no place {b}"),
    ],
)
def test_what_is_no_command_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        Command(name="it", description="", folder=Path(), **how)


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_the_settings_words_stay_as_many_and_in_place(one: str, other: str) -> None:
    made = Command(
        name="it", description="", folder=Path(), words=("tool", "{one}", "--{other}", "end")
    )
    try:
        words = made.filled({"one": one, "other": other})
    except ToolError:
        assert "\0" in one + other or one.startswith("-")
        return
    assert words == ["tool", one, f"--{other}", "end"]
