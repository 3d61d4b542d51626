"""Interface to background jobs: their names, the work that they do, and their schedules."""

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from server.errors import BifolioError
from server.paths import state_folder
from server.storage.durable import stage, sync_folder

# --- clock ----------------------------------------------------------------------------------------

MAX_WAIT_S = 60.0  # A job that waits for a time of day pauses at most this long.


class Clock:
    """Clock that jobs use. Tests can replace it. Pauses are measured with the monotonic clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Wait until another thread notifies the condition `changed`, for up to `seconds`. If `seconds` is
        None, there is no limit.

        The caller must hold the lock of `changed`.
        """
        changed.wait(seconds)

    def pause_until(self, at: float) -> float:
        """Return for how many seconds a job should pause if it is due at the time `at`, in seconds since
        1970.

        The result is at most `MAX_WAIT_S`, so that the job is not much too late if the system clock changes
        during the pause. Therefore the job may run before it is due, and must then pause again.
        """
        return min(max(at - self.time(), 0.0), MAX_WAIT_S)


# --- job ------------------------------------------------------------------------------------------


class JobFailedError(BifolioError):
    """Raised by a job that has failed and has already logged the failure.

    The job runs again after `pause_s` seconds. If `pause_s` is None, the pause becomes longer with each
    failure.
    """

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses after failures. Each pause is twice as long as the previous pause, up to a maximum.

    After a success, the pauses start again with the shortest one. The exception is a success that comes less
    than `reset_s` seconds after the last failure: then the next failure makes the pause longer.
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    reset_s: float = 0.0

    def pause_s(self, failures: int) -> float:
        doublings = min(failures - 1, 64)  # A larger exponent overflows a float.
        return min(self.first_s * 2.0**doublings, self.longest_s)


@dataclass(frozen=True, slots=True)
class JobContext:
    """Context that is passed to each run of a job. Any thread may call `wake`, which makes the job run
    immediately.
    """

    clock: Clock
    stopping: threading.Event
    wake: Callable[[], None]
    is_woken: bool  # True if `wake` was called, False if the job runs because its pause is over


class Job(ABC):
    """Background job with its own thread.

    A job whose position in its data must survive a restart stores the position in a `Cursor`.
    """

    name: str
    failure = "a job has failed and will be retried"  # log message after an unexpected error
    first_pause_s = 0.0  # delay of the first run after the runner has started
    backoff = Backoff()

    def start(self, context: JobContext) -> None:  # noqa: B027  # optional
        """Prepare the job before its first run, for example by subscribing to events that wake the job.

        If `start` raises an error, it is called again before the next attempt to run the job.
        """

    @abstractmethod
    def run(self, context: JobContext) -> float | None:
        """Do the work that is due. Return the number of seconds until the next run.

        If None is returned, the job runs again only after a call of `wake`. A long run must check regularly
        whether `context.stopping` is set. Raises JobFailedError after a failure that the job has logged.
        """

    def close(self) -> None:  # noqa: B027  # optional
        """Release the job's resources. Called once at the end, even if the job has never run."""


class DeferredJob(Job):
    """Placeholder that creates the actual job when the job is first needed, so that its modules are not
    imported before that.
    """

    def __init__(
        self, name: str, is_wanted: Callable[[], bool], make: Callable[[], Job], look_s: float
    ) -> None:
        self.name, self._is_wanted, self._make, self._look_s = name, is_wanted, make, look_s
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


# --- cursor ---------------------------------------------------------------------------------------

FOLDER = "jobs"  # in .bifolio/


class Cursor:
    """The position up to which a job has processed its data. The position is stored in a file.

    Only the process that runs the job may change the position. The job must do so after the work is done. If
    the job is then killed in between, it repeats some work but skips none.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name

    def read(self) -> str:
        """Return the stored position, or "" if none was stored yet. Raises OSError."""
        try:
            return (state_folder(self._root) / FOLDER / self._name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def move(self, position: str) -> None:
        """Store a new position atomically. If OSError is raised, the old position is still stored."""
        folder = state_folder(self._root) / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        temporary = folder / f".{self._name}.new"
        temporary.unlink(missing_ok=True)  # from a process that was killed
        stage(position.encode(), temporary, 0o600)
        try:
            os.replace(temporary, folder / self._name)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(folder)


# --- timing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timing:
    """The intervals at which jobs run, and the pauses after failures, in seconds."""

    heartbeat_timeout_s: float = 10.0  # time until an unresponsive worker is replaced
    # Jobs start this late, so that requests are handled first: starting to watch 10,000 files takes 30 ms.
    lead_s: float = 0.2
    setting_s: float = 0.2  # interval for checking whether the settings require a job
    # Interval between patrols, which check all files even if the operating system has reported no change.
    patrol_s: float = 30.0
    doubt_s: float = 2.0  # how late a change that a patrol has found may be reported
    poll_s: float = 2.0  # interval for checking all files if they can't be watched (inotify limit)
    watch_retry_s: float = 30.0  # pause before the next attempt to watch files
    refresh_retry_s: float = 1.0
    record_s: float = 0.1  # interval for checking for events that were missed
    record_retry_s: float = 5.0
    share_limits_s: float = 0.5
    share_limits_retry_s: float = 2.0
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # time between the last change and the check for problems
    scale_s: float = 1.0
    first_sweep_s: float = 600.0  # delay between the start and the first run
    sweep_s: float = 6 * 3600.0
    deliver_s: float = 0.1  # interval for checking for new events
    deliver_lock_s: float = 0.2  # pause before retrying to become the process that sends deliveries
    deliver_retry_s: float = 1.0  # pause after a disk error or lock timeout
    follow_remote_s: float = 1.0  # interval for checking whether to follow a remote
    push_s: float = 0.1  # interval for checking for commits to push
    push_retry_s: float = 1.0  # pause after a failure; doubled after each further failure
    push_longest_s: float = 30.0
    index_s: float = 0.1  # interval for checking whether the site has changed
    index_lock_s: float = 1.0
    # The indexing process exits after it has been idle for this long. It uses 30 MB and starts in 0.3 s.
    index_idle_s: float = 10.0
