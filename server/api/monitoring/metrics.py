"""The server's Prometheus metrics."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.api.monitoring.condition import (
    AWAY_STATUS,
    READY_STATUS,
    ServerStatus,
    count_problems,
    count_versions,
)
from server.api.monitoring.request_counts import BUCKET_BOUNDS_S, MonitoredParts, RequestCounts
from server.jobs.reports import JobReports
from server.site.site import Site

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Metrics(Collector):
    """Collector of the server's Prometheus metrics."""

    def __init__(self, site: Site, monitored: MonitoredParts, condition: Callable[[], ServerStatus]) -> None:
        self._site, self._condition = site, condition
        self._counts, self._streams, self._jobs = monitored.counts, monitored.streams, monitored.jobs
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._of_state: tuple[Any, list[Metric]] = (None, [])

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        # The set of metrics is known only after collecting them.
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from _request_metrics(self._counts)
        yield from self._content()
        yield _problem_counts(self._site)
        yield from _process_metrics(self._counts)
        streams = self._streams.total()
        yield _gauge("bifolio_event_streams", "Number of open event streams.", streams)
        yield from _job_metrics(self._jobs)
        yield from _condition_metrics(self._condition())

    def _content(self) -> list[Metric]:
        state = self._site.state
        # Computing these metrics reads all documents, so it is done only once for each state of the site.
        if self._of_state[0] is not state:
            self._of_state = (state, [_document_count(self._site), _state_metric(self._site)])
        return self._of_state[1]


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _request_metrics(counts: RequestCounts) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "bifolio_requests", "Completed requests.", labels=("route", "method", "status")
    )
    for route, method, status, count in counts.request_counts():
        requests.add_metric((route, method, str(status or "other")), count)
    yield requests
    seconds = HistogramMetricFamily(
        "bifolio_request_seconds",
        "Time from receiving a request's head until its response is ready to send.",
        labels=("route",),
    )
    for durations in counts.durations():
        total, buckets = 0, []
        for bound, count in zip((*map(str, BUCKET_BOUNDS_S), "+Inf"), durations.counts, strict=True):
            total += count
            buckets.append((bound, total))
        seconds.add_metric((durations.route,), buckets, durations.seconds)
    yield seconds


def _document_count(site: Site) -> Metric:
    documents = GaugeMetricFamily(
        "bifolio_documents", "Number of document versions.", labels=("type", "locale", "status")
    )
    for type_, locale, status, count in count_versions(site):
        documents.add_metric((type_, locale, status), count)
    return documents


def _problem_counts(site: Site) -> Metric:
    metric = GaugeMetricFamily(
        "bifolio_problems", "Number of problems in files and settings.", labels=("severity",)
    )
    for severity, count in count_problems(site).items():
        metric.add_metric((severity,), count)
    return metric


def _state_metric(site: Site) -> Metric:
    text = "Time when the responding worker last applied a change, in seconds since 1970."
    return _gauge("bifolio_state_timestamp_seconds", text, site.state.first_served_at)


def _process_metrics(counts: RequestCounts) -> Iterator[Metric]:
    workers = list(counts.workers())
    yield _gauge("bifolio_workers", "Number of worker processes.", len(workers))
    kept = sum(cached for _, cached in workers)
    yield _gauge("bifolio_cache_bytes", "Size of the cached responses in all workers, in bytes.", kept)
    resident = GaugeMetricFamily(
        "bifolio_resident_bytes",
        "Memory of a process in bytes, including shared memory.",
        labels=("process",),
    )
    for process, _ in workers:
        resident.add_metric((str(process),), _resident(process))
    yield resident


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _job_metrics(jobs: JobReports) -> Iterator[Metric]:
    text = "Whether the last run of a background job succeeded."
    up = GaugeMetricFamily("bifolio_job_up", text, labels=("job",))
    text = "Time when a job's last run ended, in seconds since 1970; 0 before the first run."
    ran = GaugeMetricFamily("bifolio_job_run_timestamp_seconds", text, labels=("job",))
    text = "Time when a job's next run is due, in seconds since 1970; absent if none is scheduled."
    due = GaugeMetricFamily("bifolio_job_due_timestamp_seconds", text, labels=("job",))
    for report in jobs.reports():
        up.add_metric((report.name,), not report.error)
        ran.add_metric((report.name,), report.last_run_time)
        if report.next_run_time is not None:
            due.add_metric((report.name,), report.next_run_time)
    yield from (up, ran, due)


def _condition_metrics(condition: ServerStatus) -> Iterator[Metric]:
    yield _gauge(
        "bifolio_accounts_up", "Whether accounts can be read and changed.", condition.accounts == READY_STATUS
    )
    yield _gauge("bifolio_media_up", "Whether the media bucket can be used.", condition.media == READY_STATUS)
    yield _gauge(
        "bifolio_events_up", "Whether the event log contains all changes.", condition.events == READY_STATUS
    )
    yield CounterMetricFamily(
        "bifolio_events", "Number of events recorded so far.", value=condition.last_event
    )
    yield _gauge("bifolio_commits_waiting", "Number of writes that are not committed yet.", condition.commits)
    if condition.remote:
        yield _gauge(
            "bifolio_remote_up", "Whether the git remote responds.", condition.remote.state != AWAY_STATUS
        )
        text = "Number of commits on the git remote that are not served yet."
        yield _gauge("bifolio_remote_behind_commits", text, condition.remote.commits)
        text = "Seconds since the served content fell behind the git remote."
        yield _gauge("bifolio_remote_behind_seconds", text, condition.lag_s)
        text = "Time when the git remote last responded, in seconds since 1970."
        yield _gauge("bifolio_remote_asked_timestamp_seconds", text, condition.remote.asked)
    if condition.push:
        text = "Number of commits that are not pushed to the git remote yet."
        yield _gauge("bifolio_push_waiting_commits", text, condition.push.commit_count)
        text = "Time of the oldest commit that is not pushed yet, in seconds since 1970; 0 if there is none."
        yield _gauge("bifolio_push_waiting_since_timestamp_seconds", text, condition.push.oldest_at)
        yield _gauge("bifolio_push_up", "Whether the last push succeeded.", not condition.push.error)
    deliveries = GaugeMetricFamily(
        "bifolio_deliveries_waiting",
        "Number of deliveries to a webhook that are not finished yet.",
        labels=("webhook",),
    )
    for name, count in condition.deliveries.items():
        deliveries.add_metric((name,), count)
    yield deliveries
