"""The background jobs that the leader runs, and how to add a job: with one class and one line."""

import dataclasses
import threading
from pathlib import Path

import pytest

from server.api.limiting.count_table import CountTable
from server.api.monitoring.request_counts import MonitoredParts
from server.api.serving.leader import Leader, background_jobs
from server.jobs.job import Job, JobContext, Timing
from server.jobs.runner import Runner
from server.service.opening import Mode, OpenSite, open_site
from server.site.change_log import ChangeLog
from tests.sites import collection, write
from tests.waiting import until

ALL = ["refresh", "scale", "sweep", "check", "commit", "record", "deliver", "follow-remote", "push", "index"]


class Hello(Job):
    """A job that is added in the way described in the documentation. The additional line is in
    `jobs_with`.
    """

    name = "hello"

    def __init__(self, timing: Timing) -> None:
        self._pause_s, self.greeted = timing.scale_s, threading.Event()

    def run(self, context: JobContext) -> float:
        self.greeted.set()
        return self._pause_s


def jobs_with(opened: OpenSite, *more: Job) -> list[Job]:
    site = opened.site
    monitored = MonitoredParts.for_single_process(site.root, site.state.settings.accounts)
    return [*background_jobs(opened, monitored, CountTable(), lambda *_: None, lambda _: None), *more]


@pytest.fixture
def opened(tmp_path: Path) -> OpenSite:
    write(tmp_path, collection("note", {"title": {"type": "string"}}))
    return open_site(tmp_path, Mode.SERVER, records=False, timing=Timing(first_sweep_s=0.0))


def test_the_jobs_of_a_site(opened: OpenSite) -> None:
    assert [job.name for job in jobs_with(opened)] == ALL


def test_a_job_more(opened: OpenSite) -> None:
    hello, log = Hello(opened.timing), ChangeLog()
    runner = Runner(jobs_with(opened, hello))
    leader = Leader(log, lambda: runner, 0.0)
    leader.start()
    try:
        assert hello.greeted.wait(10)
        until(lambda: all(report.last_run_time for report in runner.reports))
    finally:
        leader.stop()
    names = {thread.name for thread in threading.enumerate()}
    assert not names & {"leader", *ALL, "hello"}
    assert [report.error for report in runner.reports] == [""] * (len(ALL) + 1)


def test_a_worker_that_is_to_stop_before_it_leads_runs_nothing(opened: OpenSite) -> None:
    def make() -> Runner:
        raise AssertionError

    leader = Leader(ChangeLog(), make, 60.0)
    leader.start()
    leader.stop()
    assert "leader" not in {thread.name for thread in threading.enumerate()}


def test_a_pause_is_in_seconds_and_has_a_name_that_says_so() -> None:
    assert all(field.name.endswith("_s") for field in dataclasses.fields(Timing))
