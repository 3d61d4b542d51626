"""Reports of jobs: other processes can read them."""

import os

from server.jobs.reports import MAX_JOBS, JobReports
from server.jobs.runner import JobReport


def test_any_process_reads_the_newest_report_of_each_job() -> None:
    table = JobReports()
    assert table.reports() == ()
    pid = os.fork()
    if not pid:
        table.store(JobReport("push", 12.5, 10.0, "é" * 300))
        table.store(JobReport("commit", 1.0))
        table.store(JobReport("commit", None, 2.0, "away"))
        os._exit(0)
    os.waitpid(pid, 0)
    push, commit = table.reports()
    assert commit == JobReport("commit", None, 2.0, "away")
    assert push == JobReport("push", 12.5, 10.0, "é" * 100)
    table.clear()
    table.store(push)
    assert table.reports() == (push,)


def test_there_may_be_more_jobs_than_places() -> None:
    table = JobReports()
    for number in range(MAX_JOBS + 5):
        table.store(JobReport(str(number), 1.0))
    assert len(table.reports()) == MAX_JOBS
