"""Metrics: Prometheus can read them, names are by its conventions, and labels are bounded."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from actors.accounts.messages import DevicePresence, ServerStatus
from scenarios.service.http.metrics import DEVICES_LIMIT, Exposition, Seen
from scenarios.service.meter import Meter
from tests.scenarios.service.http.office import Office, S

PAGE = Path(__file__).parents[4] / "docs" / "observability.md"


def seen() -> Seen:
    meter = Meter()
    for span_s in (0.0001, 0.002, 60.0):
        meter.turns.add(span_s)
    return Seen({"agent": 2, "device": 1, "owner": 0}, {200: 5, 404: 1}, 1, meter)


def samples(status: ServerStatus | None) -> dict[tuple[str, str], float]:
    """Each sample by its name and its label, if it has one."""
    text = Exposition().text(status, seen()).decode()
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_it_tells_what_waits_and_since_when() -> None:
    told = samples(Office().status())
    assert told["pullcord_runs", "queued"] == 2
    assert told["pullcord_runs", "failed"] == 0
    assert told["pullcord_queue_depth_runs", ""] == 2
    assert told["pullcord_oldest_unstarted_run_age_seconds", ""] == 90
    assert told["pullcord_device_last_sync_age_seconds", "dev_1"] == 7
    assert told["pullcord_connections", "agent"] == 2
    assert told["pullcord_http_requests_total", "404"] == 1
    assert told["pullcord_server_up", ""] == 1
    assert told["pullcord_store_writable", ""] == 1


def test_turns_are_spread_over_buckets() -> None:
    text = Exposition().text(None, seen()).decode()
    buckets = re.findall(r'pullcord_turn_seconds_bucket{le="(.*)"} (.*)', text)
    assert [float(count) for _, count in buckets] == [1, 1, 1] + [2] * 8 + [3]
    assert [bound for bound, _ in buckets][::11] == ["0.0001", "+Inf"]
    assert "pullcord_turn_seconds_sum 60.0021" in text
    assert "pullcord_commit_seconds_count 0.0" in text


def test_a_silent_server_is_down_and_nothing_is_made_up() -> None:
    told = samples(None)
    assert told["pullcord_server_up", ""] == 0
    assert ("pullcord_queue_depth_runs", "") not in told
    assert told["pullcord_connections", "device"] == 1


def test_what_never_was_has_no_sample() -> None:
    one = DevicePresence(device="dev_1", name="x", synced_ago_us=None, open_runs=0)
    status = msgspec.structs.replace(Office().status(), devices=(one,), swept_ago_us=None)
    told = samples(status)
    assert ("pullcord_device_last_sync_age_seconds", "dev_1") not in told
    assert ("pullcord_last_sweep_age_seconds", "") not in told


def test_many_devices_are_not_many_series() -> None:
    devices = tuple(
        DevicePresence(device=f"dev_{n}", name="x", synced_ago_us=n * S, open_runs=0)
        for n in range(3 * DEVICES_LIMIT)
    )
    status = msgspec.structs.replace(Office().status(), devices=devices)
    text = Exposition().text(status, seen())
    assert text.count(b'device="') == 2 * DEVICES_LIMIT
    assert len(text) < 30_000


def test_every_metric_is_documented_and_none_else() -> None:
    text = Exposition().text(Office().status(), seen()).decode()
    exposed = set(re.findall(r"^# TYPE (pullcord_\w+)", text, re.MULTILINE))
    documented = set(re.findall(r"^\| `(pullcord_\w+)", PAGE.read_text(), re.MULTILINE))
    assert documented == exposed


def test_alerts_speak_of_metrics_that_there_are() -> None:
    page = PAGE.read_text()
    documented = set(re.findall(r"^\| `(pullcord_\w+)", page, re.MULTILINE))
    alerts = "".join(re.findall(r"expr: (.*)", page))
    assert alerts
    assert set(re.findall(r"pullcord_\w+?(?=_bucket|\b)", alerts)) <= documented
