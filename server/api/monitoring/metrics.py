"""Metrics for Prometheus at /metrics: counts from all workers, and the server's condition."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.api.monitoring.condition import AWAY_STATUS, READY_STATUS, Condition, problems_of, versions_of
from server.api.monitoring.request_counts import BUCKET_BOUNDS_S, RequestCounts, Watched
from server.jobs.table import JobTable
from server.site.site import Site

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Metrics(Collector):
    """Collector of all metrics of a server."""

    def __init__(self, site: Site, watched: Watched, condition: Callable[[], Condition]) -> None:
        self._site, self._condition = site, condition
        self._counts, self._streams, self._jobs = watched.counts, watched.streams, watched.jobs
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._of_state: tuple[Any, list[Metric]] = (None, [])

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Return nothing, since the list of metrics is not known before collecting them."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        yield from _of_requests(self._counts)
        yield from self._content()
        yield _of_problems(self._site)
        yield from _of_processes(self._counts)
        streams = self._streams.total()
        yield _gauge("bifolio_event_streams", "Event streams that are open.", streams)
        yield from _of_jobs(self._jobs)
        yield from _of_condition(self._condition())

    def _content(self) -> list[Metric]:
        """Return the metrics about content.

        They are cached for each state, because all documents are read.
        """
        state = self._site.state
        if self._of_state[0] is not state:
            self._of_state = (state, [_of_documents(self._site), _of_state(self._site)])
        return self._of_state[1]


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _of_requests(counts: RequestCounts) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "bifolio_requests", "Requests that were answered.", labels=("route", "method", "status")
    )
    for route, method, status, count in counts.requests():
        requests.add_metric((route, method, str(status or "other")), count)
    yield requests
    seconds = HistogramMetricFamily(
        "bifolio_request_seconds",
        "From the head of a request until its answer is handed over.",
        labels=("route",),
    )
    for durations in counts.durations():
        total, buckets = 0, []
        for bound, count in zip((*map(str, BUCKET_BOUNDS_S), "+Inf"), durations.counts, strict=True):
            total += count
            buckets.append((bound, total))
        seconds.add_metric((durations.route,), buckets, durations.seconds)
    yield seconds


def _of_documents(site: Site) -> Metric:
    documents = GaugeMetricFamily(
        "bifolio_documents", "Versions of documents.", labels=("type", "locale", "status")
    )
    for type_, locale, status, count in versions_of(site):
        documents.add_metric((type_, locale, status), count)
    return documents


def _of_problems(site: Site) -> Metric:
    metric = GaugeMetricFamily("bifolio_problems", "What is wrong with the content.", labels=("severity",))
    for severity, count in problems_of(site).items():
        metric.add_metric((severity,), count)
    return metric


def _of_state(site: Site) -> Metric:
    text = "When the process that answers took over the last change, in seconds since 1970."
    return _gauge("bifolio_state_timestamp_seconds", text, site.state.shown_at)


def _of_processes(counts: RequestCounts) -> Iterator[Metric]:
    workers = list(counts.workers())
    yield _gauge("bifolio_workers", "Processes that answer.", len(workers))
    kept = sum(cached for _, cached in workers)
    yield _gauge("bifolio_cache_bytes", "Answers that all of them keep, in bytes.", kept)
    resident = GaugeMetricFamily(
        "bifolio_resident_bytes", "Memory of a process, that which it shares included.", labels=("process",)
    )
    for process, _ in workers:
        resident.add_metric((str(process),), _resident(process))
    yield resident


def _resident(process: int) -> int:
    """Return a process's resident memory in bytes, or 0 if it can't be read."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _of_jobs(jobs: JobTable) -> Iterator[Metric]:
    text = "Whether the last run of a job in the background has succeeded."
    up = GaugeMetricFamily("bifolio_job_up", text, labels=("job",))
    text = "When the last run of a job ended, in seconds since 1970; 0 before it."
    ran = GaugeMetricFamily("bifolio_job_run_timestamp_seconds", text, labels=("job",))
    text = "When a job is due again; none for one that waits until it is woken."
    due = GaugeMetricFamily("bifolio_job_due_timestamp_seconds", text, labels=("job",))
    for report in jobs.reports():
        up.add_metric((report.name,), not report.error)
        ran.add_metric((report.name,), report.ended)
        if report.due is not None:
            due.add_metric((report.name,), report.due)
    yield from (up, ran, due)


def _of_condition(found: Condition) -> Iterator[Metric]:
    yield _gauge(
        "bifolio_accounts_up", "Whether accounts can be asked and changed.", found.accounts == READY_STATUS
    )
    yield _gauge("bifolio_media_up", "Whether the bucket of media can be used.", found.media == READY_STATUS)
    yield _gauge(
        "bifolio_events_up", "Whether the log of events has all changes.", found.events == READY_STATUS
    )
    yield CounterMetricFamily("bifolio_events", "Events in the log so far.", value=found.last_event)
    yield _gauge("bifolio_commits_waiting", "Writes that are to be committed.", found.commits)
    if found.remote:
        yield _gauge(
            "bifolio_remote_up", "Whether the git remote answers.", found.remote.state != AWAY_STATUS
        )
        text = "Commits of the git remote that are not served."
        yield _gauge("bifolio_remote_behind_commits", text, found.remote.commits)
        text = "For how long what is served has been behind the git remote."
        yield _gauge("bifolio_remote_behind_seconds", text, found.lag)
        text = "When the git remote has answered last, in seconds since 1970."
        yield _gauge("bifolio_remote_asked_timestamp_seconds", text, found.remote.asked)
    if found.push:
        text = "Commits that the git remote has not got yet."
        yield _gauge("bifolio_push_waiting_commits", text, found.push.commits)
        text = "When the oldest of them was made, in seconds since 1970; 0 for none."
        yield _gauge("bifolio_push_waiting_since_timestamp_seconds", text, found.push.since)
        yield _gauge("bifolio_push_up", "Whether the last push was made.", not found.push.error)
    deliveries = GaugeMetricFamily(
        "bifolio_deliveries_waiting", "What is to be sent to a webhook.", labels=("webhook",)
    )
    for name, count in found.deliveries.items():
        deliveries.add_metric((name,), count)
    yield deliveries
