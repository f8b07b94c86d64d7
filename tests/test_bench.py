"""The programs of the benchmark run the same experiment, and its measuring is right."""

import subprocess
import sys
from collections.abc import Callable
from statistics import fmean

import pytest

from bench import simpy_baseline, simpy_full, specialised
from bench.experiment import STRATEGIES, Outcome, Replicate, percentile_95
from bench.run import ROOT, Usage, compare, measure, table

MODELS = [specialised.replicate, simpy_baseline.replicate, simpy_full.replicate]


@pytest.mark.parametrize("replicate", MODELS)
def test_every_model_gives_the_published_means(
    replicate: Callable[[Replicate], Outcome],
) -> None:
    delays_s = STRATEGIES["wait 20s then every 10s"]
    outcomes = [replicate(Replicate(seed, delays_s())) for seed in range(300)]
    # Published: 8.8 calls and 5.0 s late; 300 replications have standard errors of 0.4 and 0.17 s.
    assert fmean(outcome.calls for outcome in outcomes) == pytest.approx(8.8, abs=1.4)
    assert fmean(outcome.late_s for outcome in outcomes) == pytest.approx(5.0, abs=0.6)


def test_script_and_simplest_model_agree_replication_by_replication() -> None:
    for delays_s in STRATEGIES.values():
        for seed in range(10):
            script = specialised.replicate(Replicate(seed, delays_s()))
            model = simpy_baseline.replicate(Replicate(seed, delays_s()))
            assert script.calls == model.calls
            assert script.late_s == pytest.approx(model.late_s)


def test_a_program_prints_a_line_for_each_strategy() -> None:
    command = [sys.executable, "-m", "bench.specialised", "--replications", "20"]
    lines = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    assert [line[:24].strip() for line in lines[:-1]] == list(STRATEGIES)


def test_percentile_is_the_value_that_95_in_100_do_not_exceed() -> None:
    assert percentile_95([float(n) for n in range(100)]) == 95.0


def test_cpu_time_counts_work_and_not_waiting() -> None:
    busy = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    assert measure([sys.executable, "-c", busy]).cpu_s >= 0.2
    assert measure([sys.executable, "-S", "-c", "import time; time.sleep(0.4)"]).cpu_s < 0.3


def test_peak_memory_is_in_bytes() -> None:
    # In a process of its own, since a child's peak counts from the size of the one that starts it.
    lines = (
        "from sys import executable",
        "from bench.run import measure",
        "print(measure([executable, '-c', 'x = bytearray(100_000_000)']).peak_bytes)",
    )
    peak_bytes = int(subprocess.check_output([sys.executable, "-c", "\n".join(lines)], cwd=ROOT))
    assert 100_000_000 < peak_bytes < 150_000_000


def test_a_program_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        compare({"bad": [sys.executable, "-c", "import sys; sys.exit('no such scenario')"]}, 1)
    assert raised.value.stderr == "no such scenario\n"


def test_ratios_are_against_the_first() -> None:
    shown = table({"ours": Usage(1.5, 2.0, 20_000_000), "theirs": Usage(6.0, 9.0, 30_000_000)})
    assert [line.split()[1:] for line in shown.splitlines()[1:]] == [
        ["1.50", "1.00x", "2.00", "1.00x", "20.0"],
        ["6.00", "4.00x", "9.00", "4.50x", "30.0"],
    ]


def test_a_program_tells_what_its_experiment_alone_has_cost() -> None:
    usage = measure([sys.executable, "-c", "print('experiment 0.001 s of CPU')"])
    assert usage.experiment_s == 0.001 < usage.cpu_s
    usage = measure([sys.executable, "-c", "pass"])
    assert usage.experiment_s == usage.cpu_s
