"""Interface of background jobs: name, work and schedule."""

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

MAX_WAIT_S = 60.0  # Longest pause of a job that waits for a time of day.


class Clock:
    """Clock for jobs, replaceable in tests. Pauses are measured with the monotonic clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Wait until `changed` is notified, at most `seconds` (None: no limit).

        The caller must hold the lock of `changed`.
        """
        changed.wait(seconds)

    def pause_until(self, at: float) -> float:
        """Return the seconds until a job is due; `at` is in seconds since 1970.

        The result is at most `MAX_WAIT_S`, so the job may run early and must check again. Therefore a change
        of the system clock delays it by at most that long.
        """
        return min(max(at - self.time(), 0.0), MAX_WAIT_S)


# --- job ------------------------------------------------------------------------------------------


class JobFailedError(BifolioError):
    """A run failed, and the job has logged it.

    The next run is after `pause_s`, or after the back-off if None.
    """

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses after failures; each is twice as long as the previous one.

    A success resets the pause, unless the last failure was less than `reset_s` ago.
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    reset_s: float = 0.0

    def pause_s(self, failures: int) -> float:
        doublings = min(failures - 1, 64)  # A larger exponent overflows a float.
        return min(self.first_s * 2.0**doublings, self.longest_s)


@dataclass(frozen=True, slots=True)
class JobContext:
    """Arguments of a job's run. Any thread may call `wake`, which makes the job run at once."""

    clock: Clock
    stopping: threading.Event
    wake: Callable[[], None]
    is_woken: bool  # False after a pause, True after a wake


class Job(ABC):
    """Background job with its own thread. A position that must survive a restart is stored in a `Cursor`."""

    name: str
    failure = "a job has failed and will be retried"  # log message for an unexpected error
    first_pause_s = 0.0  # delay of the first run after the start
    backoff = Backoff()

    def start(self, context: JobContext) -> None:  # noqa: B027  # optional
        """Prepare the job, and subscribe to events that wake it. Called before the first run.

        If it raises, it is called again before the next run.
        """

    @abstractmethod
    def run(self, context: JobContext) -> float | None:
        """Do the work that is due.

        Returns the pause until the next run in seconds, or None to wait for a wake.

        A long run must check `context.stopping`. Raises JobFailedError after a failure that the job has
        logged.
        """

    def close(self) -> None:  # noqa: B027  # optional
        """Release resources. Called once after the last run, even if there was no run."""


class DeferredJob(Job):
    """A job that is created when it is first needed, to delay importing its modules."""

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
    """A job's saved position. Only the process that runs the job may move it.

    Move it after the work is done. Then a killed job repeats some work, but skips none.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name

    def read(self) -> str:
        """Return the position, or "" if there is none yet. Raises OSError."""
        try:
            return (state_folder(self._root) / FOLDER / self._name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def move(self, position: str) -> None:
        """Replace the position atomically. If this raises OSError, the old position remains."""
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
    """Intervals of all jobs, and their pauses after failures, in seconds."""

    heartbeat_timeout_s: float = 10.0  # until a stopped or hanging worker is replaced
    lead_s: float = 0.2  # delay, so requests come first: starting to watch 10,000 files takes 30 ms
    setting_s: float = 0.2  # between checks whether the settings require a job
    patrol_s: float = 30.0  # between patrols: rescans without a file event
    doubt_s: float = 2.0  # how late the event for a change that a patrol found may arrive
    poll_s: float = 2.0  # between rescans if files can't be watched (inotify limit)
    watch_retry_s: float = 30.0  # until the next attempt to watch files
    refresh_retry_s: float = 1.0
    record_s: float = 0.1  # between checks for missed events
    record_retry_s: float = 5.0
    share_limits_s: float = 0.5
    share_limits_retry_s: float = 2.0
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # delay of the check for problems after the last change
    scale_s: float = 1.0
    first_sweep_s: float = 600.0  # delay after the start
    sweep_s: float = 6 * 3600.0
    deliver_s: float = 0.1  # between checks for events
    deliver_lock_s: float = 0.2  # until the next attempt to become the process that delivers
    deliver_retry_s: float = 1.0  # after a disk error or lock timeout
    follow_remote_s: float = 1.0  # between checks whether to follow a remote
    push_s: float = 0.1  # between checks for commits to push
    push_retry_s: float = 1.0  # doubled with each consecutive failure
    push_longest_s: float = 30.0
    index_s: float = 0.1  # between checks whether the site has changed
    index_lock_s: float = 1.0
    index_idle_s: float = 10.0  # until the idle indexing process exits; it uses 30 MB and starts in 0.3 s
