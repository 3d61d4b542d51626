"""Background jobs: their interface, clock and intervals."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from server.errors import BifolioError

# --- clock ----------------------------------------------------------------------------------------

# A job that waits for a time of day pauses at most this long, because the clock can be set.
MAX_WAIT_S = 60.0


class Clock:
    """The clock that jobs use, which tests can replace."""

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait until `condition` is notified, for at most `seconds`. The caller must hold its lock."""
        condition.wait(seconds)

    def seconds_until(self, unix_time: float) -> float:
        """Return the seconds until a Unix time, but at most MAX_WAIT_S.

        After waiting this long, the caller must check the clock again, because the Unix time may not be
        reached yet.
        """
        return min(max(unix_time - self.time(), 0.0), MAX_WAIT_S)


# --- job ------------------------------------------------------------------------------------------


class JobFailedError(BifolioError):
    """Error of a job that has already logged its failure.

    `pause_s` is the pause before the next run. If it is None, the job's `backoff` determines the pause.
    """

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off after failures, from `first_s` to `longest_s` seconds.

    A success resets the back-off if the last failure was at least `reset_s` seconds ago.
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    reset_s: float = 0.0

    def pause_s(self, failures: int) -> float:
        doublings = min(failures - 1, 64)  # A larger exponent overflows a float.
        return min(self.first_s * 2.0**doublings, self.longest_s)


@dataclass(frozen=True, slots=True)
class JobContext:
    """Context of a job's run: the clock, the stop signal, and the thread-safe function `wake`."""

    clock: Clock
    stopping: threading.Event
    wake: Callable[[], None]
    is_woken: bool  # True if `wake` was called, False if the job runs because its pause is over


class Job(ABC):
    """A background job that runs in its own thread."""

    name: str
    failure = "a job has failed and will be retried"  # log message after an unexpected error
    initial_delay_s = 0.0  # seconds from the runner's start to the first run
    backoff = Backoff()

    def start(self, context: JobContext) -> None:  # noqa: B027  # optional
        """Prepare the job. Called before the first run, and repeated if it fails."""

    @abstractmethod
    def run(self, context: JobContext) -> float | None:
        """Do the work that is due.

        Return the seconds until the next run, or None to wait until `wake` is called. Long runs must check
        `context.stopping`. Raises JobFailedError if the job has already logged its failure.
        """

    def close(self) -> None:  # noqa: B027  # optional
        """Release the resources of the job. Called even if the job has never run."""


class DeferredJob(Job):
    """Placeholder for a job that is imported and created only when it is first needed."""

    def __init__(
        self, name: str, is_needed: Callable[[], bool], make: Callable[[], Job], check_interval_s: float
    ) -> None:
        self.name, self._is_wanted, self._make, self._look_s = name, is_needed, make, check_interval_s
        self._job: Job | None = None

    def run(self, context: JobContext) -> float | None:
        if self._job is None:
            if not self._is_wanted():
                return self._look_s
            job = self._make()
            self.failure, self.backoff = job.failure, job.backoff
            job.start(context)
            self._job = job
        return self._job.run(context)

    def close(self) -> None:
        if self._job is not None:
            self._job.close()


# --- timing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals and pauses of background jobs, in seconds."""

    heartbeat_timeout_s: float = 10.0  # After this time, an unresponsive worker is replaced.
    # The jobs start after this pause, so that they do not delay the first requests.
    start_delay_s: float = 0.2
    settings_poll_s: float = 0.2  # interval for checking whether the settings require a job
    # A patrol checks all files, even if the operating system has reported no change.
    patrol_s: float = 30.0
    max_notification_delay_s: float = 2.0
    poll_s: float = 2.0  # interval for checking all files if they can't be watched (inotify limit)
    watch_retry_s: float = 30.0
    refresh_retry_s: float = 1.0
    record_s: float = 0.1  # interval for checking for missed events
    record_retry_s: float = 5.0
    share_limits_s: float = 0.5
    share_limits_retry_s: float = 2.0
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # pause between the last change and the check for problems
    scale_s: float = 1.0
    first_sweep_s: float = 600.0  # pause before unused files are first deleted
    sweep_s: float = 6 * 3600.0
    deliver_s: float = 0.1
    deliver_lock_s: float = 0.2  # pause before retrying to become the process that sends deliveries
    deliver_retry_s: float = 1.0  # pause after a disk error or lock timeout
    follow_remote_s: float = 1.0
    push_s: float = 0.1
    push_retry_s: float = 1.0  # pause after a failed push; doubled after each further failure
    push_longest_s: float = 30.0
    index_s: float = 0.1
    index_lock_s: float = 1.0
    # After this time, the idle process that writes the search index is stopped. It uses 30 MB, and takes 0.3
    # s to start.
    index_idle_s: float = 10.0
