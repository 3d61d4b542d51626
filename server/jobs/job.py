"""Interface to background jobs: their names, their work and their schedules."""

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
        """Wait until another thread notifies `changed`, for up to `seconds`. None means no limit.

        The caller must hold the lock of `changed`.
        """
        changed.wait(seconds)

    def pause_until(self, at: float) -> float:
        """Return for how many seconds a job should pause until it is due at the time `at`, in seconds since
        1970.

        The result is at most `MAX_WAIT_S`, so the job may run too early and must check the time again. This
        limits the delay if the system clock changes during the pause.
        """
        return min(max(at - self.time(), 0.0), MAX_WAIT_S)


# --- job ------------------------------------------------------------------------------------------


class JobFailedError(BifolioError):
    """Error if a job has failed and has already logged the failure.

    The job runs again after `pause_s` seconds. If that is None, the pause becomes longer with each failure.
    """

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses after failures. Each is twice as long as the one before, up to a maximum.

    After a success, the pauses start again with the shortest one, unless the last failure was less than
    `reset_s` seconds ago.
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    reset_s: float = 0.0

    def pause_s(self, failures: int) -> float:
        doublings = min(failures - 1, 64)  # A larger exponent overflows a float.
        return min(self.first_s * 2.0**doublings, self.longest_s)


@dataclass(frozen=True, slots=True)
class JobContext:
    """Context for each run of a job. Any thread may call `wake`, which makes the job run immediately."""

    clock: Clock
    stopping: threading.Event
    wake: Callable[[], None]
    is_woken: bool  # True if `wake` was called, False if the job runs because its pause is over


class Job(ABC):
    """Background job with its own thread.

    If its position must survive a restart, it stores it in a `Cursor`.
    """

    name: str
    failure = "a job has failed and will be retried"  # log message after an unexpected error
    first_pause_s = 0.0  # delay of the first run after the runner has started
    backoff = Backoff()

    def start(self, context: JobContext) -> None:  # noqa: B027  # optional
        """Prepare the job before its first run, for example by subscribing to events that wake it.

        If this raises an error, it is called again before the next run.
        """

    @abstractmethod
    def run(self, context: JobContext) -> float | None:
        """Do the work that is due. Return for how many seconds to pause until the next run.

        None means that the job runs only after a call of `wake`. A long run must check `context.stopping`.
        Raises JobFailedError after a failure that the job has logged.
        """

    def close(self) -> None:  # noqa: B027  # optional
        """Release resources. Called once at the end, even if the job was never run."""


class DeferredJob(Job):
    """A job that is created when it is first needed, so that its modules are not imported earlier."""

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
    """The position of a job in the data that it processes, stored in a file.

    Only the process that runs the job may change the position. This must happen after the work is done: then
    a job that is killed repeats some work, but skips none.
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
        """Store a new position atomically. If this raises OSError, the old position remains."""
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
    """The intervals at which jobs run, and their pauses after failures, in seconds."""

    heartbeat_timeout_s: float = 10.0  # until a worker that has stopped or hangs is replaced
    # delay of the jobs, so that requests are handled first: starting to watch 10,000 files takes 30 ms
    lead_s: float = 0.2
    setting_s: float = 0.2  # between checks whether the settings require a certain job
    # between patrols, which check all files, even if the system has not reported a change
    patrol_s: float = 30.0
    doubt_s: float = 2.0  # how late the system may report a change that a patrol has found
    poll_s: float = 2.0  # between checks of all files if the system can't watch them (inotify limit)
    watch_retry_s: float = 30.0  # until the next attempt to watch files
    refresh_retry_s: float = 1.0
    record_s: float = 0.1  # between checks for events that were missed
    record_retry_s: float = 5.0
    share_limits_s: float = 0.5
    share_limits_retry_s: float = 2.0
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # time between the last change and the check for problems
    scale_s: float = 1.0
    first_sweep_s: float = 600.0  # delay of the first run after the start
    sweep_s: float = 6 * 3600.0
    deliver_s: float = 0.1  # between checks for new events
    deliver_lock_s: float = 0.2  # until the next attempt to become the process that sends deliveries
    deliver_retry_s: float = 1.0  # after a disk error or lock timeout
    follow_remote_s: float = 1.0  # between checks whether the settings require following a remote
    push_s: float = 0.1  # between checks for commits to push
    push_retry_s: float = 1.0  # doubled after each further failure
    push_longest_s: float = 30.0
    index_s: float = 0.1  # between checks whether the site has changed
    index_lock_s: float = 1.0
    # until the indexing process exits if it has nothing to do; it uses 30 MB and starts in 0.3 s
    index_idle_s: float = 10.0
