"""Scheduling of jobs: a job runs when it is due or woken, and a failed job does not delay other jobs."""

import logging
import threading
from collections.abc import Callable

import pytest

from server.errors import BusyError
from server.jobs.job import Backoff, DeferredJob, Job, JobContext, JobFailedError
from server.jobs.runner import JobReport, Runner
from tests.jobs.clocks import ManualClock
from tests.waiting import until


class Recurring(Job):
    """A job that counts its runs and calls `work` with the context of each run."""

    def __init__(
        self,
        name: str,
        pause_s: float | None,
        work: Callable[[JobContext], object] = lambda _: None,
        backoff: Backoff | None = None,
        initial_delay_s: float = 0.0,
    ) -> None:
        self.name, self._pause_s, self._work, self.initial_delay_s = name, pause_s, work, initial_delay_s
        self.failure, self.backoff = f"{name} has failed", backoff or Backoff()
        self.runs, self.is_closed = 0, False

    def run(self, context: JobContext) -> float | None:
        self.runs += 1
        self._work(context)
        return self._pause_s

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def fail(_: JobContext) -> None:
    raise OSError("the disk is full")


def refuse(_: JobContext) -> None:
    raise JobFailedError("nobody answers", 5.0)


def test_each_job_runs_when_it_is_due(clock: ManualClock) -> None:
    often, seldom = Recurring("often", 1.0), Recurring("seldom", 10.0, initial_delay_s=3.0)
    runner = Runner([often, seldom], clock)
    assert runner.run_due() == ["often"]
    assert runner.run_due() == []
    clock.advance(0.9)
    assert runner.run_due() == []
    clock.advance(0.2)
    assert runner.run_due() == ["often"]
    clock.advance(2.0)
    assert runner.run_due() == ["often", "seldom"]
    clock.advance(9.0)
    assert runner.run_due() == ["often"]  # It runs once, although it was due several times.
    clock.advance(1.0)
    assert runner.run_due() == ["often", "seldom"]


def test_a_job_that_was_woken_runs_at_once(clock: ManualClock) -> None:
    woken = list[bool]()
    runner = Runner([Recurring("asleep", None, lambda context: woken.append(context.is_woken))], clock)
    assert runner.run_due() == ["asleep"]
    clock.advance(1e6)
    assert runner.run_due() == []
    runner.wake("asleep")
    assert runner.run_due() == ["asleep"]
    assert runner.run_due() == []
    assert woken == [False, True]
    with pytest.raises(KeyError):
        runner.wake("unknown")


def test_a_job_that_is_woken_while_it_runs_runs_once_more(clock: ManualClock) -> None:
    job = Recurring("busy", None, lambda context: context.wake() if job.runs == 1 else None)
    runner = Runner([job], clock)
    assert [runner.run_due() for _ in range(3)] == [["busy"], ["busy"], []]


def test_pauses_after_failures_grow_and_end_with_a_success(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    is_failing = True
    job = Recurring("job", 0.5, lambda context: fail(context) if is_failing else None, Backoff(1.0, 3.0))
    runner = Runner([job], clock)
    for pause in (1.0, 2.0, 3.0, 3.0):
        assert runner.run_due() == ["job"]
        (report,) = runner.reports
        assert (report.error, report.next_run_time) == ("the disk is full", clock.time() + pause)
        runner.wake("job")  # does not shorten the pause after a failure
        clock.advance(pause - 0.01)
        assert runner.run_due() == []
        clock.advance(0.02)
    is_failing = False
    assert runner.run_due() == ["job"]
    assert runner.reports == (JobReport("job", clock.time() + 0.5, clock.time()),)
    assert caplog.messages == ["job has failed"] * 4


def test_a_pause_has_a_bound_however_often_a_job_has_failed() -> None:
    assert Backoff(0.1, 60.0).pause_s(5_000) == 60.0


def test_failures_count_until_a_job_has_been_well_for_a_while(clock: ManualClock) -> None:
    job = Recurring(
        "job", 1.0, lambda context: fail(context) if job.runs in (1, 3, 6) else None, Backoff(1.0, 99.0, 2.0)
    )
    runner, pauses = Runner([job], clock), list[int]()
    for _ in range(6):
        while not runner.run_due():
            clock.advance(0.125)
        pauses.append(round((runner.reports[0].next_run_time or 0.0) - clock.time()))
    assert pauses == [1, 1, 2, 1, 1, 1]


def test_a_failure_that_a_job_has_logged_is_reported_and_not_logged(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    runner = Runner([Recurring("job", 1.0, refuse)], clock)
    runner.run_due()
    assert runner.reports == (JobReport("job", clock.time() + 5.0, clock.time(), "nobody answers"),)
    runner.wake("job")  # The job itself has chosen this pause, so waking the job ends the pause.
    assert runner.run_due() == ["job"]
    assert caplog.messages == []


def test_what_a_request_would_be_told_is_one_line_of_the_log(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def wait_for_a_write(_: JobContext) -> None:
        raise BusyError

    Runner([Recurring("job", 1.0, wait_for_a_write)], clock).run_due()
    assert caplog.messages == ["job has failed: Another write is taking too long; try again"]
    assert caplog.records[0].exc_info is None


def test_a_time_of_day_is_kept_though_the_clock_is_set(clock: ManualClock) -> None:
    at, released = clock.time() + 100_000.0, list[float]()

    def release(context: JobContext) -> None:
        if context.clock.time() >= at:
            released.append(context.clock.time())

    class Release(Recurring):
        def run(self, context: JobContext) -> float | None:
            super().run(context)
            return None if released else context.clock.seconds_until(at)

    job = Release("release", None, release)
    runner = Runner([job], clock)
    runner.run_due()
    clock.set_to(at + 5.0)  # Jobs are not notified of the new time.
    clock.advance(60.0)
    assert runner.run_due() == ["release"]
    assert released == [at + 65.0]


def test_a_late_job_is_made_when_it_is_first_wanted(clock: ManualClock) -> None:
    wanted, made = list[bool](), list[Recurring]()

    def make() -> Job:
        made.append(Recurring("inner", 7.0, backoff=Backoff(9.0)))
        return made[-1]

    job = DeferredJob("late", lambda: bool(wanted), make, 0.2)
    runner = Runner([job], clock)
    runner.run_due()
    clock.advance(0.3)
    runner.run_due()
    assert made == []
    wanted.append(True)
    clock.advance(0.3)
    runner.run_due()
    clock.advance(0.3)
    assert runner.run_due() == []
    assert (len(made), made[0].runs, job.backoff) == (1, 1, Backoff(9.0))
    runner.stop()
    assert made[0].is_closed


def test_a_job_that_hangs_or_fails_stops_no_other(clock: ManualClock) -> None:
    ended = threading.Event()
    hanging = Recurring("hanging", 1.0, lambda _: ended.wait())
    failing, sound = Recurring("failing", 1.0, fail), Recurring("sound", 1.0)
    runner = Runner([hanging, failing, sound], clock)
    runner.start()
    until(lambda: hanging.runs == 1)
    for count in (1, 2, 3):
        until(lambda: sound.runs >= count)  # noqa: B023
        clock.advance(5.0)
    until(lambda: failing.runs > 1)
    ended.set()
    runner.stop()
    assert hanging.is_closed
    assert failing.is_closed
    assert sound.is_closed


def test_a_wake_and_a_stop_end_the_pause_of_a_thread() -> None:
    job = Recurring("asleep", None)
    runner = Runner([job])
    runner.start()
    until(lambda: job.runs == 1)
    runner.wake("asleep")
    until(lambda: job.runs == 2, 5)
    runner.stop()
    assert job.is_closed
    assert not [thread for thread in threading.enumerate() if thread.name == "asleep"]


def test_reports_are_observed(clock: ManualClock) -> None:
    seen = list[JobReport]()
    runner = Runner([Recurring("job", 2.0)], clock, seen.append)
    assert runner.reports == (JobReport("job", clock.time()),)
    runner.run_due()
    assert seen == [JobReport("job", clock.time() + 2.0, clock.time())]


def test_what_a_job_raises_at_its_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Recurring):
        def close(self) -> None:
            raise OSError("it can't be closed")

    with caplog.at_level(logging.ERROR, "bifolio"):
        Runner([Stubborn("stubborn", 1.0)]).stop()
    assert caplog.messages == ["the job stubborn can't be stopped cleanly"]
