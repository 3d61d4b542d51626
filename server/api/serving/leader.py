"""The leader: the worker that runs background jobs.

To add a job, write a class in the package it belongs to, add its intervals to `server.jobs.job`, and yield it
in `background_jobs`.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import cast

from server.api.limiting.count_table import CountTable
from server.api.monitoring.request_counts import MonitoredParts
from server.database.notices import COMMITS
from server.events.recorder_job import RecordEvents
from server.jobs.job import DeferredJob, Job
from server.jobs.runner import Runner
from server.service.opening import OpenSite
from server.site.background.checking import CheckChanges
from server.site.background.jobs import CommitWrites, DeleteStaleFiles, ResizeImages
from server.site.change import Report
from server.site.change_log import ChangeLog
from server.site.watch import Watcher


class Leader:
    """Thread that waits until no other process is the leader, and then runs the background jobs."""

    def __init__(self, log: ChangeLog, make_runner: Callable[[], Runner], pause_s: float) -> None:
        self._log, self._make_runner, self._pause_s = log, make_runner, pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the jobs, and wait up to 5 seconds for them to end."""
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        if self._stop.wait(self._pause_s) or not self._log.wait_for_leadership(self._stop):
            return
        runner = self._make_runner()
        runner.start()
        self._stop.wait()
        runner.stop()
        self._log.resign_leadership()


def background_jobs(
    opened: OpenSite,
    monitored: MonitoredParts,
    limited: CountTable,
    report: Report,
    tell_search: Callable[[str], None],
) -> Iterator[Job]:
    """Yield a site's jobs. `tell_search` is called with messages about the search index."""
    site, past, timing = opened.site, opened.past, opened.timing
    settings = site.state.settings
    yield Watcher(site, timing, report)
    yield ResizeImages(site, timing)
    yield DeleteStaleFiles(site, timing)
    yield CheckChanges(site, report, timing)
    yield CommitWrites(site, timing)
    yield RecordEvents(site, monitored.recorder, timing, monitored.notices)
    if not past.pinned:  # A server for a past commit must not deliver, fetch or push.
        yield from _network_jobs(opened, monitored)
    if settings.api.rate_limit:
        sharing = import_module("server.api.limiting.sharing")
        if sharing.is_shared(settings):
            yield sharing.CountSharingJob(limited, settings, timing)
    if settings.search.index:
        yield import_module("server.search.sync").Sync(site, timing, tell_search)


def _network_jobs(opened: OpenSite, monitored: MonitoredParts) -> Iterator[Job]:
    site, past, timing = opened.site, opened.past, opened.timing

    def deliver() -> Job:
        return cast(Job, import_module("server.api.webhooks").make_deliverer(site, timing))

    def follow() -> Job:
        return cast(Job, import_module("server.history.remote.following").Follower(past, timing))

    def push() -> Job:
        module = import_module("server.history.remote.push_after_serving")
        return cast(Job, module.PushCommits(past, timing, partial(monitored.notices.notify, COMMITS)))

    yield DeferredJob("deliver", lambda: bool(site.state.settings.webhooks), deliver, timing.settings_poll_s)
    yield DeferredJob(
        "follow-remote", lambda: site.state.settings.git.follow is not None, follow, timing.settings_poll_s
    )
    yield DeferredJob("push", lambda: bool(site.state.settings.git.push), push, timing.settings_poll_s)
