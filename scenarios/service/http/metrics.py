"""What Prometheus is told: how much waits, since when, and what the process does.

docs/observability.md describes each metric, with alerts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from actors.accounts.messages import ServerStatus
from actors.messages import TERMINAL
from scenarios.service.http.views import STATUSES
from scenarios.service.http.words import S
from scenarios.service.meter import Meter, Spread
from transports.version import VERSION

DEVICES_LIMIT = 100  # series of devices; each scrape stays below 30 KB
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Seen:
    """What the process itself counts: connections by kind, HTTP answers by status, its turns."""

    def __init__(
        self,
        connections: Mapping[str, int],
        answered: Mapping[int, int],
        sessions: int,
        meter: Meter,
    ) -> None:
        self.meter = meter
        self.connections = connections
        self.answered = answered
        self.sessions = sessions


class Exposition:
    """Writes metrics; what the platform knows of the process is among them."""

    def __init__(self) -> None:
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def text(self, status: ServerStatus | None, seen: Seen) -> bytes:
        """Return all metrics in Prometheus's text form; of a server that is silent, `up` is 0."""
        registry = CollectorRegistry()
        registry.register(_Once([*_of_server(status), *_of_process(seen)]))
        return generate_latest(registry) + generate_latest(self._process)


class _Once:
    """Hands over metrics that were collected already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._metrics


def _gauge(name: str, meaning: str, value: float | None) -> Iterator[Metric]:
    """A gauge without labels; what has no value has no sample, and so alerts as absent."""
    family = GaugeMetricFamily(name, meaning)
    if value is not None:
        family.add_metric([], value)
    yield family


def _labelled(
    name: str, meaning: str, labels: Iterable[str], values: Iterable[tuple[list[str], float]]
) -> Iterator[Metric]:
    family = GaugeMetricFamily(name, meaning, labels=list(labels))
    for label, value in values:
        family.add_metric(label, value)
    yield family


def _histogram(name: str, meaning: str, spread: Spread) -> Metric:
    family = HistogramMetricFamily(name, meaning)
    family.add_metric([], spread.cumulated(), spread.sum_s)
    return family


def _of_server(status: ServerStatus | None) -> Iterator[Metric]:
    meaning = "Whether the server answers"
    yield from _gauge("pullcord_server_up", meaning, float(status is not None))
    if status is None:
        return
    counts = status.counts
    runs = [([one], float(counts.get(one, 0))) for one in STATUSES]
    yield from _labelled("pullcord_runs", "Runs that are kept, by status", ["status"], runs)
    waiting = float(counts.get("queued", 0))
    yield from _gauge("pullcord_queue_depth_runs", "Runs that have not started", waiting)
    open_runs = float(sum(n for one, n in counts.items() if one not in TERMINAL))
    yield from _gauge("pullcord_open_runs", "Runs that have not ended", open_runs)
    yield from _gauge(
        "pullcord_oldest_unstarted_run_age_seconds",
        "How long the oldest run waits that has not started; 0 if none waits",
        (status.oldest_queued_us or 0) / S,
    )
    swept = None if status.swept_ago_us is None else status.swept_ago_us / S
    yield from _gauge(
        "pullcord_last_sweep_age_seconds", "Since when deadlines were not looked at", swept
    )
    writable = "Whether the server's store can be written"
    yield from _gauge("pullcord_store_writable", writable, float(status.writable))
    yield from _of_devices(status)


def _of_devices(status: ServerStatus) -> Iterator[Metric]:
    devices = status.devices[:DEVICES_LIMIT]
    ages = [
        ([one.device], one.synced_ago_us / S) for one in devices if one.synced_ago_us is not None
    ]
    yield from _labelled(
        "pullcord_device_last_sync_age_seconds",
        f"Since when a device has not synced; the first {DEVICES_LIMIT} devices",
        ["device"],
        ages,
    )
    yield from _labelled(
        "pullcord_device_open_runs",
        f"Runs of a device that have not ended; the first {DEVICES_LIMIT} devices",
        ["device"],
        [([one.device], float(one.open_runs)) for one in devices],
    )
    oldest = max((age for _, age in ages), default=0.0)
    yield from _gauge(
        "pullcord_oldest_last_sync_age_seconds", "The largest of the devices' ages", oldest
    )


def _of_process(seen: Seen) -> Iterator[Metric]:
    meaning = "Connections over the wire, by kind of principal"
    yield from _labelled(
        "pullcord_connections",
        meaning,
        ["kind"],
        [([kind], float(count)) for kind, count in sorted(seen.connections.items())],
    )
    yield _histogram(
        "pullcord_turn_seconds", "Turns of the server, without their commits", seen.meter.turns
    )
    yield _histogram(
        "pullcord_commit_seconds", "Commits, each of one turn or of several", seen.meter.commits
    )
    yield from _gauge(
        "pullcord_http_sessions", "Browsers in which an owner is signed in", float(seen.sessions)
    )
    requests = CounterMetricFamily(
        "pullcord_http_requests", "Requests that were answered, by status", labels=["code"]
    )
    for code, count in sorted(seen.answered.items()):
        requests.add_metric([str(code)], float(count))
    yield requests
    yield from _labelled("pullcord_info", "The version that runs", ["version"], [([VERSION], 1.0)])
