"""The interface of a job: its name, what it does when it is due, and when it is due again."""

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

MAX_WAIT_S = 60.0  # A job that is due at a time of day looks at the clock again after so long.


class Clock:
    """Time as jobs see it. Pauses are measured on the monotonic clock, which nobody can set."""

    def monotonic(self) -> float:
        """Return seconds since some moment in the past."""
        return time.monotonic()

    def time(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Wait until `changed`, which the caller holds, is notified, or for some seconds (None: no limit)."""
        changed.wait(seconds)

    def pause_until(self, at: float) -> float:
        """Return the pause of a job that is due at a time of day, in seconds since 1970.

        The job may run before: a pause is at most `MAX_WAIT_S`, so that it is late by no more if somebody
        sets the clock.
        """
        return min(max(at - self.time(), 0.0), MAX_WAIT_S)


# --- job ------------------------------------------------------------------------------------------


class JobFailedError(BifolioError):
    """A run failed, which the job has logged. It runs again after `pause_s`; None: after its back-off."""

    def __init__(self, reason: str, pause_s: float | None = None) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses after failures: each is twice as long as the one before.

    A run that succeeds ends them, unless the last failure was less than `reset_s` before.
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    reset_s: float = 0.0

    def pause_s(self, failures: int) -> float:
        """Return the pause after so many failures in a row."""
        doublings = min(failures - 1, 64)  # A float holds no more than 1023.
        return min(self.first_s * 2.0**doublings, self.longest_s)


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a runner gives a job for one run. `wake` has the job run at once, and any thread may call it."""

    clock: Clock
    stopping: threading.Event
    wake: Callable[[], None]
    is_woken: bool  # else the pause is over


class Job(ABC):
    """Work of one thread. A position that must survive a kill is kept on disk (`server.jobs.job`)."""

    name: str
    failure = "a job has failed; it is tried again"  # what the log says of an error that nobody expects
    first_pause_s = 0.0  # from the start until the first run
    backoff = Backoff()

    def start(self, context: JobContext) -> None:  # noqa: B027  # Most jobs listen to nothing.
        """Prepare what is kept between runs, and listen to what wakes the job. Called before the first run.

        If it raises, it is called again before the next.
        """

    @abstractmethod
    def run(self, context: JobContext) -> float | None:
        """Do what is due, and return the pause until the next run in seconds; None: until a wake.

        A long run looks whether `context.stopping` is set. Raises JobFailedError for a failure that the job
        has logged.
        """

    def close(self) -> None:  # noqa: B027  # Most jobs keep nothing.
        """Release what is kept between runs. Called once, after the last run, and without one."""


class DeferredJob(Job):
    """A job that is made when it is first wanted, since its modules are loaded late."""

    def __init__(
        self, name: str, is_wanted: Callable[[], bool], make: Callable[[], Job], look_s: float
    ) -> None:
        self.name, self._is_wanted, self._make, self._look_s = name, is_wanted, make, look_s
        self._job: Job | None = None

    def run(self, context: JobContext) -> float | None:
        """Run the job, if it is wanted or was before."""
        if self._job is None:
            if not self._is_wanted():
                return self._look_s
            job = self._make()
            self.failure, self.backoff = job.failure, job.backoff
            job.start(context)
            self._job = job
        return self._job.run(context)

    def close(self) -> None:
        """Close the job, if there is one."""
        if self._job is not None:
            self._job.close()


# --- cursor ---------------------------------------------------------------------------------------

FOLDER = "jobs"  # in .bifolio/


class Cursor:
    """A short text of one job, which only the process that runs the job may move.

    Move it after the work: then a killed job does some work again, and leaves out none.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name

    def read(self) -> str:
        """Return the position; "" if there is none yet. Raises OSError."""
        try:
            return (state_folder(self._root) / FOLDER / self._name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def move(self, position: str) -> None:
        """Replace the position in one step. Raises OSError, and leaves the one before then."""
        folder = state_folder(self._root) / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        temporary = folder / f".{self._name}.new"
        temporary.unlink(missing_ok=True)  # left by a process that was killed
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
    """How often each job runs, in seconds, and how long it waits after a failure."""

    heartbeat_timeout_s: float = 10.0  # after which a worker that was stopped, or hangs, is replaced
    lead_s: float = 0.2  # Requests come first: starting to watch 10,000 files takes 30 ms.
    setting_s: float = 0.2  # between two looks whether the settings ask for a job
    patrol_s: float = 30.0  # between two looks at all files that no report of the system has asked for
    doubt_s: float = 2.0  # for which a report may still be on its way of what a patrol finds
    poll_s: float = 2.0  # between two looks at all files while the system can't watch: inotify may be used up
    watch_retry_s: float = 30.0  # until the system is asked again to watch
    refresh_retry_s: float = 1.0
    record_s: float = 0.1  # between two looks whether events were missed
    record_retry_s: float = 5.0
    share_limits_s: float = 0.5
    share_limits_retry_s: float = 2.0
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # without a further change, before the problems that a change brings are looked for
    scale_s: float = 1.0
    first_sweep_s: float = 600.0  # A start has other things to do.
    sweep_s: float = 6 * 3600.0
    deliver_s: float = 0.1  # between two looks for events
    deliver_lock_s: float = 0.2  # until it is tried again to be the process that delivers
    deliver_retry_s: float = 1.0  # until something is tried again that the disk or a lock has refused
    follow_remote_s: float = 1.0  # between two looks whether there is a remote to follow, and nobody follows
    push_s: float = 0.1  # between two looks whether there is something to push
    push_retry_s: float = 1.0  # longer with each failure in a row
    push_longest_s: float = 30.0
    index_s: float = 0.1  # between two looks whether the site has changed
    index_lock_s: float = 1.0
    index_idle_s: float = (
        10.0  # without work, until the writing process ends; it takes 30 MB, and starts in 0.3 s
    )
