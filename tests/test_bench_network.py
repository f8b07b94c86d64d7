"""The benchmarks of the network measure what they say, at small sizes."""

from __future__ import annotations

from collections import Counter

import pytest

from bench import herd, wire


@pytest.fixture(scope="module")
def rates() -> dict[str, wire.Rate]:
    return wire.measure(requests=20, rounds=1)


def test_every_way_answers_what_it_is_asked(rates: dict[str, wire.Rate]) -> None:
    assert list(rates) == list(wire.WAYS)
    assert all(rate.per_s > 0 for rate in rates.values())


def test_a_share_is_of_the_bare_echo_of_the_same_family(rates: dict[str, wire.Rate]) -> None:
    for family in ("TCP", "UNIX"):
        bare, ours = rates[f"bare, {family}"], rates[f"wire, {family}"]
        assert bare.share == 1.0
        assert ours.share == pytest.approx(ours.per_s / bare.per_s)


def test_the_table_says_what_each_layer_adds() -> None:
    shown = wire.table({"bare, TCP": wire.Rate(20_000, 1.0), "wire, TCP": wire.Rate(8_000, 0.4)})
    assert [line.split()[2:] for line in shown.splitlines()[1:]] == [
        ["20,000", "1.00", "50.0"],
        ["8,000", "0.40", "125.0", "75.0"],
    ]


def test_both_sides_send_what_the_codec_makes() -> None:
    question = wire.CODEC.decode(wire.FRAMES[0], "asker")
    answer = wire.CODEC.decode(wire.FRAMES[1], "answerer")
    assert (question.target, question.body) == ("answerer", wire.QUESTION)
    assert (answer.reply_to, answer.body) == (question.id, wire.ANSWER)


def test_relays_that_began_together_poll_together_without_jitter() -> None:
    assert herd.run(50, "none", 'phase = "0s"').peak == 50
    assert herd.run(50, "window", 'phase = "0s"').peak < 15


def test_relays_that_began_anywhere_are_no_herd() -> None:
    assert herd.run(50, "none", "").peak < 15


def test_each_relay_polls_thrice_while_the_server_hangs() -> None:
    found = herd.run(50, "none", 'phase = "0s"')
    assert found.waiting == 150
    assert found.mean == pytest.approx(50 / 20)


def test_the_peak_is_of_one_second_after_the_server_woke() -> None:
    back_us, second_us = herd.BACK_US, herd.SECOND_US
    taken = Counter({back_us - 1: 70, back_us: 40, back_us + 1: 3, back_us + 2: 4})
    taken[back_us + second_us] = 5
    assert herd.herd_of(taken)[::2] == (7, 40)


def test_what_is_handled_just_after_it_woke_had_piled_up() -> None:
    back_us = herd.BACK_US
    taken = Counter({back_us: 40, back_us + 10: 3, back_us + 11: 4})
    assert herd.herd_of(taken, settle_us=10)[::2] == (4, 43)


def test_the_tables_have_both_fleets_with_both_jitters() -> None:
    lines = herd.compare(20)
    assert [line[:26].split()[-1] for line in lines[1:]] == ["none", "window", "ratio"] * 2
    assert lines[3].split()[1] == f"{int(lines[1].split()[4]) / int(lines[2].split()[4]):.1f}x"
