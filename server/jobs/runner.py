"""Runner for background jobs, each in its own thread."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from server.errors import ApiError
from server.jobs.job import Clock, Job, JobContext, JobFailedError

log = logging.getLogger("bifolio")

STOP_TIMEOUT_S = 5.0  # time limit for stopping all jobs together


@dataclass(frozen=True, slots=True)
class JobReport:
    """Report on the last run of a job: when it ended, its error, and when the next run is due.

    Times are Unix times. `error` is "" if the run succeeded.
    """

    name: str
    next_run_time: float | None  # None if the job runs only when `wake` is called
    last_run_time: float = 0.0  # 0 before the first run
    error: str = ""


class Runner:
    """Runner for background jobs.

    It passes a report on each job to `observe` at the start and after each run.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        clock: Clock | None = None,
        observe: Callable[[JobReport], None] | None = None,
    ) -> None:
        clock, self._observe = clock or Clock(), observe
        self._lanes = {job.name: _JobThread(job, clock, observe) for job in jobs}

    def start(self) -> None:
        if self._observe:  # The first call must precede calls by the jobs' threads.
            for report in self.reports:
                self._observe(report)
        for lane in self._lanes.values():
            lane.start()

    def stop(self) -> None:
        """Stop all jobs, waiting for them at most STOP_TIMEOUT_S seconds."""
        for lane in self._lanes.values():
            lane.stop()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for lane in self._lanes.values():
            lane.join(max(deadline - time.monotonic(), 0.0))

    def wake(self, name: str) -> None:
        """Run a job now. If it is already running, run it once more afterwards.

        After a failure, the back-off pause still applies. Raises KeyError if there is no such job.
        """
        self._lanes[name].wake()

    def run_due(self) -> list[str]:
        """Run the due jobs in the current thread, and return their names."""
        return [name for name, lane in self._lanes.items() if lane.run_due()]

    @property
    def reports(self) -> tuple[JobReport, ...]:
        return tuple(lane.report for lane in self._lanes.values())


class _JobThread:
    """The thread in which a job runs, and the job's schedule."""

    def __init__(self, job: Job, clock: Clock, observe: Callable[[JobReport], None] | None) -> None:
        self._job, self._clock, self._observe = job, clock, observe
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._is_woken = self._is_started = False
        # None if the job runs only when `wake` is called
        self._due: float | None = clock.monotonic() + job.initial_delay_s
        # If the job has failed, a call to `wake` takes effect only at this time.
        self._held_until = 0.0
        self._error, self._failures, self._failed_at = "", 0, 0.0
        self._thread = threading.Thread(target=self._run_until_stopped, name=job.name, daemon=True)
        # All runs share this object, to save time: some jobs run a hundred times a second.
        self._context = JobContext(clock, self._stopping, self.wake, is_woken=False)
        self._context_of_wake = replace(self._context, is_woken=True)
        self._ended_at = 0.0

    @property
    def report(self) -> JobReport:
        with self._changed:
            due = None if self._due is None else self._clock.time() + self._due - self._clock.monotonic()
            return JobReport(self._job.name, due, self._ended_at, self._error)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        if self._thread.ident is None:
            self._close()

    def join(self, seconds: float) -> None:
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def wake(self) -> None:
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def run_due(self) -> bool:
        with self._changed:
            pause = self._pause_s()
            if pause is None or pause > 0:
                return False
            context = self._context_of_wake if self._is_woken else self._context
            self._is_woken = False
        try:
            if not self._is_started:
                self._job.start(context)
                self._is_started = True
            pause = self._job.run(context)
        except JobFailedError as error:
            pause = self._note_failure(str(error), error.pause_s)
        except ApiError as error:  # for example, if the site is busy or the disk is full
            log.warning("%s: %s", self._job.failure, error.message)
            pause = self._note_failure(error.message, None)
        except Exception as error:
            # While the server stops, errors are not logged: the job's resources may already be closed.
            if not self._stopping.is_set():
                log.exception("%s", self._job.failure)
            pause = self._note_failure(str(error) or type(error).__name__, None)
        else:
            self._note_success()
        self._note_end(pause)
        return True

    def _pause_s(self) -> float | None:
        """Return the seconds until the next run, or None to wait until `wake` is called.

        The caller must hold the lock.
        """
        now = self._clock.monotonic()
        if self._is_woken:
            return self._held_until - now
        return None if self._due is None else self._due - now

    def _run_until_stopped(self) -> None:
        while self._wait():
            self.run_due()
        self._close()

    def _wait(self) -> bool:
        with self._changed:
            while not self._stopping.is_set():
                pause = self._pause_s()
                if pause is not None and pause <= 0:
                    return True
                self._clock.wait(self._changed, pause)
        return False

    def _note_success(self) -> None:
        backoff = self._job.backoff
        if self._failures and self._clock.monotonic() - self._failed_at >= backoff.reset_s:
            self._failures = 0
        self._error, self._held_until = "", 0.0

    def _note_failure(self, error: str, pause: float | None) -> float:
        self._error, self._failed_at = error, self._clock.monotonic()
        if pause is not None:
            self._held_until = 0.0
            return pause
        self._failures += 1
        pause = self._job.backoff.pause_s(self._failures)
        self._held_until = self._failed_at + pause
        return pause

    def _note_end(self, pause: float | None) -> None:
        with self._changed:
            self._due = None if pause is None else self._clock.monotonic() + pause
            self._ended_at = self._clock.time()
        if self._observe:
            self._observe(self.report)

    def _close(self) -> None:
        try:
            self._job.close()
        except Exception:
            log.exception("the job %s can't be stopped cleanly", self._job.name)
