"""The interface of a job: its name, what it does when it is due, and when it is due again."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from server.errors import QuireError
from server.jobs.clock import Clock


class JobFailedError(QuireError):
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
    """Work of one thread. A position that must survive a kill is kept on disk (`server.jobs.cursor`)."""

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
